/* SPDX-License-Identifier: MIT
 *
 * Who is slow, who is typical, and whose path is worth walking.
 *
 * Per group the durations are sorted once and everything is read off that order:
 *
 *	        p25      p50      p75             p95
 *	|--------|========|========|---------------|#######|
 *	           typical (both ends in)            slow (above)
 *
 * 1. Percentiles are exact: the p-th is the smallest duration that at least p % do not exceed.
 * 2. Slow is strictly above, so a group of equal durations has no slow ones.
 * 3. No request is both slow and typical.
 * 4. Whether a group compares slow with typical or ranks its mean (basis_all) is known here,
 *    before a path is walked, since it depends on durations alone.
 *
 * Cost: n log n for n requests, 40 bytes each.
 */
#include "profile/profile.h"
#include "profile/tally.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_REQUESTS = 20, DEFAULT_SAMPLE = 2000, DEFAULT_TOP = 5 };
static const int64_t MIN_DIFFERENCE_NS = 500000;
static const double MIN_RATIO = 1.3, DEFAULT_PERCENTILE = 95;

struct profile *profile_new(const struct profile_options *opt)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	if (opt)
		p->opt = *opt;
	if (p->opt.percentile <= 0)
		p->opt.percentile = DEFAULT_PERCENTILE;
	if (p->opt.sample <= 0)
		p->opt.sample = DEFAULT_SAMPLE;
	if (p->opt.top <= 0)
		p->opt.top = DEFAULT_TOP;
	arena_init(&p->arena);
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->groups.n; i++) {
		vec_fini(&p->groups.at[i].keys);
		map_fini(&p->groups.at[i].by_hash);
	}
	vec_fini(&p->groups);
	vec_fini(&p->notes);
	vec_fini(&p->kept);
	vec_fini(&p->findings);
	map_fini(&p->texts);
	map_fini(&p->group_ids);
	map_fini(&p->note_ids);
	arena_fini(&p->arena);
	free(p->sorted);
	free(p);
}

static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

const char *profile_text(struct profile *p, const char *s)
{
	uint64_t h, old;
	char *copy;

	if (!s || !*s)
		return "";
	/* another text of the same hash moves on to the next one */
	for (h = hash_text(s); map_get(&p->texts, h, &old); h++)
		if (!strcmp((const char *)(uintptr_t)old, s))
			return (const char *)(uintptr_t)old;
	copy = arena_strdup(&p->arena, s);
	map_put(&p->texts, h, (uintptr_t)copy);
	return copy;
}

/* --- first pass */

static uint32_t group_of(struct profile *p, const struct profile_request *r)
{
	const char *name = profile_text(p, r->group);
	uint64_t *id = map_at(&p->group_ids, (uintptr_t)name);

	if (!*id) {
		struct tally *t = vec_add(&p->groups);

		t->pub.name = name;
		t->pub.streaming = r->streaming;
		*id = p->groups.n;
	}
	return (uint32_t)*id - 1;
}

void profile_note(struct profile *p, const struct profile_request *r)
{
	assert(!p->ranked);
	vec_push(&p->notes, (struct note){
				    .id = r->id,
				    .start_ns = r->start_ns,
				    .duration_ns = r->duration_ns,
				    .group = group_of(p, r),
				    .cut = r->cut,
			    });
	map_put(&p->note_ids, (uint64_t)r->id, p->notes.n);
}

/* --- ranking */

int note_order(const struct note *a, const struct note *b)
{
	if (a->duration_ns != b->duration_ns)
		return a->duration_ns > b->duration_ns ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static int by_group_and_duration(const void *x, const void *y)
{
	const struct note *a = *(const struct note *const *)x, *b = *(const struct note *const *)y;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->cut != b->cut)
		return a->cut ? 1 : -1;
	return -note_order(a, b);
}

static int by_start(const void *x, const void *y)
{
	const struct note *a = *(const struct note *const *)x, *b = *(const struct note *const *)y;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* notes: ascending in their duration. */
static int64_t percentile(struct note **notes, size_t n, double pct)
{
	/* 95 % of 20 is the 19th, whatever the rounding of the product says */
	double place = ceil(pct / 100 * (double)n - 1e-9);

	if (!n)
		return 0;
	return notes[place < 1 ? 0 : place > (double)n ? n - 1 : (size_t)place - 1]->duration_ns;
}

static int64_t mean_if(struct note **notes, size_t n, bool (*is)(const struct note *),
		       int64_t *ret_count)
{
	__int128 sum = 0;
	int64_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (is(notes[i])) {
			sum += notes[i]->duration_ns;
			count++;
		}
	*ret_count = count;
	return count ? (int64_t)(sum / count) : 0;
}

static bool is_slow(const struct note *n)
{
	return n->slow;
}

static bool is_typical(const struct note *n)
{
	return n->typical;
}

static bool is_any(const struct note *n)
{
	return n != NULL;
}

static bool too_few_or_even(const struct profile_group *g)
{
	if (g->count < MIN_REQUESTS || !g->slow_count || !g->typical_count)
		return true;
	return (double)g->mean_slow_ns < MIN_RATIO * (double)g->mean_typical_ns ||
	       g->mean_slow_ns - g->mean_typical_ns < MIN_DIFFERENCE_NS;
}

static void classify(const struct profile *p, struct tally *t, struct note **notes, size_t n)
{
	struct profile_group *g = &t->pub;
	int64_t p25_ns = percentile(notes, n, 25), p75_ns = percentile(notes, n, 75);

	g->p50_ns = percentile(notes, n, 50);
	g->p95_ns = percentile(notes, n, 95);
	g->p99_ns = percentile(notes, n, 99);
	if (p->opt.slower_ns)
		g->slow_over_ns = p->opt.slower_ns;
	else
		g->slow_over_ns = n < MIN_REQUESTS ? 0 : percentile(notes, n, p->opt.percentile);
	for (size_t i = 0; i < n; i++) {
		int64_t ns = notes[i]->duration_ns;

		notes[i]->slow = g->slow_over_ns && ns > g->slow_over_ns;
		notes[i]->typical = !notes[i]->slow && ns >= p25_ns && ns <= p75_ns;
	}
	g->mean_ns = mean_if(notes, n, is_any, &g->count);
	g->mean_slow_ns = mean_if(notes, n, is_slow, &g->slow_count);
	g->mean_typical_ns = mean_if(notes, n, is_typical, &g->typical_count);
	g->basis_all = too_few_or_even(g);
}

/* Marks at most sample of those that are so, evenly spread over the time of the window. */
static void want(const struct profile *p, struct note **notes, size_t n,
		 bool (*is)(const struct note *))
{
	size_t m = 0, most = (size_t)p->opt.sample;
	struct note **those = calloc(n ? n : 1, sizeof(*those));

	if (!those)
		abort();
	for (size_t i = 0; i < n; i++)
		if (is(notes[i]))
			those[m++] = notes[i];
	qsort(those, m, sizeof(*those), by_start);
	for (size_t i = 0; i < (m < most ? m : most); i++)
		those[m <= most ? i : (size_t)((unsigned __int128)i * m / most)]->wanted = true;
	free(those);
}

/* notes: one group's, ascending in duration, cut ones last. */
static void rank_group(struct profile *p, struct note **notes, size_t n)
{
	struct tally *t = &p->groups.at[notes[0]->group];
	size_t whole = 0;

	while (whole < n && !notes[whole]->cut)
		whole++;
	t->pub.cut_count = (int64_t)(n - whole);
	classify(p, t, notes, whole);
	if (whole)
		notes[whole - 1]->wanted = notes[whole - 1]->keep = true;
	if (t->pub.basis_all) {
		want(p, notes, whole, is_any);
	} else {
		want(p, notes, whole, is_slow);
		want(p, notes, whole, is_typical);
	}
}

/* The slowest of all groups are kept, cut ones too; streaming ones only if nothing else is. */
static void keep_slowest(struct profile *p)
{
	struct VEC(struct note *) top = {0};

	for (size_t i = 0; i < p->notes.n; i++) {
		struct note *x = &p->notes.at[i];
		size_t at;

		if (p->groups.at[x->group].pub.streaming)
			continue;
		for (at = top.n; at > 0 && note_order(x, top.at[at - 1]) < 0; at--)
			;
		if (at >= (size_t)p->opt.top)
			continue;
		if (top.n < (size_t)p->opt.top)
			vec_push(&top, x);
		memmove(top.at + at + 1, top.at + at, (top.n - at - 1) * sizeof(*top.at));
		top.at[at] = x;
	}
	for (size_t i = 0; i < top.n; i++)
		top.at[i]->wanted = top.at[i]->keep = true;
	vec_fini(&top);
}

static double total_extra_ns(const struct profile_group *g)
{
	return g->basis_all ? 0 : (double)(g->mean_slow_ns - g->mean_typical_ns) * g->slow_count;
}

static int by_extra(const void *x, const void *y)
{
	const struct profile_group *a = x, *b = y;
	double ea = total_extra_ns(a), eb = total_extra_ns(b);
	double ta = (double)a->mean_ns * a->count, tb = (double)b->mean_ns * b->count;

	if (a->streaming != b->streaming)
		return a->streaming ? 1 : -1;
	if (ea != eb)
		return ea > eb ? -1 : 1;
	if (ta != tb)
		return ta > tb ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void sort_groups(struct profile *p)
{
	struct map place = {0};
	uint64_t at = 0;

	p->sorted = calloc(p->groups.n ? p->groups.n : 1, sizeof(*p->sorted));
	if (!p->sorted)
		abort();
	for (size_t i = 0; i < p->groups.n; i++)
		p->sorted[i] = p->groups.at[i].pub;
	qsort(p->sorted, p->groups.n, sizeof(*p->sorted), by_extra);
	for (size_t i = 0; i < p->groups.n; i++)
		map_put(&place, (uintptr_t)p->sorted[i].name, i);
	for (size_t i = 0; i < p->groups.n; i++) {
		map_get(&place, (uintptr_t)p->groups.at[i].pub.name, &at);
		p->groups.at[i].place = (uint32_t)at;
	}
	map_fini(&place);
}

void profile_rank(struct profile *p)
{
	size_t n = p->notes.n;
	struct note **order = calloc(n ? n : 1, sizeof(*order));

	if (!order)
		abort();
	for (size_t i = 0; i < n; i++)
		order[i] = &p->notes.at[i];
	qsort(order, n, sizeof(*order), by_group_and_duration);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && order[to]->group == order[from]->group; to++)
			;
		rank_group(p, order + from, to - from);
	}
	free(order);
	keep_slowest(p);
	sort_groups(p);
	p->ranked = true;
}

/* --- what others read */

bool profile_wanted(const struct profile *p, int64_t id)
{
	uint64_t at;

	return map_get(&p->note_ids, (uint64_t)id, &at) && p->notes.at[at - 1].wanted;
}

int profile_groups(const struct profile *p, const struct profile_group **ret)
{
	*ret = p->sorted;
	return p->sorted ? (int)p->groups.n : 0;
}

int profile_finding_list(const struct profile *p, const struct finding **ret)
{
	*ret = p->findings.at;
	return (int)p->findings.n;
}

int profile_slowest(const struct profile *p, const struct path **ret_paths,
		    const struct budget **ret_budgets)
{
	*ret_paths = p->slowest;
	*ret_budgets = p->slowest_budgets;
	return p->n_slowest;
}

void profile_each(const struct profile *p, profile_each_fn *fn, void *arg)
{
	for (size_t i = 0; i < p->notes.n; i++) {
		const struct note *n = &p->notes.at[i];
		bool counts = p->opt.slower_ns || !p->groups.at[n->group].pub.basis_all;

		fn(n->start_ns, n->duration_ns, n->slow && counts, arg);
	}
}
