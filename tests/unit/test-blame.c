/* SPDX-License-Identifier: MIT
 *
 * Blame: classes, the CPU's holders, quota, moves between queues, the disk's shares.
 */
#include "walk-lab.h"

static int add(const struct blame_piece *p, void *arg)
{
	struct lab *l = arg;

	str_addf(&l->text, "%g-%g %s%s%s = %s", (double)p->start_ns / 1000,
		 (double)p->end_ns / 1000, state_word(p->state), p->cause ? "/" : "",
		 cause_word(p->cause), p->culprit.name ? p->culprit.name : "");
	for (int i = 0; i < p->n_shares; i++)
		str_addf(&l->text, " [%s:%" PRId64 "]", p->shares[i].culprit.name, p->shares[i].ns);
	str_add(&l->text, p->certain ? "\n" : " ?\n");
	return 0;
}

static const char *runqueue(struct lab *l, const struct absence *x, int64_t from_us, int64_t to_us)
{
	str_clear(&l->text);
	assert_int_equal(blame_runqueue(l->blame, x->thread, x, US(from_us), US(to_us), add, l), 0);
	return str_get(&l->text);
}

static const char *disk(struct lab *l, int victim, uint64_t id, int64_t from_us, int64_t to_us)
{
	struct block x;

	str_clear(&l->text);
	assert_int_equal(blame_find_block(l->blame, id, US(from_us), US(to_us), &x), 0);
	assert_int_equal(blame_disk(l->blame, victim, &x, US(from_us), US(to_us), &l->a, add, l),
			 0);
	return str_get(&l->text);
}

static struct absence waiting(int thread, int cpu, int64_t from_us, int64_t to_us)
{
	return (struct absence){.start_ns = US(from_us),
				.waking_ns = US(from_us),
				.runnable_ns = US(from_us),
				.end_ns = US(to_us),
				.thread = thread,
				.why = WHY_PREEMPTED,
				.cpu = cpu};
}

/* Pieces come last first. */
static void classes(void **state)
{
	struct lab l;
	struct absence x;
	int web, mate, below, hog, shell, worker, recorder, nobody;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/");
	lab_cgroup(&l, 2, "/system.slice/web.service");
	lab_cgroup(&l, 3, "/system.slice/web.service/workers");
	lab_cgroup(&l, 4, "/system.slice/hog.service");
	web = lab_thread(&l, "web", 10, 10, 2);
	mate = lab_thread(&l, "mate", 11, 11, 2);
	below = lab_thread(&l, "below", 12, 12, 3);
	hog = lab_thread(&l, "hog", 13, 13, 4);
	shell = lab_thread(&l, "bash", 14, 14, 1);
	worker = lab_thread(&l, "[kworker/u8:3-ev]", 15, 15, 1);
	recorder = lab_thread(&l, "longpole", 16, 16, 4);
	nobody = lab_thread(&l, "nobody", 17, 17, 0);
	lab_begin(&l);
	lab_run(&l, 1, web, 0, 10);
	lab_run(&l, 1, mate, 10, 12);
	lab_run(&l, 1, below, 12, 14);
	lab_run(&l, 1, hog, 14, 16);
	lab_run(&l, 1, shell, 16, 18);
	lab_run(&l, 1, worker, 18, 20);
	lab_run(&l, 1, recorder, 20, 22);
	lab_run(&l, 1, nobody, 22, 24);
	lab_run(&l, 1, THREAD_IDLE, 24, 26);
	lab_end(&l);
	x = waiting(web, 1, 10, 28);
	assert_string_equal(runqueue(&l, &x, 10, 28),
			    "26-28 unknown = unseen CPU ?\n"
			    "24-26 runqueue/idle = idle CPU\n"
			    "22-24 runqueue/system = nobody (pid 17)\n"
			    "20-22 runqueue/system = longpole (pid 16)\n"
			    "18-20 runqueue/system = kworker\n"
			    "16-18 runqueue/system = bash (pid 14)\n"
			    "14-16 runqueue/neighbour = /system.slice/hog.service\n"
			    "12-14 runqueue/own = below (pid 12)\n"
			    "10-12 runqueue/own = mate (pid 11)\n");
	/* A part of it. */
	assert_string_equal(runqueue(&l, &x, 15, 17),
			    "16-17 runqueue/system = bash (pid 14)\n"
			    "15-16 runqueue/neighbour = /system.slice/hog.service\n");
	/* Seen by a shell in the root cgroup, others there are its own, services are neighbours. */
	assert_int_equal(blame_class(l.blame, shell, hog, US(15)), CAUSE_NEIGHBOUR);
	assert_int_equal(blame_class(l.blame, hog, web, US(15)), CAUSE_NEIGHBOUR);
	lab_fini(&l);
}

/* Quota is laid where the own group did not run: it could not have been throttled there.
 *	cpu 1   own 10-20 | hog 20-30 | idle 30-40        quota of 15: 20-35                 */
static void quota(void **state)
{
	struct lab l;
	struct absence x;
	int web, mate, hog;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/hog");
	web = lab_thread(&l, "web", 10, 10, 1);
	mate = lab_thread(&l, "mate", 11, 11, 1);
	hog = lab_thread(&l, "hog", 20, 20, 2);
	lab_begin(&l);
	lab_run(&l, 1, mate, 10, 20);
	lab_run(&l, 1, hog, 20, 30);
	lab_run(&l, 1, THREAD_IDLE, 30, 40);
	lab_end(&l);
	x = waiting(web, 1, 10, 40);
	x.quota_ns = US(15);
	assert_string_equal(runqueue(&l, &x, 10, 40), "35-40 runqueue/idle = idle CPU\n"
						      "30-35 runqueue/quota = /web\n"
						      "20-30 runqueue/quota = /web\n"
						      "10-20 runqueue/own = mate (pid 11)\n");
	/* Only the part asked for, at the same places. */
	assert_string_equal(runqueue(&l, &x, 33, 37), "35-37 runqueue/idle = idle CPU\n"
						      "33-35 runqueue/quota = /web\n");
	/* More than fits beside the own group: the rest goes over it. */
	x.quota_ns = US(25);
	assert_string_equal(runqueue(&l, &x, 10, 40), "30-40 runqueue/quota = /web\n"
						      "20-30 runqueue/quota = /web\n"
						      "15-20 runqueue/own = mate (pid 11)\n"
						      "10-15 runqueue/quota = /web\n");
	lab_fini(&l);
}

/* Moved at 20 from cpu 1 to cpu 2: who held cpu 1 afterwards does not matter. */
static void migration(void **state)
{
	struct queued moved[2];
	struct interval iv;
	struct lab l;
	struct absence x;
	int web, hog, other;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/hog");
	lab_cgroup(&l, 3, "/other");
	web = lab_thread(&l, "web", 10, 10, 1);
	hog = lab_thread(&l, "hog", 20, 20, 2);
	other = lab_thread(&l, "other", 30, 30, 3);
	lab_begin(&l);
	lab_run(&l, 1, hog, 0, 40);
	lab_run(&l, 2, other, 0, 28);
	lab_run(&l, 2, THREAD_IDLE, 28, 30);
	moved[0] = (struct queued){US(10), US(20), web, 1};
	moved[1] = (struct queued){US(20), US(30), web, 2};
	for (int i = 0; i < 2; i++) {
		queued_put(&moved[i], &iv);
		lab_add(&l, &iv);
	}
	lab_end(&l);
	x = waiting(web, 2, 10, 30);
	x.migrated = true;
	assert_string_equal(runqueue(&l, &x, 10, 30), "28-30 runqueue/idle = idle CPU\n"
						      "20-28 runqueue/neighbour = /other\n"
						      "10-20 runqueue/neighbour = /hog\n");
	lab_fini(&l);
}

/* Four in service at once, of three cgroups; the victim's is issued late.
 *	web's      10 .. issued 20 ============ 40
 *	fio's      10 ==================== 30             two of them, in /fio
 *	flusher's  10 ==================== 30             owner /db
 *	10-20: three in service, none the victim's -> 2/3 fio, 1/3 db       6.67 3.33
 *	20-30: four: 1/4 web, 2/4 fio, 1/4 db                          2.5  5    2.5
 *	30-40: web alone, 40-41 the completion is delivered             11
 * Rounded down to whole nanoseconds; what is missing goes to the largest part, service.       */
static void disk_shares(void **state)
{
	struct lab l;
	struct block b;
	struct interval iv;
	int web, fio, flusher;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/fio");
	lab_cgroup(&l, 3, "/db");
	lab_thread(&l, "db", 40, 40, 3);
	web = lab_thread(&l, "web", 10, 10, 1);
	fio = lab_thread(&l, "fio", 20, 20, 2);
	flusher = lab_thread(&l, "[kworker/u8:0]", 30, 30, 0);
	names_set_disk_name(l.names, 8 << 20, "sda");
	lab_begin(&l);
	lab_block(&l, 0, 1, web, 10, 20, 40);
	lab_block(&l, 1, 2, fio, 5, 6, 30);
	lab_block(&l, 2, 3, fio, 5, 6, 30);
	b = (struct block){.start_ns = US(5),
			   .end_ns = US(30),
			   .slot = 3,
			   .id = 4,
			   .issued_ns = US(6),
			   .thread = flusher,
			   .owner = names_cgroup_of(l.names, names_find(l.names, 40, 0), 0)};
	block_put(&b, &iv);
	lab_add(&l, &iv);
	lab_end(&l);
	assert_string_equal(disk(&l, web, 1, 10, 41),
			    "27.499-41 disk/service = sda\n"
			    "10-27.499 disk/neighbour = /fio [/fio:11666] [/db:5833]\n");
	/* For fio its own other request is service too; flushed data are db's. */
	assert_string_equal(disk(&l, fio, 2, 10, 20), "13.333-20 disk/service = sda\n"
						      "10-13.333 disk/neighbour = /db\n");
	lab_fini(&l);
}

/* A neighbour holds the CPU for 40 us, interrupts a quarter of that. */
static void interrupted_holder(void **state)
{
	struct absence x = {.why = WHY_PREEMPTED, .cpu = 1};
	struct lab l;
	int web, hog;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/b");
	web = lab_thread(&l, "web", 10, 10, 1);
	hog = lab_thread(&l, "hog", 20, 20, 2);
	lab_begin(&l);
	lab_away(&l, web, 10, 10, 10, 50, x);
	lab_run(&l, 1, web, 0, 10);
	lab_run_irq(&l, 1, hog, 10, 50, 10);
	lab_run(&l, 1, web, 50, 60);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 5, 55),
			    "5-10 web running/self = self\n"
			    "10-40 web runqueue/neighbour = /b\n"
			    "40-50 web runqueue/interrupt = interrupts\n"
			    "50-55 web running/self = self\n");
	lab_fini(&l);
}

/* blkio knows one cgroup for all, the root, or another than the one that counts: what fio reads is
 * fio's, and what a thread of web's reads is web's own. */
static void disk_root_owns_all(void **state)
{
	struct lab l;
	int web, mate, fio, root, other;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/fio");
	lab_cgroup(&l, 3, "/");
	lab_cgroup(&l, 4, "/other");
	web = lab_thread(&l, "web", 10, 10, 1);
	mate = lab_thread(&l, "mate", 11, 10, 1);
	fio = lab_thread(&l, "fio", 20, 20, 2);
	lab_thread(&l, "r", 30, 30, 3);
	lab_thread(&l, "o", 40, 40, 4);
	root = names_cgroup_of(l.names, names_find(l.names, 30, 0), 0);
	other = names_cgroup_of(l.names, names_find(l.names, 40, 0), 0);
	names_set_disk_name(l.names, 8 << 20, "sda");
	lab_begin(&l);
	lab_block(&l, 0, 1, web, 10, 10, 40);
	lab_block_of(&l, 1, 2, fio, 10, 10, 40, root);
	lab_block_of(&l, 2, 3, mate, 10, 10, 40, other);
	lab_end(&l);
	assert_string_equal(disk(&l, web, 1, 10, 40), "30-40 disk/service = sda\n"
						      "20-30 disk/neighbour = /fio\n"
						      "10-20 disk/own = web (pid 10)\n");
	lab_fini(&l);
}

/* Twenty thousand requests in service at once: the shares still sum up. */
static void disk_crowd(void **state)
{
	struct lab l;
	int web, fio;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/fio");
	web = lab_thread(&l, "web", 10, 10, 1);
	fio = lab_thread(&l, "fio", 20, 20, 2);
	names_set_disk_name(l.names, 8 << 20, "sda");
	lab_begin(&l);
	lab_block(&l, 0, 1, web, 10, 11, 9000);
	for (int i = 0; i < 20000; i++)
		lab_block(&l, 1 + i % 1000, (uint64_t)i + 2, fio, 10 + i / 1000 * 100,
			  10 + i / 1000 * 100, 110 + i / 1000 * 100 - i % 7);
	lab_end(&l);
	disk(&l, web, 1, 10, 9000);
	assert_non_null(strstr(str_get(&l.text), "disk/service = sda\n10-"));
	lab_fini(&l);
}

/* A disk that serves eight as fast as one: nobody is slowed by the others. */
static void parallel_disk(void **state)
{
	for (int rises = 0; rises < 2; rises++) {
		struct lab l;
		int web, fio;
		const char *text;

		(void)state;
		lab_init(&l);
		lab_cgroup(&l, 1, "/web");
		lab_cgroup(&l, 2, "/fio");
		web = lab_thread(&l, "web", 10, 10, 1);
		fio = lab_thread(&l, "fio", 20, 20, 2);
		names_set_disk_name(l.names, 8 << 20, "nvme0n1");
		lab_begin(&l);
		for (int i = 0; i < 4000; i++) {
			int at = i * 200, n = i % 2 ? 8 : 1, takes = rises ? 20 * n : 20;

			for (int k = 0; k < n; k++)
				lab_block(&l, k, (uint64_t)(i * 8 + k + 1), k ? fio : web, at, at,
					  at + takes);
		}
		lab_end(&l);
		/* The 2nd group: web's own with seven of fio's. */
		text = disk(&l, web, 9, 200, 200 + (rises ? 160 : 20));
		assert_string_equal(text, rises ? "340-360 disk/service = nvme0n1\n"
						  "200-340 disk/neighbour = /fio\n"
						: "200-220 disk/service = nvme0n1\n");
		lab_fini(&l);
	}
}

static void culprits(void **state)
{
	struct lab l;
	struct culprit c, d;
	int web, mate;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/system.slice/web.service");
	web = lab_thread(&l, "web", 10, 10, 1);
	mate = lab_thread(&l, "thread-7", 11, 10, 1);
	lab_begin(&l);
	lab_end(&l);
	blame_thread(l.blame, mate, US(5), CULPRIT_PROCESS, &c);
	assert_string_equal(c.name, "web (pid 10)");
	assert_string_equal(c.cgroup, "/system.slice/web.service");
	assert_int_equal(c.tid, 11);
	blame_thread(l.blame, web, US(5), CULPRIT_PROCESS, &d);
	assert_true(culprit_same(&c, &d));
	assert_int_equal(culprit_hash(&c), culprit_hash(&d));
	blame_thread(l.blame, mate, US(5), CULPRIT_THREAD, &c);
	assert_string_equal(c.name, "thread-7 (pid 10)");
	blame_thread(l.blame, 99, US(5), CULPRIT_THREAD, &c);
	assert_int_equal(c.tid, 0);
	lab_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes),
		cmocka_unit_test(quota),
		cmocka_unit_test(migration),
		cmocka_unit_test(disk_shares),
		cmocka_unit_test(disk_root_owns_all),
		cmocka_unit_test(interrupted_holder),
		cmocka_unit_test(disk_crowd),
		cmocka_unit_test(parallel_disk),
		cmocka_unit_test(culprits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
