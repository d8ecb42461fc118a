/* SPDX-License-Identifier: MIT
 *
 * Problem: a thread was runnable but did not run.  Who ran instead, on the CPU it waited for?
 * Idea: read that CPU's track over the wait; where the thread was moved between queues, each CPU's
 * track for the time it stood in that queue.
 *
 *	victim   |<------------- runnable, not running ------------->|
 *	queue      cpu 0                      cpu 1
 *	holder    |--- hog ---|-- own --|----- hog -----|   idle     |
 *	quota     |===|        (throttled: the group cannot run, so never where own ran)
 *
 * Quota is known as an amount, not as a place.  While a group is throttled none of it runs on that
 * CPU, so the amount is laid where others held it, from the beginning; what does not fit there goes
 * over own time (the clock of the throttling and ours differ by a little).
 *
 * Interrupts in a holder's run are not the holder's.
 *
 * Invariants: the pieces tile the part asked for; the quota in the whole wait is x->quota_ns or the
 * whole wait, if that is less.
 * Cost: one range query per CPU stood on; time and memory by the number of switches in the wait.
 */
#include <string.h>

#include "blame/state.h"
#include "history/history.h"

enum { HELD_MAX = 1 << 18 }; /* switches of one wait that are looked at */
static const int64_t interrupt_min_ns = 1000;

struct collecting {
	struct blame *b;
	int64_t at_ns, to_ns;
};

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Appends, joined to the one before if it is of the same holder. */
static void held_add(struct blame *b, int64_t start_ns, int64_t end_ns, int thread)
{
	struct held *last = b->held.n ? &b->held.at[b->held.n - 1] : NULL;

	if (start_ns >= end_ns)
		return;
	if (last && last->thread == thread && last->end_ns == start_ns)
		last->end_ns = end_ns;
	else
		vec_push(&b->held, (struct held){start_ns, end_ns, thread});
}

/* The interrupts' part of [start, end) of a run; known as an amount, put at the end. */
static int64_t interrupts(const struct run *run, int64_t start_ns, int64_t end_ns)
{
	int64_t irq_ns = (int64_t)((__int128)run->irq_ns * (end_ns - start_ns) /
				   (run->end_ns - run->start_ns));

	return irq_ns < interrupt_min_ns ? 0 : min64(irq_ns, end_ns - start_ns);
}

static int note_run(const struct interval *iv, void *arg)
{
	struct collecting *c = arg;
	struct run run;
	int64_t start_ns, end_ns, irq_ns;

	run_get(iv, &run);
	start_ns = max64(run.start_ns, c->at_ns);
	end_ns = min64(run.end_ns, c->to_ns);
	if (start_ns >= end_ns)
		return 0;
	irq_ns = interrupts(&run, start_ns, end_ns);
	held_add(c->b, c->at_ns, start_ns, HELD_GAP);
	held_add(c->b, start_ns, end_ns - irq_ns, run.thread);
	held_add(c->b, end_ns - irq_ns, end_ns, HELD_INTERRUPT);
	c->at_ns = end_ns;
	return c->b->held.n > HELD_MAX;
}

static void hold_cpu(struct blame *b, int cpu, int64_t from_ns, int64_t to_ns)
{
	struct collecting c = {b, from_ns, to_ns};

	if (cpu >= 0 && from_ns < to_ns)
		history_range(b->h, track_id(TRACK_CPU, (uint32_t)cpu),
			      track_id(TRACK_CPU, (uint32_t)cpu), from_ns, to_ns, 0, note_run, &c);
	held_add(b, c.at_ns, to_ns, HELD_GAP);
}

static int note_stood(const struct interval *iv, void *arg)
{
	struct blame *b = arg;
	struct queued q;

	queued_get(iv, &q);
	vec_push(&b->stood, q);
	return 0;
}

/* Who held the CPUs it stood at, over the whole runnable part of x. */
static void hold_wait(struct blame *b, const struct absence *x, int64_t from_ns, int64_t to_ns)
{
	uint32_t track = track_id(TRACK_QUEUE, (uint32_t)x->thread);

	b->held.n = b->stood.n = 0;
	if (x->migrated)
		history_range(b->h, track, track, from_ns, to_ns, 0, note_stood, b);
	for (size_t i = 0; i < b->stood.n; i++) {
		const struct queued *q = &b->stood.at[i];
		int64_t start_ns = max64(q->start_ns, from_ns), end_ns = min64(q->end_ns, to_ns);

		hold_cpu(b, x->cpu, from_ns, min64(start_ns, to_ns));
		hold_cpu(b, q->cpu, start_ns, end_ns);
		from_ns = max64(from_ns, end_ns);
	}
	hold_cpu(b, x->cpu, from_ns, to_ns);
}

/* A cgroup can run only while none of its own is throttled: is this holder of the same one? */
static bool shares_quota(struct blame *b, const struct absence *x, const struct held *h)
{
	return h->thread > THREAD_IDLE &&
	       names_cpu_cgroup_of(b->names, h->thread, h->start_ns) ==
		       names_cpu_cgroup_of(b->names, x->thread, h->start_ns);
}

/* Turns up to left_ns of what is held into quota; with own, also where the own group ran. */
static int64_t lay_quota(struct blame *b, const struct absence *x, int64_t left_ns, bool own)
{
	b->cut.n = 0;
	for (size_t i = 0; i < b->held.n; i++) {
		struct held h = b->held.at[i];
		bool fits =
			left_ns > 0 && h.thread != HELD_QUOTA && (own || !shares_quota(b, x, &h));
		int64_t quota_ns = fits ? min64(left_ns, h.end_ns - h.start_ns) : 0;

		if (quota_ns)
			vec_push(&b->cut,
				 (struct held){h.start_ns, h.start_ns + quota_ns, HELD_QUOTA});
		h.start_ns += quota_ns;
		left_ns -= quota_ns;
		if (h.start_ns < h.end_ns)
			vec_push(&b->cut, h);
	}
	b->held.n = 0;
	for (size_t i = 0; i < b->cut.n; i++)
		vec_push(&b->held, b->cut.at[i]);
	return left_ns;
}

static void describe_gap(struct blame *b, struct blame_piece *p)
{
	p->state = blame_lost(b, p->start_ns, p->end_ns) ? STATE_LOST : STATE_UNKNOWN;
	p->cause = CAUSE_NONE;
	p->culprit = (struct culprit){
		.host = b->host, .request = -1, .name = p->state == STATE_LOST ? "" : "unseen CPU"};
	p->certain = false;
}

static void describe_idle(struct blame *b, struct blame_piece *p)
{
	p->cause = CAUSE_IDLE;
	p->culprit = (struct culprit){.host = b->host, .request = -1, .name = "idle CPU"};
}

static void describe(struct blame *b, int victim, const struct absence *x, const struct held *h,
		     struct blame_piece *p)
{
	p->state = STATE_RUNQUEUE;
	p->certain = true;
	if (h->thread == HELD_GAP) {
		describe_gap(b, p);
	} else if (h->thread == HELD_QUOTA) {
		p->cause = CAUSE_QUOTA;
		blame_cgroup(b, names_cpu_cgroup_of(b->names, x->thread, h->start_ns), &p->culprit);
	} else if (h->thread == HELD_INTERRUPT) {
		p->cause = CAUSE_INTERRUPT;
		p->culprit = (struct culprit){.host = b->host, .request = -1, .name = "interrupts"};
	} else if (h->thread == THREAD_IDLE || h->thread == x->thread) {
		describe_idle(b, p);
	} else {
		p->cause = blame_class(b, victim, h->thread, h->start_ns);
		blame_holder(b, h->thread, h->start_ns, p->cause, &p->culprit);
	}
}

int blame_runqueue(struct blame *b, int victim, const struct absence *x, int64_t from_ns,
		   int64_t to_ns, blame_fn *fn, void *arg)
{
	/* The quota's place depends on the whole wait, so all of it is read even for a part. */
	bool whole = x->quota_ns > 0;
	int64_t left_ns;

	hold_wait(b, x, whole ? min64(x->runnable_ns, from_ns) : from_ns,
		  whole ? max64(x->end_ns, to_ns) : to_ns);
	left_ns = whole ? lay_quota(b, x, x->quota_ns, false) : 0;
	if (left_ns > 0)
		lay_quota(b, x, left_ns, true);
	for (size_t i = b->held.n; i-- > 0;) {
		const struct held *h = &b->held.at[i];
		struct blame_piece p = {.start_ns = max64(h->start_ns, from_ns),
					.end_ns = min64(h->end_ns, to_ns)};
		int r;

		if (p.start_ns >= p.end_ns)
			continue;
		describe(b, victim, x, h, &p);
		r = fn(&p, arg);
		if (r)
			return r;
	}
	return 0;
}
