/* SPDX-License-Identifier: MIT
 *
 * How fast a recording becomes a history: events a second through reader, model and history, on
 * a recording made up here.
 *
 *	build/bench/read [RECORDS [DIR]]	5000000 records; DIR is made and kept
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "history/history.h"
#include "read/read.h"
#include "unit/streams.h"

enum { CPUS = 4, THREADS = 200, REQUEST_EVERY = 40 };

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Threads take turns on four CPUs: each leaves blocked and is woken by the one before. */
struct turn {
	uint32_t running[CPUS];
	uint64_t left[THREADS + 1];
};

static void add_switch(struct hand *h, struct turn *t, unsigned cpu, uint64_t ts)
{
	uint32_t prev = t->running[cpu],
		 next = 1 + (uint32_t)(random() % (THREADS / CPUS)) + cpu * (THREADS / CPUS);
	struct rec_switch s = {.prev_tid = prev,
			       .prev_pid = prev,
			       .next_tid = next == prev ? 0 : next,
			       .next_pid = next == prev ? 0 : next,
			       .next_left = t->left[next],
			       .next_waking = ts - 900,
			       .next_runnable = ts - 700,
			       .next_waker_tid = prev,
			       .prev_syscall = 232,
			       .next_waker_syscall = 1,
			       .next_queue_cpu = (u16)cpu,
			       .prev_why = prev ? REC_WHY_BLOCKED : REC_WHY_IDLE,
			       .prev_state = REC_STATE_SLEEP,
			       .prev_obj_kind = REC_OBJ_EPOLL,
			       .prev_obj = 0xffff888104636300,
			       .next_waker_by = REC_BY_THREAD};

	hand_add(h, &s, REC_ID_SWITCH, cpu, ts);
	t->left[prev] = ts;
	t->running[cpu] = s.next_tid;
}

static void add_request(struct hand *h, struct turn *t, unsigned cpu, uint64_t ts, uint64_t *seq)
{
	uint32_t tid = t->running[cpu];
	struct rec_request r = {
		.cookie = tid, .tid = tid, .pid = tid, .arrived = ts - 500, .bytes = 80};
	struct rec_send s = {.cookie = tid, .tid = tid, .pid = tid, .bytes = 200, .status = 200};

	if (!tid)
		return;
	snprintf(r.text, sizeof(r.text), "GET /item/%u HTTP/1.1", tid);
	r.seq = s.seq = *seq += 80;
	hand_add(h, &r, REC_ID_REQUEST, cpu, ts);
	hand_add(h, &s, REC_ID_SEND, cpu, ts + 100);
}

static uint64_t write_recording(const char *dir, uint64_t records)
{
	static struct turn t;
	struct hand h;
	uint64_t ts = 1000000000, seq = 0;

	hand_open(&h, dir);
	for (u32 i = 1; i <= THREADS; i++) {
		struct rec_socket s = {.cookie = i,
				       .family = 2,
				       .role = REC_ROLE_SERVED,
				       .local_port = 80,
				       .remote_port = (u16)(5000 + i)};

		hand_add(&h, &s, REC_ID_SOCKET, 0, ts);
	}
	for (uint64_t i = 0; i < records; i++) {
		unsigned cpu = (unsigned)(i % CPUS);

		add_switch(&h, &t, cpu, ts += 1500);
		if (i % REQUEST_EVERY == 0)
			add_request(&h, &t, cpu, ts + 200, &seq);
	}
	hand_close(&h, 999999999, ts + 1000, 1);
	return ts;
}

static long rss_mb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss / 1024;
}

static int measure(const char *dir)
{
	struct err err = {0};
	struct recording *r;
	struct history *h;
	struct names *n;
	double start = now_s(), took;

	if (recording_open(dir, &r, &err) || recording_scan(r, &err))
		goto failed;
	took = now_s() - start;
	printf("scan      %" PRIu64 " records, %.0f MB: %.2f s, %.2f M/s\n", r->n_records,
	       (double)r->bytes / 1e6, took, (double)r->n_records / took / 1e6);
	start = now_s();
	if (recording_history(r, &h, &n, NULL, 0, &err))
		goto failed;
	took = now_s() - start;
	printf("history   %" PRIu64 " intervals: %.2f s, %.2f M records/s, %.2f M intervals/s, "
	       "%ld MB resident\n",
	       history_count(h), took, (double)r->n_records / took / 1e6,
	       (double)history_count(h) / took / 1e6, rss_mb());
	history_close(h);
	names_free(n);
	recording_close(r);
	return 0;
failed:
	fprintf(stderr, "read: %s\n", err.text);
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000000;
	char temporary[] = "/tmp/longpole-read.XXXXXX", dir[220], command[256];
	int rc;

	if (argc > 2) {
		snprintf(dir, sizeof(dir), "%s", argv[2]);
	} else {
		if (!mkdtemp(temporary))
			return 1;
		snprintf(dir, sizeof(dir), "%s/read.lp", temporary);
	}
	if (access(dir, F_OK))
		write_recording(dir, records);
	rc = measure(dir);
	if (argc <= 2) {
		snprintf(command, sizeof(command), "rm -rf '%s'", temporary);
		rc |= system(command);
	}
	return rc;
}
