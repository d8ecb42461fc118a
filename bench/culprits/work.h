/* SPDX-License-Identifier: MIT
 *
 * work.h - time, computing and a log in memory, shared by the scenario programs.
 *
 * Each program keeps what it did as events (id, kind, start, end on CLOCK_MONOTONIC) and writes
 * them when it ends: nothing is written while a recording runs, so the log disturbs nothing.
 */
#ifndef WORK_H
#define WORK_H
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_until(int64_t at_ns)
{
	struct timespec t = {at_ns / 1000000000, at_ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

/* Uses cpu_us of this thread's CPU time, whatever the wall clock says.  The clock is a system
 * call, so it is asked only every few microseconds. */
static inline void burn_us(int64_t cpu_us)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_us * 1000;
	volatile uint64_t x = 1;

	while (cpu_us > 0 && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 4000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
}

/* One state per thread: x must not be 0. */
static inline uint64_t random_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static inline double random_unit(uint64_t *x)
{
	return (double)(random_next(x) >> 11) / 9007199254740992.0;
}

struct work_event {
	int64_t id, start_ns, end_ns;
	const char *kind;
};

struct work_log {
	struct work_event *events;
	size_t max;
	atomic_size_t n;
};

/* Zeroed and touched here, not while requests are served. */
static inline void log_init(struct work_log *log, size_t max)
{
	log->events = calloc(max, sizeof(*log->events));
	log->max = log->events ? max : 0;
	for (size_t i = 0; i < log->max; i++)
		log->events[i].id = -1;
}

static inline void log_add(struct work_log *log, int64_t id, const char *kind, int64_t start_ns,
			   int64_t end_ns)
{
	size_t i = atomic_fetch_add(&log->n, 1);

	if (i < log->max)
		log->events[i] = (struct work_event){id, start_ns, end_ns, kind};
}

/* One line per event: id, kind, start, end.  A full log is an error: the truth would be short. */
static inline int log_write(struct work_log *log, const char *path)
{
	FILE *f = path ? fopen(path, "w") : NULL;
	size_t n = atomic_load(&log->n);

	if (!path)
		return 0;
	if (!f || n > log->max) {
		fprintf(stderr, "%s: %s\n", path,
			f ? "more events than the log holds" : "cannot write");
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		const struct work_event *e = &log->events[i];

		fprintf(f, "%lld %s %lld %lld\n", (long long)e->id, e->kind, (long long)e->start_ns,
			(long long)e->end_ns);
	}
	return fclose(f) ? 1 : 0;
}

/* Blocks SIGTERM and SIGINT for this thread and those it starts; main then waits for them. */
static inline void signals_block(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
	pthread_sigmask(SIG_BLOCK, ret, NULL);
}

#endif
