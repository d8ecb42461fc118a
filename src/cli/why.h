/* SPDX-License-Identifier: MIT
 *
 * why.h - what `longpole why` found, and the ways to say it: text for a person, JSON for a
 * program.  Between cmd-why.c, which finds it, and why-*.c, which say it.
 *
 * Instants are ns since window_ns on the host's monotonic clock, unless a name says otherwise.
 */
#ifndef CLI_WHY_H
#define CLI_WHY_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"

struct str;

enum why_subject { WHY_REQUESTS, WHY_COMMAND, WHY_PROCESS };
enum { WHY_LOST_REASONS = 16 };

struct why {
	enum why_subject subject;
	const char *subject_name; /* the command or process explained; "" for requests */
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
void why_text(const struct why *w, FILE *out, bool colour);
/* longpole.why/1.  0 or a negative errno of the stream. */
int why_json(const struct why *w, FILE *out);

/* --- why-words.c: sentences */

/* "stress (cgroup /b)"; "" for oneself. */
void why_who(const struct culprit *c, struct str *ret);
/* One sentence, with the group in front. */
void why_sentence(const struct why *w, const struct finding *f, struct str *ret);
/* The i-th line of evidence; false when there are no more. */
bool why_evidence(const struct why *w, const struct finding *f, int i, struct str *ret);
/* What to try next, in one or two sentences. */
void why_advice(const struct finding *f, struct str *ret);
/* "23:32:13.412" in local time, of an instant on the monotonic clock. */
void why_clock(const struct why *w, int64_t at_ns, struct str *ret);

/* --- why-line.c: drawings */

/* The window as a line, with the slow requests marked. */
void why_window_line(const struct why *w, FILE *out);
/* A path as bars, one line a segment; short ones are put together. */
void why_path_lines(const struct why *w, const struct path *p, FILE *out);

/* --- why-text.c */

/* Words of text from column at on, broken before column 80, further lines indented to column. */
void why_wrap(FILE *out, const char *text, int at, int column);
/* 1234567 as "1,234,567". */
void why_count(uint64_t n, struct str *ret);

#endif
