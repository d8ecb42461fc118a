/* SPDX-License-Identifier: MIT
 *
 * The profile, on paths made up here whose answers are worked out in the comments.
 */
#include "base/arena.h"
#include "base/err.h"
#include "profile/profile.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

static const int64_t MS = 1000000;

struct piece {
	enum state state;
	enum cause cause;
	const char *who;
	int64_t ns;
	bool guess;
	enum via_word way;
};

struct fixture {
	struct profile *p;
	struct arena arena;
	int64_t next_id;
};

static void start(struct fixture *f, const struct profile_options *opt)
{
	*f = (struct fixture){.p = profile_new(opt)};
	arena_init(&f->arena);
}

static void stop(struct fixture *f)
{
	profile_free(f->p);
	arena_fini(&f->arena);
}

static int64_t note(struct fixture *f, const char *group, int64_t duration_ns)
{
	struct profile_request r = {.id = f->next_id,
				    .group = group,
				    .start_ns = f->next_id * 100 * MS,
				    .duration_ns = duration_ns};

	profile_note(f->p, &r);
	return f->next_id++;
}

static struct culprit who(const struct piece *x)
{
	struct culprit c = {.kind = CULPRIT_SELF, .comm = "app", .name = "itself", .request = -1};

	if (x->cause == CAUSE_NEIGHBOUR)
		c = (struct culprit){.kind = CULPRIT_CGROUP,
				     .cgroup = x->who,
				     .comm = "stress",
				     .name = x->who,
				     .pid = 70,
				     .tid = 71,
				     .request = -1};
	return c;
}

/* The pieces one after the other, as the path of request id. */
static void walk(struct fixture *f, int64_t id, const struct piece *pieces, int n)
{
	struct path path = {.name = "x", .host = "h", .start_ns = id * 100 * MS};
	int64_t at = path.start_ns;

	for (int i = 0; i < n; i++) {
		struct segment s = {.start_ns = at,
				    .end_ns = at + pieces[i].ns,
				    .host = "h",
				    .comm = "app",
				    .state = pieces[i].state,
				    .cause = pieces[i].cause,
				    .via = via_add(0, pieces[i].way),
				    .syscall = i ? 0 : -1,
				    .culprit = who(&pieces[i]),
				    .certain = !pieces[i].guess};

		path_add(&f->arena, &path, &s);
		at = s.end_ns;
	}
	path.end_ns = at;
	profile_add(f->p, id, &path);
}

#define WALK(f, id, ...)                                                                           \
	walk(f, id, (struct piece[]){__VA_ARGS__},                                                 \
	     sizeof((struct piece[]){__VA_ARGS__}) / sizeof(struct piece))
#define SELF(ms)                                                                                   \
	{                                                                                          \
		STATE_RUNNING, CAUSE_SELF, NULL, (ms)*MS, false, VIA_END                           \
	}
#define BEHIND(cgroup, ms)                                                                         \
	{                                                                                          \
		STATE_RUNQUEUE, CAUSE_NEIGHBOUR, cgroup, (ms)*MS, false, VIA_END                   \
	}

static const struct finding *finish(struct fixture *f, int want)
{
	const struct finding *ret;
	struct err err = {0};

	profile_findings(f->p);
	if (profile_check(f->p, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(profile_finding_list(f->p, &ret), want);
	return ret;
}

/* 95 of 10 ms, all computing; 5 of 50 ms, of which 41 behind /b and 9 computing; one of those five
 * has 5 of the 41 on disk instead.  p95 is the 95th: 10 ms.  Means 50 and 10, so 40 to explain:
 *	behind /b: (4 * 41 + 36) / 5 = 40.0 -> extra 40.0, share 1.0, in 5 of 5
 *	disk:       5 / 5 = 1.0 -> share 0.025 and in 1 of 5: no finding
 *	computing:  9 - 10 = -1.0: no finding */
static void test_slow_against_typical(void **state)
{
	const struct profile_group *g;
	const struct finding *x;
	struct fixture f;

	(void)state;
	start(&f, NULL);
	for (int i = 0; i < 100; i++)
		note(&f, "GET /x", i % 20 == 7 ? 50 * MS : 10 * MS);
	profile_rank(f.p);
	for (int i = 0; i < 100; i++) {
		assert_true(profile_wanted(f.p, i));
		if (i == 7)
			WALK(&f, i, SELF(9), BEHIND("/b", 36),
			     {STATE_DISK, CAUSE_SERVICE, NULL, 5 * MS, true, VIA_END});
		else if (i % 20 == 7)
			WALK(&f, i, SELF(9), BEHIND("/b", 41));
		else
			WALK(&f, i, SELF(10));
	}
	x = finish(&f, 1);
	assert_int_equal(profile_groups(f.p, &g), 1);
	assert_int_equal(g->count, 100);
	assert_int_equal(g->slow_count, 5);
	assert_int_equal(g->typical_count, 95);
	assert_int_equal(g->slow_over_ns, 10 * MS);
	assert_int_equal(g->mean_slow_ns, 50 * MS);
	assert_int_equal(g->p99_ns, 50 * MS);
	assert_false(g->basis_all);
	assert_int_equal(x->state, STATE_RUNQUEUE);
	assert_int_equal(x->cause, CAUSE_NEIGHBOUR);
	assert_string_equal(x->culprit.cgroup, "/b");
	assert_int_equal(x->rank, 1);
	assert_int_equal(x->extra_ns, 40 * MS);
	assert_true(x->share > 0.9999 && x->share < 1.0001);
	assert_true(x->presence == 1);
	assert_int_equal(x->count, 5);
	assert_int_equal(x->certain_ns, 40 * MS);
	assert_int_equal(x->mean_slow_ns, 40 * MS);
	assert_int_equal(x->mean_typical_ns, 0);
	assert_int_equal(x->example_ns, 41 * MS);
	assert_int_equal(x->example_tid, 71);
	assert_int_equal(x->example_syscall, 0);
	assert_int_equal(x->example_start_ns, 27 * 100 * MS);
	stop(&f);
}

/* 19 requests are too few: the mean is ranked.  18 of 10 ms computing, one of 30 ms, of which 20
 * behind /b: mean 210 / 19; /b has 20 of 210 but is in 1 of 19 only. */
static void test_too_few(void **state)
{
	const struct profile_group *g;
	const struct finding *x;
	struct fixture f;

	(void)state;
	start(&f, NULL);
	for (int i = 0; i < 19; i++)
		note(&f, "GET /x", i ? 10 * MS : 30 * MS);
	profile_rank(f.p);
	for (int i = 0; i < 19; i++)
		if (i)
			WALK(&f, i, SELF(10));
		else
			WALK(&f, i, SELF(10), BEHIND("/b", 20));
	x = finish(&f, 1);
	profile_groups(f.p, &g);
	assert_true(g->basis_all && x->basis_all);
	assert_int_equal(g->slow_count, 0);
	assert_int_equal(x->state, STATE_RUNNING);
	assert_int_equal(x->extra_ns, 10 * MS);
	assert_int_equal(x->count, 19);
	assert_true(x->share > 190 / 210.0 - 1e-9 && x->share < 190 / 210.0 + 1e-9);
	stop(&f);
}

static bool basis_all_of(int64_t typical_ns, int64_t slow_ns)
{
	const struct profile_group *g;
	struct fixture f;
	bool ret;

	start(&f, NULL);
	for (int i = 0; i < 100; i++)
		note(&f, "g", i < 5 ? slow_ns : typical_ns);
	profile_rank(f.p);
	profile_groups(f.p, &g);
	ret = g->basis_all;
	stop(&f);
	return ret;
}

static void test_basis(void **state)
{
	(void)state;
	assert_false(basis_all_of(10 * MS, 13 * MS));
	assert_true(basis_all_of(10 * MS, 13 * MS - 1)); /* under 1.3 times */
	assert_false(basis_all_of(1 * MS, MS + 500000));
	assert_true(basis_all_of(1 * MS, MS + 499999)); /* under 500 us */
	assert_true(basis_all_of(10 * MS, 10 * MS));	/* none is slow */
}

/* 1..20 ms: p50 the 10th, p95 the 19th, one slow; typical the 5th to the 15th. */
static void test_percentiles(void **state)
{
	const struct profile_group *g;
	struct fixture f;

	(void)state;
	start(&f, NULL);
	for (int i = 0; i < 20; i++)
		note(&f, "g", (1 + i * 7 % 20) * MS);
	profile_rank(f.p);
	profile_groups(f.p, &g);
	assert_int_equal(g->p50_ns, 10 * MS);
	assert_int_equal(g->p95_ns, 19 * MS);
	assert_int_equal(g->p99_ns, 20 * MS);
	assert_int_equal(g->slow_count, 1);
	assert_int_equal(g->typical_count, 11);
	assert_int_equal(g->mean_typical_ns, 10 * MS);
	stop(&f);
}

static void test_options(void **state)
{
	struct profile_options by_pct = {.percentile = 80}, by_time = {.slower_ns = 12 * MS};
	const struct profile_group *g;
	struct fixture f;

	(void)state;
	start(&f, &by_pct);
	for (int i = 1; i <= 100; i++)
		note(&f, "g", i * MS);
	profile_rank(f.p);
	profile_groups(f.p, &g);
	assert_int_equal(g->slow_count, 20);
	stop(&f);
	start(&f, &by_time);
	for (int i = 1; i <= 20; i++)
		note(&f, "g", i * MS);
	profile_rank(f.p);
	profile_groups(f.p, &g);
	assert_int_equal(g->slow_count, 8);
	assert_int_equal(g->typical_count, 8); /* the 5th to the 12th: none is slow too */
	stop(&f);
}

/* Of 50 slow ones ten are wanted, one in each tenth of the window; and the slowest. */
static void test_sample(void **state)
{
	struct profile_options opt = {.sample = 10, .top = 1, .slower_ns = 5 * MS};
	struct fixture f;
	int wanted = 0;

	(void)state;
	start(&f, &opt);
	for (int i = 0; i < 50; i++)
		note(&f, "g", i == 49 ? 30 * MS : 20 * MS);
	for (int i = 0; i < 950; i++)
		note(&f, "g", MS);
	profile_rank(f.p);
	for (int i = 0; i < 50; i += 5)
		assert_true(profile_wanted(f.p, i));
	for (int i = 0; i < 50; i++)
		wanted += profile_wanted(f.p, i);
	assert_int_equal(wanted, 11);
	assert_true(profile_wanted(f.p, 49));
	assert_false(profile_wanted(f.p, 12345));
	stop(&f);
}

static void two_groups(struct fixture *f, const char *more, const char *less)
{
	for (int i = 0; i < 240; i++)
		note(f, i % 2 ? more : less, i % 20 < 2 && i < 100 ? 20 * MS : 2 * MS);
	note(f, more, 20 * MS);
	profile_rank(f->p);
	for (int i = 0; i < 240; i++)
		if (!profile_wanted(f->p, i))
			continue;
		else if (i % 20 < 2 && i < 100)
			WALK(f, i, SELF(2), BEHIND("/b", 10), BEHIND("/a", 8));
		else
			WALK(f, i, SELF(2));
	WALK(f, 240, SELF(2), BEHIND("/b", 10), BEHIND("/a", 8));
}

/* Over all groups by extra time times count: 6 * 10, 5 * 10, 6 * 8, 5 * 8. */
static void test_order(void **state)
{
	static const char *const want[4][2] = {
		{"GET /more", "/b"}, {"GET /less", "/b"}, {"GET /more", "/a"}, {"GET /less", "/a"}};
	const struct profile_group *g;
	const struct finding *x;
	struct fixture f;

	(void)state;
	start(&f, NULL);
	two_groups(&f, "GET /more", "GET /less");
	x = finish(&f, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(x[i].group->name, want[i][0]);
		assert_string_equal(x[i].culprit.cgroup, want[i][1]);
		assert_int_equal(x[i].rank, i + 1);
	}
	profile_groups(f.p, &g);
	assert_string_equal(g[0].name, "GET /more");
	stop(&f);
}

/* Behind /b for 6 ms itself and 5 ms while holding a lock, behind /a for 9 ms: /b comes first, its
 * two ways together. */
static void test_ways_of_one_culprit(void **state)
{
	struct profile_options opt = {.top = 3};
	const struct finding *x;
	struct fixture f;

	(void)state;
	start(&f, &opt);
	for (int i = 0; i < 40; i++)
		note(&f, "GET /x", i < 2 ? 22 * MS : 2 * MS);
	profile_rank(f.p);
	for (int i = 0; i < 40; i++)
		if (i < 2)
			WALK(&f, i, SELF(2), BEHIND("/b", 6), BEHIND("/a", 9),
			     {STATE_RUNQUEUE, CAUSE_NEIGHBOUR, "/b", 5 * MS, false, VIA_LOCK});
		else
			WALK(&f, i, SELF(2));
	x = finish(&f, 3);
	assert_string_equal(x[0].culprit.cgroup, "/b");
	assert_int_equal(x[0].extra_ns, 6 * MS);
	assert_string_equal(x[1].culprit.cgroup, "/b");
	assert_int_equal(x[1].extra_ns, 5 * MS);
	assert_int_equal(via_last(x[1].via), VIA_LOCK);
	assert_string_equal(x[2].culprit.cgroup, "/a");
	stop(&f);
}

/* A group's mean and streams come after what made others slow, however long they take. */
static void test_classes(void **state)
{
	const struct finding *x;
	const struct path *paths;
	const struct budget *budgets;
	struct fixture f;

	(void)state;
	start(&f, NULL);
	for (int i = 0; i < 40; i++)
		note(&f, "GET /x", i < 2 ? 20 * MS : 2 * MS);
	for (int i = 0; i < 3; i++)
		note(&f, "GET /few", 1000 * MS);
	profile_note(f.p, &(struct profile_request){.id = 99,
						    .group = "GET /events (streaming)",
						    .duration_ns = 5000 * MS,
						    .streaming = true});
	profile_rank(f.p);
	for (int i = 0; i < 40; i++)
		if (i < 2)
			WALK(&f, i, SELF(2), BEHIND("/b", 18));
		else
			WALK(&f, i, SELF(2));
	for (int i = 40; i < 43; i++)
		WALK(&f, i, SELF(1000));
	WALK(&f, 99, SELF(5000));
	x = finish(&f, 3);
	assert_string_equal(x[0].group->name, "GET /x");
	assert_string_equal(x[1].group->name, "GET /few");
	assert_string_equal(x[2].group->name, "GET /events (streaming)");
	assert_int_equal(profile_slowest(f.p, &paths, &budgets), 5);
	assert_string_equal(paths[0].name, "GET /few");
	assert_string_equal(paths[3].name, "GET /x");
	assert_string_equal(paths[4].name, "GET /x");
	stop(&f);
}

/* A cut one is in no percentile, but may be the slowest; the slowest of the first finding's group
 * is shown even when others are slower. */
static void test_cut_and_slowest(void **state)
{
	struct profile_options opt = {.top = 2};
	const struct profile_group *g;
	const struct path *paths;
	const struct budget *budgets;
	struct fixture f;

	(void)state;
	start(&f, &opt);
	for (int i = 0; i < 40; i++)
		note(&f, "GET /x", i < 2 ? 20 * MS : 2 * MS);
	note(&f, "GET /few", 500 * MS);
	profile_note(f.p,
		     &(struct profile_request){
			     .id = 98, .group = "GET /x", .duration_ns = 900 * MS, .cut = true});
	profile_rank(f.p);
	assert_true(profile_wanted(f.p, 98));
	for (int i = 0; i < 40; i++)
		if (i < 2)
			WALK(&f, i, SELF(2), BEHIND("/b", 18));
		else
			WALK(&f, i, SELF(2));
	WALK(&f, 40, SELF(500));
	WALK(&f, 98, SELF(900));
	finish(&f, 2);
	profile_groups(f.p, &g);
	assert_int_equal(g[0].count, 40);
	assert_int_equal(g[0].cut_count, 1);
	assert_int_equal(g[0].p99_ns, 20 * MS);
	assert_int_equal(profile_slowest(f.p, &paths, &budgets), 2);
	assert_int_equal(paths[0].end_ns - paths[0].start_ns, 900 * MS);
	assert_string_equal(paths[1].name, "GET /x");
	assert_int_equal(budgets[1].total_ns, 20 * MS);
	stop(&f);
}

/* Two slow ones of 22 ms: 20 behind /b, in one of them by a guess: half of it is certain.  Two of
 * 22 ms in the dark: unknown share of the slow ones 20 / 44. */
static void test_certain_and_unknown(void **state)
{
	const struct profile_group *g;
	const struct finding *x;
	struct fixture f;

	(void)state;
	start(&f, NULL);
	for (int i = 0; i < 40; i++)
		note(&f, "g", i < 2 ? 22 * MS : 2 * MS);
	profile_rank(f.p);
	for (int i = 2; i < 40; i++)
		WALK(&f, i, SELF(2));
	WALK(&f, 0, SELF(2), BEHIND("/b", 10),
	     {STATE_UNKNOWN, CAUSE_NONE, NULL, 10 * MS, true, VIA_END});
	WALK(&f, 1, SELF(2), {STATE_RUNQUEUE, CAUSE_NEIGHBOUR, "/b", 10 * MS, true, VIA_END},
	     {STATE_LOST, CAUSE_NONE, NULL, 10 * MS, true, VIA_END});
	x = finish(&f, 3);
	profile_groups(f.p, &g);
	assert_int_equal(x[0].extra_ns, 10 * MS);
	assert_int_equal(x[0].certain_ns, 5 * MS);
	assert_true(g->unknown_share > 20 / 44.0 - 1e-9 && g->unknown_share < 20 / 44.0 + 1e-9);
	stop(&f);
}

static void test_nothing(void **state)
{
	const struct path *paths;
	const struct budget *budgets;
	const struct profile_group *g;
	struct fixture f;

	(void)state;
	start(&f, NULL);
	profile_rank(f.p);
	finish(&f, 0);
	assert_int_equal(profile_groups(f.p, &g), 0);
	assert_int_equal(profile_slowest(f.p, &paths, &budgets), 0);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_against_typical),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_basis),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_ways_of_one_culprit),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_cut_and_slowest),
		cmocka_unit_test(test_certain_and_unknown),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
