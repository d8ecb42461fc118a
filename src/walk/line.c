/* SPDX-License-Identifier: MIT
 *
 * A thread's line, backward: it ran, or it was absent.
 *
 *	absence   |<------ blocked ------>|<- waking ->|<-- run queue -->|
 *	        start                   waking      runnable            end, it runs
 *	 explained by  release.c              idle          blame (who held that CPU)
 *
 * While a thread runs for a request, the time of the interrupts on its CPU is cut out; where it
 * ran for another request than the one the path belongs to, that is backlog.
 *
 * For whom did it run?  Operations on sockets say so, but a thread that comes out of poll() works
 * for the request it reads next, not for the one it answered before:
 *
 *	ops     recv Q      send Q (answer)            recv R
 *	        |--- Q -----|                          |--- R ...
 *	thread  ==============......... poll ..........==========
 *	owner   Q Q Q Q Q Q Q Q         (idle)         R R R R R
 */
#include <string.h>

#include "history/history.h"
#include "walk/trip.h"

enum { OWNER_SCAN = 64 }; /* absences looked at to find an idle wait since the last operation */
static const int64_t cut_min_ns = 1000;

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ------------------------------------------------------------------ for whom */

/* Was the thread free for whatever comes between op and at_ns? */
static bool idled(struct walk *w, const struct op *op, bool answered, int64_t at_ns)
{
	struct absence x;

	for (int i = 0; i < OWNER_SCAN; i++) {
		if (!walk_absence_before(w, op->thread, at_ns, &x) || x.start_ns < op->start_ns)
			return false;
		if (walk_is_idle(w, &x))
			return true;
		if (answered && x.runnable_ns > x.start_ns &&
		    (walk_call(w, x.syscall) == CALL_READ || walk_call(w, x.syscall) == CALL_FUTEX))
			return true;
		at_ns = x.start_ns;
	}
	return false;
}

int64_t line_owner(struct trip *t, const struct job *job, int thread, int64_t at_ns)
{
	struct op last, next;
	bool has_last = walk_op_before(t->w, thread, at_ns, &last);
	bool has_next = walk_op_after(t->w, thread, at_ns, &next);
	int64_t coming = has_next ? next.request : NO_INDEX;
	bool answered;

	if (!has_last)
		return coming;
	/* The job's own answer goes on, or its path would have ended there. */
	answered = last.served && last.dir == OP_SEND && coming != last.request &&
		   !(job && job->request == last.request);
	return answered || idled(t->w, &last, answered, at_ns) ? coming : last.request;
}

bool line_is_foreign(struct trip *t, const struct frame *f, int64_t owner)
{
	struct request q;

	if (!f->job || owner < 0 || owner == f->job->request)
		return false;
	/* A request made for this one, served by the same thread. */
	return walk_find_request(t->w, owner, &q) || q.parent != f->job->request;
}

/* ------------------------------------------------------------------ running */

static void ran(struct trip *t, const struct frame *f, int64_t from_ns, bool certain)
{
	while (f->job && t->cursor_ns > from_ns && !trip_spent(t)) {
		int64_t owner = line_owner(t, f->job, f->thread, t->cursor_ns);
		int64_t since_ns = from_ns;
		struct op op;

		if (walk_op_before(t->w, f->thread, t->cursor_ns, &op))
			since_ns = max64(from_ns, op.start_ns);
		if (line_is_foreign(t, f, owner))
			trip_backlog(t, f, since_ns, owner, certain);
		else
			trip_running(t, f, since_ns, certain);
	}
	trip_running(t, f, from_ns, certain);
}

struct run_search {
	int thread;
	struct run *ret;
};

static int note_run(const struct interval *iv, void *arg)
{
	struct run_search *s = arg;
	struct run run;

	run_get(iv, &run);
	if (run.thread != s->thread)
		return 0;
	*s->ret = run;
	return 1;
}

/* The run that f's thread was in just before the cursor: on the CPU it was queued at, else on any. */
static bool find_run(struct trip *t, const struct frame *f, int cpu, struct run *ret)
{
	struct run_search s = {f->thread, ret};
	struct interval iv;

	if (cpu >= 0 &&
	    !history_at(t->w->h, track_id(TRACK_CPU, (uint32_t)cpu), t->cursor_ns - 1, &iv) &&
	    note_run(&iv, &s))
		return true;
	return history_range(t->w->h, track_id(TRACK_CPU, 0), track_id(TRACK_CPU, UINT32_MAX),
			     t->cursor_ns - 1, t->cursor_ns, 0, note_run, &s) == 1;
}

/* The part of amount_ns, which is of the whole run, that falls to [from, cursor).  When in the run
 * it was is not known: it is put at the end. */
static int64_t share_of(const struct trip *t, const struct run *run, int64_t amount_ns,
			int64_t from_ns)
{
	int64_t part_ns = t->cursor_ns - from_ns, whole_ns = run->end_ns - run->start_ns;

	return (int64_t)((__int128)amount_ns * part_ns / whole_ns);
}

static void cut(struct trip *t, const struct frame *f, int64_t ns, int64_t from_ns,
		enum cause cause, const char *name)
{
	struct culprit c = {.host = t->w->host, .request = -1, .name = name};

	if (ns >= cut_min_ns)
		trip_emit(t, f, max64(from_ns, t->cursor_ns - ns), STATE_RUNNING, cause, &c, -1,
			  true);
}

/* What the thread did not have of its run: interrupts, and what the hypervisor took. */
static void cut_taken(struct trip *t, const struct frame *f, const struct run *run, int64_t from_ns)
{
	int64_t irq_ns = share_of(t, run, run->irq_ns, from_ns);
	int64_t steal_ns = share_of(t, run, run->steal_ns, from_ns);

	cut(t, f, irq_ns, from_ns, CAUSE_INTERRUPT, "interrupts");
	cut(t, f, steal_ns, from_ns, CAUSE_STEAL, "hypervisor");
}

static void running(struct trip *t, const struct frame *f, int64_t from_ns, int cpu)
{
	struct run run;

	if (find_run(t, f, cpu, &run)) {
		from_ns = max64(from_ns, run.start_ns);
		cut_taken(t, f, &run, from_ns);
		ran(t, f, from_ns, true);
	} else if (blame_lost(t->w->blame, from_ns, t->cursor_ns)) {
		trip_unknown(t, f, from_ns, -1);
	} else {
		ran(t, f, from_ns, false);
	}
}

/* Before its birth a thread's line is that of the one who made it. */
static void unborn(struct trip *t, const struct frame *f, int64_t from_ns)
{
	const struct thread *thread = names_thread(t->w->names, f->thread);
	struct frame parent = trip_enter(t, f, thread->parent, from_ns, f->via);

	parent.job = f->job;
	line_explain(t, &parent);
}

/* No absence covers the time just before the cursor; prev is the last one before, or NULL. */
static void present(struct trip *t, const struct frame *f, const struct absence *prev)
{
	const struct thread *thread = names_thread(t->w->names, f->thread);
	int64_t from_ns = prev ? max64(f->from_ns, prev->end_ns) : f->from_ns;

	if (thread->end_ns != NO_TIME && thread->end_ns < t->cursor_ns)
		trip_unknown(t, f, max64(from_ns, thread->end_ns), -1);
	else if (thread->birth_ns != NO_TIME && t->cursor_ns <= thread->birth_ns)
		unborn(t, f, from_ns);
	else
		running(t, f, max64(from_ns, thread->birth_ns), prev ? prev->cpu : -1);
}

/* ------------------------------------------------------------------ absent */

/* Of some absences only the beginning was seen.  An operation on a socket inside of one shows
 * that the thread was back by then. */
static void came_back(struct trip *t, const struct frame *f, const struct absence *x,
		      int64_t from_ns)
{
	struct op op;

	if (x->why == WHY_UNKNOWN && x->by == BY_UNKNOWN && !x->before &&
	    walk_op_after(t->w, f->thread, x->start_ns + 1, &op) && op.start_ns < t->cursor_ns)
		ran(t, f, max64(from_ns, op.start_ns), false);
}

static void absent(struct trip *t, const struct frame *f, const struct absence *x)
{
	int64_t from_ns = max64(f->from_ns, x->start_ns);
	int syscall = x->syscall;

	if (x->lost) {
		trip_emit(t, f, from_ns, STATE_LOST, CAUSE_NONE, NULL, syscall, false);
		return;
	}
	if (x->why == WHY_EXITED) {
		trip_unknown(t, f, from_ns, syscall);
		return;
	}
	came_back(t, f, x, from_ns);
	if (t->cursor_ns <= from_ns)
		return;
	if (t->cursor_ns > x->runnable_ns)
		trip_runqueue(t, f, x, max64(from_ns, x->runnable_ns));
	if (t->cursor_ns > x->waking_ns)
		trip_wakeup(t, f, max64(from_ns, x->waking_ns), syscall);
	if (t->cursor_ns > from_ns)
		release_explain(t, f, x, from_ns);
}

/* ------------------------------------------------------------------ the line */

static bool may_enter(const struct trip *t, const struct frame *f)
{
	if (f->depth > t->w->max_depth || f->thread <= THREAD_IDLE ||
	    !names_thread(t->w->names, f->thread))
		return false;
	for (const struct frame *up = f->up; up; up = up->up)
		if (up->thread == f->thread && up->from_ns < f->to_ns && f->from_ns < up->to_ns)
			return false;
	return true;
}

void line_explain(struct trip *t, struct frame *f)
{
	struct absence x;
	bool known;

	f->to_ns = t->cursor_ns;
	if (f->from_ns >= f->to_ns)
		return;
	known = may_enter(t, f);
	while (known && t->cursor_ns > f->from_ns && !trip_spent(t)) {
		bool any = walk_absence_before(t->w, f->thread, t->cursor_ns, &x);

		if (any && x.end_ns >= t->cursor_ns)
			absent(t, f, &x);
		else
			present(t, f, any ? &x : NULL);
	}
	trip_unknown(t, f, f->from_ns, -1);
}
