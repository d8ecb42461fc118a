/* SPDX-License-Identifier: MIT */
#include "record/host.h"

#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/scoped.h"
#include "record/ctf.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What a time namespace adds to the clocks; programs in the kernel read them without it. */
static int64_t monotonic_shift_ns, boottime_shift_ns;

static void read_shifts(void)
{
	scoped(free) char *text = NULL;
	int64_t seconds[2], ns[2];

	if (io_read_file("/proc/self/timens_offsets", 256, &text, NULL, NULL) < 0 ||
	    sscanf(text, "monotonic %" SCNd64 " %" SCNd64 " boottime %" SCNd64 " %" SCNd64,
		   &seconds[0], &ns[0], &seconds[1], &ns[1]) != 4)
		return;
	monotonic_shift_ns = seconds[0] * INT64_C(1000000000) + ns[0];
	boottime_shift_ns = seconds[1] * INT64_C(1000000000) + ns[1];
}

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec -
	       (id == CLOCK_MONOTONIC  ? monotonic_shift_ns
		: id == CLOCK_BOOTTIME ? boottime_shift_ns
				       : 0);
}

/* Records name threads as the initial namespace does, in which this inode is fixed. */
bool host_pids_are_ours(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == 0xEFFFFFFC;
}

int64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void host_read_clocks(struct host *h)
{
	struct clock_reading best = {0};
	int64_t best_ns = INT64_MAX;

	/* of five tries the one that took least: nothing came in between */
	for (int i = 0; i < 5; i++) {
		struct clock_reading c;
		int64_t before = read_clock(CLOCK_MONOTONIC), after;

		c.realtime_ns = read_clock(CLOCK_REALTIME);
		c.boottime_ns = read_clock(CLOCK_BOOTTIME);
		after = read_clock(CLOCK_MONOTONIC);
		c.monotonic_ns = before + (after - before) / 2;
		if (after - before < best_ns) {
			best_ns = after - before;
			best = c;
		}
	}
	vec_push(&h->clocks, best);
}

static void parse_uuid(const char *text, unsigned char uuid[16])
{
	for (int i = 0; i < 16 && *text; i++) {
		unsigned byte = 0;

		text += *text == '-';
		if (sscanf(text, "%2x", &byte) != 1)
			return;
		uuid[i] = (unsigned char)byte;
		text += 2;
	}
}

static void read_boot_id(struct host *h)
{
	scoped(free) char *text = NULL;

	if (io_read_file("/proc/sys/kernel/random/boot_id", 64, &text, NULL, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = 0;
	snprintf(h->boot_id, sizeof(h->boot_id), "%s", text);
	parse_uuid(h->boot_id, h->boot_uuid);
}

void host_init(struct host *h)
{
	*h = (struct host){.command_status = -1, .cpu_pct = -1};
	uname(&h->uts);
	read_boot_id(h);
	read_shifts();
	h->cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	host_read_clocks(h);
	cgroups_find(h);
}

void host_fini(struct host *h)
{
	vec_fini(&h->clocks);
	vec_fini(&h->mounts);
}

/* --- writing */

/* JSON numbers lose digits above 2^53. */
static void put_long(struct json *j, const char *key, int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, number);
	json_str(j, key, text);
}

static void put_clocks(struct json *j, const struct host *h)
{
	json_array(j, "clocks");
	for (size_t i = 0; i < h->clocks.n; i++) {
		json_object(j, NULL);
		put_long(j, "monotonic", h->clocks.at[i].monotonic_ns);
		put_long(j, "realtime", h->clocks.at[i].realtime_ns);
		put_long(j, "boottime", h->clocks.at[i].boottime_ns);
		json_end(j);
	}
	json_end(j);
}

static void put_disk(struct json *j, const char *name)
{
	char path[300];
	scoped(free) char *text = NULL;
	unsigned major, minor;

	snprintf(path, sizeof(path), "/sys/block/%s/dev", name);
	if (io_read_file(path, 64, &text, NULL, NULL) < 0 ||
	    sscanf(text, "%u:%u", &major, &minor) != 2)
		return;
	json_object(j, NULL);
	json_uint(j, "dev", (uint64_t)major << 20 | minor);
	json_str(j, "name", name);
	json_end(j);
}

static void put_disks(struct json *j)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *e;

	json_array(j, "disks");
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			put_disk(j, e->d_name);
	if (dir)
		closedir(dir);
	json_end(j);
}

static void put_lost(struct json *j, const struct host *h)
{
	static const char *const names[] = REC_LOST_NAMES;

	json_object(j, "lost");
	json_uint(j, "records", h->lost);
	json_object(j, "by_reason");
	for (int i = 0; i < REC_LOST_REASONS; i++)
		if (h->lost_by[i])
			json_uint(j, names[i], h->lost_by[i]);
	json_end(j);
	json_end(j);
}

static void put_command(struct json *j, const struct host *h)
{
	if (!h->command)
		return;
	json_object(j, "command");
	json_array(j, "argv");
	for (char *const *word = h->command; *word; word++)
		json_str(j, NULL, *word);
	json_end(j);
	json_int(j, "pid", h->command_pid);
	if (h->command_status >= 0)
		json_int(j, "status", h->command_status);
	else
		json_null(j, "status");
	json_end(j);
}

static void put_report(struct json *j, const struct host *h)
{
	if (!h->report_pids && !h->report_cgroups)
		return;
	json_object(j, "report");
	json_array(j, "pids");
	for (const int64_t *pid = h->report_pids; pid && *pid; pid++)
		json_int(j, NULL, *pid);
	json_end(j);
	json_array(j, "cgroups");
	for (const char *const *path = h->report_cgroups; path && *path; path++)
		json_str(j, NULL, *path);
	json_end(j);
	json_end(j);
}

static void put_mounts(struct json *j, const struct host *h)
{
	json_array(j, "cgroup_mounts");
	for (size_t i = 0; i < h->mounts.n; i++) {
		json_object(j, NULL);
		json_uint(j, "hierarchy", h->mounts.at[i].hierarchy);
		json_str(j, "controllers", h->mounts.at[i].controllers);
		json_str(j, "path", h->mounts.at[i].path);
		json_end(j);
	}
	json_end(j);
}

/* Where a file is cut between two packets nothing else tells. */
static void put_streams(struct json *j, const struct host *h)
{
	if (!h->complete || !h->whole)
		return;
	json_array(j, "streams");
	for (int cpu = 0; cpu < ctf_cpus(h->whole); cpu++) {
		if (!ctf_stream_bytes(h->whole, cpu))
			continue;
		json_object(j, NULL);
		json_int(j, "cpu", cpu);
		put_long(j, "bytes", (int64_t)ctf_stream_bytes(h->whole, cpu));
		json_end(j);
	}
	json_end(j);
}

static void put_recorder(struct json *j, const struct host *h)
{
	json_object(j, "recorder");
	json_int(j, "pid", getpid());
	if (h->cpu_pct >= 0)
		json_num(j, "cpu_pct", h->cpu_pct, 3);
	else
		json_null(j, "cpu_pct");
	json_uint(j, "buffer_bytes", h->buffer_bytes);
	json_bool(j, "requests_seen", h->requests_seen);
	if (h->requests_seen)
		json_str(j, "requests_by", h->by_calls ? "calls" : "sockets");
	json_end(j);
}

static void put_host(struct json *j, const struct host *h)
{
	json_object(j, NULL);
	json_str(j, "format", "longpole.recording/1");
	json_bool(j, "complete", h->complete);
	json_str(j, "host", h->uts.nodename);
	json_str(j, "boot_id", h->boot_id);
	json_str(j, "kernel", h->uts.release);
	json_str(j, "arch", h->uts.machine);
	put_long(j, "start_ns", h->start_ns);
	put_long(j, "end_ns", h->end_ns);
	json_int(j, "cpus", h->cpus);
	put_clocks(j, h);
	put_disks(j);
	put_lost(j, h);
	put_streams(j, h);
	put_recorder(j, h);
	put_report(j, h);
	put_command(j, h);
	put_mounts(j, h);
	json_end(j);
}

int host_write(const struct host *h, const char *path, struct err *err)
{
	scoped(free) char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct json j;
	int rc;

	if (!out)
		return err_set(err, -ENOMEM, "out of memory");
	json_init(&j, out, 1);
	put_host(&j, h);
	rc = json_fini(&j);
	if (fclose(out) || rc < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return io_write_file(path, text, len, 0600, err);
}
