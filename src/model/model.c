/* SPDX-License-Identifier: MIT
 *
 * The state machine: events in, intervals out.
 *
 *	events --> model_feed --+--> sched.c     runs, absences, queues, losses
 *	 in order of time       +--> life.c      names, births, ends
 *	                        +--> disk.c      block requests
 *	                        +--> requests.c  operations, requests  (roles.c: who serves)
 *
 * Invariants:
 * I1  Time does not go back: an event that does is counted and takes the time of the last one.
 * I2  What is emitted on a track starts where the last interval on it ended, or later: each track
 *     has a free_ns, and starts are clipped to it.
 * I3  Nothing is guessed: where two records do not fit together, the time between is a gap or an
 *     absence without facts, marked lost where records were.
 *
 * Cost: a switch is three look-ups by tid in a flat array and at most two intervals.
 */
#include "base/err.h"
#include "model/state.h"

#include <errno.h>
#include <stdlib.h>

int model_new(struct names *names, int64_t start_ns, model_sink *sink, void *arg,
	      struct model **ret, struct err *err)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, -ENOMEM, "out of memory");
	m->names = names;
	m->start_ns = m->now_ns = start_ns;
	m->last_loss_ns = NO_TIME;
	m->sink = sink;
	m->arg = arg;
	*ret = m;
	return 0;
}

static void thread_state_free(struct thread_state *t)
{
	if (t)
		vec_fini(&t->moves);
	free(t);
}

void model_abort(struct model *m)
{
	if (!m)
		return;
	requests_free(m);
	for (size_t i = 0; i < m->threads.n; i++)
		thread_state_free(m->threads.at[i]);
	for (size_t i = 0; i < m->disks.n; i++) {
		if (m->disks.at[i])
			vec_fini(m->disks.at[i]);
		free(m->disks.at[i]);
	}
	vec_fini(&m->threads);
	vec_fini(&m->gone);
	vec_fini(&m->cpus);
	vec_fini(&m->disks);
	vec_fini(&m->request_slots);
	free(m);
}

int model_emit(struct model *m, const struct interval *iv, struct err *err)
{
	return iv->start_ns < iv->end_ns ? m->sink(iv, m->arg, err) : 0;
}

bool model_has_gone(const struct model *m, int thread)
{
	return (size_t)thread < m->gone.n && m->gone.at[thread];
}

void model_gone(struct model *m, int thread)
{
	while (m->gone.n <= (size_t)thread)
		vec_push(&m->gone, false);
	m->gone.at[thread] = true;
	if ((size_t)thread < m->threads.n) {
		thread_state_free(m->threads.at[thread]);
		m->threads.at[thread] = NULL;
	}
}

int model_thread(struct model *m, uint32_t tid, uint32_t pid)
{
	int thread = names_newest(m->names, tid);

	if (thread == NO_INDEX || model_has_gone(m, thread))
		return names_add_thread(m->names, tid, pid, NO_TIME, m->now_ns);
	if (pid && !m->names->threads.at[thread].pid)
		m->names->threads.at[thread].pid = pid;
	return thread;
}

int model_mention(struct model *m, uint32_t tid, uint32_t pid)
{
	int thread = names_newest(m->names, tid);

	return thread == NO_INDEX ? model_thread(m, tid, pid) : thread;
}

struct thread_state *model_thread_state(struct model *m, int thread)
{
	size_t need = (size_t)thread + 1;

	while (m->threads.n < need)
		vec_push(&m->threads, NULL);
	if (!m->threads.at[thread]) {
		struct thread_state *t = calloc(1, sizeof(*t));

		if (!t)
			abort();
		t->sched_free_ns = t->ops_free_ns = m->start_ns;
		t->request = NO_INDEX;
		m->threads.at[thread] = t;
	}
	return m->threads.at[thread];
}

int slots_take(struct slots *s, int64_t from_ns, int64_t end_ns)
{
	size_t i = 0;

	while (i < s->n && s->at[i] > from_ns)
		i++;
	if (i == s->n)
		vec_push(s, end_ns);
	s->at[i] = end_ns;
	return (int)i;
}

static int dispatch(struct model *m, const struct event *e, struct err *err)
{
	switch (e->kind) {
	case EVENT_SWITCH:
		return sched_switch(m, e, err);
	case EVENT_MIGRATE:
		sched_migrate(m, e);
		return 0;
	case EVENT_THREAD:
		return life_thread(m, e, err);
	case EVENT_CGROUP:
		life_cgroup(m, e);
		return 0;
	case EVENT_SOCKET:
		return requests_socket(m, e);
	case EVENT_RECV:
	case EVENT_SEND:
		return requests_io(m, e, err);
	case EVENT_CLOSE:
		return requests_close(m, e, err);
	case EVENT_BLOCK:
		return disk_block(m, e, err);
	case EVENT_LOST:
		return sched_loss(m, e, err);
	case EVENT_STEAL:
		sched_steal(m, e);
		return 0;
	}
	return 0; /* a kind of a later version */
}

int model_feed(struct model *m, const struct event *e, struct err *err)
{
	struct event late;

	if (e->ts_ns >= m->now_ns) {
		m->now_ns = e->ts_ns;
		return dispatch(m, e, err);
	}
	if (e->ts_ns >= m->start_ns)
		m->backwards++;
	late = *e;
	late.ts_ns = m->now_ns;
	return dispatch(m, &late, err);
}

int model_finish(struct model *m, int64_t end_ns, struct err *err)
{
	int rc;

	end_ns = max_ns(end_ns, m->now_ns);
	rc = sched_finish(m, end_ns, err);
	if (!rc)
		rc = requests_finish(m, end_ns, err);
	names_finish(m->names);
	model_abort(m);
	return rc;
}

const char *model_lost_name(uint32_t reason)
{
	static const char *const names[] = {"ring-full",  "task-storage", "socket-storage",
					    "block-map",  "block-start",  "negative",
					    "user-write", "other"};
	size_t n = sizeof(names) / sizeof(*names);

	return names[reason < n ? reason : n - 1];
}
