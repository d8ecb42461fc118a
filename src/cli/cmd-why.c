/* SPDX-License-Identifier: MIT
 *
 * longpole why: explains slow requests, of a recording or of a new one made for it.
 */
#define _GNU_SOURCE /* nftw */
#include "base/err.h"
#include "base/log.h"
#include "base/scoped.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/why.h"
#include "record/record.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const struct opt opts[] = {
	{'o', "output", "DIR", OPT_PATH, "keep the new recording in DIR", false},
	{'d', "duration", "TIME", OPT_DURATION, "record for TIME; otherwise until Ctrl-C", false},
	{0, "request", "PATTERN", OPT_STRING,
	 "only requests whose name holds PATTERN or matches it as a glob", false},
	{0, "cgroup", "PATH", OPT_STRING, "only what threads of this cgroup served", false},
	{0, "pid", "PID", OPT_COUNT, "only what this process served", false},
	{0, "percentile", "P", OPT_PERCENT, "slow is above this percentile; 95 by default", false},
	{0, "slower", "TIME", OPT_DURATION, "slow is above TIME instead", false},
	{0, "top", "N", OPT_COUNT, "show N findings, in JSON also N slowest requests; 5 by default",
	 false},
	{0, "begin", "T", OPT_STRING,
	 "from T on: a time after the start, 23:32:10, or 2026-11-29T23:32:10Z", false},
	{0, "end", "T", OPT_STRING, "up to T", false},
	{0, "buffer", "SIZE", OPT_SIZE, "ring buffer per CPU of a new recording; 8M by default",
	 false},
	{0, "json", NULL, OPT_FLAG, "print JSON (schema longpole.why/1)", false},
	{0},
};

/* --- recording first */

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* What nohup set to be ignored stays so; the others also if a shell started us with &. */
static void catch_signals(void)
{
	struct sigaction old, action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

/* A folder of our own in $TMPDIR, removed with all in it. */
struct temporary {
	char path[4096];
};

static void scoped_temporary(struct temporary *t)
{
	if (t->path[0] && nftw(t->path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
		log_warn("cannot remove %s: %s", t->path, strerror(errno));
}

static int make_temporary(struct temporary *ret, struct err *err)
{
	const char *dir = getenv("TMPDIR");
	struct temporary t;

	if (!dir || !*dir)
		dir = "/tmp";
	if ((size_t)snprintf(t.path, sizeof(t.path), "%s/longpole-XXXXXX", dir) >= sizeof(t.path))
		return err_set(err, -ENAMETOOLONG, "TMPDIR is too long");
	if (!mkdtemp(t.path))
		return err_set(err, -errno, "%s: %s", t.path, strerror(errno));
	*ret = t;
	return 0;
}

/* Ctrl-C ends the recording and the report follows; a second one gives up. */
static int record_first(const struct cmd_args *args, const char *dir, struct err *err)
{
	struct record_options opt = {.dir = dir,
				     .buffer_bytes = (size_t)args_int(args, "buffer", 0),
				     .duration_ns = args_int(args, "duration", 0),
				     .command = args->command,
				     .command_to_stderr = args_has(args, "json"),
				     .stop = &stop};
	int priority = getpriority(PRIO_PROCESS, 0), rc;
	struct record_result result;

	rc = record_run(&opt, &result, err);
	stop = 0;
	/* The recorder raises it to keep up; reading what it wrote must not disturb the host. */
	setpriority(PRIO_PROCESS, 0, priority);
	return rc;
}

/* --- options */

static int read_instant(const struct cmd_args *args, const char *name, struct why_when *ret,
			struct err *err)
{
	const char *text = args_str(args, name, NULL);
	struct err why = {0};

	if (text && why_when_parse(text, ret, &why) < 0)
		return args_wrong(err, "--%s: %s", name, why.text);
	return 0;
}

static int check_numbers(const struct cmd_args *args, struct err *err)
{
	double percentile = args_percent(args, "percentile", 95);
	int64_t duration_ns;

	if (percentile <= 0 || percentile >= 100)
		return args_wrong(err, "--percentile: '%s' is not between 0 and 100",
				  args_str(args, "percentile", ""));
	if (args_duration(args, &duration_ns, err))
		return CMD_USAGE;
	if (args_int(args, "pid", 0) > INT32_MAX)
		return args_wrong(err, "--pid: '%s' is no process id", args_str(args, "pid", ""));
	if (args_int(args, "top", 0) > 1000)
		return args_wrong(err, "--top: '%s' is more than 1000", args_str(args, "top", ""));
	return 0;
}

static int read_window(const struct cmd_args *args, struct why_filter *ret, struct err *err)
{
	int rc = read_instant(args, "begin", &ret->begin, err);

	if (!rc)
		rc = read_instant(args, "end", &ret->end, err);
	if (!rc && ret->begin.given && ret->end.given && !ret->begin.wall && !ret->end.wall &&
	    ret->begin.ns >= ret->end.ns)
		rc = args_wrong(err, "--end: '%s' is not after --begin", args_str(args, "end", ""));
	return rc;
}

static int read_options(const struct cmd_args *args, struct why_options *ret, struct err *err)
{
	int rc = check_numbers(args, err);

	*ret = (struct why_options){
		.filter = {.pattern = args_str(args, "request", NULL),
			   .cgroup = args_str(args, "cgroup", NULL),
			   .pid = (uint32_t)args_int(args, "pid", 0)},
		.profile = {.percentile = args_percent(args, "percentile", 0),
			    .slower_ns = args_int(args, "slower", 0),
			    .top = (int)args_int(args, "top", 0)},
		.own_command = args->command != NULL,
		.stop = &stop,
	};
	if (args_has(args, "slower") && !ret->profile.slower_ns)
		ret->profile.slower_ns = 1; /* everything: 0 would mean "by percentile" */
	return rc ? rc : read_window(args, &ret->filter, err);
}

/* With a recording there is nothing to record, and so nothing that says how. */
static int check_recording_options(const struct cmd_args *args, struct err *err)
{
	static const char *const names[] = {"output", "duration", "buffer"};

	if (!args->operand_count)
		return 0;
	if (args->operand_count > 1)
		return args_wrong(err, "'%s': only one recording can be explained at a time",
				  args->operands[1]);
	if (args->command)
		return args_wrong(err, "'%s': either a recording or '-- %s'", args->operands[0],
				  args->command[0]);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (args_has(args, names[i]))
			return args_wrong(err, "--%s is for a new recording, but '%s' was given",
					  names[i], args->operands[0]);
	return 0;
}

/* --- the answer */

static void say_nothing_matched(const struct why_report *w, const struct why_filter *f)
{
	if (f->pattern || f->begin.given || f->end.given)
		log_info("no request matched; 'longpole why RECORDING' without --request, --begin, "
			 "--end, --cgroup and --pid shows what was served");
	else if (w->subject == SUBJECT_PROCESS)
		log_info("%s neither served a request nor was seen at all", w->subject_name);
	else
		log_info("no request was seen in the recording.  Put load on the service and "
			 "try again; name a process (--pid PID) or a cgroup (--cgroup PATH) to see "
			 "where its time goes; or start a program: longpole why -- CMD");
}

static void say_partial(const char *lines)
{
	while (*lines) {
		int len = (int)strcspn(lines, "\n");

		log_warn("%.*s", len, lines);
		lines += len + (lines[len] == '\n');
	}
}

static int answer(const struct cmd_args *args, struct why_found *found,
		  const struct why_filter *filter, struct err *err)
{
	const struct why_report *w = why_found_get(found);
	const char *partial = why_found_partial(found);
	const struct profile_group *groups;
	bool any = profile_groups(w->profile, &groups) > 0;
	int rc = 0;

	if (args_has(args, "json"))
		rc = why_json(w, stdout);
	else if (any)
		why_text(w, stdout, log_colour(stdout));
	if (rc < 0)
		return err_set(err, rc, "cannot write: %s", strerror(-rc));
	say_partial(partial);
	if (!any)
		say_nothing_matched(w, filter);
	return any && !*partial ? CMD_FINE : CMD_PARTIAL;
}

static int explain(const struct cmd_args *args, const char *recording,
		   const struct why_options *opt, bool kept, struct err *err)
{
	struct why_found *found;
	int rc = why_find(recording, opt, &found, err);

	if (rc < 0)
		return rc;
	why_found_get(found)->kept = kept ? recording : NULL;
	rc = answer(args, found, &opt->filter, err);
	why_found_free(found);
	return rc;
}

static int run(const struct cmd_args *args, struct err *err)
{
	scoped(temporary) struct temporary tmp = {""};
	scoped(str_fini) struct str dir = {0};
	struct why_options opt;
	int rc = read_options(args, &opt, err);

	if (!rc)
		rc = check_recording_options(args, err);
	if (rc)
		return rc;
	catch_signals();
	if (args->operand_count)
		return explain(args, args->operands[0], &opt, true, err);
	if (!args_has(args, "output")) {
		rc = make_temporary(&tmp, err);
		if (rc < 0)
			return rc;
		str_addf(&dir, "%s/host.lp", tmp.path);
	}
	str_add(&dir, args_str(args, "output", ""));
	rc = record_first(args, str_get(&dir), err);
	if (rc < 0)
		return rc;
	return explain(args, str_get(&dir), &opt, args_has(args, "output"), err);
}

const struct cmd cmd_why = {
	.name = "why",
	.summary = "explain why requests were slow, and who made them so",
	.usage =
		(const char *const[]){
			"[-o DIR] [-d TIME] [--request PATTERN] [--cgroup PATH] [--pid PID] "
			"[--percentile P] [--slower TIME] [--top N] [--begin T] [--end T] [--json] "
			"[-- CMD...]",
			"RECORDING [--request PATTERN] [--cgroup PATH] [--pid PID] "
			"[--percentile P] [--slower TIME] [--top N] [--begin T] [--end T] [--json]",
			NULL},
	.opts = opts,
	.examples =
		(const struct example[]){
			{"longpole why -d 10", "record ten seconds of this host and explain them"},
			{"longpole why -d 10 -o /tmp/evening.lp",
			 "the same, and keep the evidence"},
			{"longpole why /tmp/evening.lp --request /cart --slower 50ms",
			 "one kind of request, with a limit of your own"},
			{"longpole why -- make -j2", "where the time of a command goes"},
			{0}},
	.operands_max = OPERANDS_ANY,
	.takes_command = true,
	.run = run,
};
