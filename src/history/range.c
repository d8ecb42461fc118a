/* SPDX-License-Identifier: MIT
 *
 * range.c - visits many intervals: a range of one track or of several, and all of them to verify.
 *
 * Problem: intervals of one track are wanted in order of time, but long ones lie in other nodes
 * than their neighbours; and callers ask the history again from inside the callback.
 *
 * Idea: several tracks are visited node by node, in no order.  One track first collects the nodes
 * that hold it in that time (40 bytes each), by start; those whose start has come are open, and
 * the smallest next start among the open ones is given next.  As nodes are fetched from the
 * cache anew for each interval, memory stays bounded whatever the callback does.
 *
 * For a picture (resolution > 0) a set remembers which (track, step) has had a short interval;
 * a child inside one step all of whose tracks have had theirs is not even read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scoped.h"
#include "base/vec.h"
#include "history/cache.h"
#include "history/history.h"

/* A node that holds the track; at is the next interval, end one past the last. */
struct cursor {
	struct node_ref ref;
	uint32_t at, end;
	int64_t next_ns;
};
struct cursors VEC(struct cursor);

struct range {
	struct history *h;
	uint32_t track_lo, track_hi;
	int64_t from_ns, to_ns, step_ns;
	struct map seen; /* track << 32 | step */
	history_fn *fn;
	void *arg;
	struct cursors nodes;
};

/* ---- resolution ---- */

/* Steps beyond 2^32 in one window share the last number: nobody can see so many. */
static uint64_t step_key(const struct range *r, uint32_t track, int64_t at_ns)
{
	uint64_t step = at_ns <= r->from_ns
				? 0
				: ((uint64_t)at_ns - (uint64_t)r->from_ns) / (uint64_t)r->step_ns;

	return (uint64_t)track << 32 | (step > UINT32_MAX ? UINT32_MAX : step);
}

static bool wanted(struct range *r, const struct node *n, uint32_t group, uint32_t i)
{
	uint64_t length = (uint64_t)n->end_ns[i] - (uint64_t)n->start_ns[i];

	if (n->start_ns[i] >= r->to_ns || n->end_ns[i] <= r->from_ns)
		return false;
	if (r->step_ns <= 0 || length >= (uint64_t)r->step_ns)
		return true;
	uint64_t *seen = map_at(&r->seen, step_key(r, n->track[group], n->start_ns[i]));

	return (*seen)++ == 0;
}

/* True if every short interval of child bit could only be one too many. */
static bool child_seen(struct range *r, const struct node *n, uint32_t lo, uint32_t hi,
		       const struct node_ref *c, uint64_t bit)
{
	if (r->step_ns <= 0 ||
	    (uint64_t)c->end_ns - (uint64_t)c->start_ns >= (uint64_t)r->step_ns ||
	    step_key(r, 0, c->start_ns) != step_key(r, 0, c->end_ns - 1))
		return false;
	for (uint32_t i = lo; i < hi; i++)
		if (n->mask[i] & bit &&
		    !map_get(&r->seen, step_key(r, n->track[i], c->start_ns), NULL))
			return false;
	return true;
}

/* ---- several tracks ---- */

typedef int leaf_fn(struct range *r, const struct node *n, uint32_t lo, uint32_t hi);

static int give_leaf(struct range *r, const struct node *n, uint32_t lo, uint32_t hi)
{
	struct interval iv;
	int ret = 0;

	for (uint32_t group = lo; group < hi; group++)
		for (uint32_t i = n->first[group]; i < n->first[group + 1] && ret == 0; i++) {
			if (!wanted(r, n, group, i))
				continue;
			node_interval(n, i, &iv);
			ret = r->fn(&iv, r->arg);
		}
	return ret;
}

static int visit(struct range *r, const struct node_ref *ref, leaf_fn *leaf);

static int visit_children(struct range *r, const struct node *n, uint32_t lo, uint32_t hi,
			  leaf_fn *leaf)
{
	uint64_t mask = 0;
	int ret = 0;

	for (uint32_t i = lo; i < hi; i++)
		mask |= n->mask[i];
	for (; mask && ret == 0; mask &= mask - 1) {
		const struct node_ref *c = &n->child[__builtin_ctzll(mask)];

		if (c->start_ns < r->to_ns && c->end_ns > r->from_ns &&
		    !child_seen(r, n, lo, hi, c, mask & -mask))
			ret = visit(r, c, leaf);
	}
	return ret;
}

static int visit(struct range *r, const struct node_ref *ref, leaf_fn *leaf)
{
	struct node *n;
	int ret = cache_get(r->h, ref, &n, NULL);

	if (ret < 0)
		return ret;
	uint32_t lo = node_track(n, r->track_lo);
	uint32_t hi = r->track_hi == UINT32_MAX ? n->tracks : node_track(n, r->track_hi + 1);

	if (lo < hi && n->ref.level)
		ret = visit_children(r, n, lo, hi, leaf);
	else if (lo < hi)
		ret = leaf(r, n, lo, hi);
	cache_put(r->h, n);
	return ret;
}

/* ---- one track, in order ---- */

static int collect_leaf(struct range *r, const struct node *n, uint32_t lo, uint32_t hi)
{
	uint32_t begin = n->first[lo], end = n->first[lo + 1];
	uint32_t at = node_first_from(n, begin, end, r->from_ns);

	(void)hi; /* one track: hi is lo + 1 */
	if (at > begin && n->end_ns[at - 1] > r->from_ns)
		at--;
	if (at < end && n->start_ns[at] < r->to_ns) {
		struct cursor c = {n->ref, at, end, n->start_ns[at]};

		vec_push(&r->nodes, c);
	}
	return 0;
}

static int by_next(const void *a, const void *b)
{
	const struct cursor *ca = a, *cb = b;

	if (ca->next_ns != cb->next_ns)
		return ca->next_ns < cb->next_ns ? -1 : 1;
	return ca->ref.pos < cb->ref.pos ? -1 : ca->ref.pos > cb->ref.pos;
}

/* Gives the interval at c and moves it on; c->at == c->end when nothing is left in it. */
static int give_next(struct range *r, struct cursor *c)
{
	struct interval iv;
	struct node *n;
	int ret = cache_get(r->h, &c->ref, &n, NULL);

	if (ret < 0)
		return ret;
	bool give = wanted(r, n, node_track(n, r->track_lo), c->at);

	if (give)
		node_interval(n, c->at, &iv);
	if (++c->at < c->end)
		c->next_ns = n->start_ns[c->at];
	if (c->at < c->end && c->next_ns >= r->to_ns)
		c->at = c->end;
	cache_put(r->h, n);
	return give ? r->fn(&iv, r->arg) : 0;
}

/* open[0..n) are those of nodes whose start has come; the rest of nodes wait in order. */
static int give_in_order(struct range *r)
{
	struct cursors open = {0};
	size_t waiting = 0;
	int ret = 0;

	while (ret == 0 && (open.n || waiting < r->nodes.n)) {
		size_t first = 0;

		for (size_t i = 1; i < open.n; i++)
			if (open.at[i].next_ns < open.at[first].next_ns)
				first = i;
		if (waiting < r->nodes.n &&
		    (!open.n || r->nodes.at[waiting].next_ns < open.at[first].next_ns)) {
			first = open.n;
			vec_push(&open, r->nodes.at[waiting++]);
		}
		ret = give_next(r, &open.at[first]);
		if (open.at[first].at == open.at[first].end)
			open.at[first] = open.at[--open.n];
	}
	vec_fini(&open);
	return ret;
}

static int range_one(struct range *r)
{
	struct range all = *r; /* nodes must be collected whether their steps are seen or not */
	int ret;

	all.step_ns = 0;
	ret = visit(&all, &r->h->root, collect_leaf);
	r->nodes = all.nodes;
	if (ret == 0 && r->nodes.n) {
		qsort(r->nodes.at, r->nodes.n, sizeof(*r->nodes.at), by_next);
		ret = give_in_order(r);
	}
	vec_fini(&r->nodes);
	return ret;
}

int history_range(struct history *h, uint32_t track_lo, uint32_t track_hi, int64_t from_ns,
		  int64_t to_ns, int64_t resolution_ns, history_fn *fn, void *arg)
{
	struct range r = {.h = h,
			  .track_lo = track_lo,
			  .track_hi = track_hi,
			  .from_ns = from_ns,
			  .to_ns = to_ns,
			  .step_ns = resolution_ns,
			  .fn = fn,
			  .arg = arg};
	int ret;

	if (!h->root.count || from_ns >= to_ns || track_lo > track_hi)
		return 0;
	ret = track_lo == track_hi ? range_one(&r) : visit(&r, &h->root, give_leaf);
	map_fini(&r.seen);
	return ret;
}

/* ---- verify ---- */

static int wrong(const struct node_ref *ref, struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "damaged at offset %" PRIu64 ": %s", ref->pos, what);
}

/* Do exactly the tracks that n's directory gives to child i occur in it? */
static bool child_matches(const struct node *n, uint32_t i, const struct node *child)
{
	uint32_t at = 0;

	for (uint32_t t = 0; t < n->tracks; t++) {
		if (!(n->mask[t] >> i & 1))
			continue;
		if (at == child->tracks || child->track[at++] != n->track[t])
			return false;
	}
	return at == child->tracks;
}

static void leaf_bounds(const struct node *n, struct node_ref *bounds)
{
	bounds->start_ns = INT64_MAX;
	bounds->end_ns = INT64_MIN;
	for (uint64_t i = 0; i < n->ref.count; i++) {
		if (n->start_ns[i] < bounds->start_ns)
			bounds->start_ns = n->start_ns[i];
		if (n->end_ns[i] > bounds->end_ns)
			bounds->end_ns = n->end_ns[i];
	}
}

static void inner_bounds(const struct node *n, struct node_ref *bounds)
{
	bounds->start_ns = INT64_MAX;
	bounds->end_ns = INT64_MIN;
	for (uint32_t i = 0; i < n->children; i++) {
		if (n->child[i].start_ns < bounds->start_ns)
			bounds->start_ns = n->child[i].start_ns;
		if (n->child[i].end_ns > bounds->end_ns)
			bounds->end_ns = n->child[i].end_ns;
	}
}

static int verify_node(struct history *h, const struct node_ref *ref, const struct node *parent,
		       uint32_t index, struct err *err)
{
	struct node_ref bounds;
	struct node *n;
	int r = cache_get(h, ref, &n, err);

	if (r < 0)
		return r;
	(n->ref.level ? inner_bounds : leaf_bounds)(n, &bounds);
	if (bounds.start_ns != ref->start_ns || bounds.end_ns != ref->end_ns)
		r = wrong(ref, err, "its bounds are wider than what it holds");
	else if (parent && !child_matches(parent, index, n))
		r = wrong(ref, err, "it holds other tracks than its parent says");
	for (uint32_t i = 0; r == 0 && i < n->children; i++)
		r = verify_node(h, &n->child[i], n, i, err);
	cache_put(h, n);
	return r;
}

int history_verify(struct history *h, struct err *err)
{
	int r = h->root.count ? verify_node(h, &h->root, NULL, 0, err) : 0;

	if (r < 0)
		return err_add(err, "'%s'", h->path), r;
	for (uint32_t i = 0; r == 0 && i < h->head.attachments; i++)
		r = attachment_load(h, i, err);
	return r;
}
