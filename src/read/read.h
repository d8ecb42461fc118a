/* SPDX-License-Identifier: MIT
 *
 * read.h - from an input to a history: one file per kind of input (recording.c, ...).
 *
 * A recording is a folder NAME.lp with kernel/ (CTF 1.8), host.json and, once built, history.
 * What is damaged is said in one line with file and offset; what was read before it stays.
 */
#ifndef READ_READ_H
#define READ_READ_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

struct err;
struct history;
struct json;

struct host_clock { /* paired readings */
	int64_t monotonic_ns, realtime_ns, boottime_ns;
};

/* host.json, and what the streams say. */
struct recording {
	char *path;
	char *host, *boot_id, *kernel;
	struct host_clock *clocks;
	int n_clocks;
	int64_t start_ns, end_ns; /* monotonic */
	bool complete;		  /* the recorder ended it */
	uint64_t records[16]; /* by record id (bpf/record.h), filled by recording_scan or build */
	uint64_t n_records, bytes;
	struct { /* by what host.json says; once the records were read, by what they say too */
		uint64_t records, by_reason[16];
	} lost;
	double recorder_cpu_pct; /* CPU time of recorder and its BPF programs over the window; < 0: not measured */
	char *command;			 /* of `-- CMD`, or NULL */
	int command_pid, command_status; /* 0 / -1 if none */
	int n_cpus;
	/* What `record` was told to limit reports to: none, or only these. */
	int64_t *report_pids;
	char **report_cgroups;
	int n_report_pids, n_report_cgroups;
	/* Set by the caller, or NULL: when it becomes true, recording_history gives up, -EINTR. */
	const volatile sig_atomic_t *stop;
	/* private to read/ */
	struct recording_files *files;
};

/* Reads host.json and checks the streams' headers, not the records. */
int recording_open(const char *path, struct recording **ret, struct err *err);
void recording_close(struct recording *r);
/* All records in time order, as events.  0 at the end; a negative errno from fn stops it.  A
 * damaged stream: what was before it was given, then -EBADMSG and the sentence. */
typedef int event_fn(const struct event *e, void *arg, struct err *err);
int recording_each(struct recording *r, event_fn *fn, void *arg, struct err *err);
/* Counts records by kind without building anything. */
int recording_scan(struct recording *r, struct err *err);
/* Wall clock (Unix ns) of a monotonic instant: between the nearest paired readings. */
int64_t recording_wall_ns(const struct recording *r, int64_t monotonic_ns);

/* The history of a recording, built on first use (progress on a terminal; -EROFS and the like:
 * built in a temporary file).  *ret_damage (may be NULL) says what could not be read: "" if all
 * was.  The caller closes *ret_history and frees *ret_names. */
int recording_history(struct recording *r, struct history **ret_history, struct names **ret_names,
		      char *ret_damage, size_t damage_len, struct err *err);

#endif
