/* SPDX-License-Identifier: MIT
 *
 * Small event lists, with the answers worked out by hand.
 */
#include "events.h"

enum { A = 101, B = 102, C = 103 };

static struct absence absence_at(struct bench *b, uint32_t tid, int i)
{
	struct absence x;
	const struct interval *iv =
		bench_at(b, track_id(TRACK_SCHED, (uint32_t)bench_thread(b, tid, 1)), i);

	assert_non_null(iv);
	absence_get(iv, &x);
	return x;
}

static struct run run_at(struct bench *b, int cpu, int i)
{
	struct run r;
	const struct interval *iv = bench_at(b, track_id(TRACK_CPU, (uint32_t)cpu), i);

	assert_non_null(iv);
	run_get(iv, &r);
	return r;
}

/*
 *	100  A leaves for B, blocked in read (0) on socket 7
 *	150  (waking by B), 160 (runnable)
 *	200  B leaves for A, preempted
 *	300  A leaves for idle, blocked; the recording ends at 400
 * A's absence is [100,200), runnable at 160; B's [200,400), open; A's second [300,400), open.
 */
static void two_halves(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_switch(100, 0, A, B);
	struct absence x;
	struct run r;

	(void)state;
	e.sw.syscall = 0;
	e.sw.obj_kind = OBJ_SOCKET;
	e.sw.obj = 7;
	e.sw.prev_since_ns = 60;
	bench_feed(b, &e);
	e = ev_switch(200, 0, B, A);
	e.sw.why = WHY_PREEMPTED;
	e.sw.state = TASK_RUNNABLE;
	e.sw.irq_ns = 5;
	bench_feed(b, &(struct event){.ts_ns = 200, .kind = EVENT_STEAL, .steal_ns = 30});
	e.sw.left_ns = 100;
	e.sw.waking_ns = 150;
	e.sw.runnable_ns = 160;
	e.sw.by = BY_THREAD;
	e.sw.waker_tid = B;
	e.sw.waker_syscall = 1;
	bench_feed(b, &e);
	e = ev_switch(300, 0, A, 0);
	bench_feed(b, &e);
	bench_finish(b, 400);
	bench_check(b);

	x = absence_at(b, A, 0);
	assert_int_equal(x.start_ns, 100);
	assert_int_equal(x.end_ns, 200);
	assert_int_equal(x.why, WHY_BLOCKED);
	assert_int_equal(x.syscall, 0);
	assert_int_equal(x.obj_kind, OBJ_SOCKET);
	assert_int_equal(x.obj, 7);
	assert_int_equal(x.waking_ns, 150);
	assert_int_equal(x.runnable_ns, 160);
	assert_int_equal(x.by, BY_THREAD);
	assert_int_equal(x.waker, bench_thread(b, B, 150));
	assert_int_equal(x.waker_syscall, 1);
	assert_false(x.open || x.before || x.lost || x.migrated);

	x = absence_at(b, A, 1);
	assert_int_equal(x.start_ns, 300);
	assert_int_equal(x.end_ns, 400);
	assert_int_equal(x.runnable_ns, 400); /* still blocked */
	assert_true(x.open);

	x = absence_at(b, B, 0);
	assert_true(x.before); /* where B was before 100 nobody told: off since the start */
	assert_int_equal(x.start_ns, 50);
	x = absence_at(b, B, 1);
	assert_int_equal(x.start_ns, 200);
	assert_int_equal(x.end_ns, 400);
	assert_int_equal(x.runnable_ns, 200); /* preempted: runnable all the time */
	assert_true(x.open);

	r = run_at(b, 0, 0); /* A from its own stamp */
	assert_int_equal(r.start_ns, 60);
	assert_int_equal(r.end_ns, 100);
	assert_int_equal(r.why, WHY_BLOCKED);
	r = run_at(b, 0, 1);
	assert_int_equal(r.start_ns, 100);
	assert_int_equal(r.end_ns, 200);
	assert_int_equal(r.thread, bench_thread(b, B, 150));
	assert_int_equal(r.irq_ns, 5);
	assert_int_equal(r.steal_ns, 30);
	assert_int_equal(run_at(b, 0, 2).steal_ns, 0); /* of one run only */
	r = run_at(b, 0, 3);			       /* idle to the end */
	assert_int_equal(r.thread, THREAD_IDLE);
	assert_int_equal(r.end_ns, 400);
	bench_free(b);
}

/*
 * The waker's clock was read at 90, A left at 100 (the waking overtook the switch), ran again at
 * 130: waking and runnable are clamped to the absence.
 */
static void wake_before_switch(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_switch(100, 0, A, 0);
	struct absence x;

	(void)state;
	bench_feed(b, &e);
	e = ev_switch(130, 0, 0, A);
	e.sw.left_ns = 100;
	e.sw.waking_ns = 90;
	e.sw.by = BY_TIMER;
	bench_feed(b, &e);
	bench_finish(b, 200);
	bench_check(b);
	x = absence_at(b, A, 0);
	assert_int_equal(x.waking_ns, 100);
	assert_int_equal(x.runnable_ns, 100);
	assert_int_equal(x.by, BY_TIMER);
	bench_free(b);
}

/*
 * A is preempted on CPU 0 at 100, moved to CPU 1 at 120 and to CPU 2 at 150, and runs at 160:
 * it stood in 0's queue for 20, in 1's for 30, in 2's for 10.
 */
static void migration(void **state)
{
	static const int64_t ends[] = {120, 150, 160};
	struct bench *b = bench_new(50);
	struct event e = ev_switch(100, 0, A, B);
	struct absence x;
	struct queued q;

	(void)state;
	e.sw.why = WHY_PREEMPTED;
	bench_feed(b, &e);
	e = (struct event){.ts_ns = 120, .kind = EVENT_MIGRATE, .migrate = {A, A, 0, 1}};
	bench_feed(b, &e);
	e = (struct event){.ts_ns = 150, .kind = EVENT_MIGRATE, .migrate = {A, A, 1, 2}};
	bench_feed(b, &e);
	e = ev_switch(160, 2, 0, A);
	e.sw.left_ns = 100;
	e.sw.migrated = true;
	bench_feed(b, &e);
	bench_finish(b, 200);
	bench_check(b);
	x = absence_at(b, A, 0);
	assert_true(x.migrated);
	assert_int_equal(x.cpu, 2);
	for (int i = 0; i < 3; i++) {
		queued_get(bench_at(b, track_id(TRACK_QUEUE, (uint32_t)x.thread), i), &q);
		assert_int_equal(q.cpu, i);
		assert_int_equal(q.end_ns, ends[i]);
	}
	bench_free(b);
}

/*
 * B forks C at 100 (born 95); C runs first at 130 and exits at 180.  A new C is forked at 200:
 * another thread with the same tid.
 */
static void life_and_reuse(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_thread(60, LIFE_SNAPSHOT, B, "parent");
	struct absence x;
	int first, second;

	(void)state;
	bench_feed(b, &e);
	e = ev_thread(100, LIFE_FORK, C, "parent");
	e.thread.birth_ns = 95;
	e.thread.parent_tid = B;
	bench_feed(b, &e);
	e = ev_switch(130, 1, 0, C);
	e.sw.first = true;
	e.sw.waking_ns = e.sw.runnable_ns = 101;
	e.sw.by = BY_NEW;
	e.sw.waker_tid = B;
	bench_feed(b, &e);
	e = ev_thread(140, LIFE_EXEC, C, "child");
	bench_feed(b, &e);
	e = ev_thread(170, LIFE_EXIT, C, "child");
	bench_feed(b, &e);
	e = ev_switch(180, 1, C, 0);
	e.sw.why = WHY_EXITED;
	bench_feed(b, &e);
	e = ev_thread(200, LIFE_FORK, C, "parent");
	e.thread.birth_ns = 199;
	bench_feed(b, &e);
	bench_finish(b, 300);
	bench_check(b);

	first = bench_thread(b, C, 150);
	second = bench_thread(b, C, 250);
	assert_int_not_equal(first, second);
	assert_int_equal(names_find(b->names, C, 190), NO_INDEX);
	assert_int_equal(names_thread(b->names, first)->end_ns, 180);
	assert_int_equal(names_thread(b->names, first)->parent, bench_thread(b, B, 100));
	assert_string_equal(names_comm(b->names, first, 139), "parent");
	assert_string_equal(names_comm(b->names, first, 140), "child");
	assert_int_equal(bench_count(b, track_id(TRACK_SCHED, (uint32_t)first)), 1);
	absence_get(bench_at(b, track_id(TRACK_SCHED, (uint32_t)first), 0), &x);
	assert_int_equal(x.start_ns, 95);
	assert_int_equal(x.end_ns, 130);
	assert_int_equal(x.by, BY_NEW);
	assert_int_equal(x.waker, bench_thread(b, B, 100));
	absence_get(bench_at(b, track_id(TRACK_SCHED, (uint32_t)second), 0), &x);
	assert_true(x.open); /* never ran */
	bench_free(b);
}

/*
 * A wakes its parent B and is gone for good at 120, before B runs at 130: the waker is that A,
 * not a new thread with its tid.
 */
static void waker_that_has_gone(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_switch(100, 0, B, A);

	(void)state;
	bench_feed(b, &e);
	e = ev_switch(120, 0, A, 0);
	e.sw.why = WHY_EXITED;
	bench_feed(b, &e);
	e = ev_switch(130, 0, 0, B);
	e.sw.left_ns = 100;
	e.sw.waking_ns = e.sw.runnable_ns = 115;
	e.sw.by = BY_THREAD;
	e.sw.waker_tid = A;
	bench_feed(b, &e);
	bench_finish(b, 200);
	bench_check(b);
	assert_int_equal(names_threads(b->names), 3); /* idle, B, A */
	assert_int_equal(absence_at(b, B, 0).waker, bench_thread(b, A, 110));
	bench_free(b);
}

/*
 * 100: B came on CPU 0.  200: A leaves CPU 0, and nobody saw it come.  B's run has no known end:
 * nothing on CPU 0 before A's stamp 170; A's old absence ends there.  Without a stamp, all is a
 * gap and A's absence has no facts from 100 on.
 */
static void unknown_prev(void **state)
{
	for (int with_stamp = 0; with_stamp < 2; with_stamp++) {
		struct bench *b = bench_new(50);
		struct event e = ev_switch(80, 1, A, 0);
		struct absence x;

		(void)state;
		bench_feed(b, &e);
		e = ev_switch(100, 0, 0, B);
		bench_feed(b, &e);
		e = ev_switch(200, 0, A, 0);
		e.sw.prev_since_ns = with_stamp ? 170 : NO_TIME;
		bench_feed(b, &e);
		bench_finish(b, 300);
		bench_check(b);
		x = absence_at(b, A, 0);
		assert_int_equal(x.start_ns, 80);
		assert_int_equal(x.end_ns, with_stamp ? 170 : 100);
		assert_int_equal(x.by, BY_UNKNOWN);
		if (!with_stamp) {
			x = absence_at(b, A, 1);
			assert_int_equal(x.start_ns, 100);
			assert_int_equal(x.end_ns, 200);
			assert_int_equal(x.why, WHY_UNKNOWN);
		} else {
			assert_int_equal(run_at(b, 0, 0).start_ns, 170);
		}
		bench_free(b);
	}
}

/*
 * CPU 0: A blocks at 80, B comes at 100; B's switch back to A at 170 is told only when A leaves at
 * 200, with what woke A (at 150, in the queue at 155).  A blocked, queued, ran; B ran until then.
 *	A  run ..80 | blocked 80..155 | queue 155..170 | run 170..200
 *	B             run 100..170
 */
static void told_late(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_switch(80, 0, A, 0);
	struct absence x;
	struct run r;

	(void)state;
	bench_feed(b, &e);
	e = ev_switch(100, 0, 0, B);
	bench_feed(b, &e);
	e = ev_switch(200, 0, B, A);
	e.sw.why = WHY_UNKNOWN;
	e.sw.late = true;
	e.sw.prev_since_ns = 170;
	e.sw.left_ns = 80;
	e.sw.waking_ns = 150;
	e.sw.runnable_ns = 155;
	e.sw.by = BY_TIMER;
	bench_feed(b, &e);
	e = ev_switch(200, 0, A, 0);
	e.sw.prev_since_ns = 170;
	bench_feed(b, &e);
	bench_finish(b, 300);
	bench_check(b);
	x = absence_at(b, A, 0);
	assert_int_equal(x.start_ns, 80);
	assert_int_equal(x.runnable_ns, 155);
	assert_int_equal(x.end_ns, 170);
	assert_int_equal(x.by, BY_TIMER);
	for (int i = 0; (r = run_at(b, 0, i)).end_ns <= 170; i++)
		assert_true(r.start_ns < 100 || r.end_ns == 170);
	assert_int_equal(r.start_ns, 170);
	assert_int_equal(r.end_ns, 200);
	bench_free(b);
}

/*
 * 100: B came on CPU 0; the switch to A is not seen.  A receives at 160 and 180: it has been
 * there since 160 at the latest, until it leaves at 200.
 */
static void seen_at_work(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_switch(80, 1, A, 0);

	(void)state;
	bench_feed(b, &e);
	e = ev_switch(100, 0, 0, B);
	bench_feed(b, &e);
	e = ev_io(160, EVENT_RECV, 7, A, 10, 10);
	bench_feed(b, &e);
	e = ev_io(180, EVENT_RECV, 7, A, 10, 20);
	bench_feed(b, &e);
	e = ev_switch(200, 0, A, 0);
	bench_feed(b, &e);
	e = ev_switch(250, 0, 0, B); /* what was seen before is of no use here */
	bench_feed(b, &e);
	e = ev_switch(280, 0, A, 0);
	bench_feed(b, &e);
	bench_finish(b, 300);
	bench_check(b);
	assert_int_equal(run_at(b, 0, 0).start_ns, 160);
	assert_int_equal(run_at(b, 0, 0).thread, bench_thread(b, A, 150));
	assert_int_equal(run_at(b, 0, 1).start_ns, 200); /* idle */
	assert_int_equal(run_at(b, 0, 2).start_ns, 280);
	assert_int_equal(absence_at(b, A, 0).start_ns, 80);
	assert_int_equal(absence_at(b, A, 0).end_ns, 160);
	assert_int_equal(absence_at(b, A, 1).start_ns, 200);
	bench_free(b);
}

/*
 * A left at 100000; it comes at 900000 and says it left at 500000.  A run of A is missing: both
 * absences are marked lost.
 */
static void halves_that_do_not_fit(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_switch(100000, 0, A, 0);

	(void)state;
	bench_feed(b, &e);
	e = (struct event){.ts_ns = 600000, .kind = EVENT_LOST, .lost = {200000, 9, 0}};
	bench_feed(b, &e);
	e = ev_switch(900000, 0, 0, A);
	e.sw.left_ns = 500000;
	e.sw.waking_ns = e.sw.runnable_ns = 800000;
	e.sw.by = BY_NET;
	bench_feed(b, &e);
	bench_finish(b, 1000000);
	bench_check(b);
	assert_int_equal(absence_at(b, A, 0).end_ns, 500000);
	assert_true(absence_at(b, A, 0).lost);
	assert_int_equal(absence_at(b, A, 1).start_ns, 500000);
	assert_int_equal(absence_at(b, A, 1).runnable_ns, 800000);
	assert_true(absence_at(b, A, 1).lost);
	assert_int_equal(bench_count(b, track_id(TRACK_LOSS, 0)), 1);
	bench_free(b);
}

/*
 * A sleeps at the start and all the time; the flush at the end tells in which call.  B runs at
 * the snapshot and is not timed.
 */
static void open_ends(void **state)
{
	struct bench *b = bench_new(50);
	struct event e = ev_thread(60, LIFE_SNAPSHOT, A, "sleeper");
	struct absence x;

	(void)state;
	bench_feed(b, &e);
	e = ev_thread(60, LIFE_SNAPSHOT, B, "runner");
	e.thread.running = true;
	bench_feed(b, &e);
	e = ev_thread(390, LIFE_OPEN, A, "sleeper");
	e.thread.syscall = 230;
	e.thread.why = WHY_BLOCKED;
	bench_feed(b, &e);
	bench_finish(b, 400);
	bench_check(b);
	x = absence_at(b, A, 0);
	assert_int_equal(x.start_ns, 50);
	assert_int_equal(x.end_ns, 400);
	assert_int_equal(x.runnable_ns, 400);
	assert_int_equal(x.syscall, 230);
	assert_true(x.open && x.before);
	assert_int_equal(bench_count(b, track_id(TRACK_SCHED, (uint32_t)bench_thread(b, B, 60))),
			 0);
	bench_free(b);
}

/* Two block requests that overlap take two slots; a third, after the first, takes its slot. */
static void block_slots(void **state)
{
	static const int64_t times[][2] = {{100, 200}, {150, 250}, {210, 300}};
	struct bench *b = bench_new(50);
	struct block x;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct event e = {.ts_ns = times[i][1],
				  .kind = EVENT_BLOCK,
				  .block = {.request = (uint64_t)i + 1,
					    .submitted_ns = times[i][0],
					    .inserted_ns = NO_TIME,
					    .issued_ns = times[i][0] + 10,
					    .completed_ns = times[i][1],
					    .tid = A,
					    .dev = 8 << 20}};

		bench_feed(b, &e);
	}
	bench_finish(b, 400);
	bench_check(b);
	assert_int_equal(bench_count(b, track_id(TRACK_DISK, 0)), 2);
	assert_int_equal(bench_count(b, track_id(TRACK_DISK, 1)), 1);
	block_get(bench_at(b, track_id(TRACK_DISK, 0), 1), &x);
	assert_int_equal(x.id, 3);
	assert_int_equal(x.issued_ns, 220);
	assert_int_equal(x.thread, bench_thread(b, A, 100));
	assert_int_equal(x.owner, NO_INDEX);
	bench_free(b);
}

/* Events in any order with any facts: intervals of a track never overlap (bench_check). */
static void random_events(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 300; round++) {
		struct bench *b = bench_new(1000);
		int64_t now = 1000;

		for (int i = 0; i < 400; i++) {
			struct event e =
				ev_switch(now += random() % 5000 - 200, random() % 3,
					  (uint32_t)(random() % 6), (uint32_t)(random() % 6));

			if (random() % 2)
				e.sw.left_ns = now - random() % 20000;
			if (random() % 2)
				e.sw.waking_ns = now - random() % 20000;
			if (random() % 2)
				e.sw.runnable_ns = now - random() % 20000;
			if (random() % 3 == 0)
				e.sw.prev_since_ns = now - random() % 20000;
			e.sw.why = (enum why)(random() % 7);
			e.sw.first = random() % 20 == 0;
			e.sw.irq_ns = random() % 30000;
			if (random() % 10 == 0)
				e = (struct event){.ts_ns = now,
						   .kind = EVENT_MIGRATE,
						   .migrate = {(uint32_t)(random() % 6), 0, 0, 1}};
			else if (random() % 10 == 0)
				e = ev_thread(now, (enum life)(random() % 7),
					      (uint32_t)(random() % 6), "x");
			else if (random() % 20 == 0)
				e = (struct event){.ts_ns = now,
						   .kind = EVENT_LOST,
						   .lost = {now - random() % 9000, 1, 0}};
			bench_feed(b, &e);
		}
		bench_finish(b, now);
		bench_check(b);
		bench_free(b);
	}
}

/* What is put comes back, also at the edges of what fits. */
static void round_trips(void **state)
{
	struct interval iv;
	struct absence x = {.start_ns = 10,
			    .end_ns = 90,
			    .thread = 5,
			    .why = WHY_IDLE,
			    .state = TASK_DEAD,
			    .syscall = 450,
			    .obj_kind = OBJ_OTHER,
			    .obj = UINT64_MAX,
			    .waking_ns = 20,
			    .runnable_ns = 20,
			    .by = BY_NEW,
			    .waker = 7,
			    .waker_obj = 1ull << 63,
			    .waker_syscall = -1,
			    .cpu = 255,
			    .quota_ns = 3,
			    .migrated = true,
			    .open = true,
			    .before = true,
			    .lost = true},
		       y;
	struct op o = {.start_ns = 100,
		       .end_ns = 200,
		       .thread = 1,
		       .dir = OP_EOF,
		       .socket = 3,
		       .request = 0,
		       .served = true,
		       .bytes = UINT32_MAX,
		       .arrived_ns = 100,
		       .sender = 0,
		       .sender_ns = 150, /* recorded after the receive */
		       .sender_request = -1,
		       .prev = 2,
		       .prev_ns = 100},
		  p;
	struct request r = {.start_ns = 100,
			    .end_ns = 200,
			    .slot = 3,
			    .id = 9,
			    .name = 4,
			    .socket = 1,
			    .status = 503,
			    .first_thread = 1,
			    .first_ns = 110,
			    .last_thread = NO_INDEX,
			    .last_ns = NO_TIME,
			    .parent = 8,
			    .cut_end = true},
		       s;

	(void)state;
	absence_put(&x, &iv);
	absence_get(&iv, &y);
	assert_int_equal(y.waking_ns, 20);
	assert_int_equal(y.runnable_ns, 20);
	assert_int_equal(y.waker_syscall, -1);
	assert_int_equal(y.obj, UINT64_MAX);
	assert_int_equal(y.waker_obj, 1ull << 63);
	assert_int_equal(y.by, BY_NEW);
	assert_int_equal(y.cpu, 255);
	assert_true(y.migrated && y.open && y.before && y.lost);
	x.waking_ns = NO_TIME;
	absence_put(&x, &iv);
	absence_get(&iv, &y);
	assert_int_equal(y.waking_ns, NO_TIME);
	op_put(&o, &iv);
	op_get(&iv, &p);
	assert_int_equal(p.dir, OP_EOF);
	assert_int_equal(p.arrived_ns, 100);
	assert_int_equal(p.sender_ns, 150);
	assert_int_equal(p.sender_request, -1);
	assert_int_equal(p.prev_ns, 100);
	assert_int_equal(p.bytes, UINT32_MAX);
	request_put(&r, &iv);
	request_get(&iv, &s);
	assert_int_equal(s.status, 503);
	assert_int_equal(s.first_ns, 110);
	assert_int_equal(s.last_thread, NO_INDEX);
	assert_int_equal(s.last_ns, NO_TIME);
	assert_int_equal(s.parent, 8);
	assert_true(s.cut_end && !s.cut_start && !s.streaming);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_halves),	       cmocka_unit_test(wake_before_switch),
		cmocka_unit_test(migration),	       cmocka_unit_test(life_and_reuse),
		cmocka_unit_test(waker_that_has_gone), cmocka_unit_test(unknown_prev),
		cmocka_unit_test(seen_at_work),	       cmocka_unit_test(halves_that_do_not_fit),
		cmocka_unit_test(told_late),	       cmocka_unit_test(open_ends),
		cmocka_unit_test(block_slots),	       cmocka_unit_test(random_events),
		cmocka_unit_test(round_trips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
