/* SPDX-License-Identifier: MIT
 *
 * Switches: who held each CPU, and where each thread was while it did not.
 *
 * A switch record has two halves that meet their other halves in other records:
 *
 *	        record 1 (prev = T)                     record 2 (next = T)
 *	 run of T ]------------- absence of T ------------[ run of T
 *	          left: why, state, call      waking runnable: by whom, from which queue
 *
 * The half that T left with is kept in its state until T comes; then the absence is whole and is
 * emitted.  That the two belong together shows in next_left, which repeats the first's time.  If
 * it differs, T ran in between and that record is missing: two absences, both marked lost.
 *
 * A run starts at the last switch-in seen on the CPU.  If that was of another thread, or earlier
 * than the leaver's own stamp, something in between was not seen: the run starts at the stamp,
 * and what is before it is a gap (without a stamp, all of it).  Where switches are not seen, as
 * those of pid 1 on some virtual machines, an operation on a socket shows that its thread runs.
 */
#include "model/state.h"

#include <string.h>

/* Clock reads of one hook may lie so far apart. */
enum { SAME_NS = 2000, MOVES_LIMIT = 4096, CPU_LIMIT = 1 << 16 };

static struct cpu_state *cpu_at(struct model *m, int cpu)
{
	cpu &= CPU_LIMIT - 1;
	while (m->cpus.n <= (size_t)cpu)
		vec_push(&m->cpus, (struct cpu_state){.thread = NO_INDEX,
						      .since_ns = m->start_ns,
						      .run_free_ns = m->start_ns,
						      .loss_free_ns = m->start_ns,
						      .seen_thread = NO_INDEX});
	return &m->cpus.at[cpu];
}

static bool is_runnable_why(enum why why)
{
	return why == WHY_PREEMPTED || why == WHY_YIELDED || why == WHY_THROTTLED;
}

static bool differ(int64_t a, int64_t b)
{
	return (a > b ? a - b : b - a) > SAME_NS;
}

/* Can records that were lost since then be why something does not fit? */
static bool lost_since(const struct model *m, int64_t since_ns)
{
	return m->last_loss_ns != NO_TIME && m->last_loss_ns >= since_ns;
}

/* ---- absences ---- */

static void piece(struct model *m, const struct absence *x, int cpu, int64_t from_ns, int64_t to_ns,
		  int *rc, struct err *err)
{
	struct queued q = {max_ns(from_ns, x->runnable_ns), min_ns(to_ns, x->end_ns), x->thread,
			   cpu};
	struct interval iv;

	queued_put(&q, &iv);
	if (!*rc)
		*rc = model_emit(m, &iv, err);
}

/* Where it stood, if it moved while runnable. */
static int emit_queues(struct model *m, struct thread_state *t, struct absence *x, struct err *err)
{
	int64_t from_ns = x->runnable_ns;
	int rc = 0;

	x->migrated = t->moves.n && t->moves.at[t->moves.n - 1].at_ns > x->runnable_ns &&
		      t->moves.at[t->moves.n - 1].at_ns < x->end_ns;
	for (size_t i = 0; x->migrated && i < t->moves.n; i++) {
		piece(m, x, t->moves.at[i].from, from_ns, t->moves.at[i].at_ns, &rc, err);
		from_ns = max_ns(from_ns, t->moves.at[i].at_ns);
	}
	if (x->migrated)
		piece(m, x, t->moves.at[t->moves.n - 1].to, from_ns, x->end_ns, &rc, err);
	t->moves.n = 0;
	return rc;
}

static int emit_absence(struct model *m, struct thread_state *t, struct absence *x, struct err *err)
{
	struct interval iv;
	int rc;

	x->start_ns = max_ns(x->start_ns, t->sched_free_ns);
	if (x->start_ns >= x->end_ns) {
		t->moves.n = 0;
		return 0;
	}
	x->runnable_ns = clamp_ns(x->runnable_ns, x->start_ns, x->end_ns);
	if (x->waking_ns != NO_TIME)
		x->waking_ns = clamp_ns(x->waking_ns, x->start_ns, x->runnable_ns);
	x->quota_ns = clamp_ns(x->quota_ns, 0, x->end_ns - x->start_ns);
	t->sched_free_ns = x->end_ns;
	rc = emit_queues(m, t, x, err);
	absence_put(x, &iv);
	return rc ? rc : model_emit(m, &iv, err);
}

static void absence_init(struct absence *x, int thread, int64_t since_ns)
{
	*x = (struct absence){.start_ns = since_ns,
			      .thread = thread,
			      .syscall = NO_INDEX,
			      .waking_ns = NO_TIME,
			      .runnable_ns = NO_TIME,
			      .waker = NO_INDEX,
			      .waker_syscall = NO_INDEX,
			      .cpu = NO_INDEX};
}

struct absence *sched_leave(struct model *m, int thread, int64_t since_ns)
{
	struct thread_state *t = model_thread_state(m, thread);

	t->where = WHERE_OFF;
	t->newborn = false;
	t->moves.n = 0;
	absence_init(&t->absence, thread, since_ns);
	return &t->absence;
}

/* Ends an absence whose other half is missing: it lasted until end_ns, nothing more is known. */
static int end_without_facts(struct model *m, struct thread_state *t, int64_t end_ns, bool lost,
			     struct err *err)
{
	t->absence.end_ns = end_ns;
	t->absence.runnable_ns = is_runnable_why(t->absence.why) ? t->absence.start_ns : end_ns;
	t->absence.lost = lost;
	return emit_absence(m, t, &t->absence, err);
}

/* ---- who leaves ---- */

static int end_run(struct model *m, const struct event *e, int thread, struct err *err)
{
	const struct event_switch *sw = &e->sw;
	struct cpu_state *c = cpu_at(m, e->cpu);
	int64_t since_ns = c->thread == thread	      ? c->since_ns
			   : c->seen_thread == thread ? c->seen_ns
						      : NO_TIME;
	struct interval iv;
	struct run r;

	if (sw->prev_since_ns != NO_TIME &&
	    (since_ns == NO_TIME || sw->prev_since_ns > since_ns + SAME_NS))
		since_ns = sw->prev_since_ns;
	if (since_ns == NO_TIME)
		return 0;
	r = (struct run){.start_ns = max_ns(since_ns, c->run_free_ns),
			 .end_ns = e->ts_ns,
			 .cpu = e->cpu,
			 .thread = thread,
			 .irq_ns = clamp_ns(sw->irq_ns, 0, e->ts_ns - since_ns),
			 .why = thread == THREAD_IDLE ? WHY_IDLE : sw->why,
			 .syscall = sw->syscall};
	if (r.start_ns >= r.end_ns)
		return 0;
	r.steal_ns = clamp_ns(c->steal_ns, 0, r.end_ns - r.start_ns);
	c->run_free_ns = r.end_ns;
	run_put(&r, &iv);
	return model_emit(m, &iv, err);
}

/*
 * The leaver was not where its state says.  It is on this CPU now, so it came after the last
 * switch seen here; when exactly only its own stamp can tell.
 */
static int came_unseen(struct model *m, const struct event *e, int thread, struct err *err)
{
	struct thread_state *t = model_thread_state(m, thread);
	const struct cpu_state *c = cpu_at(m, e->cpu);
	int64_t came_ns = e->sw.prev_since_ns != NO_TIME ? e->sw.prev_since_ns
			  : c->seen_thread == thread	 ? c->seen_ns
							 : NO_TIME;
	int64_t known_ns = max_ns(t->absence.start_ns, c->since_ns);
	bool lost = lost_since(m, t->absence.start_ns);
	int rc;

	if (came_ns != NO_TIME)
		return end_without_facts(m, t, came_ns, lost, err);
	rc = end_without_facts(m, t, min_ns(known_ns, e->ts_ns), lost, err);
	if (rc)
		return rc;
	absence_init(&t->absence, thread, known_ns);
	return end_without_facts(m, t, e->ts_ns, lost, err);
}

/* It was on this CPU before and came again later: where it was in between is not known. */
static int left_unseen(struct model *m, const struct event *e, int thread, struct err *err)
{
	struct thread_state *t = model_thread_state(m, thread);
	const struct cpu_state *c = cpu_at(m, e->cpu);

	if (e->sw.prev_since_ns == NO_TIME || c->thread != thread ||
	    e->sw.prev_since_ns <= c->since_ns + SAME_NS)
		return 0;
	absence_init(&t->absence, thread, c->since_ns);
	return end_without_facts(m, t, e->sw.prev_since_ns, true, err);
}

static int leave(struct model *m, const struct event *e, int thread, struct err *err)
{
	const struct event_switch *sw = &e->sw;
	struct thread_state *t = model_thread_state(m, thread);
	struct absence *x;
	int rc = t->where == WHERE_OFF	? came_unseen(m, e, thread, err)
		 : t->where == WHERE_ON ? left_unseen(m, e, thread, err)
					: 0;

	if (rc)
		return rc;
	if (sw->why == WHY_EXITED) {
		rc = requests_thread_ends(m, thread, e->ts_ns, err);
		model_gone(m, thread);
		m->names->threads.at[thread].end_ns = e->ts_ns;
		return rc;
	}
	if (sw->why == WHY_BLOCKED && sw->obj_kind == OBJ_EPOLL)
		requests_idle(m, thread);
	x = sched_leave(m, thread, e->ts_ns);
	x->why = sw->why;
	x->state = sw->state;
	x->syscall = sw->syscall;
	x->obj_kind = sw->obj_kind;
	x->obj = sw->obj;
	x->cpu = e->cpu;
	return 0;
}

/* ---- who comes ---- */

static void fill_coming(struct model *m, struct absence *x, const struct event *e)
{
	const struct event_switch *sw = &e->sw;

	x->end_ns = e->ts_ns;
	x->cpu = sw->queue_cpu;
	x->quota_ns = sw->quota_ns;
	x->runnable_ns = x->start_ns;
	if (is_runnable_why(x->why))
		return;
	x->by = sw->by;
	x->waking_ns = sw->waking_ns;
	x->waker_obj = sw->waker_obj;
	x->waker_syscall = sw->waker_syscall;
	if (sw->by != BY_UNKNOWN)
		x->waker = model_mention(m, sw->waker_tid, sw->waker_pid);
	if (sw->runnable_ns != NO_TIME)
		x->runnable_ns = sw->runnable_ns;
	else if (sw->waking_ns != NO_TIME)
		x->runnable_ns = sw->waking_ns;
	else if (x->before)
		x->runnable_ns = x->end_ns;
}

/* The first run of a new thread: it was runnable since its parent woke it. */
static void fill_newborn(struct model *m, struct absence *x, const struct event *e)
{
	int parent = m->names->threads.at[x->thread].parent;

	fill_coming(m, x, e);
	x->by = BY_NEW;
	if (x->waker == NO_INDEX)
		x->waker = parent;
}

/* When did a thread leave that was not seen leaving? */
static void begin_unseen(struct model *m, int thread, const struct event *e)
{
	struct thread_state *t = model_thread_state(m, thread);
	bool was_seen = t->where == WHERE_ON;
	const struct thread *facts = &m->names->threads.at[thread];
	int64_t since_ns = e->sw.left_ns;

	if (since_ns == NO_TIME && e->sw.first)
		since_ns = facts->birth_ns != NO_TIME ? facts->birth_ns : e->sw.waking_ns;
	if (since_ns == NO_TIME)
		since_ns = was_seen ? e->ts_ns : m->start_ns;
	since_ns = max_ns(since_ns, m->start_ns);
	sched_leave(m, thread, since_ns);
	t->absence.before = since_ns <= m->start_ns;
	t->absence.lost = was_seen || (!t->absence.before && lost_since(m, since_ns));
	t->newborn = e->sw.first;
}

bool sched_halves_fit(const struct absence *x, int64_t left_ns)
{
	return x->before || left_ns == NO_TIME || !differ(x->start_ns, left_ns);
}

/* The leaving that this coming belongs to was not recorded. */
static int split_absence(struct model *m, struct thread_state *t, const struct event *e,
			 struct err *err)
{
	int thread = t->absence.thread;
	int64_t left_ns = max_ns(e->sw.left_ns, t->absence.start_ns);
	int rc = end_without_facts(m, t, left_ns, true, err);

	sched_leave(m, thread, left_ns);
	t->absence.lost = true;
	return rc;
}

static int come(struct model *m, const struct event *e, int thread, struct err *err)
{
	struct thread_state *t = model_thread_state(m, thread);
	int rc = 0;

	if (t->where != WHERE_OFF)
		begin_unseen(m, thread, e);
	else if (!t->newborn && !sched_halves_fit(&t->absence, e->sw.left_ns))
		rc = split_absence(m, t, e, err);
	if (t->newborn)
		fill_newborn(m, &t->absence, e);
	else
		fill_coming(m, &t->absence, e);
	t->newborn = false;
	t->where = WHERE_ON;
	return rc ? rc : emit_absence(m, t, &t->absence, err);
}

/* It happened before it was told; nothing else was seen on this CPU since. */
static int late_switch(struct model *m, const struct event *e, struct err *err)
{
	struct event then = *e;

	then.ts_ns = clamp_ns(e->sw.prev_since_ns, cpu_at(m, e->cpu)->since_ns, e->ts_ns);
	then.sw.prev_since_ns = NO_TIME;
	then.sw.late = false;
	return sched_switch(m, &then, err);
}

int sched_switch(struct model *m, const struct event *e, struct err *err)
{
	const struct event_switch *sw = &e->sw;
	int prev, next, rc = 0;
	struct cpu_state *c;

	if (sw->late && sw->prev_since_ns != NO_TIME)
		return late_switch(m, e, err);
	prev = model_thread(m, sw->prev_tid, sw->prev_pid);
	if (prev != NO_INDEX)
		rc = end_run(m, e, prev, err);
	if (!rc && prev > THREAD_IDLE)
		rc = leave(m, e, prev, err);
	next = model_thread(m, sw->next_tid, sw->next_pid);
	if (!rc && next > THREAD_IDLE)
		rc = come(m, e, next, err);
	c = cpu_at(m, e->cpu);
	c->thread = next;
	c->since_ns = e->ts_ns;
	c->seen_thread = NO_INDEX;
	c->steal_ns = 0;
	return rc;
}

/* ---- the rest ---- */

void sched_seen(struct model *m, const struct event *e, int thread)
{
	struct cpu_state *c = cpu_at(m, e->cpu);

	if (c->thread == thread || c->seen_thread == thread)
		return;
	c->seen_thread = thread;
	c->seen_ns = e->ts_ns;
}

void sched_migrate(struct model *m, const struct event *e)
{
	int thread = model_thread(m, e->migrate.tid, e->migrate.pid);
	struct thread_state *t;

	if (thread <= THREAD_IDLE)
		return;
	t = model_thread_state(m, thread);
	if (t->where == WHERE_OFF && t->moves.n < MOVES_LIMIT)
		vec_push(&t->moves,
			 (struct move){e->ts_ns, e->migrate.from_cpu, e->migrate.to_cpu});
}

void sched_steal(struct model *m, const struct event *e)
{
	struct cpu_state *c = cpu_at(m, e->cpu);

	c->steal_ns =
		e->steal_ns <= INT64_MAX - c->steal_ns ? c->steal_ns + e->steal_ns : INT64_MAX;
}

int sched_loss(struct model *m, const struct event *e, struct err *err)
{
	struct cpu_state *c = cpu_at(m, e->cpu);
	int64_t since_ns = e->lost.since_ns == NO_TIME ? e->ts_ns - 1 : e->lost.since_ns;
	struct loss l = {.start_ns = max_ns(since_ns, c->loss_free_ns),
			 .end_ns = e->ts_ns,
			 .cpu = e->cpu,
			 .count = e->lost.count,
			 .reason = e->lost.reason};
	struct interval iv;

	m->last_loss_ns = e->ts_ns;
	if (l.start_ns >= l.end_ns)
		return 0;
	c->loss_free_ns = l.end_ns;
	loss_put(&l, &iv);
	return model_emit(m, &iv, err);
}

/* Still off every CPU at the end: what LIFE_OPEN told is in the absence. */
static int finish_absence(struct model *m, struct thread_state *t, int64_t end_ns, struct err *err)
{
	struct absence *x = &t->absence;

	x->end_ns = end_ns;
	x->open = true;
	if (is_runnable_why(x->why))
		x->runnable_ns = x->start_ns;
	else if (x->runnable_ns == NO_TIME)
		x->runnable_ns = end_ns;
	return emit_absence(m, t, x, err);
}

static int finish_cpu(struct model *m, int cpu, int64_t end_ns, struct err *err)
{
	const struct cpu_state *c = &m->cpus.at[cpu];
	struct run r = {.start_ns = max_ns(c->since_ns, c->run_free_ns),
			.end_ns = end_ns,
			.cpu = cpu,
			.thread = c->thread,
			.why = WHY_UNKNOWN,
			.syscall = NO_INDEX};
	struct interval iv;

	if (c->thread == NO_INDEX)
		return 0;
	run_put(&r, &iv);
	return model_emit(m, &iv, err);
}

int sched_finish(struct model *m, int64_t end_ns, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < m->cpus.n && !rc; i++)
		rc = finish_cpu(m, (int)i, end_ns, err);
	for (size_t i = 0; i < m->threads.n && !rc; i++)
		if (m->threads.at[i] && m->threads.at[i]->where == WHERE_OFF)
			rc = finish_absence(m, m->threads.at[i], end_ns, err);
	return rc;
}
