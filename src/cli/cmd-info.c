/* SPDX-License-Identifier: MIT */
#include "base/duration.h"
#include "base/err.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/scoped.h"
#include "base/str.h"
#include "bpf/record.h"
#include "cli/cli.h"
#include "history/history.h"
#include "read/read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

struct info {
	struct recording *r;
	struct history *history;
	struct names *names;
	char damage[512];
	uint64_t requests;
};

struct kind_name {
	int id;
	const char *name;
};

#define KIND_NAME(id_, NAME, name_) {id_, #name_},
static const struct kind_name kind_names[] = {REC_KINDS(KIND_NAME)};
enum { KINDS = sizeof(kind_names) / sizeof(*kind_names), REASONS = 16 };

/* ---- reading ---- */

static int count_request(const struct interval *iv, void *arg)
{
	(void)iv;
	++*(uint64_t *)arg;
	return 0;
}

static void info_close(struct info *info)
{
	history_close(info->history);
	names_free(info->names);
	recording_close(info->r);
}

static int info_open(struct info *info, const char *path, struct err *err)
{
	int rc = recording_open(path, &info->r, err);

	if (rc)
		return rc;
	rc = recording_history(info->r, &info->history, &info->names, info->damage,
			       sizeof(info->damage), err);
	if (rc)
		return rc;
	rc = history_verify(info->history, err);
	if (rc)
		return err_add(err, "%s/history (remove it, and it is built again)", path);
	return history_range(info->history, track_id(TRACK_REQUEST, 0),
			     track_id(TRACK_REQUEST, UINT32_MAX), INT64_MIN, INT64_MAX, 0,
			     count_request, &info->requests);
}

/* ---- JSON ---- */

static void json_lost(struct json *j, const struct recording *r)
{
	json_object(j, "lost");
	json_uint(j, "records", r->lost.records);
	json_object(j, "by_reason");
	for (uint32_t i = 0; i < REASONS; i++)
		if (r->lost.by_reason[i])
			json_uint(j, model_lost_name(i), r->lost.by_reason[i]);
	json_end(j);
	json_end(j);
}

static void json_host(struct json *j, const struct info *info)
{
	const struct recording *r = info->r;

	json_array(j, "hosts");
	json_object(j, NULL);
	json_str(j, "name", r->host);
	json_str(j, "kernel", r->kernel);
	json_str(j, "boot_id", r->boot_id);
	json_str(j, "cgroup_key", names_cgroup_key(info->names));
	json_int(j, "cpus", r->n_cpus);
	json_str(j, "clock", "reference");
	json_int(j, "offset_ns", 0);
	json_int(j, "drift_ppb", 0);
	json_int(j, "error_ns", 0);
	json_int(j, "clock_readings", r->n_clocks);
	json_int(j, "threads", names_threads(info->names) - 1);
	json_int(j, "sockets", names_sockets(info->names));
	json_uint(j, "requests", info->requests);
	json_array(j, "disks");
	for (int i = 0; i < names_disks(info->names); i++)
		json_str(j, NULL, names_disk_name(info->names, i));
	json_end(j);
	json_end(j);
	json_end(j);
}

static void json_window(struct json *j, const struct recording *r)
{
	int64_t wall_ns = recording_wall_ns(r, r->start_ns);
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, wall_ns);
	json_object(j, "window");
	json_int(j, "start_ns", wall_ns);
	json_str(j, "start", text);
	json_int(j, "duration_ns", r->end_ns - r->start_ns);
	json_end(j);
}

static void json_rest(struct json *j, const struct info *info)
{
	const struct recording *r = info->r;

	json_bool(j, "complete", r->complete);
	json_str(j, "damage", info->damage);
	json_uint(j, "bytes", r->bytes);
	json_uint(j, "intervals", history_count(info->history));
	json_object(j, "recorder");
	json_num(j, "cpu_pct", r->recorder_cpu_pct >= 0 ? r->recorder_cpu_pct : NAN, 3);
	json_end(j);
	if (!r->command)
		return;
	json_object(j, "command");
	json_str(j, "line", r->command);
	json_int(j, "pid", r->command_pid);
	json_int(j, "status", r->command_status);
	json_end(j);
}

static int print_json(const struct info *info)
{
	struct json j;

	json_init(&j, stdout, 1);
	json_object(&j, NULL);
	json_str(&j, "schema", "longpole.info/1");
	json_object(&j, "records");
	for (int i = 0; i < KINDS; i++)
		json_uint(&j, kind_names[i].name, info->r->records[kind_names[i].id]);
	json_end(&j);
	json_lost(&j, info->r);
	json_host(&j, info);
	json_window(&j, info->r);
	json_rest(&j, info);
	json_end(&j);
	return json_fini(&j);
}

/* ---- text ---- */

/* Names come from outside. */
static void print_plain(const char *before, const char *name, const char *after)
{
	scoped(str_fini) struct str plain = {0};

	plain_add(&plain, name);
	printf("%s%s%s", before, str_get(&plain), after);
}

static void print_when(const struct recording *r)
{
	time_t seconds = (time_t)(recording_wall_ns(r, r->start_ns) / 1000000000);
	char when[64] = "", took[DURATION_TEXT];
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %Z", &tm);
	printf("window    %s from %s%s\n", duration_print(r->end_ns - r->start_ns, took), when,
	       r->complete ? "" : ", then the recorder was killed");
}

static void print_command(const struct recording *r)
{
	int status = r->command_status;

	if (!r->command)
		return;
	print_plain("command   ", r->command, "");
	if (status >= 0 && WIFSIGNALED(status))
		printf(" (pid %d, killed by signal %d)", r->command_pid, WTERMSIG(status));
	else if (status >= 0)
		printf(" (pid %d, status %d)", r->command_pid, WEXITSTATUS(status));
	putchar('\n');
}

/* How far the wall clock went from the monotonic one while recording. */
static void print_clocks(const struct recording *r)
{
	const struct host_clock *a = r->clocks, *b = r->clocks + r->n_clocks - 1;
	char text[DURATION_TEXT];
	int64_t moved_ns;

	if (r->n_clocks < 1)
		return;
	moved_ns = (b->realtime_ns - a->realtime_ns) - (b->monotonic_ns - a->monotonic_ns);
	printf("clocks    %d reading%s; the wall clock moved %s%s against the monotonic one\n",
	       r->n_clocks, r->n_clocks == 1 ? "" : "s", moved_ns < 0 ? "-" : "",
	       duration_print(moved_ns < 0 ? -moved_ns : moved_ns, text));
}

static void print_lost(const struct recording *r)
{
	printf("lost      %" PRIu64 " records", r->lost.records);
	for (uint32_t i = 0, n = 0; i < REASONS; i++)
		if (r->lost.by_reason[i])
			printf("%s %" PRIu64 " %s", n++ ? "," : ":", r->lost.by_reason[i],
			       model_lost_name(i));
	putchar('\n');
}

static void print_disks(const struct names *n)
{
	int shown = 0;

	for (int i = 0; i < names_disks(n); i++)
		if (names_disk_name(n, i)[0])
			print_plain(shown++ ? " " : "disks     ", names_disk_name(n, i), "");
	if (shown)
		putchar('\n');
}

static void print_text(const struct info *info)
{
	const struct recording *r = info->r;

	print_plain("host      ", r->host, "");
	printf(", %d CPUs", r->n_cpus);
	print_plain(", Linux ", r->kernel, "");
	printf(", cgroups by %s\n", names_cgroup_key(info->names));
	print_when(r);
	print_command(r);
	print_clocks(r);
	printf("size      %.1f MB, %" PRIu64 " records, %" PRIu64 " intervals\n",
	       (double)r->bytes / 1e6, r->n_records, history_count(info->history));
	printf("seen      %d threads, %d sockets, %" PRIu64 " requests\n",
	       names_threads(info->names) - 1, names_sockets(info->names), info->requests);
	print_disks(info->names);
	if (r->recorder_cpu_pct >= 0)
		printf("cost      %.2f %% of a CPU\n", r->recorder_cpu_pct);
	print_lost(r);
	if (info->damage[0])
		print_plain("damage    ", info->damage, "\n");
	printf("\nrecords\n");
	for (int i = 0; i < KINDS; i++)
		printf("  %-8s %12" PRIu64 "\n", kind_names[i].name, r->records[kind_names[i].id]);
}

static int run(const struct cmd_args *args, struct err *err)
{
	struct info info = {0};
	int rc = info_open(&info, args->operands[0], err);

	if (!rc && args_has(args, "json"))
		rc = print_json(&info);
	else if (!rc)
		print_text(&info);
	if (!rc && (info.r->lost.records || info.damage[0] || !info.r->complete))
		rc = CMD_PARTIAL;
	info_close(&info);
	return rc;
}

static const struct opt opts[] = {
	{0, "json", NULL, OPT_FLAG, "print JSON", false},
	{0},
};

const struct cmd cmd_info = {
	.name = "info",
	.summary = "tell what a recording holds",
	.usage = (const char *const[]){"INPUT [--json]", NULL},
	.opts = opts,
	.operands_min = 1,
	.operands_max = 1,
	.run = run,
	.examples =
		(const struct example[]){
			{"longpole info slow.lp", "records by kind, window, host, clocks, losses"},
			{"longpole info --json slow.lp", "the same for a program"},
			{0}},
};
