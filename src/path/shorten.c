/* SPDX-License-Identifier: MIT
 *
 * Problem: the path of a long request, or of a process over a minute, can have 100,000 segments;
 * whoever shows or keeps it wants thousands.
 * Idea: neighbours are put together while they are short in comparison to the path.
 *
 *	before   |====== A ======|a|b|a|c|=== B ===|a|b|
 *	after    |====== A ======|a +3   |=== B ===|a+1|
 *
 * What stands for several has the state, cause, via and culprit of what most of its time went to,
 * and shares for all culprits in it.
 *
 * Invariants: the path is tiled as before and shares sum to their segments; of two neighbours
 * left, the lengths sum to more than the limit, so there are at most `most` of them.
 * Limits: the sums by key are no longer the budget's, so that has to be made before.
 */
#include "base/arena.h"
#include "path/path.h"

enum { SHARES_KEPT = 8 };

static void add_share(struct share *shares, int *n, const struct budget_line *l)
{
	int i = 0;

	while (i < *n && !culprit_same(&shares[i].culprit, &l->culprit))
		i++;
	if (i < *n || i < SHARES_KEPT - 1) {
		if (i == *n)
			shares[(*n)++] = (struct share){.culprit = l->culprit};
		shares[i].ns += l->ns;
		return;
	}
	i = SHARES_KEPT - 1;
	if (*n == i)
		shares[(*n)++] = (struct share){
			.culprit = {.host = l->culprit.host, .name = "others", .request = -1}};
	shares[i].ns += l->ns;
}

/* Whose thread the path was on for most of what s tells. */
static void take_thread(struct segment *s, const struct segment *parts, int n)
{
	int64_t most_ns = 0;

	for (int i = 0; i < n; i++) {
		const struct segment *x = &parts[i];

		s->certain &= x->certain;
		if (x->state != s->state || x->cause != s->cause || x->via != s->via ||
		    x->end_ns - x->start_ns <= most_ns)
			continue;
		most_ns = x->end_ns - x->start_ns;
		s->host = x->host;
		s->comm = x->comm;
		s->tid = x->tid;
		s->pid = x->pid;
	}
}

static struct segment merge(struct arena *a, const struct path *p, int first, int n)
{
	struct path part = {.segments = p->segments + first, .n = n};
	struct share *shares = arena_array(a, struct share, SHARES_KEPT);
	struct segment s = {.start_ns = part.segments[0].start_ns,
			    .end_ns = part.segments[n - 1].end_ns,
			    .syscall = -1,
			    .merged = n,
			    .certain = true};
	struct arena scratch;
	struct budget b;

	arena_init(&scratch);
	budget_of(&scratch, &part, &b);
	s.state = b.lines[0].state;
	s.cause = b.lines[0].cause;
	s.via = b.lines[0].via;
	s.culprit = b.lines[0].culprit;
	for (int i = 0; i < b.n; i++)
		add_share(shares, &s.n_shares, &b.lines[i]);
	arena_fini(&scratch);
	s.shares = shares;
	take_thread(&s, part.segments, n);
	return s;
}

void path_shorten(struct arena *a, struct path *p, int most)
{
	int64_t limit_ns = 2 * ((p->end_ns - p->start_ns) / (most - 1) + 1);
	struct path ret = *p;

	if (p->n <= most)
		return;
	ret.segments = arena_array(a, struct segment, (size_t)most);
	ret.n = 0;
	ret.cap = most;
	ret.whole_count = p->n;
	for (int i = 0, n; i < p->n; i += n) {
		int64_t start_ns = p->segments[i].start_ns;

		for (n = 1; i + n < p->n && p->segments[i + n].end_ns - start_ns <= limit_ns; n++)
			;
		ret.segments[ret.n++] = n > 1 ? merge(a, p, i, n) : p->segments[i];
	}
	*p = ret;
}
