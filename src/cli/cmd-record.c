/* SPDX-License-Identifier: MIT */
#include "base/duration.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scoped.h"
#include "cli/cli.h"
#include "record/record.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

/* The first Ctrl-C ends the recording in order, the second one ends the program.  What nohup set
 * to be ignored stays so. */
static void catch_signals(void)
{
	struct sigaction old, a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &a, NULL);
}

static const char *default_name(char *buf, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(buf, len, "longpole-%Y%m%d-%H%M%S.lp", &tm);
	return buf;
}

static void say_command(int status)
{
	if (status < 0)
		log_info("the command still runs");
	else if (WIFSIGNALED(status))
		log_info("the command was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		log_info("the command ended with status %d", WEXITSTATUS(status));
}

static void say_result(const char *dir, const struct record_result *r)
{
	char took[DURATION_TEXT], cpu[40] = "";

	if (r->cpu_pct >= 0)
		snprintf(cpu, sizeof(cpu), ", %.1f %% of a CPU used", r->cpu_pct);
	log_info("%s: %s, %llu records, %.1f MB, %llu lost%s", dir,
		 duration_print(r->duration_ns, took), (unsigned long long)r->records,
		 (double)r->bytes / 1e6, (unsigned long long)r->lost, cpu);
}

/* The values of an option that may be given many times; the caller frees it.  NULL: none given. */
static const char **report_cgroups(const struct cmd_args *args)
{
	size_t n = args_count(args, "cgroup");
	const char **list = n ? calloc(n + 1, sizeof(*list)) : NULL;

	for (size_t i = 0; list && i < n; i++)
		list[i] = args_str_at(args, "cgroup", i);
	return list;
}

static int64_t *report_pids(const struct cmd_args *args)
{
	size_t n = args_count(args, "pid");
	int64_t *list = n ? calloc(n + 1, sizeof(*list)) : NULL;

	for (size_t i = 0; list && i < n; i++)
		list[i] = args_int_at(args, "pid", i);
	return list;
}

static int run(const struct cmd_args *args, struct err *err)
{
	char name[64];
	scoped(free) const char **cgroups = report_cgroups(args);
	scoped(free) int64_t *pids = report_pids(args);
	struct record_options opt = {
		.dir = args_str(args, "output", default_name(name, sizeof(name))),
		.buffer_bytes = (size_t)args_int(args, "buffer", 0),
		.command = args->command,
		.raw_text = args_has(args, "raw-text"),
		.report_cgroups = cgroups,
		.report_pids = pids,
		.stop = &stopped,
	};
	struct record_result result;
	int rc = args_duration(args, &opt.duration_ns, err);

	if (rc)
		return rc;
	catch_signals();
	rc = record_run(&opt, &result, err);
	if (rc < 0)
		return rc;
	if (args->command)
		say_command(result.command_status);
	say_result(opt.dir, &result);
	return result.lost ? CMD_PARTIAL : CMD_FINE;
}

static const struct opt opts[] = {
	{'o', "output", "DIR", OPT_PATH, "write to DIR, by default longpole-DATE-TIME.lp", false},
	{'d', "duration", "TIME", OPT_DURATION, "stop after TIME", false},
	{0, "cgroup", "PATH", OPT_STRING, "report only this cgroup and those below it", true},
	{0, "pid", "PID", OPT_COUNT, "report only this process", true},
	{0, "buffer", "SIZE", OPT_SIZE, "ring buffer of each CPU, by default 8M", false},
	{0, "raw-text", NULL, OPT_FLAG, "keep the query strings of requests", false},
	{0},
};

const struct cmd cmd_record = {
	.name = "record",
	.summary = "record this host until TIME, Ctrl-C or the end of CMD",
	.usage = (const char *const[]){"[-o DIR] [-d TIME] [--cgroup PATH] [--pid PID] "
				       "[--buffer SIZE] [-- CMD...]",
				       NULL},
	.opts = opts,
	.takes_command = true,
	.examples =
		(const struct example[]){
			{"longpole record -d 10", "record ten seconds"},
			{"longpole record -o build.lp -- make -j4", "record while make runs"},
			{0},
		},
	.run = run,
};
