/* SPDX-License-Identifier: MIT
 *
 * Problem: a thread waited for a block request while the disk served many.  Whose time was it?
 * Idea: each instant is divided equally among the requests then in service (issued, not completed).
 *
 *	in service   A A A A A A A A            each instant 1/n to each of its n requests:
 *	                 B B B B B B B B        v(t) = sum of dt/n; a request's part of the wait
 *	             (own)   V V V V V V V      is v(its end) - v(its start), all in one sweep
 *	wait         |<----------------->|
 *
 * The part of the victim's own requests is `service`, also while nothing is in service (the request
 * is being put together, or its completion delivered).  What others hold is charged to the cgroup
 * that owns the data, else to the submitter's.  Pieces come out by cause, not by instant: their
 * lengths are what is true, their places in the wait are not.  `service` is last.
 *
 * On a device whose requests take no longer when many are in flight nobody is slowed by the others:
 * all is service.  Measured once per disk: the same kind of request (operation, size to a power of
 * two), alone against in company, over samples spread over the recording.
 *
 * Invariants: pieces tile [from, to); the shares of each are positive and sum to it.
 * Cost: O(n log n) in the requests that met the wait, at most SERVED_MAX of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "blame/state.h"
#include "history/history.h"

enum {
	SERVED_MAX = 1 << 16,
	SHARES_MAX = 256, /* culprits of one wait; the others of a class are put to its first */
	WINDOWS = 64,	  /* samples for the measurement */
	WINDOW_REQUESTS = 256,
	ENOUGH = 32, /* requests in company, for a verdict */
};
static const int64_t window_ns = 20000000;
static const double rises_from = 1.2; /* times the time alone */

struct part {
	enum cause cause;
	struct culprit culprit;
	double exact_ns;
	int64_t ns;
};

struct division {
	struct blame *b;
	int victim, victim_cgroup;
	uint64_t id; /* what it waits for */
	struct part part[SHARES_MAX];
	int n;
};

struct searching {
	uint64_t id;
	struct block *ret;
};

static int note_wanted(const struct interval *iv, void *arg)
{
	struct searching *s = arg;
	struct block block;

	block_get(iv, &block);
	if (block.id != s->id)
		return 0;
	*s->ret = block;
	return 1;
}

int blame_find_block(struct blame *b, uint64_t id, int64_t from_ns, int64_t to_ns,
		     struct block *ret)
{
	struct searching s = {id, ret};
	int r = history_range(b->h, track_id(TRACK_DISK, 0), track_id(TRACK_DISK, UINT32_MAX),
			      from_ns, to_ns + 1, 0, note_wanted, &s);

	return r < 0 ? r : r ? 0 : -ENOENT;
}

/* ------------------------------------------------------------------ what the disk served */

struct collecting {
	struct blame *b;
	int64_t from_ns, to_ns;
	size_t limit;
};

static int note_served(const struct interval *iv, void *arg)
{
	struct collecting *c = arg;
	struct block x;
	int64_t start_ns;

	block_get(iv, &x);
	if (x.issued_ns == NO_TIME)
		return 0;
	start_ns = x.issued_ns > c->from_ns ? x.issued_ns : c->from_ns;
	if (x.end_ns < c->to_ns ? start_ns >= x.end_ns : start_ns >= c->to_ns)
		return 0;
	vec_push(&c->b->served, (struct served){.start_ns = start_ns,
						.end_ns = x.end_ns < c->to_ns ? x.end_ns : c->to_ns,
						.thread = x.thread,
						.owner = x.owner,
						.op = x.op,
						.bytes = x.bytes,
						.id = x.id});
	return c->b->served.n >= c->limit;
}

static void collect(struct blame *b, int disk, int64_t from_ns, int64_t to_ns, size_t limit)
{
	struct collecting c = {b, from_ns, to_ns, limit};
	uint32_t first = (uint32_t)disk * DISK_SLOTS;

	b->served.n = 0;
	history_range(b->h, track_id(TRACK_DISK, first),
		      track_id(TRACK_DISK, first + DISK_SLOTS - 1), from_ns, to_ns, 0, note_served,
		      &c);
}

/* ------------------------------------------------------------------ does company slow it down? */

struct kind { /* of requests: operation and size */
	double alone_ns, company_ns;
	int alone, company;
};
struct kinds {
	struct kind at[4][32];
};

static struct kind *kind_of(struct kinds *k, const struct served *s)
{
	unsigned size = 0;

	while (size < 31 && s->bytes >> size > 1)
		size++;
	return &k->at[s->op & 3][size];
}

/* How many were in service beside it, on average over its time. */
static double company_of(const struct blame *b, const struct served *s)
{
	double shared_ns = 0;

	for (size_t i = 0; i < b->served.n; i++) {
		const struct served *o = &b->served.at[i];
		int64_t start_ns = o->start_ns > s->start_ns ? o->start_ns : s->start_ns;
		int64_t end_ns = o->end_ns < s->end_ns ? o->end_ns : s->end_ns;

		if (o != s && start_ns < end_ns)
			shared_ns += (double)(end_ns - start_ns);
	}
	return shared_ns / (double)(s->end_ns - s->start_ns);
}

static void sample(struct blame *b, struct kinds *k)
{
	for (size_t i = 0; i < b->served.n; i++) {
		const struct served *s = &b->served.at[i];
		double company = company_of(b, s), ns = (double)(s->end_ns - s->start_ns);
		struct kind *kind = kind_of(k, s);

		if (company < 0.5) {
			kind->alone_ns += ns;
			kind->alone++;
		} else if (company >= 1.5) {
			kind->company_ns += ns;
			kind->company++;
		}
	}
}

static bool verdict(const struct kinds *k)
{
	double expected_ns = 0, got_ns = 0;
	int n = 0;

	for (int op = 0; op < 4; op++)
		for (int size = 0; size < 32; size++) {
			const struct kind *kind = &k->at[op][size];

			if (kind->alone < 4 || kind->company < 4)
				continue;
			expected_ns += kind->alone_ns / kind->alone * kind->company;
			got_ns += kind->company_ns;
			n += kind->company;
		}
	return n >= ENOUGH && got_ns < expected_ns * rises_from;
}

bool blame_disk_is_parallel(struct blame *b, int disk)
{
	uint64_t *known = map_at(&b->parallel, (uint64_t)disk);
	struct kinds *k;
	int64_t start_ns, end_ns;

	if (*known)
		return *known == 2;
	k = calloc(1, sizeof(*k));
	if (!k)
		return false;
	history_bounds(b->h, &start_ns, &end_ns);
	for (int i = 0; i < WINDOWS; i++) {
		int64_t from_ns = start_ns + (end_ns - start_ns) / WINDOWS * i;

		collect(b, disk, from_ns, from_ns + window_ns, WINDOW_REQUESTS);
		sample(b, k);
	}
	*known = verdict(k) ? 2 : 1;
	free(k);
	return *known == 2;
}

/* ------------------------------------------------------------------ dividing a wait */

static void describe_service(struct blame *b, int disk, struct culprit *ret)
{
	*ret = (struct culprit){.kind = CULPRIT_DEVICE,
				.host = b->host,
				.request = -1,
				.name = names_disk_name(b->names, disk)};
	if (!ret->name)
		ret->name = "";
}

static struct part *part_of(struct division *d, enum cause cause, const struct culprit *c)
{
	struct part *same_cause = NULL;

	for (int i = 0; i < d->n; i++) {
		if (d->part[i].cause != cause)
			continue;
		if (culprit_same(&d->part[i].culprit, c))
			return &d->part[i];
		if (!same_cause)
			same_cause = &d->part[i];
	}
	if (d->n == SHARES_MAX)
		return same_cause ? same_cause : &d->part[0];
	d->part[d->n] = (struct part){.cause = cause, .culprit = *c};
	return &d->part[d->n++];
}

/* Whose data they are; NO_INDEX: the submitter counts.  Where a host spreads its tasks over another
 * hierarchy than blkio's, all data seem to be the root's: of a user thread's request that says
 * nothing.  Nor are the data of the victim's process another's, whatever blkio calls it. */
static int owner_of(const struct division *d, const struct served *s)
{
	const struct names *names = d->b->names;
	int cgroup = s->owner >= 0 ? names_cgroup_same(names, s->owner) : NO_INDEX;
	const struct cgroup *c = names_cgroup(names, cgroup);
	const struct thread *t = names_thread(names, s->thread);
	const struct thread *victim = names_thread(names, d->victim);

	if (!c || !t || t->kernel || s->thread == THREAD_IDLE)
		return cgroup;
	return c->is_system || (victim && victim->pid && victim->pid == t->pid) ? NO_INDEX : cgroup;
}

/* By who owns the data, if that is known; else by who submitted it. */
static void charge(struct division *d, const struct served *s, double ns)
{
	struct blame *b = d->b;
	int cgroup = owner_of(d, s);
	struct culprit c;
	enum cause cause;

	if (s->id == d->id || s->thread == d->victim) {
		d->part[0].exact_ns += ns;
		return;
	}
	cause = cgroup >= 0 ? blame_class_of_cgroup(b, d->victim_cgroup, cgroup)
			    : blame_class(b, d->victim, s->thread, s->start_ns);
	if (cause == CAUSE_NEIGHBOUR && cgroup >= 0)
		blame_cgroup(b, cgroup, &c);
	else
		blame_holder(b, s->thread, s->start_ns, cause, &c);
	part_of(d, cause, &c)->exact_ns += ns;
}

static int by_time(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->request < y->request ? -1 : x->request > y->request;
}

static void sort_edges(struct blame *b)
{
	b->edges.n = 0;
	for (size_t i = 0; i < b->served.n; i++) {
		const struct served *s = &b->served.at[i];

		vec_push(&b->edges, (struct edge){s->start_ns, (uint32_t)i, false});
		vec_push(&b->edges, (struct edge){s->end_ns, (uint32_t)i, true});
	}
	if (b->edges.n)
		qsort(b->edges.at, b->edges.n, sizeof(*b->edges.at), by_time);
}

static void divide(struct division *d, int64_t from_ns, int64_t to_ns)
{
	struct blame *b = d->b;
	int64_t at_ns = from_ns, in_service = 0;
	double v = 0;

	sort_edges(b);
	for (size_t i = 0; i < b->edges.n; i++) {
		const struct edge *e = &b->edges.at[i];
		struct served *s = &b->served.at[e->request];
		double step_ns = (double)(e->at_ns - at_ns);

		if (in_service)
			v += step_ns / (double)in_service;
		else
			d->part[0].exact_ns += step_ns;
		at_ns = e->at_ns;
		in_service += e->ends ? -1 : 1;
		if (e->ends)
			charge(d, s, v - s->v_start);
		else
			s->v_start = v;
	}
	d->part[0].exact_ns += (double)(to_ns - at_ns);
}

/* To whole nanoseconds: each rounded down, and what is missing goes to the largest. */
static void round_parts(struct division *d, int64_t total_ns)
{
	int largest = 0;

	for (int i = 0; i < d->n; i++) {
		d->part[i].ns = (int64_t)d->part[i].exact_ns;
		if (d->part[i].ns > total_ns)
			d->part[i].ns = total_ns;
		total_ns -= d->part[i].ns;
		if (d->part[i].ns > d->part[largest].ns)
			largest = i;
	}
	d->part[largest].ns += total_ns;
}

static int by_ns(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

/* One piece for all parts of a cause, ending at *end_ns. */
static int emit_cause(const struct division *d, enum cause cause, int64_t *end_ns, struct arena *a,
		      blame_fn *fn, void *arg)
{
	struct share *shares = arena_array(a, struct share, (size_t)d->n);
	struct blame_piece p = {.end_ns = *end_ns, .state = STATE_DISK, .cause = cause};
	int n = 0;

	for (int i = 0; i < d->n; i++) {
		if (d->part[i].cause != cause || !d->part[i].ns)
			continue;
		shares[n++] = (struct share){d->part[i].culprit, d->part[i].ns};
		*end_ns -= d->part[i].ns;
	}
	if (!n)
		return 0;
	qsort(shares, (size_t)n, sizeof(*shares), by_ns);
	p.start_ns = *end_ns;
	p.culprit = shares[0].culprit;
	p.shares = n > 1 ? shares : NULL;
	p.n_shares = n > 1 ? n : 0;
	p.certain = d->b->served.n < SERVED_MAX;
	return fn(&p, arg);
}

static void begin(struct division *d, struct blame *b, int victim, const struct block *x,
		  int64_t from_ns)
{
	d->b = b;
	d->victim = victim;
	d->victim_cgroup = names_cgroup_of(b->names, victim, from_ns);
	d->id = x->id;
	d->n = 1;
	d->part[0].cause = CAUSE_SERVICE;
	describe_service(b, x->disk, &d->part[0].culprit);
}

int blame_disk(struct blame *b, int victim, const struct block *x, int64_t from_ns, int64_t to_ns,
	       struct arena *a, blame_fn *fn, void *arg)
{
	static const enum cause order[] = {CAUSE_SERVICE, CAUSE_SYSTEM, CAUSE_NEIGHBOUR, CAUSE_OWN};
	/* What comes after the completion is its delivery, whoever is in service then. */
	int64_t served_ns = x->end_ns < from_ns ? from_ns : x->end_ns < to_ns ? x->end_ns : to_ns;
	struct division *d;
	int r = 0;

	if (from_ns >= to_ns)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	begin(d, b, victim, x, from_ns);
	if (blame_disk_is_parallel(b, x->disk))
		b->served.n = 0;
	else
		collect(b, x->disk, from_ns, served_ns, SERVED_MAX);
	divide(d, from_ns, to_ns);
	round_parts(d, to_ns - from_ns);
	for (size_t i = 0; !r && i < sizeof(order) / sizeof(order[0]); i++)
		r = emit_cause(d, order[i], &to_ns, a, fn, arg);
	free(d);
	return r;
}
