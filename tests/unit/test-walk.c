/* SPDX-License-Identifier: MIT
 *
 * The walk on histories small enough to be worked out by hand.  Each test draws its history; times
 * in microseconds.
 */
#include "walk-lab.h"

/*	web   ==run==0-10|.... futex ....10-40|==40-50
 *	lock  ==========================^40 releases                                      */
static void futex_release(void **state)
{
	struct lab l;
	int web, lock;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/a");
	web = lab_thread(&l, "web", 10, 10, 1);
	lock = lab_thread(&l, "lock", 11, 10, 1);
	lab_begin(&l);
	lab_blocked(&l, web, 10, 40, OBJ_FUTEX, "futex", lock);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 0, 50),
			    "0-10 web running/self = self\n"
			    "10-40 lock running/lock via lock = lock (pid 10)\n"
			    "40-50 web running/self = self\n");
	lab_fini(&l);
}

/* The holder of the lock is preempted by a neighbour: the path says runqueue/neighbour, via lock.
 *	web   ==0-10|....... futex .......10-40|==
 *	lock  ==========20|..queue cpu 1..20-35|==40 releases
 *	hog               |==== cpu 1 ========|                                           */
static void holder_preempted(void **state)
{
	struct lab l;
	int web, lock, hog;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/a");
	lab_cgroup(&l, 2, "/b");
	web = lab_thread(&l, "web", 10, 10, 1);
	lock = lab_thread(&l, "lock", 11, 10, 1);
	hog = lab_thread(&l, "hog", 20, 20, 2);
	lab_begin(&l);
	lab_blocked(&l, web, 10, 40, OBJ_FUTEX, "futex", lock);
	lab_away(&l, lock, 20, 20, 20, 35, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_run(&l, 1, lock, 0, 20);
	lab_run(&l, 1, hog, 20, 35);
	lab_run(&l, 1, lock, 35, 60);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 0, 50),
			    "0-10 web running/self = self\n"
			    "10-20 lock running/lock via lock = lock (pid 10)\n"
			    "20-35 lock runqueue/neighbour via lock = /b\n"
			    "35-40 lock running/lock via lock = lock (pid 10)\n"
			    "40-50 web running/self = self\n");
	lab_fini(&l);
}

/* Releases of other kinds, one after the other, each by another thread. */
static void kinds_of_release(void **state)
{
	struct lab l;
	int web, pipe, child, other, mate, event, killer, worker;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	pipe = lab_thread(&l, "pipe", 11, 11, 0);
	child = lab_thread(&l, "child", 12, 12, 0);
	other = lab_thread(&l, "other", 13, 13, 0);
	mate = lab_thread(&l, "mate", 14, 10, 0);
	event = lab_thread(&l, "event", 15, 10, 0);
	killer = lab_thread(&l, "killer", 16, 16, 0);
	worker = lab_thread(&l, "[kworker/1:0]", 17, 17, 0);
	lab_begin(&l);
	lab_blocked(&l, web, 10, 20, OBJ_PIPE, "read", pipe);
	lab_blocked(&l, web, 30, 40, OBJ_CHILD, "wait4", child);
	lab_blocked(&l, web, 50, 60, OBJ_SOCKET, "recvfrom", other);
	lab_blocked(&l, web, 70, 80, OBJ_SOCKET, "recvfrom", mate);
	lab_blocked(&l, web, 90, 100, OBJ_EVENTFD, "read", event);
	lab_away(&l, web, 110, 120, 120, 120,
		 AWAY(.syscall = syscall_nr("rt_sigsuspend"), .by = BY_THREAD, .waker = killer,
		      .waker_syscall = syscall_nr("kill")));
	lab_blocked(&l, web, 130, 140, OBJ_FILE, "fsync", worker);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 5, 140),
			    "5-10 web running/self = self\n"
			    "10-20 pipe running/self via pipe = pipe (pid 11)\n"
			    "20-30 web running/self = self\n"
			    "30-40 child running/child via child = child (pid 12)\n"
			    "40-50 web running/self = self\n"
			    "50-60 other running/callee via callee = other (pid 13)\n"
			    "60-70 web running/self = self\n"
			    "70-80 mate running/self via socket = web (pid 10)\n"
			    "80-90 web running/self = self\n"
			    "90-100 event running/self via queue = web (pid 10)\n"
			    "100-110 web running/self = self\n"
			    "110-120 killer running/self via signal = killer (pid 16)\n"
			    "120-130 web running/self = self\n"
			    "130-140 kworker/1:0 running/self via queue = kworker\n");
	lab_fini(&l);
}

/* Timers: own sleep, a timeout, throttled in an uninterruptible sleep; and nothing known. */
static void timers_and_unknown(void **state)
{
	struct lab l;
	int web, lock;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	lock = lab_thread(&l, "lock", 11, 10, 0);
	lab_begin(&l);
	lab_away(&l, web, 10, 20, 20, 20,
		 AWAY(.syscall = syscall_nr("clock_nanosleep"), .by = BY_TIMER));
	lab_away(&l, web, 30, 40, 40, 40, AWAY(.syscall = syscall_nr("poll"), .by = BY_TIMER));
	lab_away(&l, web, 50, 60, 60, 60,
		 ((struct absence){.why = WHY_BLOCKED,
				   .state = TASK_DISK,
				   .by = BY_TIMER,
				   .syscall = syscall_nr("write")}));
	lab_away(&l, web, 70, 80, 80, 80, AWAY(.syscall = syscall_nr("ioctl")));
	lab_away(&l, web, 90, 100, 100, 100, AWAY(.syscall = syscall_nr("futex")));
	lab_away(&l, web, 110, 120, 120, 120, AWAY(.syscall = syscall_nr("wait4")));
	/* The holder of a lock sleeps. */
	lab_blocked(&l, web, 130, 140, OBJ_FUTEX, "futex", lock);
	lab_away(&l, lock, 125, 138, 138, 138,
		 AWAY(.syscall = syscall_nr("nanosleep"), .by = BY_TIMER));
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 10, 140),
			    "10-20 web sleep/self = self\n"
			    "20-30 web running/self = self\n"
			    "30-40 web sleep/timeout = poll\n"
			    "40-50 web running/self = self\n"
			    "50-60 web disk/throttled = I/O or memory limit\n"
			    "60-70 web running/self = self\n"
			    "70-80 web unknown ?\n"
			    "80-90 web running/self = self\n"
			    "90-100 web lock/unresolved ?\n"
			    "100-110 web running/self = self\n"
			    "110-120 web child/unresolved ?\n"
			    "120-130 web running/self = self\n"
			    "130-138 lock sleep/self via lock = lock (pid 10)\n"
			    "138-140 lock running/lock via lock = lock (pid 10)\n");
	lab_fini(&l);
}

/* Parts of a wait: blocked, waking, run queue; an interrupt inside a run. */
static void parts_of_a_wait(void **state)
{
	struct lab l;
	int web, hog, lock;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/a");
	lab_cgroup(&l, 2, "/b");
	web = lab_thread(&l, "web", 10, 10, 1);
	hog = lab_thread(&l, "hog", 20, 20, 2);
	lock = lab_thread(&l, "lock", 11, 10, 1);
	lab_begin(&l);
	lab_run(&l, 0, web, 0, 10);
	lab_away(&l, web, 10, 20, 23, 40,
		 AWAY(.obj_kind = OBJ_FUTEX, .syscall = syscall_nr("futex"), .by = BY_THREAD,
		      .waker = lock, .cpu = 1));
	lab_run(&l, 1, hog, 15, 38);
	lab_run(&l, 1, THREAD_IDLE, 38, 40);
	lab_run_irq(&l, 1, web, 40, 60, 5);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 0, 60),
			    "0-10 web running/self = self\n"
			    "10-20 lock running/lock via lock = lock (pid 10)\n"
			    "20-23 web runqueue/idle = wakeup\n"
			    "23-38 web runqueue/neighbour = /b\n"
			    "38-40 web runqueue/idle = idle CPU\n"
			    "40-55 web running/self = self\n"
			    "55-60 web running/interrupt = interrupts\n");
	lab_fini(&l);
}

/* What the hypervisor took is no wait: it stretches the run, beside the interrupts. */
static void stolen_time(void **state)
{
	struct lab l;
	int web;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 1);
	lab_begin(&l);
	lab_run_taken(&l, 0, web, 0, 60, 6, 20);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 0, 60),
			    "0-34 web running/self = self\n"
			    "34-54 web running/steal = hypervisor\n"
			    "54-60 web running/interrupt = interrupts\n");
	assert_string_equal(lab_walk_thread(&l, web, 0, 30),
			    "0-17 web running/self = self\n"
			    "17-27 web running/steal = hypervisor\n"
			    "27-30 web running/interrupt = interrupts\n");
	lab_fini(&l);
}

/* Two threads that wake each other, as no real ones could: bounded, and unknown. */
static void cycle(void **state)
{
	struct lab l;
	int a, b;

	(void)state;
	lab_init(&l);
	a = lab_thread(&l, "a", 10, 10, 0);
	b = lab_thread(&l, "b", 11, 11, 0);
	lab_begin(&l);
	lab_blocked(&l, a, 10, 40, OBJ_PIPE, "read", b);
	lab_blocked(&l, b, 5, 38, OBJ_PIPE, "read", a);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, a, 0, 50),
			    "0-10 a running/self = self\n"
			    "10-38 a unknown via pipe ?\n"
			    "38-40 b running/self via pipe = b (pid 11)\n"
			    "40-50 a running/self = self\n");
	lab_fini(&l);
}

/* A gap on the CPU's track with a loss is lost, without one unknown; a lost absence is lost. */
static void losses(void **state)
{
	struct lab l;
	int web;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	lab_begin(&l);
	lab_loss(&l, 12, 14);
	lab_away(&l, web, 10, 10, 10, 20, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_away(&l, web, 30, 30, 30, 40, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_away(&l, web, 50, 60, 60, 60, AWAY(.lost = true, .by = BY_TIMER));
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 0, 70), "0-10 web running/self = self\n"
							     "10-20 web lost ?\n"
							     "20-30 web running/self = self\n"
							     "30-40 web unknown = unseen CPU ?\n"
							     "40-50 web running/self = self\n"
							     "50-60 web lost ?\n"
							     "60-70 web running/self = self\n");
	lab_fini(&l);
}

/* A child that its parent waits for, made just before: its line ends at its birth.
 *	make  ==0-20 fork at 10|.... wait4 20-90 ....|==
 *	cc            |10 queue 30|===60|.. timer 60-70 ..|==90                             */
static void child_born(void **state)
{
	struct lab l;
	int make, cc;

	(void)state;
	lab_init(&l);
	make = lab_thread(&l, "make", 10, 10, 0);
	cc = lab_born(&l, "cc", 12, 12, 0, 10, 10);
	lab_begin(&l);
	lab_blocked(&l, make, 20, 90, OBJ_CHILD, "wait4", cc);
	lab_away(&l, cc, 10, 12, 12, 30, AWAY(.by = BY_NEW, .waker = make, .cpu = 1));
	lab_run(&l, 1, THREAD_IDLE, 0, 30);
	lab_run(&l, 1, cc, 30, 60);
	lab_away(&l, cc, 60, 70, 70, 70,
		 AWAY(.by = BY_TIMER, .syscall = syscall_nr("nanosleep"), .cpu = 1));
	lab_run(&l, 1, cc, 70, 90);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, make, 0, 95),
			    "0-20 make running/self = self\n"
			    "20-30 cc runqueue/idle via child = idle CPU\n"
			    "30-60 cc running/child via child = cc (pid 12)\n"
			    "60-70 cc sleep/self via child = cc (pid 12)\n"
			    "70-90 cc running/child via child = cc (pid 12)\n"
			    "90-95 make running/self = self\n");
	/* The new thread's own line goes on with its maker's. */
	assert_string_equal(lab_walk_thread(&l, cc, 0, 40), "0-12 make running/self = self\n"
							    "12-30 cc runqueue/idle = idle CPU\n"
							    "30-40 cc running/self = self\n");
	lab_fini(&l);
}

/* A block request with another's in service, completed through a kernel worker.
 *	web    ==10|...... disk 10-50 ......|==
 *	disk   own 10-48 (issued 12), other 20-40                                           */
static void block_two_owners(void **state)
{
	struct lab l;
	int web, fio;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/a");
	lab_cgroup(&l, 2, "/b");
	web = lab_thread(&l, "web", 10, 10, 1);
	fio = lab_thread(&l, "fio", 20, 20, 2);
	names_set_disk_name(l.names, 8 << 20, "sda");
	names_disk(l.names, 8 << 20);
	lab_begin(&l);
	lab_block(&l, 0, 77, web, 10, 12, 48);
	lab_block(&l, 1, 78, fio, 15, 20, 40);
	lab_away(&l, web, 10, 50, 50, 50,
		 ((struct absence){.why = WHY_BLOCKED,
				   .state = TASK_IOWAIT,
				   .by = BY_BLOCK,
				   .waker_obj = 77,
				   .syscall = syscall_nr("read")}));
	lab_end(&l);
	/* 20-40 is shared by two: 10 us are the neighbour's; the other 30 are service. */
	assert_string_equal(lab_walk_thread(&l, web, 0, 60), "0-10 web running/self = self\n"
							     "10-20 web disk/neighbour = /b\n"
							     "20-50 web disk/service = sda\n"
							     "50-60 web running/self = self\n");
	lab_fini(&l);
}

/* ------------------------------------------------------------------ requests */

/* One thread, one request: waits for its data, reads, works, sends.
 *	web   ... poll ...|queue|==r 16==s 40
 *	data arrive at 10, waking 11, runs at 15                                             */
static void simple_request(void **state)
{
	struct lab l;
	int web, hog, s;
	struct request r;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/a");
	lab_cgroup(&l, 2, "/b");
	web = lab_thread(&l, "web", 10, 10, 1);
	hog = lab_thread(&l, "hog", 20, 20, 2);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	lab_begin(&l);
	lab_away(&l, web, 1, 11, 11, 15,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET,
		      .waker_obj = 5, .cpu = 1));
	lab_run(&l, 1, hog, 5, 15);
	lab_run(&l, 1, web, 15, 60);
	lab_op(&l, web, 16, 40, RECV(0, s, 10, .served = true));
	lab_op(&l, web, 40, 100, SEND(0, s, .served = true, AFTER(web, 16)));
	r = lab_request(&l, "GET /", 10, 41, web, 16, web, 40, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r), "10-11 web runqueue/idle = wakeup\n"
						      "11-15 web runqueue/neighbour = /b\n"
						      "15-41 web running/self = self\n");
	lab_fini(&l);
}

/* Two requests on a single worker: the second's data arrive while the first is served.
 *	web   Q: r 10 ====== s 50 | R: r 51 === s 60           R arrived at 20
 *	      (20-30 the worker sleeps for Q: that is Q's choice)                           */
static void backlog_single_worker(void **state)
{
	struct lab l;
	int web, s1, s2;
	struct request q, r;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	s1 = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	s2 = lab_socket(&l, 6, ROLE_SERVED, 80, 4001);
	lab_begin(&l);
	lab_op(&l, web, 10, 50, RECV(0, s1, 9, .served = true));
	lab_away(&l, web, 22, 30, 30, 30, AWAY(.syscall = syscall_nr("nanosleep"), .by = BY_TIMER));
	lab_op(&l, web, 50, 51, SEND(0, s1, .served = true, AFTER(web, 10)));
	lab_op(&l, web, 51, 60, RECV(1, s2, 20, .served = true));
	lab_op(&l, web, 60, 100, SEND(1, s2, .served = true, AFTER(web, 51)));
	q = lab_request(&l, "GET /slow", 9, 50, web, 10, web, 50, -1);
	r = lab_request(&l, "GET /fast", 20, 60, web, 51, web, 60, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &q), "9-22 web running/self = self\n"
						      "22-30 web sleep/self = self\n"
						      "30-50 web running/self = self\n");
	assert_string_equal(lab_walk_request(&l, &r), "20-50 web backlog/request = GET /slow\n"
						      "50-60 web running/self = self\n");
	lab_fini(&l);
}

/* An event loop proxies R to an upstream and serves P and Q meanwhile; the answer waits for Q.
 *	loop  R r10 s15 |P r20 s25|..epoll 25-40..|Q r42 ===== s60|R r61 s65
 *	up                R' r18 ============== s45                       (answer arrives 46)
 * R's time: 9-15 own; 15-46 the upstream, before 16 on the way to it, from 45 on the way back;
 * 46-60 backlog behind Q; then own.                                                        */
static void event_loop(void **state)
{
	struct lab l;
	int loop, up, s1, s2, s3, out, in;
	struct request r;

	(void)state;
	lab_init(&l);
	loop = lab_thread(&l, "loop", 10, 10, 0);
	up = lab_thread(&l, "up", 20, 20, 0);
	s1 = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	s2 = lab_socket(&l, 6, ROLE_SERVED, 80, 4001);
	s3 = lab_socket(&l, 7, ROLE_SERVED, 80, 4002);
	out = lab_socket(&l, 8, ROLE_CLIENT, 5000, 81);
	in = lab_socket(&l, 9, ROLE_SERVED, 81, 5000);
	lab_begin(&l);
	lab_op(&l, loop, 10, 15, RECV(0, s1, 9, .served = true));
	lab_op(&l, loop, 15, 20, SEND(0, out, AFTER(loop, 10)));
	lab_op(&l, loop, 20, 25, RECV(1, s2, 19, .served = true));
	lab_op(&l, loop, 25, 42, SEND(1, s2, .served = true, AFTER(loop, 20)));
	lab_away(&l, loop, 26, 40, 40, 41,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET,
		      .waker_obj = 7, .cpu = 0));
	lab_run(&l, 0, loop, 0, 26);
	lab_run(&l, 0, THREAD_IDLE, 26, 41);
	lab_run(&l, 0, loop, 41, 100);
	lab_op(&l, loop, 42, 60, RECV(2, s3, 40, .served = true));
	lab_op(&l, loop, 60, 61, SEND(2, s3, .served = true, AFTER(loop, 42)));
	lab_op(&l, loop, 61, 65, RECV(0, out, 46, AFTER(loop, 15), FROM(up, 45, 3)));
	lab_op(&l, loop, 65, 100, SEND(0, s1, .served = true, AFTER(loop, 61)));
	lab_op(&l, up, 18, 45, RECV(3, in, 16, .served = true));
	lab_op(&l, up, 45, 100, SEND(3, in, .served = true, AFTER(up, 18)));
	lab_away(&l, up, 30, 35, 35, 35, AWAY(.syscall = syscall_nr("nanosleep"), .by = BY_TIMER));
	r = lab_request(&l, "GET /r", 9, 65, loop, 10, loop, 65, -1);
	lab_request(&l, "GET /p", 19, 25, loop, 20, loop, 25, -1);
	lab_request(&l, "GET /q", 40, 60, loop, 42, loop, 60, -1);
	lab_request(&l, "GET /up", 16, 45, up, 18, up, 45, 0);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r),
			    "9-15 loop running/self = self\n"
			    "15-16 loop network/flight = 10.0.0.2:81\n"
			    "16-30 up running/callee via callee = up (pid 20)\n"
			    "30-35 up sleep/callee via callee = up (pid 20)\n"
			    "35-45 up running/callee via callee = up (pid 20)\n"
			    "45-46 loop network/flight = 10.0.0.2:81\n"
			    "46-60 loop backlog/request = GET /q\n"
			    "60-65 loop running/self = self\n");
	lab_fini(&l);
}

/* Three services in a row; the innermost computes, queued behind a neighbour for a while.
 *	a  r10 s12 |........ recv 13-70 ........| r70 s72
 *	b         r15 s17 |..... recv 18-60 ....| r60 s65
 *	c                r20 |queue 30-40| ==== s55                                          */
static void callee_chain(void **state)
{
	struct lab l;
	int a, b, c, hog, sa, ab, ba, bc, cb;
	struct request r;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/svc");
	lab_cgroup(&l, 2, "/noise");
	a = lab_thread(&l, "a", 10, 10, 1);
	b = lab_thread(&l, "b", 20, 20, 1);
	c = lab_thread(&l, "c", 30, 30, 1);
	hog = lab_thread(&l, "hog", 40, 40, 2);
	sa = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	ab = lab_socket(&l, 6, ROLE_CLIENT, 5000, 81);
	ba = lab_socket(&l, 7, ROLE_SERVED, 81, 5000);
	bc = lab_socket(&l, 8, ROLE_CLIENT, 5001, 82);
	cb = lab_socket(&l, 9, ROLE_SERVED, 82, 5001);
	lab_begin(&l);
	lab_op(&l, a, 10, 12, RECV(0, sa, 9, .served = true));
	lab_op(&l, a, 12, 70, SEND(0, ab, AFTER(a, 10)));
	lab_away(&l, a, 13, 65, 65, 66,
		 AWAY(.obj_kind = OBJ_SOCKET, .obj = 6, .syscall = syscall_nr("recvfrom"),
		      .by = BY_THREAD, .waker = b, .cpu = 2));
	lab_run(&l, 2, a, 0, 13);
	lab_run(&l, 2, THREAD_IDLE, 13, 66);
	lab_run(&l, 2, a, 66, 100);
	lab_op(&l, a, 70, 72, RECV(0, ab, 65, AFTER(a, 12), FROM(b, 65, 1)));
	lab_op(&l, a, 72, 100, SEND(0, sa, .served = true, AFTER(a, 70)));
	lab_op(&l, b, 15, 17, RECV(1, ba, 12, .served = true));
	lab_op(&l, b, 17, 60, SEND(1, bc, AFTER(b, 15)));
	lab_blocked(&l, b, 18, 56, OBJ_SOCKET, "recvfrom", c);
	lab_op(&l, b, 60, 65, RECV(1, bc, 55, AFTER(b, 17), FROM(c, 55, 2)));
	lab_op(&l, b, 65, 100, SEND(1, ba, .served = true, AFTER(b, 60)));
	lab_op(&l, c, 20, 55, RECV(2, cb, 17, .served = true));
	lab_op(&l, c, 55, 100, SEND(2, cb, .served = true, AFTER(c, 20)));
	lab_away(&l, c, 30, 30, 30, 40, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_run(&l, 1, c, 0, 30);
	lab_run(&l, 1, hog, 30, 40);
	lab_run(&l, 1, c, 40, 100);
	r = lab_request(&l, "GET /", 9, 72, a, 10, a, 72, -1);
	lab_request(&l, "GET /b", 12, 65, b, 15, b, 65, 0);
	lab_request(&l, "GET /c", 17, 55, c, 20, c, 55, 1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r),
			    "9-12 a running/self = self\n"
			    "12-17 b running/callee via callee = b (pid 20)\n"
			    "17-30 c running/callee via callee = c (pid 30)\n"
			    "30-40 c runqueue/neighbour via callee = /noise\n"
			    "40-55 c running/callee via callee = c (pid 30)\n"
			    "55-56 b runqueue/idle via callee = wakeup\n"
			    "56-65 b running/callee via callee = b (pid 20)\n"
			    "65-66 a runqueue/idle = idle CPU\n"
			    "66-72 a running/self = self\n");
	lab_fini(&l);
}

/* Work handed to a pool thread: up to the hand-over the time is the request's own.
 *	front  r10 ===20 wakes pool
 *	pool   ... futex ...20|==== s50                                                      */
static void hand_over(void **state)
{
	struct lab l;
	int front, pool, s;
	struct request r;

	(void)state;
	lab_init(&l);
	front = lab_thread(&l, "front", 10, 10, 0);
	pool = lab_thread(&l, "pool", 11, 10, 0);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	lab_begin(&l);
	lab_op(&l, front, 10, 100, RECV(0, s, 9, .served = true));
	lab_blocked(&l, pool, 1, 20, OBJ_FUTEX, "futex", front);
	lab_op(&l, pool, 50, 100, SEND(0, s, .served = true, AFTER(front, 10)));
	r = lab_request(&l, "GET /", 9, 50, front, 10, pool, 50, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r), "9-20 front running/self = self\n"
						      "20-50 pool running/self = self\n");
	lab_fini(&l);
}

/* An event loop's helper thread has the work while the loop serves another.
 *	loop  R r10 | Q r20 s30 |.. epoll 31-60 ..| R s65
 *	help  ..futex..12|========60 wakes loop                                              */
static void helper_thread(void **state)
{
	struct lab l;
	int loop, help, s1, s2;
	struct request r;

	(void)state;
	lab_init(&l);
	loop = lab_thread(&l, "loop", 10, 10, 0);
	help = lab_thread(&l, "help", 11, 10, 0);
	s1 = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	s2 = lab_socket(&l, 6, ROLE_SERVED, 80, 4001);
	lab_begin(&l);
	lab_op(&l, loop, 10, 20, RECV(0, s1, 9, .served = true));
	lab_op(&l, loop, 20, 30, RECV(1, s2, 15, .served = true));
	lab_op(&l, loop, 30, 65, SEND(1, s2, .served = true, AFTER(loop, 20)));
	lab_blocked(&l, loop, 31, 60, OBJ_EPOLL, "epoll_wait", help);
	lab_blocked(&l, help, 1, 12, OBJ_FUTEX, "futex", loop);
	lab_op(&l, loop, 65, 100, SEND(0, s1, .served = true, AFTER(loop, 10)));
	r = lab_request(&l, "GET /file", 9, 65, loop, 10, loop, 65, -1);
	lab_request(&l, "GET /q", 15, 30, loop, 20, loop, 30, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r),
			    "9-20 loop running/self = self\n"
			    "20-60 help running/self via queue = loop (pid 10)\n"
			    "60-65 loop running/self = self\n");
	lab_fini(&l);
}

/* An upstream that is not recorded, and a client that is slow with its body. */
static void unrecorded_peers(void **state)
{
	struct lab l;
	int web, s, out;
	struct request r;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	out = lab_socket(&l, 6, ROLE_CLIENT, 5000, 5432);
	lab_begin(&l);
	lab_op(&l, web, 10, 20, RECV(0, s, 10, .served = true));
	lab_away(&l, web, 12, 20, 20, 20,
		 AWAY(.obj_kind = OBJ_SOCKET, .obj = 5, .syscall = syscall_nr("read"), .by = BY_NET,
		      .waker_obj = 5));
	lab_op(&l, web, 21, 30, RECV(0, s, 20, .served = true, AFTER(web, 10)));
	lab_op(&l, web, 30, 50, SEND(0, out, AFTER(web, 21)));
	lab_away(&l, web, 31, 48, 48, 48,
		 AWAY(.obj_kind = OBJ_SOCKET, .obj = 6, .syscall = syscall_nr("read"), .by = BY_NET,
		      .waker_obj = 6));
	lab_op(&l, web, 50, 60, RECV(0, out, 48, AFTER(web, 30)));
	lab_op(&l, web, 60, 90, SEND(0, s, .served = true, AFTER(web, 50)));
	r = lab_request(&l, "POST /", 10, 60, web, 10, web, 60, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r), "10-12 web running/self = self\n"
						      "12-20 web network/remote = 10.0.0.2:4000\n"
						      "20-31 web running/self = self\n"
						      "31-48 web network/peer = 10.0.0.2:5432\n"
						      "48-60 web running/self = self\n");
	lab_fini(&l);
}

/* A wake that only made room, and the sleep goes on: one wait for one answer.
 *	a   r10 s12 |13-20|x|22-40| r41 s45       b wakes it at 20 (by reading) and at 40     */
static void wake_without_release(void **state)
{
	struct lab l;
	int a, b, sa, ab;

	(void)state;
	lab_init(&l);
	a = lab_thread(&l, "a", 10, 10, 0);
	b = lab_thread(&l, "b", 20, 20, 0);
	sa = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	ab = lab_socket(&l, 6, ROLE_PAIR, 0, 0);
	lab_begin(&l);
	for (int i = 0; i < 2; i++)
		lab_away(&l, a, i ? 22 : 13, i ? 40 : 20, i ? 40 : 20, i ? 40 : 20,
			 AWAY(.obj_kind = OBJ_SOCKET, .obj = 6, .syscall = syscall_nr("recvmsg"),
			      .by = BY_THREAD, .waker = b));
	lab_op(&l, a, 41, 100, RECV(NO_INDEX, ab, 40, FROM(b, 41, NO_INDEX)));
	lab_op(&l, b, 41, 100, SEND(NO_INDEX, sa));
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, a, 10, 45),
			    "10-13 a running/self = self\n"
			    "13-40 b running/callee via callee = b (pid 20)\n"
			    "40-45 a running/self = self\n");
	lab_fini(&l);
}

/* Cut requests: nothing was sent yet; the recording began in the middle. */
static void cut_requests(void **state)
{
	struct lab l;
	int web, s;
	struct request r;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	lab_begin(&l);
	lab_op(&l, web, 10, 100, RECV(0, s, 9, .served = true));
	lab_away(&l, web, 20, 100, 100, 100,
		 AWAY(.syscall = syscall_nr("nanosleep"), .open = true));
	r = lab_request(&l, "GET /", 9, 100, web, 10, NO_INDEX, 0, -1);
	r.cut_end = true;
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r), "9-20 web running/self = self\n"
						      "20-100 web sleep/self = self\n");
	lab_fini(&l);
}

/* A program started for the request writes to a pipe that the server polls: child, not queue.
 *	web   r10 |... epoll 20-40 ...| s45
 *	cgi      born 15 ========40 writes                                                    */
static void cgi_program(void **state)
{
	struct lab l;
	int web, cgi, s;
	struct request r;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	cgi = lab_born(&l, "cgi", 20, 20, 0, 15, 10);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	lab_begin(&l);
	lab_op(&l, web, 10, 45, RECV(0, s, 9, .served = true));
	lab_blocked(&l, web, 20, 40, OBJ_EPOLL, "epoll_wait", cgi);
	lab_op(&l, web, 45, 95, SEND(0, s, .served = true, AFTER(web, 10)));
	r = lab_request(&l, "GET /cgi", 9, 45, web, 10, web, 45, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r),
			    "9-20 web running/self = self\n"
			    "20-40 cgi running/child via child = cgi (pid 20)\n"
			    "40-45 web running/self = self\n");
	lab_fini(&l);
}

/* Data wait 1 ms while the thread sleeps with a timeout: that is no wakeup. */
static void sleeps_beside_data(void **state)
{
	struct lab l;
	int web, s;
	struct request r;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	lab_begin(&l);
	lab_away(&l, web, 10, 1090, 1090, 1090,
		 AWAY(.syscall = syscall_nr("pselect6"), .by = BY_TIMER));
	lab_op(&l, web, 1095, 1096, RECV(0, s, 50, .served = true));
	lab_op(&l, web, 1096, 2000, SEND(0, s, .served = true, AFTER(web, 1095)));
	r = lab_request(&l, "GET /", 50, 1096, web, 1095, web, 1096, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r), "50-1090 web sleep/timeout = pselect6\n"
						      "1090-1096 web running/self = self\n");
	lab_fini(&l);
}

/* The send hands the CPU to the callee at once; the caller blocks only at the very end.
 *	web   r10 s20 |.. queue 20-60, svc runs ..|61|epoll 61-65| r66 s70
 *	svc            r21 ====================== s65                                        */
static void preempted_by_callee(void **state)
{
	struct lab l;
	int web, svc, s, out, in;
	struct request r;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/svc");
	web = lab_thread(&l, "web", 10, 10, 1);
	svc = lab_thread(&l, "svc", 20, 20, 2);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	out = lab_socket(&l, 6, ROLE_CLIENT, 5000, 81);
	in = lab_socket(&l, 7, ROLE_SERVED, 81, 5000);
	lab_begin(&l);
	lab_run(&l, 1, web, 0, 20);
	lab_run(&l, 1, svc, 20, 60);
	lab_run(&l, 1, web, 60, 61);
	lab_run(&l, 1, svc, 61, 65);
	lab_run(&l, 1, web, 65, 100);
	lab_away(&l, web, 20, 20, 20, 60, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_away(&l, web, 61, 65, 65, 65,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET,
		      .waker = svc, .waker_obj = 6, .cpu = 1));
	lab_away(&l, svc, 1, 20, 20, 20,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET,
		      .waker_obj = 7, .cpu = 1));
	lab_away(&l, svc, 60, 60, 60, 61, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_op(&l, web, 10, 20, RECV(0, s, 10, .served = true));
	lab_op(&l, web, 20, 66, SEND(0, out, AFTER(web, 10)));
	lab_op(&l, web, 66, 70, RECV(0, out, 65, AFTER(web, 20), FROM(svc, 65, 1)));
	lab_op(&l, web, 70, 100, SEND(0, s, .served = true, AFTER(web, 66)));
	lab_op(&l, svc, 21, 65, RECV(1, in, 20, .served = true));
	lab_op(&l, svc, 65, 100, SEND(1, in, .served = true, AFTER(svc, 21)));
	r = lab_request(&l, "GET /", 10, 70, web, 10, web, 70, -1);
	lab_request(&l, "GET /svc", 20, 65, svc, 21, svc, 65, 0);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r),
			    "10-20 web running/self = self\n"
			    "20-60 svc running/callee via callee = svc (pid 20)\n"
			    "60-61 svc runqueue/neighbour via callee = /web\n"
			    "61-65 svc running/callee via callee = svc (pid 20)\n"
			    "65-70 web running/self = self\n");
	lab_fini(&l);
}

/* The same, but the caller gets the CPU back only after the answer: it never waits at all.  With a
 * CPU of its own it would have been done by 22 and waited from then on.
 *	web   r10 s20 |...... queue 20-65, svc runs ......| r66 s70
 *	svc            r21 =========================== s65                                    */
static void queued_behind_callee(void **state)
{
	struct lab l;
	int web, svc, s, out, in;
	struct request r;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 2, "/svc");
	web = lab_thread(&l, "web", 10, 10, 1);
	svc = lab_thread(&l, "svc", 20, 20, 2);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	out = lab_socket(&l, 6, ROLE_CLIENT, 5000, 81);
	in = lab_socket(&l, 7, ROLE_SERVED, 81, 5000);
	lab_begin(&l);
	lab_run(&l, 1, web, 0, 20);
	lab_run(&l, 1, svc, 20, 65);
	lab_run(&l, 1, web, 65, 100);
	lab_away(&l, web, 20, 20, 20, 65, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_away(&l, svc, 1, 20, 20, 20,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET,
		      .waker_obj = 7, .cpu = 1));
	lab_op(&l, web, 10, 20, RECV(0, s, 10, .served = true));
	lab_op(&l, web, 20, 66, SEND(0, out, AFTER(web, 10)));
	lab_op(&l, web, 66, 70, RECV(0, out, 64, AFTER(web, 20), FROM(svc, 64, 1)));
	lab_op(&l, web, 70, 100, SEND(0, s, .served = true, AFTER(web, 66)));
	lab_op(&l, svc, 21, 64, RECV(1, in, 20, .served = true));
	lab_op(&l, svc, 64, 100, SEND(1, in, .served = true, AFTER(svc, 21)));
	r = lab_request(&l, "GET /", 10, 70, web, 10, web, 70, -1);
	lab_request(&l, "GET /svc", 20, 64, svc, 21, svc, 64, 0);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r),
			    "10-20 web running/self = self\n"
			    "20-64 svc running/callee via callee = svc (pid 20)\n"
			    "64-65 web runqueue/neighbour = /svc\n"
			    "65-70 web running/self = self\n");
	lab_fini(&l);
}

/* Of an absence only the beginning was seen; an operation inside shows that it had ended. */
static void came_back_unseen(void **state)
{
	struct lab l;
	int web, s;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	s = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	lab_begin(&l);
	lab_away(&l, web, 10, 50, 50, 50, (struct absence){.why = WHY_UNKNOWN});
	lab_op(&l, web, 30, 40, SEND(NO_INDEX, s));
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 0, 60), "0-10 web running/self = self\n"
							     "10-30 web unknown ?\n"
							     "30-50 web running/self = self ?\n"
							     "50-60 web running/self = self\n");
	lab_fini(&l);
}

/* One thread, asleep all the time in call nr; sent: it asked another service at 5. */
static void sleeps_on(const char *nr, enum obj_kind kind, bool sent, const char *expected)
{
	struct lab l;
	int web, out;

	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	out = lab_socket(&l, 5, ROLE_CLIENT, 5000, 81);
	lab_begin(&l);
	if (sent)
		lab_op(&l, web, 5, LAB_END, SEND(NO_INDEX, out));
	lab_away(&l, web, 10, LAB_END, LAB_END, LAB_END,
		 AWAY(.obj_kind = kind, .syscall = syscall_nr(nr), .open = true));
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 20, 50), expected);
	lab_fini(&l);
}

/* Waits that have not ended are told by their calls. */
static void open_waits(void **state)
{
	(void)state;
	sleeps_on("epoll_wait", OBJ_EPOLL, false,
		  "20-50 web network/remote = whoever asks next ?\n");
	sleeps_on("epoll_wait", OBJ_EPOLL, true, "20-50 web network/peer = 10.0.0.2:81 ?\n");
	sleeps_on("accept4", OBJ_SOCKET, true, "20-50 web network/remote = whoever asks next ?\n");
	sleeps_on("poll", OBJ_NONE, false, "20-50 web sleep/timeout = poll ?\n");
	sleeps_on("clock_nanosleep", OBJ_NONE, false, "20-50 web sleep/self = self\n");
	sleeps_on("futex", OBJ_FUTEX, false, "20-50 web lock/unresolved ?\n");
	sleeps_on("wait4", OBJ_CHILD, false, "20-50 web child/unresolved ?\n");
	sleeps_on("read", OBJ_PIPE, false, "20-50 web unknown ?\n");
}

/* Nobody was seen waking make; who its child was by then is known.
 *	make   ==10|.. vfork 10-20 ..|==30|...... wait4 30-60 ......|==
 *	cc         |= born 9 ==== sleeps 40-50 == ends 60            */
static void child_by_its_end(void **state)
{
	struct event end = {.ts_ns = US(60),
			    .kind = EVENT_THREAD,
			    .thread = {.tid = 20, .pid = 20, .what = LIFE_EXIT, .birth_ns = US(9)}};
	struct lab l;
	int make, cc;

	(void)state;
	lab_init(&l);
	make = lab_thread(&l, "make", 10, 10, 0);
	cc = lab_born(&l, "cc", 20, 20, 0, 9, 10);
	lab_feed(&l, &end);
	lab_begin(&l);
	lab_away(&l, make, 10, 20, 20, 20,
		 ((struct absence){
			 .why = WHY_BLOCKED, .state = TASK_DISK, .syscall = syscall_nr("vfork")}));
	lab_away(&l, make, 30, 60, 60, 60,
		 AWAY(.obj_kind = OBJ_CHILD, .syscall = syscall_nr("wait4")));
	lab_away(&l, cc, 40, 50, 50, 50, AWAY(.syscall = syscall_nr("nanosleep"), .by = BY_TIMER));
	lab_away(&l, cc, 60, LAB_END, LAB_END, LAB_END, (struct absence){.why = WHY_EXITED});
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, make, 0, 70),
			    "0-10 make running/self = self\n"
			    "10-20 cc running/child via child = cc (pid 20) ?\n"
			    "20-30 make running/self = self\n"
			    "30-40 cc running/child via child = cc (pid 20) ?\n"
			    "40-50 cc sleep/self via child = cc (pid 20) ?\n"
			    "50-60 cc running/child via child = cc (pid 20) ?\n"
			    "60-70 make running/self = self\n");
	lab_fini(&l);
}

/* A large answer to a client that reads slowly; the loop serves another one meanwhile.
 *	loop  r10 R s15 |poll 16-20| r20 Q s25 |poll 26-40| s41 R                         */
static void slow_client(void **state)
{
	struct lab l;
	struct request r;
	int loop, s1, s2;

	(void)state;
	lab_init(&l);
	loop = lab_thread(&l, "loop", 10, 10, 0);
	s1 = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	s2 = lab_socket(&l, 6, ROLE_SERVED, 80, 4001);
	lab_begin(&l);
	lab_op(&l, loop, 10, 15, RECV(0, s1, 9, .served = true));
	lab_op(&l, loop, 15, 20, SEND(0, s1, .served = true, AFTER(loop, 10)));
	lab_op(&l, loop, 20, 25, RECV(1, s2, 19, .served = true));
	lab_op(&l, loop, 25, 41, SEND(1, s2, .served = true, AFTER(loop, 20)));
	lab_op(&l, loop, 41, 100, SEND(0, s1, .served = true, AFTER(loop, 15)));
	lab_away(&l, loop, 16, 19, 19, 19,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET));
	lab_away(&l, loop, 26, 40, 40, 40,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET));
	r = lab_request(&l, "GET /r", 9, 41, loop, 10, loop, 41, -1);
	lab_request(&l, "GET /q", 19, 25, loop, 20, loop, 25, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r), "9-16 loop running/self = self\n"
						      "16-40 loop network/remote = 10.0.0.2:4000\n"
						      "40-41 loop running/self = self\n");
	lab_fini(&l);
}

/* The same while the loop connects to another service, which is not recorded.
 *	loop  r10 R |poll 13-20| r20 Q s25 |poll 26-40| s41 asks, r50 answer, s51 R       */
static void slow_connection(void **state)
{
	struct lab l;
	struct request r;
	int loop, s1, s2, out;

	(void)state;
	lab_init(&l);
	loop = lab_thread(&l, "loop", 10, 10, 0);
	s1 = lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	s2 = lab_socket(&l, 6, ROLE_SERVED, 80, 4001);
	out = lab_socket(&l, 7, ROLE_CLIENT, 5000, 90);
	lab_begin(&l);
	lab_op(&l, loop, 10, 20, RECV(0, s1, 9, .served = true));
	lab_op(&l, loop, 20, 25, RECV(1, s2, 19, .served = true));
	lab_op(&l, loop, 25, 41, SEND(1, s2, .served = true, AFTER(loop, 20)));
	lab_op(&l, loop, 41, 50, SEND(0, out, AFTER(loop, 10)));
	lab_op(&l, loop, 50, 51, RECV(0, out, 49, AFTER(loop, 41)));
	lab_op(&l, loop, 51, 100, SEND(0, s1, .served = true, AFTER(loop, 50)));
	lab_away(&l, loop, 13, 19, 19, 19,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET));
	lab_away(&l, loop, 26, 40, 40, 40,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET));
	lab_away(&l, loop, 42, 49, 49, 49,
		 AWAY(.obj_kind = OBJ_EPOLL, .syscall = syscall_nr("epoll_wait"), .by = BY_NET));
	r = lab_request(&l, "GET /r", 9, 51, loop, 10, loop, 51, -1);
	lab_request(&l, "GET /q", 19, 25, loop, 20, loop, 25, -1);
	lab_end(&l);
	assert_string_equal(lab_walk_request(&l, &r), "9-13 loop running/self = self\n"
						      "13-40 loop network/peer = 10.0.0.2:90 ?\n"
						      "40-42 loop running/self = self\n"
						      "42-49 loop network/peer = 10.0.0.2:90\n"
						      "49-51 loop running/self = self\n");
	lab_fini(&l);
}

/* A server that blocks in its sends; the client wakes it by reading, by itself or by its interrupts,
 * in which another socket was the last to become readable.  So does a client that asks late.   */
static void blocking_server(void **state)
{
	struct lab l;
	int web, curl;

	(void)state;
	lab_init(&l);
	web = lab_thread(&l, "web", 10, 10, 0);
	curl = lab_thread(&l, "curl", 20, 20, 0);
	lab_socket(&l, 5, ROLE_SERVED, 80, 4000);
	lab_socket(&l, 6, ROLE_CLIENT, 4000, 80);
	lab_socket(&l, 7, ROLE_LISTEN, 80, 0);
	lab_begin(&l);
	lab_away(&l, web, 10, 20, 20, 20,
		 AWAY(.obj_kind = OBJ_SOCKET, .obj = 5, .syscall = syscall_nr("sendto"),
		      .by = BY_THREAD, .waker = curl));
	lab_away(&l, web, 20, 30, 30, 30,
		 AWAY(.obj_kind = OBJ_SOCKET, .obj = 5, .syscall = syscall_nr("sendto"),
		      .by = BY_NET, .waker_obj = 6));
	lab_away(&l, web, 40, 50, 50, 50,
		 AWAY(.obj_kind = OBJ_SOCKET, .obj = 7, .syscall = syscall_nr("accept4"),
		      .by = BY_THREAD, .waker = curl));
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 10, 50),
			    "10-30 web network/remote = 10.0.0.2:4000\n"
			    "30-40 web running/self = self\n"
			    "40-50 web network/remote = whoever asks next\n");
	lab_fini(&l);
}

/* A kernel worker stands in a run queue for the thread that waits for it: own is web's unit.
 *	web     ==10|........ 10-40 ........|
 *	kworker       |20 queue 30|==========40 wakes       mate (web's unit) holds the CPU   */
static void worker_for_a_victim(void **state)
{
	struct lab l;
	int web, mate, worker;

	(void)state;
	lab_init(&l);
	lab_cgroup(&l, 1, "/web");
	lab_cgroup(&l, 9, "/");
	web = lab_thread(&l, "web", 10, 10, 1);
	mate = lab_thread(&l, "mate", 11, 11, 1);
	worker = lab_thread(&l, "[kworker/1:0]", 30, 30, 9);
	lab_begin(&l);
	lab_away(&l, web, 10, 40, 40, 40,
		 ((struct absence){.why = WHY_BLOCKED,
				   .state = TASK_DISK,
				   .by = BY_THREAD,
				   .waker = worker,
				   .syscall = syscall_nr("fsync")}));
	lab_away(&l, worker, 20, 20, 20, 30, (struct absence){.why = WHY_PREEMPTED, .cpu = 1});
	lab_run(&l, 1, mate, 20, 30);
	lab_run(&l, 1, worker, 30, 50);
	lab_run(&l, 2, worker, 5, 20);
	lab_end(&l);
	assert_string_equal(lab_walk_thread(&l, web, 5, 45),
			    "5-10 web running/self = self\n"
			    "10-20 kworker/1:0 running/self via queue = kworker\n"
			    "20-30 kworker/1:0 runqueue/own via queue = mate (pid 11)\n"
			    "30-40 kworker/1:0 running/self via queue = kworker\n"
			    "40-45 web running/self = self\n");
	lab_fini(&l);
}

/* ------------------------------------------------------------------ properties */

static uint32_t seed;
static int random_below(int n)
{
	seed = seed * 1664525u + 1013904223u;
	return (int)(seed >> 8) % n;
}

static struct absence random_absence(int threads)
{
	static const char *const calls[] = {"futex", "read",	  "recvfrom", "epoll_wait",
					    "wait4", "nanosleep", "poll",     "fsync"};

	return (struct absence){.why = (enum why)random_below(5),
				.state = (enum task_state)(1 + random_below(5)),
				.syscall = syscall_nr(calls[random_below(8)]),
				.obj_kind = (enum obj_kind)random_below(9),
				.obj = (uint64_t)random_below(8),
				.by = (enum waker_by)random_below(8),
				.waker = random_below(threads + 1) - 1,
				.waker_obj = (uint64_t)random_below(20),
				.cpu = random_below(3),
				.quota_ns = random_below(4) ? 0 : US(random_below(30)),
				.lost = !random_below(20),
				.open = !random_below(30)};
}

static void random_thread(struct lab *l, int thread, int threads)
{
	for (int at = random_below(20); at < 2000;) {
		int waking = at + 1 + random_below(60), runnable = waking + random_below(4);
		int back = runnable + 1 + random_below(20);

		lab_away(l, thread, at, waking, runnable, back, random_absence(threads));
		at = back + random_below(30);
	}
	for (int at = random_below(20), last = -1; at < 2000;) {
		int next = at + 1 + random_below(80);
		struct op op = {.dir = (enum op_dir)random_below(3),
				.socket = random_below(4),
				.request = random_below(9) - 1,
				.served = random_below(2),
				.arrived_ns = random_below(2) ? US(at - random_below(60)) : 0,
				.sender = random_below(threads + 1) - 1,
				.sender_ns = US(random_below(2000)),
				.sender_request = random_below(9) - 1,
				.prev = last < 0 ? NO_INDEX : thread,
				.prev_ns = US(last)};

		lab_op(l, thread, at, next, op);
		last = at;
		at = next;
	}
}

static void random_cpus(struct lab *l, int threads)
{
	for (int cpu = 0; cpu < 3; cpu++)
		for (int at = 0; at < 2000;) {
			int end = at + 1 + random_below(50);

			if (random_below(8))
				lab_run_irq(l, cpu, random_below(threads + 1), at, end,
					    random_below(3));
			at = end;
		}
	for (int slot = 0; slot < 3; slot++)
		for (int at = 0, id = slot; at < 2000; id += 3) {
			int end = at + 3 + random_below(80);

			lab_block(l, slot, (uint64_t)id % 20, random_below(threads) + 1, at,
				  at + 1 + random_below(3), end);
			at = end;
		}
}

/* Whatever the history says, segments tile, shares sum, the budget is the duration. */
static void random_histories(void **state)
{
	(void)state;
	for (uint32_t round = 1; round <= 60; round++) {
		enum { THREADS = 6 };
		struct request r[8];
		struct lab l;

		seed = round;
		lab_init(&l);
		for (uint32_t i = 0; i < THREADS; i++) {
			lab_cgroup(&l, i + 1, i & 1 ? "/a" : "/b");
			lab_born(&l, i == 5 ? "[kworker/0:1]" : "t", 10 + i, 10 + i / 2, i + 1,
				 i == 4 ? 300 : -1, 10);
		}
		for (uint32_t i = 0; i < 4; i++)
			lab_socket(&l, i + 1, (enum role)(i + 1), 80, (int)(4000 + i));
		lab_begin(&l);
		random_cpus(&l, THREADS);
		for (int t = 1; t <= THREADS; t++)
			random_thread(&l, t, THREADS);
		lab_loss(&l, 500, 700);
		for (int i = 0; i < 8; i++) {
			int t = 1 + random_below(THREADS), at = random_below(1500);

			r[i] = lab_request(&l, "GET /", at, at + 1 + random_below(400), t, at, t,
					   at + random_below(300), random_below(9) - 1);
		}
		lab_end(&l);
		for (int i = 0; i < 8; i++) {
			struct interval iv;
			struct op op;

			/* Most end at a real operation. */
			if (!history_before(l.h, track_id(TRACK_OPS, (uint32_t)r[i].last_thread),
					    r[i].end_ns, &iv)) {
				op_get(&iv, &op);
				r[i].last_ns = op.start_ns;
			}
			lab_walk_request(&l, &r[i]);
		}
		for (int t = 1; t <= THREADS; t++)
			lab_walk_thread(&l, t, 0, 2000);
		lab_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(futex_release),
		cmocka_unit_test(holder_preempted),
		cmocka_unit_test(kinds_of_release),
		cmocka_unit_test(timers_and_unknown),
		cmocka_unit_test(parts_of_a_wait),
		cmocka_unit_test(stolen_time),
		cmocka_unit_test(cycle),
		cmocka_unit_test(losses),
		cmocka_unit_test(child_born),
		cmocka_unit_test(block_two_owners),
		cmocka_unit_test(simple_request),
		cmocka_unit_test(backlog_single_worker),
		cmocka_unit_test(event_loop),
		cmocka_unit_test(callee_chain),
		cmocka_unit_test(hand_over),
		cmocka_unit_test(helper_thread),
		cmocka_unit_test(unrecorded_peers),
		cmocka_unit_test(wake_without_release),
		cmocka_unit_test(cut_requests),
		cmocka_unit_test(cgi_program),
		cmocka_unit_test(sleeps_beside_data),
		cmocka_unit_test(preempted_by_callee),
		cmocka_unit_test(queued_behind_callee),
		cmocka_unit_test(came_back_unseen),
		cmocka_unit_test(worker_for_a_victim),
		cmocka_unit_test(open_waits),
		cmocka_unit_test(child_by_its_end),
		cmocka_unit_test(slow_client),
		cmocka_unit_test(slow_connection),
		cmocka_unit_test(blocking_server),
		cmocka_unit_test(random_histories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
