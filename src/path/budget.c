/* SPDX-License-Identifier: MIT
 *
 * The path summed by (state, cause, via, culprit).  Integer nanoseconds, so the lines add up to
 * the duration exactly.  Lines are found by a hash while they are many; a path has few.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "path/path.h"

struct summing {
	struct arena *arena;
	struct budget *budget;
	struct map by_key; /* hash of the key -> index of the line + 1 */
};

static bool line_is(const struct budget_line *l, const struct segment *s, const struct culprit *c)
{
	return l->state == s->state && l->cause == s->cause && l->via == s->via &&
	       culprit_same(&l->culprit, c);
}

static struct budget_line *line_new(struct summing *m, const struct segment *s,
				    const struct culprit *c)
{
	struct budget *b = m->budget;

	if (b->n == b->cap) {
		int cap = b->cap ? b->cap * 2 : 16;
		struct budget_line *more = arena_array(m->arena, struct budget_line, (size_t)cap);

		if (b->n)
			memcpy(more, b->lines, (size_t)b->n * sizeof(*more));
		b->lines = more;
		b->cap = cap;
	}
	b->lines[b->n] = (struct budget_line){
		.state = s->state, .cause = s->cause, .via = s->via, .culprit = *c};
	return &b->lines[b->n++];
}

/* Two keys of one hash: the next number is tried, so a chain of them is found in order. */
static struct budget_line *line_of(struct summing *m, const struct segment *s,
				   const struct culprit *c)
{
	uint64_t key = (culprit_hash(c) ^ s->via) * 1024 + (uint64_t)s->state * 32 + s->cause;
	uint64_t i;

	for (; map_get(&m->by_key, key, &i); key++)
		if (line_is(&m->budget->lines[i], s, c))
			return &m->budget->lines[i];
	map_put(&m->by_key, key, (uint64_t)m->budget->n);
	return line_new(m, s, c);
}

static void sum(struct summing *m, const struct segment *s, const struct culprit *c, int64_t ns)
{
	struct budget_line *l = line_of(m, s, c);

	l->ns += ns;
	l->certain_ns += s->certain ? ns : 0;
	m->budget->total_ns += ns;
}

static int by_ns(const void *a, const void *b)
{
	const struct budget_line *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	if (x->via != y->via)
		return x->via < y->via ? -1 : 1;
	return strcmp(x->culprit.name ? x->culprit.name : "",
		      y->culprit.name ? y->culprit.name : "");
}

void budget_of(struct arena *a, const struct path *p, struct budget *ret)
{
	struct summing m = {.arena = a, .budget = ret};

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < p->n; i++) {
		const struct segment *s = &p->segments[i];

		for (int k = 0; k < s->n_shares; k++)
			sum(&m, s, &s->shares[k].culprit, s->shares[k].ns);
		if (!s->n_shares)
			sum(&m, s, &s->culprit, s->end_ns - s->start_ns);
	}
	map_fini(&m.by_key);
	if (ret->n)
		qsort(ret->lines, (size_t)ret->n, sizeof(*ret->lines), by_ns);
}
