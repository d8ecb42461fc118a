/* SPDX-License-Identifier: MIT
 *
 * history.c - what the history tree costs: intervals per second built, bytes per interval,
 * queries per second; in the same run the same rows into SQLite and as raw structs.
 *
 *	bench-history [INTERVALS [THREADS [NODE_BYTES [CACHE_NODES]]]]
 * The data look like a busy host: CPUS processors, THREADS threads, two intervals per context
 * switch, most absences short, a few of minutes.
 */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/vec.h"
#include "history/history.h"

enum { CPUS = 8 };

struct rows VEC(struct interval);

static struct history_options options;
static uint64_t seed = 88172645463325252u;

static uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void die(const struct err *err)
{
	fprintf(stderr, "history: %s\n", err->text);
	exit(1);
}

static struct interval cpu_run(unsigned cpu, int64_t from, int64_t to, uint32_t thread)
{
	struct interval iv = {from, to, track_id(TRACK_CPU, cpu), 1, 6, {0}};

	iv.v[0] = thread;
	iv.v[1] = (int64_t)rnd(3);
	iv.v[2] = rnd(4) ? 0 : (int64_t)rnd(20000);
	iv.v[3] = (int64_t)rnd(400);
	iv.v[5] = rnd(8) ? 0 : 1;
	return iv;
}

static struct interval absence(uint32_t thread, int64_t from, int64_t to)
{
	struct interval iv = {from, to, track_id(TRACK_SCHED, thread), 2, 11, {0}};
	int64_t length = to - from;

	iv.v[0] = 1 + (int64_t)rnd(4); /* why it left */
	iv.v[1] = (int64_t)rnd(300);   /* system call */
	iv.v[2] = rnd(2) ? (int64_t)rnd(64) : 0;
	iv.v[3] = length - length / 8;		/* runnable after */
	iv.v[4] = iv.v[3] - (int64_t)rnd(2000); /* waking */
	iv.v[5] = (int64_t)rnd(1000);		/* woken by */
	iv.v[6] = (int64_t)rnd(4);		/* context */
	iv.v[7] = (int64_t)rnd(CPUS);
	iv.v[10] = rnd(10) ? 0 : (int64_t)(seed >> 1); /* object */
	return iv;
}

/* Each processor runs somebody who was away, for a while, and then the next. */
static void make_rows(struct rows *rows, size_t want, uint32_t threads)
{
	int64_t cpu_ns[CPUS] = {0}, *left_ns = calloc(threads, sizeof(*left_ns));

	if (!left_ns)
		abort();
	while (rows->n + 2 <= want) {
		unsigned cpu = 0;

		for (unsigned c = 1; c < CPUS; c++)
			if (cpu_ns[c] < cpu_ns[cpu])
				cpu = c;
		/* Some threads are busy, most are not. */
		uint32_t hot = threads < 200 ? threads : 200;
		uint32_t thread = (uint32_t)(rnd(20) ? rnd(hot) : rnd(threads));
		int64_t from = cpu_ns[cpu],
			to = from + 3000 + (int64_t)rnd(rnd(8) ? 30000 : 900000);

		if (from > left_ns[thread])
			vec_push(rows, absence(thread, left_ns[thread], from));
		vec_push(rows, cpu_run(cpu, from, to, thread));
		left_ns[thread] = to;
		cpu_ns[cpu] = to;
	}
	free(left_ns);
}

static double build(const char *path, const struct rows *rows)
{
	struct history_writer *w;
	struct err err = {0};
	double from = now();

	if (history_create(path, &options, &w, &err) < 0)
		die(&err);
	for (size_t i = 0; i < rows->n; i++)
		if (history_add(w, &rows->at[i], &err) < 0)
			die(&err);
	if (history_finish(w, &err) < 0)
		die(&err);
	return now() - from;
}

static double build_raw(const char *path, const struct rows *rows)
{
	double from = now();
	FILE *f = fopen(path, "w");

	if (!f || fwrite(rows->at, sizeof(*rows->at), rows->n, f) != rows->n || fclose(f))
		exit(1);
	return now() - from;
}

static double build_sqlite(const char *path, const struct rows *rows)
{
	sqlite3_stmt *put;
	sqlite3 *db;
	double from = now();

	unlink(path);
	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db,
			 "pragma journal_mode=off; pragma synchronous=off;"
			 "create table i(track, start, end, kind, v blob,"
			 " primary key(track, start)) without rowid; begin",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "insert into i values(?,?,?,?,?)", -1, &put, NULL) != SQLITE_OK)
		exit(1);
	for (size_t i = 0; i < rows->n; i++) {
		const struct interval *iv = &rows->at[i];

		sqlite3_bind_int64(put, 1, iv->track);
		sqlite3_bind_int64(put, 2, iv->start_ns);
		sqlite3_bind_int64(put, 3, iv->end_ns);
		sqlite3_bind_int(put, 4, iv->kind);
		sqlite3_bind_blob(put, 5, iv->v, iv->n * 8, SQLITE_STATIC);
		sqlite3_step(put);
		sqlite3_reset(put);
	}
	sqlite3_finalize(put);
	sqlite3_exec(db, "commit", NULL, NULL, NULL);
	sqlite3_close(db);
	return now() - from;
}

static double file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static int count(const struct interval *iv, void *arg)
{
	(void)iv;
	++*(uint64_t *)arg;
	return 0;
}

typedef int point_fn(struct history *h, uint32_t track, int64_t at_ns, struct interval *ret);

/* in_order: as a walk asks that takes one request after the other, fifty questions within 200
 * intervals each; else anywhere. */
static void points(struct history *h, const struct rows *rows, const char *name, point_fn *fn,
		   size_t times, bool in_order, uint32_t threads)
{
	struct interval iv;
	size_t found = 0, at;
	double from = now();

	for (size_t i = 0; i < times; i++) {
		at = in_order ? (i / 50 * (rows->n / (times / 50)) + rnd(200)) % rows->n
			      : rnd(rows->n);
		uint32_t track = i % 3 ? track_id(TRACK_SCHED, (uint32_t)rnd(threads))
				       : track_id(TRACK_CPU, (uint32_t)rnd(CPUS));

		found += fn(h, track, rows->at[at].end_ns, &iv) == 0;
	}
	from = now() - from;
	printf("%-8s %-9s %10.0f /s  (%.2f us, %.0f %% found)\n", name,
	       in_order ? "in order" : "anywhere", (double)times / from, from / (double)times * 1e6,
	       100.0 * (double)found / (double)times);
}

static void queries(const char *path, const struct rows *rows, uint32_t threads)
{
	int64_t start, end, window = 1000000;
	struct history *h;
	struct err err = {0};
	uint64_t n = 0;

	if (history_open(path, &options, &h, &err) < 0)
		die(&err);
	history_bounds(h, &start, &end);
	for (int in_order = 1; in_order >= 0; in_order--) {
		size_t times = in_order ? 1000000 : 20000;

		points(h, rows, "at", history_at, times, in_order, threads);
		points(h, rows, "before", history_before, times, in_order, threads);
		points(h, rows, "after", history_after, times, in_order, threads);
	}
	double from = now();

	for (int i = 0; i < 2000; i++) {
		int64_t at = start + (int64_t)rnd((uint64_t)(end - start));

		history_range(h, track_id(TRACK_CPU, 3), track_id(TRACK_CPU, 3), at, at + window, 0,
			      count, &n);
	}
	printf("range of one track, 1 ms:  %8.0f /s, %.0f intervals each\n", 2000 / (now() - from),
	       (double)n / 2000);
	from = now();
	n = 0;
	for (int i = 0; i < 200; i++) {
		int64_t at = start + (int64_t)rnd((uint64_t)(end - start));

		history_range(h, 0, UINT32_MAX, at, at + 1, 0, count, &n);
	}
	printf("all tracks at an instant:  %8.0f /s, %.0f intervals each\n", 200 / (now() - from),
	       (double)n / 200);
	from = now();
	n = 0;
	history_range(h, 0, UINT32_MAX, start, end, (end - start) / 1000, count, &n);
	printf("picture of it all:         %8.0f ms, %llu intervals\n", (now() - from) * 1e3,
	       (unsigned long long)n);
	from = now();
	if (history_verify(h, &err) < 0)
		die(&err);
	printf("verify:                    %8.0f ms\n", (now() - from) * 1e3);
	history_close(h);
}

int main(int argc, char **argv)
{
	size_t want = argc > 1 ? strtoull(argv[1], NULL, 0) : 2000000;
	uint32_t threads = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 2000;
	options.node_bytes = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	options.cache_nodes = argc > 4 ? strtoull(argv[4], NULL, 0) : 0;
	char dir[] = "/tmp/longpole-bench-XXXXXX", path[64], other[64];
	double best = 1e9, raw = 1e9, sqlite;
	struct rows rows = {0};

	if (want < 100 || !threads || !mkdtemp(dir))
		return 2;
	snprintf(path, sizeof(path), "%s/history", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	make_rows(&rows, want, threads);
	for (int i = 0; i < 3; i++) {
		double t = build(path, &rows), u = build_raw(other, &rows);

		best = t < best ? t : best;
		raw = u < raw ? u : raw;
	}
	double n = (double)rows.n, raw_bytes = file_bytes(other);

	sqlite = build_sqlite(other, &rows);
	printf("%zu intervals, %u threads\n", rows.n, threads);
	printf("%-8s %5.2f M/s  %6.1f bytes each\n", "history", n / best / 1e6,
	       file_bytes(path) / n);
	printf("%-8s %5.2f M/s  %6.1f bytes each\n", "raw", n / raw / 1e6, raw_bytes / n);
	printf("%-8s %5.2f M/s  %6.1f bytes each\n", "sqlite", n / sqlite / 1e6,
	       file_bytes(other) / n);
	queries(path, &rows, threads);
	unlink(path);
	unlink(other);
	rmdir(dir);
	vec_fini(&rows);
	return 0;
}
