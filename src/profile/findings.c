/* SPDX-License-Identifier: MIT
 *
 * What slow requests spend more on than typical ones.
 *
 * Each path's budget is added to its group's table of keys (state, cause, via, culprit), on the
 * side it belongs to:
 *
 *	key                          slow: sum, requests      typical: sum, requests
 *	runqueue neighbour /b        795 ms  in 19 of 19      12 ms  in 7 of 190
 *	running  self                 61 ms  in 19 of 19     570 ms  in 190 of 190
 *
 *	extra(key) = 795 ms / 19 - 12 ms / 190
 *
 * 1. A key missing on one side counts as zero there, so the extra times of all keys, the negative
 *    ones too, sum to mean slow - mean typical of the walked requests (profile_check).
 * 2. A share is measured against that same difference.
 * 3. With basis all there is one side, and extra is the mean.
 * 4. The order of findings depends on nothing but the numbers and the names.
 * 5. Findings that differ in via only rank together, by the sum of their extra times.
 *
 * Cost: one look-up per line of a budget; memory per distinct key, not per request.
 */
#include "base/err.h"
#include "profile/profile.h"
#include "profile/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS_KEPT = 5000 }; /* of a path that is shown: some 5 MB of JSON */
static const double MIN_SHARE = 0.05, MIN_PRESENCE = 0.25;

/* --- adding a path */

static struct culprit copy_culprit(struct profile *p, const struct culprit *c)
{
	struct culprit r = *c;

	r.host = profile_text(p, c->host);
	r.cgroup = profile_text(p, c->cgroup);
	r.container = profile_text(p, c->container);
	r.comm = profile_text(p, c->comm);
	r.name = profile_text(p, c->name);
	return r;
}

static uint64_t key_hash(const struct budget_line *l)
{
	uint64_t words = (uint64_t)l->state << 56 | (uint64_t)l->cause << 48 | l->via;

	return (culprit_hash(&l->culprit) ^ words) * 0x9e3779b97f4a7c15u;
}

static bool key_is(const struct key *k, const struct budget_line *l)
{
	return k->state == l->state && k->cause == l->cause && k->via == l->via &&
	       culprit_same(&k->culprit, &l->culprit);
}

static struct key *find_key(struct profile *p, struct tally *t, const struct budget_line *l)
{
	uint64_t *head = map_at(&t->by_hash, key_hash(l));
	struct key *k;

	for (uint64_t i = *head; i; i = t->keys.at[i - 1].next)
		if (key_is(&t->keys.at[i - 1], l))
			return &t->keys.at[i - 1];
	k = vec_add(&t->keys);
	k->state = l->state;
	k->cause = l->cause;
	k->via = l->via;
	k->culprit = copy_culprit(p, &l->culprit);
	k->example_syscall = -1;
	k->victim_comm = "";
	k->next = (uint32_t)*head;
	*head = t->keys.n;
	return k;
}

/* How much of the segment is the key's, and by which culprit. */
static int64_t part_of(const struct segment *s, const struct key *k, const struct culprit **ret)
{
	*ret = &s->culprit;
	if (s->state != k->state || s->cause != k->cause || s->via != k->via)
		return 0;
	for (int i = 0; i < s->n_shares; i++)
		if (culprit_same(&s->shares[i].culprit, &k->culprit)) {
			*ret = &s->shares[i].culprit;
			return s->shares[i].ns;
		}
	return !s->n_shares && culprit_same(&s->culprit, &k->culprit) ? s->end_ns - s->start_ns : 0;
}

static void set_example(struct profile *p, struct key *k, const struct path *path, int64_t ns)
{
	int64_t most = 0;

	k->example_ns = ns;
	k->example_start_ns = path->start_ns;
	for (int i = 0; i < path->n; i++) {
		const struct culprit *c;
		int64_t part = part_of(&path->segments[i], k, &c);

		if (part <= most)
			continue;
		most = part;
		k->example_tid = c->tid;
		k->example_syscall = path->segments[i].syscall;
		k->victim_pid = path->segments[i].pid;
		k->victim_comm = profile_text(p, path->segments[i].comm);
	}
}

static void add_line(struct profile *p, struct tally *t, enum side side, const struct path *path,
		     const struct budget_line *l)
{
	struct key *k = find_key(p, t, l);

	k->by[side].ns += l->ns;
	k->by[side].certain_ns += l->certain_ns;
	k->by[side].requests += l->ns > 0;
	if (side == SLOW && l->ns > k->example_ns)
		set_example(p, k, path, l->ns);
	if (l->state == STATE_UNKNOWN || l->state == STATE_LOST)
		t->walked[side].dark_ns += l->ns;
}

static const struct share *copy_shares(struct profile *p, const struct segment *s)
{
	struct share *copy;

	if (!s->n_shares)
		return NULL;
	copy = arena_dup(&p->arena, s->shares, sizeof(*copy) * (size_t)s->n_shares);
	for (int i = 0; i < s->n_shares; i++)
		copy[i].culprit = copy_culprit(p, &copy[i].culprit);
	return copy;
}

static const struct segment_alternative *copy_alternatives(struct profile *p,
							   const struct segment *s)
{
	struct segment_alternative *copy;

	if (!s->n_alternatives)
		return NULL;
	copy = arena_dup(&p->arena, s->alternatives, sizeof(*copy) * (size_t)s->n_alternatives);
	for (int i = 0; i < s->n_alternatives; i++) {
		copy[i].comm = profile_text(p, copy[i].comm);
		copy[i].why_not = profile_text(p, copy[i].why_not);
	}
	return copy;
}

static void copy_segment(struct profile *p, struct segment *s)
{
	s->host = profile_text(p, s->host);
	s->comm = profile_text(p, s->comm);
	s->culprit = copy_culprit(p, &s->culprit);
	s->shares = copy_shares(p, s);
	s->alternatives = copy_alternatives(p, s);
}

static void copy_segments(struct profile *p, struct path *path)
{
	if (path->n)
		path->segments = arena_dup(&p->arena, path->segments,
					   sizeof(*path->segments) * (size_t)path->n);
	path->cap = path->n;
	for (int i = 0; i < path->n; i++)
		copy_segment(p, &path->segments[i]);
}

static void keep_path(struct profile *p, const struct note *note, const struct path *path)
{
	struct kept *k = vec_add(&p->kept);
	const struct profile_group *g = &p->groups.at[note->group].pub;
	struct arena scratch;

	k->note = *note;
	k->streaming = g->streaming;
	budget_of(&p->arena, path, &k->budget);
	for (int i = 0; i < k->budget.n; i++)
		k->budget.lines[i].culprit = copy_culprit(p, &k->budget.lines[i].culprit);
	arena_init(&scratch);
	k->path = *path;
	k->path.name = g->name;
	k->path.host = profile_text(p, path->host);
	path_shorten(&scratch, &k->path, SEGMENTS_KEPT);
	copy_segments(p, &k->path);
	arena_fini(&scratch);
}

static bool side_of(const struct tally *t, const struct note *n, enum side *ret)
{
	*ret = t->pub.basis_all || n->slow ? SLOW : TYPICAL;
	return !n->cut && (t->pub.basis_all || n->slow || n->typical);
}

void profile_add(struct profile *p, int64_t id, const struct path *path)
{
	struct arena scratch;
	struct budget b = {0};
	struct tally *t;
	enum side side;
	uint64_t at;

	if (!map_get(&p->note_ids, (uint64_t)id, &at))
		return;
	t = &p->groups.at[p->notes.at[at - 1].group];
	if (p->notes.at[at - 1].keep)
		keep_path(p, &p->notes.at[at - 1], path);
	if (!side_of(t, &p->notes.at[at - 1], &side))
		return;
	arena_init(&scratch);
	budget_of(&scratch, path, &b);
	for (int i = 0; i < b.n; i++)
		add_line(p, t, side, path, &b.lines[i]);
	t->walked[side].ns += b.total_ns;
	t->walked[side].requests++;
	arena_fini(&scratch);
}

/* --- findings */

static double mean(__int128 ns, int64_t requests)
{
	return requests ? (double)ns / (double)requests : 0;
}

static double key_mean(const struct tally *t, const struct key *k, enum side side)
{
	return mean(k->by[side].ns, t->walked[side].requests);
}

static double key_extra(const struct tally *t, const struct key *k)
{
	return key_mean(t, k, SLOW) - key_mean(t, k, TYPICAL);
}

static double tally_extra(const struct tally *t)
{
	return mean(t->walked[SLOW].ns, t->walked[SLOW].requests) -
	       mean(t->walked[TYPICAL].ns, t->walked[TYPICAL].requests);
}

static int64_t certain_part(const struct tally *t, const struct key *k, double extra)
{
	double certain = mean(k->by[SLOW].certain_ns, t->walked[SLOW].requests) -
			 mean(k->by[TYPICAL].certain_ns, t->walked[TYPICAL].requests);

	return (int64_t)(certain < 0 ? 0 : certain > extra ? extra : certain);
}

static void find_in_key(struct profile *p, const struct tally *t, const struct key *k)
{
	double extra = key_extra(t, k), all = tally_extra(t);
	double presence = (double)k->by[SLOW].requests / (double)t->walked[SLOW].requests;

	if (all <= 0 || extra / all < MIN_SHARE || presence < MIN_PRESENCE)
		return;
	vec_push(&p->findings, (struct finding){
				       .group = &p->sorted[t->place],
				       .basis_all = t->pub.basis_all,
				       .state = k->state,
				       .cause = k->cause,
				       .via = k->via,
				       .culprit = k->culprit,
				       .extra_ns = (int64_t)(extra + 0.5),
				       .share = extra / all,
				       .presence = presence,
				       .count = t->pub.basis_all ? t->pub.count : t->pub.slow_count,
				       .certain_ns = certain_part(t, k, extra),
				       .mean_slow_ns = (int64_t)(key_mean(t, k, SLOW) + 0.5),
				       .mean_typical_ns = (int64_t)(key_mean(t, k, TYPICAL) + 0.5),
				       .example_ns = k->example_ns,
				       .example_start_ns = k->example_start_ns,
				       .example_tid = k->example_tid,
				       .example_syscall = k->example_syscall,
				       .victim_pid = k->victim_pid,
				       .victim_comm = k->victim_comm,
			       });
}

static int by_names(const struct finding *a, const struct finding *b)
{
	int rc = strcmp(a->group->name, b->group->name);

	if (!rc)
		rc = (int)a->state - (int)b->state;
	if (!rc)
		rc = (int)a->cause - (int)b->cause;
	if (!rc)
		rc = (a->via > b->via) - (a->via < b->via);
	return rc ? rc : strcmp(a->culprit.name, b->culprit.name);
}

/* A mean is no extra time, and the length of a stream says nothing: they rank after the others. */
static int class_of(const struct finding *f)
{
	return f->group->streaming ? 2 : f->basis_all;
}

static int by_extra(const void *x, const void *y)
{
	const struct finding *a = x, *b = y;

	if (a->extra_ns != b->extra_ns)
		return a->extra_ns > b->extra_ns ? -1 : 1;
	return by_names(a, b);
}

static bool same_family(const struct finding *a, const struct finding *b)
{
	return a->state == b->state && a->cause == b->cause &&
	       culprit_same(&a->culprit, &b->culprit);
}

/* f: the findings of one group, a few. */
static void join_families(struct finding *f, size_t n)
{
	if (n)
		qsort(f, n, sizeof(*f), by_extra);
	for (size_t i = 0; i < n; i++) {
		size_t first = 0;

		while (!same_family(&f[first], &f[i]))
			first++;
		f[i].family = (int)first;
		f[first].family_ns += f[i].extra_ns;
	}
	for (size_t i = 0; i < n; i++)
		f[i].family_ns = f[f[i].family].family_ns;
}

static int by_rank(const void *x, const void *y)
{
	const struct finding *a = x, *b = y;
	__int128 ta = (__int128)a->family_ns * a->count, tb = (__int128)b->family_ns * b->count;

	if (class_of(a) != class_of(b))
		return class_of(a) < class_of(b) ? -1 : 1;
	if (ta != tb)
		return ta > tb ? -1 : 1;
	if (a->group != b->group)
		return by_names(a, b);
	return a->family != b->family ? a->family - b->family : by_extra(a, b);
}

/* --- the slowest */

static int by_slowness(const void *x, const void *y)
{
	const struct kept *a = x, *b = y;

	if (a->streaming != b->streaming)
		return a->streaming ? 1 : -1;
	return note_order(&a->note, &b->note);
}

/* The place in kept of the first finding's slowest request, 0 if there is no finding. */
static size_t first_findings_slowest(const struct profile *p)
{
	if (!p->findings.n)
		return 0;
	for (size_t i = 0; i < p->kept.n; i++)
		if (p->kept.at[i].path.name == p->findings.at[0].group->name &&
		    !p->kept.at[i].note.cut)
			return i;
	return 0;
}

static void choose_slowest(struct profile *p)
{
	size_t n = p->kept.n, top = (size_t)p->opt.top, first;

	if (!n)
		return;
	qsort(p->kept.at, n, sizeof(*p->kept.at), by_slowness);
	first = first_findings_slowest(p);
	if (n > top)
		n = top;
	if (first >= n)
		p->kept.at[n - 1] = p->kept.at[first];
	p->slowest = arena_array(&p->arena, struct path, n);
	p->slowest_budgets = arena_array(&p->arena, struct budget, n);
	for (size_t i = 0; i < n; i++) {
		p->slowest[i] = p->kept.at[i].path;
		p->slowest_budgets[i] = p->kept.at[i].budget;
	}
	p->n_slowest = (int)n;
}

void profile_findings(struct profile *p)
{
	size_t first;

	for (size_t i = 0; i < p->groups.n; i++) {
		const struct tally *t = &p->groups.at[i];

		if (!t->walked[SLOW].requests)
			continue;
		if (t->walked[SLOW].ns > 0)
			p->sorted[t->place].unknown_share =
				(double)t->walked[SLOW].dark_ns / (double)t->walked[SLOW].ns;
		first = p->findings.n;
		for (size_t k = 0; k < t->keys.n; k++)
			find_in_key(p, t, &t->keys.at[k]);
		join_families(p->findings.at + first, p->findings.n - first);
	}
	if (p->findings.n)
		qsort(p->findings.at, p->findings.n, sizeof(*p->findings.at), by_rank);
	for (size_t i = 0; i < p->findings.n; i++)
		p->findings.at[i].rank = (int)i + 1;
	choose_slowest(p);
}

int profile_check(const struct profile *p, struct err *err)
{
	for (size_t i = 0; i < p->groups.n; i++) {
		const struct tally *t = &p->groups.at[i];

		for (int side = 0; side < SIDES; side++) {
			__int128 sum = 0;

			for (size_t k = 0; k < t->keys.n; k++)
				sum += t->keys.at[k].by[side].ns;
			if (sum != t->walked[side].ns)
				return err_set(err, -EINVAL,
					       "%s: the parts sum to %lld ns, the requests to %lld",
					       t->pub.name, (long long)sum,
					       (long long)t->walked[side].ns);
		}
	}
	return 0;
}
