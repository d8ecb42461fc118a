/* SPDX-License-Identifier: MIT
 *
 * Problem: the walk finds the pieces of a path one by one, last first, many of them parts of the
 * same thing; readers want few segments, ascending, that tile the request.
 * Idea: join at the moment of adding, in whichever direction the pieces come.
 *
 *	added:   [8,9) run   [6,8) run   [2,6) disk        path_reverse
 *	kept:    [6,9) run   [2,6) disk              ->    [2,6) disk  [6,9) run
 *
 * Invariants (path_check):
 *  1. The first segment starts where the path does, the last one ends where it ends.
 *  2. Each segment starts where the one before it ends; none is empty.
 *  3. Shares are positive and sum to their segment.
 * Cost: O(1) per piece, memory by the arena.
 */
#include "path/path.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

static bool same_text(const char *a, const char *b)
{
	return a == b || !strcmp(a ? a : "", b ? b : "");
}

/* Down to the thread and request, unlike culprit_same(). */
static bool culprit_equal(const struct culprit *a, const struct culprit *b)
{
	return a->kind == b->kind && a->pid == b->pid && a->tid == b->tid &&
	       a->kernel == b->kernel && a->request == b->request && same_text(a->host, b->host) &&
	       same_text(a->cgroup, b->cgroup) && same_text(a->container, b->container) &&
	       same_text(a->comm, b->comm) && same_text(a->name, b->name);
}

static bool segment_continues(const struct segment *a, const struct segment *b)
{
	return a->state == b->state && a->cause == b->cause && a->via == b->via &&
	       a->tid == b->tid && a->pid == b->pid && a->syscall == b->syscall &&
	       a->certain == b->certain && !a->n_shares && !b->n_shares && !a->n_alternatives &&
	       !b->n_alternatives && same_text(a->host, b->host) && same_text(a->comm, b->comm) &&
	       culprit_equal(&a->culprit, &b->culprit);
}

static bool join(struct path *p, const struct segment *s)
{
	struct segment *last = p->n ? &p->segments[p->n - 1] : NULL;

	if (!last || !segment_continues(last, s))
		return false;
	if (s->end_ns == last->start_ns)
		last->start_ns = s->start_ns;
	else if (s->start_ns == last->end_ns)
		last->end_ns = s->end_ns;
	else
		return false;
	return true;
}

static void grow(struct arena *a, struct path *p)
{
	int cap = p->cap ? p->cap * 2 : 32;
	struct segment *more = arena_array(a, struct segment, (size_t)cap);

	if (p->n)
		memcpy(more, p->segments, (size_t)p->n * sizeof(*more));
	p->segments = more;
	p->cap = cap;
}

void path_add(struct arena *a, struct path *p, const struct segment *s)
{
	if (s->start_ns >= s->end_ns || join(p, s))
		return;
	if (p->n == p->cap)
		grow(a, p);
	p->segments[p->n++] = *s;
}

void path_reverse(struct path *p)
{
	for (int i = 0, j = p->n - 1; i < j; i++, j--) {
		struct segment s = p->segments[i];

		p->segments[i] = p->segments[j];
		p->segments[j] = s;
	}
}

static int check_shares(const struct segment *s, int i, struct err *err)
{
	int64_t sum = 0;

	if (!s->n_shares)
		return 0;
	for (int k = 0; k < s->n_shares; k++) {
		if (s->shares[k].ns <= 0)
			return err_set(err, -EINVAL, "segment %d: share %d is %" PRId64 " ns", i, k,
				       s->shares[k].ns);
		sum += s->shares[k].ns;
	}
	if (sum != s->end_ns - s->start_ns)
		return err_set(err, -EINVAL,
			       "segment %d: shares sum to %" PRId64 " of %" PRId64 " ns", i, sum,
			       s->end_ns - s->start_ns);
	return 0;
}

int path_check(const struct path *p, struct err *err)
{
	int64_t at = p->start_ns;

	for (int i = 0; i < p->n; i++) {
		const struct segment *s = &p->segments[i];
		int r = check_shares(s, i, err);

		if (r)
			return r;
		if (s->start_ns != at || s->end_ns <= s->start_ns)
			return err_set(err, -EINVAL,
				       "segment %d is [%" PRId64 ", %" PRId64
				       "), expected to start at %" PRId64,
				       i, s->start_ns, s->end_ns, at);
		at = s->end_ns;
	}
	if (at != p->end_ns)
		return err_set(err, -EINVAL,
			       "the path ends at %" PRId64 ", its segments at %" PRId64, p->end_ns,
			       at);
	return 0;
}
