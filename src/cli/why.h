/* SPDX-License-Identifier: MIT
 *
 * why.h - what `longpole why` found, and the ways to say it: text for a person, JSON for a
 * program.  Between cmd-why.c, which finds it, and why-*.c, which say it.
 *
 * Instants are ns since window_ns on the host's monotonic clock, unless a name says otherwise.
 */
#ifndef CLI_WHY_H
#define CLI_WHY_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"

struct err;
struct names;
struct str;

enum subject { SUBJECT_REQUESTS, SUBJECT_COMMAND, SUBJECT_PROCESS };
enum { WHY_LOST_REASONS = 16 };

struct why_report {
	enum subject subject;
	const char *subject_name;	 /* the command or process explained; "" for requests */
	const char *command;		 /* of `-- CMD`, NULL: none */
	int command_pid, command_status; /* wait status, -1 not known */
	const char *host, *cgroup_key;
	int64_t start_ns, end_ns; /* the part that was asked for, monotonic */
	int64_t wall_ns;	  /* Unix ns of start_ns */
	int64_t request_count, cut_count;
	int64_t elsewhere_count; /* requests that other processes than the subject served */
	uint64_t lost_count;
	struct {
		const char *name;
		uint64_t count;
	} lost[WHY_LOST_REASONS];
	int lost_reasons;
	double recorder_cpu_pct; /* < 0: not measured */
	uint64_t records, bytes;
	const char *kept; /* where the recording is; NULL: removed */
	int top;
	const struct profile *profile;
};

/* All of it in 80 columns. */
void why_text(const struct why_report *w, FILE *out, bool colour);
/* longpole.why/1.  0 or a negative errno of the stream. */
int why_json(const struct why_report *w, FILE *out);

/* --- why-select.c: which requests, which part of the window */

/* What --begin or --end said: an offset from the window's start, or an instant on the wall. */
struct why_when {
	bool given, wall, dated, zoned;
	int64_t ns;	      /* offset; or of the day; or Unix if zoned */
	int year, month, day; /* if dated, local time */
};

/* "2s", "23:32:10.5", "2026-11-29T23:32:10Z".  -EINVAL with the sentence. */
int why_when_parse(const char *text, struct why_when *ret, struct err *err);
/* ns after the window's start, which is at wall_ns (Unix) and length_ns long. */
int64_t why_when_ns(const struct why_when *when, int64_t wall_ns, int64_t length_ns);

struct why_filter {
	const char *pattern; /* NULL: any; a glob or a part of the name */
	const char *cgroup;  /* NULL: any; as given */
	uint32_t pid;	     /* 0: any */
	struct why_when begin, end;
	/* what `record` was told, used where neither --cgroup nor --pid is given */
	char *const *cgroups;
	const int64_t *pids;
	int cgroup_count, pid_count;
};

/* Are only some processes or cgroups wanted? */
bool why_is_limited(const struct why_filter *f);

bool why_name_matches(const struct why_filter *f, const char *name);
/* The cgroup itself or one below, with or without /sys/fs/cgroup and the hierarchy in front. */
bool why_cgroup_matches(const char *wanted, const char *path);
/* Does the thread belong to --pid and --cgroup? */
bool why_thread_matches(const struct why_filter *f, const struct names *names, int thread,
			int64_t at_ns);
/* Is the thread pid's, or of a process that it started, however deep? */
bool why_descends(const struct names *names, int thread, uint32_t pid);

/* --- why-find.c: from a recording to what there is to say */

struct why_options {
	struct why_filter filter;
	struct profile_options profile;
	bool own_command; /* `why -- CMD`: only what the command served counts */
	const volatile sig_atomic_t *stop;
};

struct why_found; /* owns what a struct why_report points to */
/* Reads, walks, compares.  -EINTR if *stop became true. */
int why_find(const char *recording, const struct why_options *opt, struct why_found **ret,
	     struct err *err);
void why_found_free(struct why_found *f);
struct why_report *why_found_get(struct why_found *f);
/* What makes the answer partial, one sentence a line; "" if it is whole. */
const char *why_found_partial(const struct why_found *f);

/* --- why-words.c: sentences */

/* "stress (cgroup /b)"; "" for oneself. */
void why_who(const struct culprit *c, struct str *ret);
/* One sentence, with the group in front. */
void why_sentence(const struct why_report *w, const struct finding *f, struct str *ret);
/* The i-th line of evidence; false when there are no more. */
bool why_evidence(const struct why_report *w, const struct finding *f, int i, struct str *ret);
/* What to try next, in one or two sentences. */
void why_advice(const struct finding *f, struct str *ret);
/* "23:32:13.412" in local time, of an instant on the monotonic clock. */
void why_clock(const struct why_report *w, int64_t at_ns, struct str *ret);

/* --- why-line.c: drawings */

/* The window as a line, with the slow requests marked. */
void why_window_line(const struct why_report *w, FILE *out);
/* A path as bars, one line a segment; short ones are put together. */
/* "runqueue neighbour: stress (cgroup /b), through lock". */
void why_key(const struct budget_line *l, struct str *ret);
void why_path_lines(const struct why_report *w, const struct path *p, FILE *out);

/* --- why-text.c */

/* Words of text from column at on, broken before column 80, further lines indented to column. */
void why_wrap(FILE *out, const char *text, int at, int column);
/* 1234567 as "1,234,567". */
void why_count(uint64_t n, struct str *ret);

#endif
