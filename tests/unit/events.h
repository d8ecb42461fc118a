/* SPDX-License-Identifier: MIT
 *
 * events.h - for tests: events by hand, and the intervals that come out of them.
 */
#ifndef UNIT_EVENTS_H
#define UNIT_EVENTS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/vec.h"
#include "model/model.h"

struct bench {
	struct names *names;
	struct model *model;
	struct VEC(struct interval) out;
};

static inline int bench_sink(const struct interval *iv, void *arg, struct err *err)
{
	struct bench *b = arg;

	(void)err;
	assert_true(iv->start_ns < iv->end_ns);
	vec_push(&b->out, *iv);
	return 0;
}

static inline struct bench *bench_new(int64_t start_ns)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->names = names_new();
	assert_int_equal(model_new(b->names, start_ns, bench_sink, b, &b->model, NULL), 0);
	return b;
}

static inline void bench_feed(struct bench *b, const struct event *e)
{
	assert_int_equal(model_feed(b->model, e, NULL), 0);
}

static inline void bench_finish(struct bench *b, int64_t end_ns)
{
	assert_int_equal(model_finish(b->model, end_ns, NULL), 0);
	b->model = NULL;
}

static inline void bench_free(struct bench *b)
{
	model_abort(b->model);
	names_free(b->names);
	vec_fini(&b->out);
	free(b);
}

static inline int bench_by_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Sorts by track and start; intervals of a track never overlap. */
static inline void bench_check(struct bench *b)
{
	qsort(b->out.at, b->out.n, sizeof(*b->out.at), bench_by_start);
	for (size_t i = 1; i < b->out.n; i++)
		if (b->out.at[i].track == b->out.at[i - 1].track)
			assert_true(b->out.at[i - 1].end_ns <= b->out.at[i].start_ns);
}

/* The i-th interval of a track after bench_check, or NULL. */
static inline const struct interval *bench_at(const struct bench *b, uint32_t track, int i)
{
	for (size_t j = 0; j < b->out.n; j++)
		if (b->out.at[j].track == track && i-- == 0)
			return &b->out.at[j];
	return NULL;
}

static inline int bench_count(const struct bench *b, uint32_t track)
{
	int n = 0;

	while (bench_at(b, track, n))
		n++;
	return n;
}

static inline int bench_thread(const struct bench *b, uint32_t tid, int64_t at_ns)
{
	int thread = names_find(b->names, tid, at_ns);

	assert_true(thread >= 0);
	return thread;
}

/* ---- events with nothing known but what is given ---- */

static inline struct event ev_switch(int64_t ts_ns, int cpu, uint32_t prev, uint32_t next)
{
	return (struct event){.ts_ns = ts_ns,
			      .cpu = cpu,
			      .kind = EVENT_SWITCH,
			      .sw = {.prev_tid = prev,
				     .prev_pid = prev,
				     .next_tid = next,
				     .next_pid = next,
				     .prev_since_ns = NO_TIME,
				     .why = prev ? WHY_BLOCKED : WHY_IDLE,
				     .state = TASK_SLEEP,
				     .syscall = -1,
				     .left_ns = NO_TIME,
				     .waking_ns = NO_TIME,
				     .runnable_ns = NO_TIME,
				     .waker_syscall = -1,
				     .queue_cpu = cpu}};
}

static inline struct event ev_thread(int64_t ts_ns, enum life what, uint32_t tid, const char *comm)
{
	struct event e = {.ts_ns = ts_ns,
			  .kind = EVENT_THREAD,
			  .thread = {.tid = tid,
				     .pid = tid,
				     .what = what,
				     .birth_ns = NO_TIME,
				     .state = TASK_SLEEP,
				     .left_ns = NO_TIME,
				     .waking_ns = NO_TIME,
				     .runnable_ns = NO_TIME,
				     .syscall = -1,
				     .queue_cpu = -1}};

	strncpy(e.thread.comm, comm, sizeof(e.thread.comm) - 1);
	return e;
}

static inline struct event ev_io(int64_t ts_ns, enum event_kind kind, uint64_t cookie, uint32_t tid,
				 uint32_t bytes, uint64_t seq)
{
	return (struct event){.ts_ns = ts_ns,
			      .kind = kind,
			      .io = {.cookie = cookie,
				     .tid = tid,
				     .pid = tid,
				     .bytes = bytes,
				     .seq = seq,
				     .arrived_ns = NO_TIME}};
}

#endif
