/* SPDX-License-Identifier: MIT
 *
 * Threads' lives: births, names, moves between cgroups, ends; what was there at the start and
 * what is open at the end.
 */
#include "model/state.h"

/* The thread a record is about: the newest of its tid unless that was born at another time. */
static int find(struct model *m, const struct event_thread *e, int64_t first_ns)
{
	int thread = names_newest(m->names, e->tid);
	struct thread *t;

	if (thread != NO_INDEX &&
	    (m->names->threads.at[thread].birth_ns != NO_TIME || !model_has_gone(m, thread))) {
		t = &m->names->threads.at[thread];
		if (t->birth_ns == NO_TIME)
			t->birth_ns = e->birth_ns;
		if (!t->pid)
			t->pid = e->pid;
		if (e->birth_ns == NO_TIME || t->birth_ns == e->birth_ns)
			return thread;
	}
	return names_add_thread(m->names, e->tid, e->pid, e->birth_ns, first_ns);
}

static void take_names(struct model *m, int thread, const struct event_thread *e, int64_t since_ns)
{
	struct names *n = m->names;
	int v2 = names_cgroup_index(n, 0, e->cgroup_v2);
	int cpu = names_cgroup_index(n, n->cpu_hierarchy, e->cgroup_cpu);

	if (e->comm[0])
		names_add_fact(n, thread, FACT_COMM, since_ns, (int32_t)names_intern(n, e->comm));
	if (v2 != NO_INDEX)
		names_add_fact(n, thread, FACT_V2, since_ns, v2);
	if (cpu != NO_INDEX)
		names_add_fact(n, thread, FACT_CPU, since_ns, cpu);
	n->threads.at[thread].kernel |= e->kernel;
}

static void set_parent(struct model *m, int thread, uint32_t parent_tid)
{
	int parent = parent_tid ? names_newest(m->names, parent_tid) : NO_INDEX;

	if (parent > THREAD_IDLE && parent != thread)
		m->names->threads.at[thread].parent = parent;
}

static void take_call(struct absence *x, const struct event_thread *e)
{
	x->syscall = e->syscall;
	x->obj_kind = e->obj_kind;
	x->obj = e->obj;
}

/* Was there when the recording began; if it has not been seen since, it has slept all the time. */
static void snapshot(struct model *m, int thread, const struct event_thread *e)
{
	struct thread_state *t = model_thread_state(m, thread);
	struct absence *x;

	if (t->where != WHERE_UNKNOWN || e->running)
		return;
	x = sched_leave(m, thread, m->start_ns);
	x->before = true;
	x->state = e->state;
	take_call(x, e);
	x->why = e->state == TASK_RUNNABLE  ? WHY_PREEMPTED
		 : e->state == TASK_UNKNOWN ? WHY_UNKNOWN
					    : WHY_BLOCKED;
}

static void forked(struct model *m, int thread, const struct event *e)
{
	struct thread_state *t = model_thread_state(m, thread);
	int64_t birth_ns = e->thread.birth_ns;
	struct absence *x;

	if (t->where != WHERE_UNKNOWN)
		return;
	x = sched_leave(m, thread, birth_ns == NO_TIME ? e->ts_ns : min_ns(birth_ns, e->ts_ns));
	x->by = BY_NEW;
	x->waker = m->names->threads.at[thread].parent;
	t->newborn = true;
}

/* The end of the recording finds it off its CPU; what it waits for is in the record. */
static void still_open(struct model *m, int thread, const struct event_thread *e)
{
	struct thread_state *t = model_thread_state(m, thread);
	struct absence *x = &t->absence;

	if (t->where == WHERE_OFF) {
		x->lost |= !t->newborn && !sched_halves_fit(x, e->left_ns);
	} else {
		bool lost = t->where == WHERE_ON;

		if (e->left_ns == NO_TIME)
			return;
		x = sched_leave(m, thread, max_ns(e->left_ns, m->start_ns));
		x->lost = lost;
		x->why = e->why;
		x->state = e->state;
		take_call(x, e);
	}
	x->waking_ns = e->waking_ns;
	x->runnable_ns = e->runnable_ns;
	x->cpu = e->queue_cpu;
	if (x->before)
		take_call(x, e);
}

static int exited(struct model *m, int thread, int64_t at_ns, struct err *err)
{
	m->names->threads.at[thread].end_ns = at_ns;
	return requests_thread_ends(m, thread, at_ns, err);
}

int life_thread(struct model *m, const struct event *e, struct err *err)
{
	const struct event_thread *th = &e->thread;
	bool from_start = th->what == LIFE_SNAPSHOT || th->what == LIFE_OPEN;
	int thread = find(m, th, from_start ? m->start_ns : e->ts_ns);

	if (thread <= THREAD_IDLE || model_has_gone(m, thread))
		return 0;
	if (th->what == LIFE_FORK || th->what == LIFE_SNAPSHOT)
		set_parent(m, thread, th->parent_tid);
	take_names(m, thread, th, from_start ? NO_TIME : e->ts_ns);
	switch (th->what) {
	case LIFE_SNAPSHOT:
		snapshot(m, thread, th);
		break;
	case LIFE_FORK:
		forked(m, thread, e);
		break;
	case LIFE_OPEN:
		still_open(m, thread, th);
		break;
	case LIFE_EXIT:
		return exited(m, thread, e->ts_ns, err);
	case LIFE_EXEC:
	case LIFE_NAME:
	case LIFE_CGROUP:
		break;
	}
	return 0;
}

void life_cgroup(struct model *m, const struct event *e)
{
	const struct event_cgroup *c = &e->cgroup;

	if (c->what != 2) /* a removed one keeps its name */
		names_set_cgroup(m->names, c->hierarchy, c->id, c->path);
}
