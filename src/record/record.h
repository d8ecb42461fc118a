/* SPDX-License-Identifier: MIT
 *
 * record.h - loads the recorder, drains its rings, writes a recording.
 */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json;
struct recorder;

struct record_options {
	const char *dir; /* NAME.lp; must not exist, unless it is an old recording and replace */
	bool replace;
	size_t buffer_bytes;	/* per CPU, rounded up to a power of two; 0: 8 MiB */
	int64_t duration_ns;	/* 0: until stopped */
	char *const *command;	/* argv of `-- CMD`, NULL: none */
	bool command_to_stderr; /* its standard output; ours is for data */
	bool raw_text;		/* keep query strings */
	bool quiet;		/* no progress line */
	/* what a later report is to be limited to; all is recorded anyway.  NULL-, 0-terminated */
	const char *const *report_cgroups;
	const int64_t *report_pids;
	const volatile sig_atomic_t *stop; /* set by the caller's signal handler */
};

struct record_result {
	uint64_t records, bytes, lost;
	int64_t duration_ns;
	double cpu_pct; /* recorder's user space and BPF programs, of one CPU; < 0 not measured */
	int command_status; /* wait status of CMD, -1 none */
	int command_pid;
};

/* Records until the duration is over, *stop is set, or the command ended.  Everything that was
 * recorded before a failure is kept in dir. */
int record_run(const struct record_options *opt, struct record_result *ret, struct err *err);

/* One line of `longpole doctor`. */
struct record_check {
	const char *name; /* "btf", "ring buffer", ... */
	int state;	  /* 0 works, 1 works less well, 2 does not work */
	char detail[160]; /* what was found */
	char advice[200]; /* what to do about it, "" if nothing */
};
/* Probes what this machine can do (loads and unloads small programs).  Returns how many were put
 * into ret (at most max). */
int record_probe(struct record_check *ret, int max);

#endif
