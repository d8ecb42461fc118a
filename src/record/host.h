/* SPDX-License-Identifier: MIT
 *
 * host.h - host.json of a recording: which host, which clocks, what was lost.
 *
 * Written at the start, again every minute, and at the end with "complete": always whole.
 */
#ifndef RECORD_HOST_H
#define RECORD_HOST_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/utsname.h>

#include "base/vec.h"
#include "bpf/record.h"

struct ctf;
struct err;

struct clock_reading {
	int64_t monotonic_ns, realtime_ns, boottime_ns;
};

struct cgroup_mount {
	uint32_t hierarchy;
	char controllers[128];
	char path[256];
	char root[256]; /* what of the hierarchy is mounted there */
};

struct host {
	struct utsname uts;
	char boot_id[40];
	unsigned char boot_uuid[16];
	int cpus;
	int64_t start_ns, end_ns;
	struct VEC(struct clock_reading) clocks;
	struct VEC(struct cgroup_mount) mounts;
	/* the caller's */
	char *const *command;
	const char *const *report_cgroups; /* NULL, or NULL-terminated */
	const int64_t *report_pids;	   /* NULL, or 0-terminated */
	int command_pid, command_status;   /* wait status; -1: did not end, or there is none */
	uint64_t lost, lost_by[REC_LOST_REASONS];
	uint64_t buffer_bytes;
	double cpu_pct; /* < 0: not measured */
	bool requests_seen, by_calls, complete;
	const struct ctf *whole; /* the trace that nothing is added to any more; NULL until then */
};

/* CLOCK_MONOTONIC of the initial time namespace, once host_init was called. */
int64_t now_ns(void);
/* False in a pid namespace: pids that this process knows are not those of the records. */
bool host_pids_are_ours(void);
void host_init(struct host *h);
void host_fini(struct host *h);
/* Reads the three clocks as close together as they get. */
void host_read_clocks(struct host *h);
int host_write(const struct host *h, const char *path, struct err *err);

/* cgroups.c: fills mounts, and gives a REC_CGROUP for each cgroup of the hierarchies that records
 * speak of (v2, cpu, blkio). */
void cgroups_find(struct host *h);
bool cgroup_has_controller(const struct cgroup_mount *m, const char *name);
int cgroups_each(const struct host *h, int (*fn)(const struct rec_cgroup *r, void *arg), void *arg);

#endif
