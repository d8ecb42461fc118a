/* SPDX-License-Identifier: MIT
 *
 * Computes ON of every PERIOD (ms) and knows when it ran: it looks at the clock all the time, and
 * where two looks lie more than GAP apart somebody else had the CPU.  What it logs is therefore
 * the time it took from others, measured without the scheduler's help.
 */
#include "work.h"

#include <stdbool.h>
#include <sys/prctl.h>

#define GAP_NS 30000

static atomic_bool stop;

static void *wait_for_end(void *signals)
{
	int got;

	sigwait(signals, &got);
	atomic_store(&stop, true);
	return NULL;
}

static void compute_until(int64_t end_ns, struct work_log *log)
{
	int64_t start = now_ns(), last = start;

	while (last < end_ns && !atomic_load(&stop)) {
		int64_t now = now_ns();

		if (now - last > GAP_NS) {
			log_add(log, -1, "run", start, last);
			start = now;
		}
		last = now;
	}
	log_add(log, -1, "run", start, last);
}

/* Short sleeps, so that SIGTERM ends the program soon. */
static void idle_until(int64_t end_ns)
{
	while (now_ns() < end_ns && !atomic_load(&stop))
		sleep_until(now_ns() + 10000000 < end_ns ? now_ns() + 10000000 : end_ns);
}

int main(int argc, char **argv)
{
	static struct work_log log;
	int64_t on_ns, period_ns, next;
	pthread_t thread;
	sigset_t signals;

	if (argc < 3) {
		fprintf(stderr, "usage: hog ON_MS PERIOD_MS [LOG [NAME]]\n");
		return 2;
	}
	on_ns = (int64_t)(atof(argv[1]) * 1e6);
	period_ns = (int64_t)(atof(argv[2]) * 1e6);
	if (argc > 4)
		prctl(PR_SET_NAME, argv[4]);
	log_init(&log, 1 << 18);
	signals_block(&signals);
	if (pthread_create(&thread, NULL, wait_for_end, &signals))
		return 1;
	for (next = now_ns() + (period_ns - on_ns) / 2; !atomic_load(&stop); next += period_ns) {
		idle_until(next);
		compute_until(next + on_ns, &log);
	}
	return log_write(&log, argc > 3 ? argv[3] : NULL);
}
