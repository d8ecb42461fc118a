/* SPDX-License-Identifier: MIT
 *
 * test-history.c - the history tree against answers worked out by hand, against a plain array,
 * and against damaged files and failing disks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "history/history.h"
#include "history/node.h"

struct ivs VEC(struct interval);

static char dir[] = "/tmp/longpole-history-XXXXXX";
static char path[sizeof(dir) + 16];
static const struct history_options small = {.node_bytes = 256, .cache_nodes = 4};

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/history", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* ---- tools ---- */

static uint64_t seed;

static uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static struct interval iv(uint32_t track, int64_t start_ns, int64_t end_ns, int64_t value)
{
	struct interval i = {start_ns, end_ns, track, 7, 2, {value, ~value}};

	return i;
}

static void ok(int r, const struct err *err)
{
	if (r < 0)
		fail_msg("%d: %s", r, err->text);
}

static void write_ivs(const struct ivs *ivs, const struct history_options *opt)
{
	struct history_writer *w;
	struct err err = {0};

	ok(history_create(path, opt, &w, &err), &err);
	for (size_t i = 0; i < ivs->n; i++)
		ok(history_add(w, &ivs->at[i], &err), &err);
	ok(history_finish(w, &err), &err);
}

static struct history *open_ok(const struct history_options *opt)
{
	struct history *h;
	struct err err = {0};

	ok(history_open(path, opt, &h, &err), &err);
	ok(history_verify(h, &err), &err);
	return h;
}

/* The same but for trailing zeros. */
static bool same(const struct interval *a, const struct interval *b)
{
	if (a->start_ns != b->start_ns || a->end_ns != b->end_ns || a->track != b->track ||
	    a->kind != b->kind)
		return false;
	for (int i = 0; i < INTERVAL_WORDS; i++)
		if ((i < a->n ? a->v[i] : 0) != (i < b->n ? b->v[i] : 0))
			return false;
	return true;
}

static int gather(const struct interval *i, void *arg)
{
	struct ivs *to = arg;

	vec_push(to, *i);
	return 0;
}

/* ---- worked out by hand ---- */

/*	track 1	[10     20)[20  25)        [40 50)
 *	track 2	     [15                      45)
 */
static void test_small(void **state)
{
	struct ivs ivs = {0}, got = {0};
	struct interval r;
	int64_t start, end;

	(void)state;
	vec_push(&ivs, iv(1, 10, 20, 100));
	vec_push(&ivs, iv(1, 20, 25, 200));
	vec_push(&ivs, iv(2, 15, 45, 300));
	vec_push(&ivs, iv(1, 40, 50, INT64_MIN));
	write_ivs(&ivs, NULL);
	struct history *h = open_ok(NULL);

	history_bounds(h, &start, &end);
	assert_int_equal(start, 10);
	assert_int_equal(end, 50);
	assert_int_equal(history_count(h), 4);
	assert_int_equal(history_at(h, 1, 9, &r), -ENOENT);
	assert_int_equal(history_at(h, 1, 10, &r), 0);
	assert_true(same(&r, &ivs.at[0]));
	assert_int_equal(history_at(h, 1, 19, &r), 0);
	assert_true(same(&r, &ivs.at[0]));
	assert_int_equal(history_at(h, 1, 20, &r), 0);
	assert_true(same(&r, &ivs.at[1]));
	assert_int_equal(history_at(h, 1, 25, &r), -ENOENT);
	assert_int_equal(history_at(h, 2, 44, &r), 0);
	assert_true(same(&r, &ivs.at[2]));
	assert_int_equal(history_at(h, 2, 45, &r), -ENOENT);
	assert_int_equal(history_at(h, 3, 20, &r), -ENOENT);
	assert_int_equal(history_before(h, 1, 10, &r), -ENOENT);
	assert_int_equal(history_before(h, 1, 11, &r), 0);
	assert_true(same(&r, &ivs.at[0]));
	assert_int_equal(history_before(h, 1, 40, &r), 0);
	assert_true(same(&r, &ivs.at[1]));
	assert_int_equal(history_before(h, 1, 99, &r), 0);
	assert_true(same(&r, &ivs.at[3]));
	assert_int_equal(history_after(h, 1, 11, &r), 0);
	assert_true(same(&r, &ivs.at[1]));
	assert_int_equal(history_after(h, 1, 21, &r), 0);
	assert_true(same(&r, &ivs.at[3]));
	assert_int_equal(history_after(h, 1, 41, &r), -ENOENT);
	assert_int_equal(history_range(h, 1, 1, 19, 41, 0, gather, &got), 0);
	assert_int_equal(got.n, 3);
	assert_true(same(&got.at[0], &ivs.at[0]) && same(&got.at[1], &ivs.at[1]) &&
		    same(&got.at[2], &ivs.at[3]));
	got.n = 0;
	assert_int_equal(history_range(h, 1, 2, 25, 40, 0, gather, &got), 0);
	assert_int_equal(got.n, 1);
	assert_true(same(&got.at[0], &ivs.at[2]));
	history_close(h);
	vec_fini(&ivs);
	vec_fini(&got);
}

static void test_empty(void **state)
{
	struct ivs ivs = {0};
	struct interval r;
	int64_t start = 1, end = 1;

	(void)state;
	write_ivs(&ivs, NULL);
	struct history *h = open_ok(NULL);

	history_bounds(h, &start, &end);
	assert_true(start == 0 && end == 0);
	assert_int_equal(history_count(h), 0);
	assert_int_equal(history_at(h, 1, 0, &r), -ENOENT);
	assert_int_equal(history_before(h, 1, INT64_MAX, &r), -ENOENT);
	assert_int_equal(history_after(h, 1, INT64_MIN, &r), -ENOENT);
	assert_int_equal(history_range(h, 0, UINT32_MAX, INT64_MIN, INT64_MAX, 0, gather, &ivs), 0);
	assert_int_equal(ivs.n, 0);
	history_close(h);
}

/* Every word length, both signs, all sixteen words; times at the ends of the clock. */
static void test_extremes(void **state)
{
	struct ivs ivs = {0}, got = {0};
	struct interval r, i;

	(void)state;
	for (int bit = 0; bit < 63; bit++) {
		i = iv(UINT32_MAX - 1, bit * 10, bit * 10 + 5, 0);
		i.n = INTERVAL_WORDS;
		for (int k = 0; k < INTERVAL_WORDS; k++)
			i.v[k] = (k & 1 ? -1 : 1) * ((1ll << bit) + k / 2 - 2);
		vec_push(&ivs, i);
	}
	vec_push(&ivs, iv(0, INT64_MIN, INT64_MIN + 1, INT64_MAX));
	vec_push(&ivs, iv(0, INT64_MIN + 1, INT64_MAX, -1));
	vec_push(&ivs, iv(1, INT64_MIN, INT64_MAX, 1));
	vec_push(&ivs, iv(2, INT64_MAX - 1, INT64_MAX, 0));
	vec_push(&ivs, iv(UINT32_MAX, 0, 1, 1));
	write_ivs(&ivs, &small);
	struct history *h = open_ok(&small);

	for (size_t k = 0; k < ivs.n; k++) {
		assert_int_equal(history_at(h, ivs.at[k].track, ivs.at[k].start_ns, &r), 0);
		assert_true(same(&r, &ivs.at[k]));
		assert_int_equal(history_at(h, ivs.at[k].track, ivs.at[k].end_ns - 1, &r), 0);
		assert_true(same(&r, &ivs.at[k]));
	}
	assert_int_equal(history_before(h, 0, INT64_MAX, &r), 0);
	assert_true(same(&r, &ivs.at[64]));
	assert_int_equal(history_before(h, 0, INT64_MIN, &r), -ENOENT);
	assert_int_equal(history_after(h, 0, INT64_MIN, &r), 0);
	assert_true(same(&r, &ivs.at[63]));
	assert_int_equal(history_after(h, 2, INT64_MAX, &r), -ENOENT);
	assert_int_equal(history_range(h, 0, UINT32_MAX, INT64_MIN, INT64_MAX, 0, gather, &got), 0);
	assert_int_equal(got.n, ivs.n);
	history_close(h);
	vec_fini(&ivs);
	vec_fini(&got);
}

static void test_refused(void **state)
{
	struct history_writer *w;
	struct err err = {0};
	struct interval i = iv(1, 5, 5, 0);

	(void)state;
	ok(history_create(path, NULL, &w, &err), &err);
	assert_int_equal(history_add(w, &i, &err), -EINVAL);
	i = iv(1, 5, 6, 0);
	i.n = INTERVAL_WORDS + 1;
	assert_int_equal(history_add(w, &i, &err), -EINVAL);
	assert_int_equal(history_attach(w, "", "", 0, &err), -EINVAL);
	assert_int_equal(history_attach(w, "a name of thirty-two characters.", "", 0, &err),
			 -EINVAL);
	history_abort(w);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(history_open(path, NULL, &(struct history *){0}, &err), -ENOENT);
	assert_int_equal(history_create("/nowhere/at/all", NULL, &w, &err), -ENOENT);
	struct history_options opt = {.node_bytes = 1};

	assert_int_equal(history_create(path, &opt, &w, &err), -EINVAL);
}

static void test_attachments(void **state)
{
	struct history_writer *w;
	struct err err = {0};
	const void *data;
	size_t len;

	(void)state;
	ok(history_create(path, NULL, &w, &err), &err);
	ok(history_attach(w, "names", "abc", 3, &err), &err);
	ok(history_attach(w, "a name of thirty-one characters", "", 0, &err), &err);
	assert_int_equal(history_attach(w, "names", "x", 1, &err), -EEXIST);
	ok(history_finish(w, &err), &err);
	struct history *h = open_ok(NULL);

	assert_int_equal(history_attachment(h, "names", &data, &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(data, "abc", 3);
	assert_int_equal(history_attachment(h, "a name of thirty-one characters", &data, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(history_attachment(h, "other", &data, &len), -ENOENT);
	history_close(h);
}

/* ---- against a plain array ---- */

struct order {
	int64_t key;
	size_t index;
};

static int by_key(const void *a, const void *b)
{
	const struct order *oa = a, *ob = b;

	return oa->key != ob->key ? (oa->key < ob->key ? -1 : 1)
				  : (oa->index > ob->index) - (oa->index < ob->index);
}

/* Tracks of short, long and mixed intervals; by end, but one in late_in comes anywhere later. */
static struct ivs make_random(size_t want, uint32_t tracks, unsigned late_in)
{
	int64_t *at = calloc(tracks, sizeof(*at));
	struct ivs ivs = {0}, sorted = {0};
	struct VEC(struct order) order = {0};

	while (ivs.n < want) {
		uint32_t t = (uint32_t)rnd(tracks);
		int64_t start = at[t] + (rnd(3) ? 0 : (int64_t)rnd(500));
		int64_t end = start + 1 + (int64_t)rnd(t % 3 ? 100 : rnd(20) ? 50 : 100000);
		struct interval i = iv(t * 7, start, end, (int64_t)rnd(1 << rnd(30)));

		i.n = (uint8_t)rnd(INTERVAL_WORDS + 1);
		for (int k = 2; k < i.n; k++)
			i.v[k] = rnd(2) ? 0 : (int64_t)(rnd(UINT64_MAX) >> rnd(64));
		for (int k = i.n; k < INTERVAL_WORDS; k++)
			i.v[k] = 0;
		i.kind = (uint8_t)rnd(4);
		int64_t late = late_in && rnd(late_in) == 0 ? (int64_t)rnd(200000) : 0;

		vec_push(&order, (struct order){end + late, ivs.n});
		vec_push(&ivs, i);
		at[t] = end;
	}
	qsort(order.at, order.n, sizeof(*order.at), by_key);
	for (size_t i = 0; i < order.n; i++)
		vec_push(&sorted, ivs.at[order.at[i].index]);
	vec_fini(&order);
	vec_fini(&ivs);
	free(at);
	return sorted;
}

enum want { AT, BEFORE, AFTER };

static const struct interval *naive(const struct ivs *ivs, enum want want, uint32_t track,
				    int64_t at_ns)
{
	const struct interval *best = NULL;

	for (size_t i = 0; i < ivs->n; i++) {
		const struct interval *c = &ivs->at[i];

		if (c->track != track)
			continue;
		if (want == AT && c->start_ns <= at_ns && c->end_ns > at_ns)
			return c;
		if (want == BEFORE && c->start_ns < at_ns &&
		    (!best || c->start_ns > best->start_ns))
			best = c;
		if (want == AFTER && c->start_ns >= at_ns &&
		    (!best || c->start_ns < best->start_ns))
			best = c;
	}
	return best;
}

static void check_points(struct history *h, const struct ivs *ivs, int64_t at_ns, uint32_t track)
{
	int (*const ask[])(struct history *, uint32_t, int64_t,
			   struct interval *) = {history_at, history_before, history_after};

	for (enum want want = AT; want <= AFTER; want++) {
		const struct interval *right = naive(ivs, want, track, at_ns);
		struct interval r;
		int got = ask[want](h, track, at_ns, &r);

		assert_int_equal(got, right ? 0 : -ENOENT);
		if (right)
			assert_true(same(&r, right));
	}
}

static void check_range(struct history *h, const struct ivs *ivs, uint32_t lo, uint32_t hi,
			int64_t from, int64_t to)
{
	struct ivs got = {0};
	size_t right = 0;

	assert_int_equal(history_range(h, lo, hi, from, to, 0, gather, &got), 0);
	for (size_t i = 0; i < ivs->n; i++) {
		const struct interval *c = &ivs->at[i];

		right += c->track >= lo && c->track <= hi && c->start_ns < to && c->end_ns > from;
	}
	assert_int_equal(got.n, right);
	for (size_t i = 0; i < got.n; i++) {
		const struct interval *c = naive(ivs, AT, got.at[i].track, got.at[i].start_ns);

		assert_true(c && same(c, &got.at[i]));
		assert_true(c->track >= lo && c->track <= hi && c->start_ns < to &&
			    c->end_ns > from);
		if (lo == hi && i)
			assert_true(got.at[i].start_ns > got.at[i - 1].start_ns);
	}
	vec_fini(&got);
}

/* Everything is given or shares track and step with something short that was. */
static void check_picture(struct history *h, const struct ivs *ivs, uint32_t lo, uint32_t hi,
			  int64_t from, int64_t to, int64_t step)
{
	struct ivs got = {0};
	struct map seen = {0};

	assert_int_equal(history_range(h, lo, hi, from, to, step, gather, &got), 0);
	for (size_t i = 0; i < got.n; i++) {
		const struct interval *c = &got.at[i];
		int64_t at = c->start_ns > from ? (c->start_ns - from) / step : 0;

		if (c->end_ns - c->start_ns < step)
			assert_int_equal(
				(*map_at(&seen, (uint64_t)c->track << 32 | (uint64_t)at))++, 0);
	}
	for (size_t i = 0; i < ivs->n; i++) {
		const struct interval *c = &ivs->at[i];
		int64_t at = c->start_ns > from ? (c->start_ns - from) / step : 0;

		if (c->track >= lo && c->track <= hi && c->start_ns < to && c->end_ns > from &&
		    c->end_ns - c->start_ns < step)
			assert_true(map_get(&seen, (uint64_t)c->track << 32 | (uint64_t)at, NULL));
	}
	map_fini(&seen);
	vec_fini(&got);
}

static void test_random(void **state)
{
	(void)state;
	for (int round = 0; round < 24; round++) {
		seed = 0x9e3779b97f4a7c15u + (uint64_t)round * 77;
		uint32_t tracks = round % 4 == 3 ? 300 : 1 + (uint32_t)rnd(20);
		struct ivs ivs = make_random(1 + rnd(6000), tracks, round % 3 ? 5 : 0);
		struct history_options opt = {256u << round % 5, 1 + rnd(40), NULL};

		write_ivs(&ivs, &opt);
		struct history *h = open_ok(&opt);
		int64_t start, end;

		history_bounds(h, &start, &end);
		assert_int_equal(history_count(h), ivs.n);
		for (int i = 0; i < 150; i++) {
			uint32_t track = (uint32_t)rnd(tracks + 1) * 7;
			const struct interval *c = &ivs.at[rnd(ivs.n)];
			int64_t at = rnd(2) ? c->start_ns + (int64_t)rnd(3) - 1
					    : c->end_ns + (int64_t)rnd(3) - 1;

			check_points(h, &ivs, at, rnd(2) ? track : c->track);
		}
		for (int i = 0; i < 4; i++) {
			uint32_t lo = (uint32_t)rnd(tracks) * 7, hi = rnd(2) ? lo : lo + 50;
			int64_t from = (int64_t)rnd((uint64_t)end), to = from + (int64_t)rnd(3000);

			check_range(h, &ivs, lo, hi, from, to);
			check_picture(h, &ivs, lo, hi, from, to + 50000, 1 + (int64_t)rnd(2000));
		}
		check_picture(h, &ivs, 0, UINT32_MAX, start, end, (end - start) / 40 + 1);
		history_close(h);
		vec_fini(&ivs);
	}
}

/* A callback that asks the same history again, with one node in the cache. */
struct again {
	struct history *h;
	uint64_t n;
};

static int count_only(const struct interval *i, void *arg)
{
	(void)i;
	++*(uint64_t *)arg;
	return 0;
}

static int ask_nested(const struct interval *i, void *arg)
{
	struct again *a = arg;
	struct interval r;
	uint64_t n = 0;

	assert_int_equal(history_at(a->h, i->track, i->start_ns, &r), 0);
	assert_true(same(&r, i));
	assert_int_equal(
		history_range(a->h, 0, 70, i->start_ns, i->start_ns + 1, 0, count_only, &n), 0);
	assert_true(n >= 1);
	return ++a->n == 300 ? 99 : 0;
}

static void test_nested(void **state)
{
	(void)state;
	seed = 7;
	struct ivs ivs = make_random(4000, 8, 5);
	struct history_options opt = {256, 1, NULL};

	write_ivs(&ivs, &opt);
	struct history *h = open_ok(&opt);
	struct again a = {.h = h};

	assert_int_equal(history_range(h, 0, 70, INT64_MIN, INT64_MAX, 0, ask_nested, &a), 99);
	a.n = 0;
	assert_int_equal(history_range(h, 7, 7, INT64_MIN, INT64_MAX, 0, ask_nested, &a), 99);
	history_close(h);
	vec_fini(&ivs);
}

/* ---- shape of the tree ---- */

static struct file_header read_header(void)
{
	struct file_header f;
	int fd = open(path, O_RDONLY);

	assert_int_equal(read(fd, &f, sizeof(f)), sizeof(f));
	close(fd);
	return f;
}

/* Ten thousand threads that start together and sleep while two processors work: a tower would
 * have a level for each root that they fill. */
static void test_no_tower(void **state)
{
	enum { THREADS = 10000, RUNS = 20000 };
	struct ivs ivs = {0};
	struct interval r;

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		vec_push(&ivs, iv(track_id(TRACK_CPU, i & 1), i / 2 * 100, i / 2 * 100 + 100, i));
		if (i % 2 == 0)
			vec_push(&ivs, iv(track_id(TRACK_SCHED, (uint32_t)i / 2), 0,
					  i / 2 * 100 + 100, i));
	}
	for (uint32_t i = 0; i < THREADS; i++) /* and these sleep on to the end */
		vec_push(&ivs, iv(track_id(TRACK_SCHED, THREADS + i), 0, RUNS / 2 * 100, i));
	struct history_options opt = {.node_bytes = 4096};

	write_ivs(&ivs, &opt);
	struct file_header f = read_header();

	/* 40,000 intervals of some ten bytes in nodes of 4 KiB: at least 98 leaves.  A fan of 53
	 * or more needs two levels above them; a third would be waste. */
	assert_in_range(f.root_level, 2, 3);
	assert_in_range(f.file_bytes, 1, ivs.n * 30);
	struct history *h = open_ok(&opt);

	for (size_t i = 0; i < ivs.n; i += 37) {
		assert_int_equal(history_at(h, ivs.at[i].track, ivs.at[i].end_ns - 1, &r), 0);
		assert_true(same(&r, &ivs.at[i]));
	}
	assert_int_equal(history_before(h, track_id(TRACK_SCHED, THREADS + 5), 900000, &r), 0);
	assert_int_equal(r.start_ns, 0);
	history_close(h);
	vec_fini(&ivs);
}

static unsigned reads;

static ssize_t counting_pread(int fd, void *data, size_t len, off_t at)
{
	reads++;
	return pread(fd, data, len, at);
}

/* Looking back for a thread that slept all along must not read the recording. */
static void test_far_back(void **state)
{
	struct io io = io_real;
	struct history_options opt = {.node_bytes = 1024, .io = &io};
	struct ivs ivs = {0};
	struct interval r;
	struct history *h;
	struct err err = {0};

	(void)state;
	io.pread = counting_pread;
	vec_push(&ivs, iv(5000, 0, 10, 42));
	for (int i = 0; i < 100000; i++)
		vec_push(&ivs, iv((uint32_t)(i % 50), 10 + i / 50 * 100, 90 + i / 50 * 100, i));
	vec_push(&ivs, iv(5000, 20, 300000, 43));
	write_ivs(&ivs, &opt);
	ok(history_open(path, &opt, &h, &err), &err);
	reads = 0;
	assert_int_equal(history_before(h, 5000, 250000, &r), 0);
	assert_true(same(&r, &ivs.at[ivs.n - 1]));
	assert_int_equal(history_before(h, 5000, 20, &r), 0);
	assert_true(same(&r, &ivs.at[0]));
	assert_int_equal(history_after(h, 5000, 21, &r), -ENOENT);
	assert_in_range(reads, 1, 12); /* two searches, four levels */
	history_close(h);
	vec_fini(&ivs);
}

/* ---- what can go wrong ---- */

static off_t disk_bytes;

static ssize_t full_pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (at + (off_t)len > disk_bytes) {
		errno = ENOSPC;
		return -1;
	}
	return pwrite(fd, data, len, at);
}

static int write_to(const struct ivs *ivs, const struct history_options *opt, struct err *err)
{
	struct history_writer *w;
	int r = history_create(path, opt, &w, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ivs->n && r == 0; i++)
		r = history_add(w, &ivs->at[i], err);
	if (r == 0)
		r = history_attach(w, "x", "yz", 2, err);
	if (r == 0)
		return history_finish(w, err);
	assert_true(history_finish(w, NULL) < 0); /* a writer that failed stays failed */
	return r;
}

static void test_full_disk(void **state)
{
	struct io io = io_real;
	struct history_options opt = {.node_bytes = 256, .io = &io};
	struct err err = {0};

	(void)state;
	io.pwrite = full_pwrite;
	seed = 3;
	struct ivs ivs = make_random(300, 5, 0);

	disk_bytes = INT64_MAX;
	ok(write_to(&ivs, &opt, &err), &err);
	off_t whole = (off_t)read_header().file_bytes;

	for (disk_bytes = 0; disk_bytes < whole; disk_bytes += 1 + disk_bytes / 40) {
		assert_int_equal(write_to(&ivs, &opt, &err), -ENOSPC);
		assert_non_null(strstr(err.text, path));
		assert_int_equal(access(path, F_OK), -1);
	}
	vec_fini(&ivs);
}

static void patch(uint64_t at, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY);

	assert_int_equal(pwrite(fd, data, len, (off_t)at), len);
	close(fd);
}

static void test_versions(void **state)
{
	struct history_writer *w;
	struct history *h;
	struct err err = {0};
	struct interval i = iv(1, 1, 2, 3);
	uint32_t version = HISTORY_VERSION + 1;

	(void)state;
	ok(history_create(path, NULL, &w, &err), &err);
	ok(history_add(w, &i, &err), &err);
	assert_int_equal(history_open(path, NULL, &h, &err), -ESTALE);
	assert_non_null(strstr(err.text, "incomplete"));
	ok(history_finish(w, &err), &err);
	history_close(open_ok(NULL));
	patch(8, &version, sizeof(version));
	assert_int_equal(history_open(path, NULL, &h, &err), -ESTALE);
	assert_non_null(strstr(err.text, "version 2"));
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(history_open(path, NULL, &h, &err), -ESTALE);
	patch(0, "not at all a history", 20);
	assert_int_equal(history_open(path, NULL, &h, &err), -EBADMSG);
	assert_int_equal(history_open("/tmp", NULL, &h, &err), -EBADMSG);
	unlink(path);
}

/* All that can be asked of a damaged file: an error or right data. */
static bool survives(const struct ivs *ivs)
{
	struct history *h;
	struct interval r;
	struct ivs got = {0};
	struct err err = {0};
	const void *data;
	size_t len;
	bool right = true;

	if (history_open(path, &small, &h, &err) < 0)
		return err.text[0] != 0;
	for (size_t i = 0; i < ivs->n; i++) {
		int ret = history_at(h, ivs->at[i].track, ivs->at[i].start_ns, &r);

		right &= ret == 0 ? same(&r, &ivs->at[i]) : ret == -EBADMSG;
		ret = history_before(h, ivs->at[i].track, ivs->at[i].end_ns, &r);
		right &= ret == 0 ? same(&r, &ivs->at[i]) : ret == -EBADMSG;
	}
	int ret = history_range(h, 0, UINT32_MAX, INT64_MIN, INT64_MAX, 0, gather, &got);

	right &= ret == 0 ? got.n == ivs->n : ret == -EBADMSG;
	ret = history_attachment(h, "x", &data, &len);
	right &= ret == 0 ? len == 2 && !memcmp(data, "yz", 2) : ret == -EBADMSG;
	right &= history_verify(h, &err) == -EBADMSG && strstr(err.text, "offset") &&
		 strstr(err.text, path);
	history_close(h);
	vec_fini(&got);
	return right;
}

static void test_flipped(void **state)
{
	struct err err = {0};
	char *file;
	size_t len;

	(void)state;
	seed = 5;
	struct ivs ivs = make_random(120, 4, 9);

	ok(write_to(&ivs, &small, &err), &err);
	ok(io_read_file(path, 1 << 20, &file, &len, &err), &err);
	for (size_t at = 0; at < len; at++) {
		char flipped = (char)(file[at] ^ 1 << at % 8);

		patch(at, &flipped, 1);
		if (!survives(&ivs))
			fail_msg("a wrong answer after a flip at offset %zu", at);
		patch(at, &file[at], 1);
	}
	for (size_t cut = len - 1; cut > 0; cut -= cut > 40 ? 37 : 1) {
		assert_int_equal(truncate(path, (off_t)cut), 0);
		assert_true(survives(&ivs));
	}
	free(file);
	vec_fini(&ivs);
}

static void test_crc(void **state)
{
	(void)state;
	/* The check value of CRC-32C. */
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
	assert_int_equal(crc32c_tables(0, "123456789", 9), 0xe3069283u);
	assert_int_equal(crc32c_tables(crc32c_tables(0, "1234", 4), "56789", 5), 0xe3069283u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc),	  cmocka_unit_test(test_small),
		cmocka_unit_test(test_empty),	  cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_attachments),
		cmocka_unit_test(test_random),	  cmocka_unit_test(test_nested),
		cmocka_unit_test(test_no_tower),  cmocka_unit_test(test_far_back),
		cmocka_unit_test(test_full_disk), cmocka_unit_test(test_versions),
		cmocka_unit_test(test_flipped),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
