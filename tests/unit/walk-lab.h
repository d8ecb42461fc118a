/* SPDX-License-Identifier: MIT
 *
 * walk-lab.h - small histories for the tests of walk and blame.  Times are given in microseconds
 * and paths are compared as text:
 *
 *	START-END COMM STATE/CAUSE [via WORD,WORD] = CULPRIT [NAME:ns NAME:ns] [?]
 *
 * one line per segment; "?" is a segment that is not certain.  First the threads, cgroups and
 * sockets, then lab_begin(), the intervals, lab_end(), and the questions.  A thread without runs of
 * its own is given some, on a CPU nobody else uses, wherever it was not absent.
 */
#ifndef WALK_LAB_H
#define WALK_LAB_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs those before it */
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "blame/blame.h"
#include "history/history.h"
#include "model/model.h"
#include "path/path.h"
#include "walk/walk.h"

#define US(n) ((int64_t)(n)*1000)
enum { LAB_CPU = 100, LAB_END = 1000000 };

struct lab {
	struct names *names;
	struct model *model;
	struct history_writer *writer;
	struct history *h;
	struct blame *blame;
	struct walk *walk;
	struct arena a;
	struct str text;
	char file[64];
	bool has_runs[256];
	struct VEC(struct interval) away;
	int64_t requests;
};

static inline int lab_drop(const struct interval *iv, void *arg, struct err *err)
{
	(void)iv, (void)arg, (void)err;
	return 0;
}

static inline void lab_feed(struct lab *l, const struct event *e)
{
	struct err err = {0};

	assert_int_equal(model_feed(l->model, e, &err), 0);
}

static inline void lab_init(struct lab *l)
{
	struct err err = {0};

	memset(l, 0, sizeof(*l));
	arena_init(&l->a);
	l->names = names_new();
	names_set_cgroup_key(l->names, "v2");
	assert_int_equal(model_new(l->names, 0, lab_drop, NULL, &l->model, &err), 0);
}

static inline void lab_cgroup(struct lab *l, uint64_t id, const char *path)
{
	struct event e = {.kind = EVENT_CGROUP, .cgroup = {.id = id}};

	snprintf(e.cgroup.path, sizeof(e.cgroup.path), "%s", path);
	lab_feed(l, &e);
}

/* born_us < 0: before the recording. */
static inline int lab_born(struct lab *l, const char *comm, uint32_t tid, uint32_t pid,
			   uint64_t cgroup, int64_t born_us, uint32_t parent)
{
	struct event e = {.kind = EVENT_THREAD,
			  .thread = {.tid = tid,
				     .pid = pid,
				     .parent_tid = parent,
				     .what = born_us < 0 ? LIFE_SNAPSHOT : LIFE_FORK,
				     .birth_ns = US(born_us),
				     .cgroup_v2 = cgroup,
				     .cgroup_cpu = cgroup,
				     .left_ns = NO_TIME,
				     .waking_ns = NO_TIME,
				     .runnable_ns = NO_TIME,
				     .syscall = -1}};
	int thread;

	e.ts_ns = born_us < 0 ? 0 : US(born_us);
	e.thread.kernel = comm[0] == '[';
	snprintf(e.thread.comm, sizeof(e.thread.comm), "%.*s",
		 (int)strcspn(comm + e.thread.kernel, "]"), comm + e.thread.kernel);
	lab_feed(l, &e);
	thread = names_find(l->names, tid, e.ts_ns);
	assert_true(thread > 0);
	return thread;
}

/* A name in brackets is a kernel thread. */
static inline int lab_thread(struct lab *l, const char *comm, uint32_t tid, uint32_t pid,
			     uint64_t cgroup)
{
	return lab_born(l, comm, tid, pid, cgroup, -1, 0);
}

/* TCP between 10.0.0.1:port and 10.0.0.2:peer_port. */
static inline int lab_socket(struct lab *l, uint64_t cookie, enum role role, int port, int peer)
{
	struct event e = {.kind = EVENT_SOCKET,
			  .socket = {.cookie = cookie,
				     .family = AF_INET,
				     .role = role,
				     .local_port = (uint16_t)port,
				     .remote_port = (uint16_t)peer,
				     .local_addr = {10, 0, 0, 1},
				     .remote_addr = {10, 0, 0, 2}}};
	int n = names_sockets(l->names);

	lab_feed(l, &e);
	assert_int_equal(names_sockets(l->names), n + 1);
	return n;
}

static inline void lab_begin(struct lab *l)
{
	struct err err = {0};

	assert_int_equal(model_finish(l->model, US(LAB_END), &err), 0);
	snprintf(l->file, sizeof(l->file), "/tmp/longpole-lab-%d", (int)getpid());
	assert_int_equal(history_create(l->file, NULL, &l->writer, &err), 0);
}

static inline void lab_add(struct lab *l, const struct interval *iv)
{
	struct err err = {0};

	if (history_add(l->writer, iv, &err))
		fail_msg("history_add: %s", err.text);
}

static inline void lab_run_taken(struct lab *l, int cpu, int thread, int64_t start_us,
				 int64_t end_us, int64_t irq_us, int64_t steal_us)
{
	struct run r = {.start_ns = US(start_us),
			.end_ns = US(end_us),
			.cpu = cpu,
			.thread = thread,
			.irq_ns = US(irq_us),
			.steal_ns = US(steal_us),
			.syscall = -1};
	struct interval iv;

	run_put(&r, &iv);
	lab_add(l, &iv);
	if (thread < 256)
		l->has_runs[thread] = true;
}

static inline void lab_run_irq(struct lab *l, int cpu, int thread, int64_t start_us, int64_t end_us,
			       int64_t irq_us)
{
	lab_run_taken(l, cpu, thread, start_us, end_us, irq_us, 0);
}

static inline void lab_run(struct lab *l, int cpu, int thread, int64_t start_us, int64_t end_us)
{
	lab_run_irq(l, cpu, thread, start_us, end_us, 0);
}

/* An absence of thread in us: left, woken, in the run queue, running.  x has the rest. */
static inline void lab_away(struct lab *l, int thread, int64_t left_us, int64_t waking_us,
			    int64_t runnable_us, int64_t back_us, struct absence x)
{
	struct interval iv;

	x.thread = thread;
	x.start_ns = US(left_us);
	x.waking_ns = US(waking_us);
	x.runnable_ns = US(runnable_us);
	x.end_ns = US(back_us);
	if (!x.cpu)
		x.cpu = LAB_CPU + thread;
	if (!x.syscall)
		x.syscall = -1;
	x.waker_syscall = x.waker_syscall ? x.waker_syscall : -1;
	absence_put(&x, &iv);
	lab_add(l, &iv);
	vec_push(&l->away, iv);
}

#define AWAY(...) ((struct absence){.why = WHY_BLOCKED, .state = TASK_SLEEP, __VA_ARGS__})
/* Blocked from left to back in call nr, released by another thread. */
#define lab_blocked(l, thread, left, back, kind, nr, by_whom)                                      \
	lab_away(l, thread, left, back, back, back,                                                \
		 AWAY(.obj_kind = (kind), .syscall = syscall_nr(nr), .by = BY_THREAD,              \
		      .waker = (by_whom)))

static inline void lab_op(struct lab *l, int thread, int64_t start_us, int64_t end_us, struct op x)
{
	struct interval iv;

	x.thread = thread;
	x.start_ns = US(start_us);
	x.end_ns = US(end_us);
	x.arrived_ns = x.arrived_ns ? x.arrived_ns : NO_TIME;
	if (!x.prev_ns)
		x.prev = NO_INDEX;
	if (!x.sender_ns) {
		x.sender = NO_INDEX;
		x.sender_request = NO_INDEX;
		x.sender_ns = NO_TIME;
	}
	op_put(&x, &iv);
	lab_add(l, &iv);
}

/* prev_ns and sender_ns of 0 mean that there is none (lab_op). */
#define RECV(req, sock, when, ...)                                                                 \
	((struct op){.dir = OP_RECV,                                                               \
		     .request = (req),                                                             \
		     .socket = (sock),                                                             \
		     .arrived_ns = US(when),                                                       \
		     __VA_ARGS__})
#define SEND(req, sock, ...)                                                                       \
	((struct op){.dir = OP_SEND, .request = (req), .socket = (sock), __VA_ARGS__})
#define FROM(thread, when, req) .sender = (thread), .sender_ns = US(when), .sender_request = (req)
#define AFTER(thread, when)	.prev = (thread), .prev_ns = US(when)

/* The next request by id, from start to end; ops at first and last (us). */
static inline struct request lab_request(struct lab *l, const char *name, int64_t start_us,
					 int64_t end_us, int first_thread, int64_t first_us,
					 int last_thread, int64_t last_us, int64_t parent)
{
	struct request r = {.start_ns = US(start_us),
			    .end_ns = US(end_us),
			    .slot = (int)l->requests,
			    .id = l->requests,
			    .name = names_intern(l->names, name),
			    .first_thread = first_thread,
			    .first_ns = US(first_us),
			    .last_thread = last_thread,
			    .last_ns = US(last_us),
			    .parent = parent};
	struct interval iv;

	l->requests++;
	request_put(&r, &iv);
	lab_add(l, &iv);
	return r;
}

/* owner: the cgroup of the data. */
static inline void lab_block_of(struct lab *l, int slot, uint64_t id, int thread,
				int64_t submitted_us, int64_t issued_us, int64_t completed_us,
				int owner)
{
	struct block b = {.start_ns = US(submitted_us),
			  .end_ns = US(completed_us),
			  .slot = slot,
			  .id = id,
			  .issued_ns = US(issued_us),
			  .thread = thread,
			  .owner = owner,
			  .bytes = 4096};
	struct interval iv;

	block_put(&b, &iv);
	lab_add(l, &iv);
}

static inline void lab_block(struct lab *l, int slot, uint64_t id, int thread, int64_t submitted_us,
			     int64_t issued_us, int64_t completed_us)
{
	lab_block_of(l, slot, id, thread, submitted_us, issued_us, completed_us, NO_INDEX);
}

static inline void lab_loss(struct lab *l, int64_t start_us, int64_t end_us)
{
	struct loss x = {.start_ns = US(start_us), .end_ns = US(end_us), .count = 1};
	struct interval iv;

	loss_put(&x, &iv);
	lab_add(l, &iv);
}

static inline int lab_by_track(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : 1;
}

/* Between their absences the threads ran, each on a CPU of its own. */
static inline void lab_fill_runs(struct lab *l)
{
	size_t i = 0;

	if (l->away.n)
		qsort(l->away.at, l->away.n, sizeof(*l->away.at), lab_by_track);
	for (int thread = 1; thread < names_threads(l->names); thread++) {
		int64_t at_ns = 0;
		bool mine = !l->has_runs[thread];

		for (; i < l->away.n && (int)track_index(l->away.at[i].track) == thread; i++) {
			if (mine && l->away.at[i].start_ns > at_ns)
				lab_run(l, LAB_CPU + thread, thread, at_ns / 1000,
					l->away.at[i].start_ns / 1000);
			at_ns = l->away.at[i].end_ns;
		}
		if (mine && at_ns < US(LAB_END))
			lab_run(l, LAB_CPU + thread, thread, at_ns / 1000, LAB_END);
	}
}

static inline void lab_end(struct lab *l)
{
	struct walk_options opt = {.host = "h"};
	struct err err = {0};

	lab_fill_runs(l);
	assert_int_equal(history_finish(l->writer, &err), 0);
	if (history_open(l->file, NULL, &l->h, &err))
		fail_msg("history_open: %s", err.text);
	assert_int_equal(blame_new(l->h, l->names, "h", &l->blame, &err), 0);
	assert_int_equal(walk_new(l->h, l->names, l->blame, &opt, &l->walk, &err), 0);
}

static inline void lab_fini(struct lab *l)
{
	walk_free(l->walk);
	blame_free(l->blame);
	history_close(l->h);
	unlink(l->file);
	names_free(l->names);
	arena_fini(&l->a);
	str_fini(&l->text);
	vec_fini(&l->away);
}

static inline void lab_segment(struct lab *l, const struct segment *s)
{
	str_addf(&l->text, "%g-%g %s %s%s%s", (double)s->start_ns / 1000, (double)s->end_ns / 1000,
		 s->comm, state_word(s->state), s->cause ? "/" : "", cause_word(s->cause));
	for (int i = 0; via_at(s->via, i) != VIA_END; i++)
		str_addf(&l->text, "%s%s", i ? "," : " via ", via_word(via_at(s->via, i)));
	if (s->culprit.name && *s->culprit.name)
		str_addf(&l->text, " = %s",
			 s->culprit.kind == CULPRIT_SELF ? "self" : s->culprit.name);
	for (int i = 0; i < s->n_shares; i++)
		str_addf(&l->text, " [%s:%" PRId64 "]", s->shares[i].culprit.name, s->shares[i].ns);
	str_add(&l->text, s->certain ? "\n" : " ?\n");
}

/* What must be so of every path. */
static inline void lab_check(struct lab *l, const struct path *p)
{
	struct budget b;
	struct err err = {0};
	int64_t sum = 0;

	if (path_check(p, &err))
		fail_msg("path: %s", err.text);
	budget_of(&l->a, p, &b);
	for (int i = 0; i < b.n; i++)
		sum += b.lines[i].ns;
	assert_int_equal(b.total_ns, p->end_ns - p->start_ns);
	assert_int_equal(sum, b.total_ns);
}

static inline const char *lab_text(struct lab *l, const struct path *p)
{
	lab_check(l, p);
	str_clear(&l->text);
	for (int i = 0; i < p->n; i++)
		lab_segment(l, &p->segments[i]);
	return str_get(&l->text);
}

static inline const char *lab_walk_thread(struct lab *l, int thread, int64_t from_us, int64_t to_us)
{
	struct err err = {0};
	struct path p;

	assert_int_equal(walk_thread(l->walk, thread, US(from_us), US(to_us), &l->a, &p, &err), 0);
	return lab_text(l, &p);
}

static inline const char *lab_walk_request(struct lab *l, const struct request *r)
{
	struct err err = {0};
	struct path p;

	if (walk_request(l->walk, r, &l->a, &p, &err))
		fail_msg("walk_request: %s", err.text);
	return lab_text(l, &p);
}

#endif
