/* SPDX-License-Identifier: MIT
 *
 * Sockets in, requests out.  Positions count the bytes of a stream: a receive with seq n is
 * answered by the send whose bytes reach n.
 */
#include "events.h"

#include <sys/socket.h>

enum { SERVER = 11, WORKER = 12, BACKEND = 13, CLIENT = 14 };
enum { A = 0xa0, A_PEER = 0xa1, B = 0xb0, C = 0xc0, U = 0xd0, U_PEER = 0xd1, L = 0xe0 };

static void name(struct bench *b, uint32_t tid, const char *comm)
{
	struct event e = ev_thread(1001, LIFE_SNAPSHOT, tid, comm);

	e.thread.running = true;
	bench_feed(b, &e);
}

static struct bench *start(void)
{
	struct bench *b = bench_new(1000);

	name(b, SERVER, "server");
	name(b, WORKER, "worker");
	name(b, BACKEND, "backend");
	name(b, CLIENT, "client");
	return b;
}

/* A TCP socket on 127.0.0.1. */
static void sock(struct bench *b, uint64_t cookie, enum role role, uint16_t local, uint16_t remote)
{
	struct event e = {.ts_ns = 1002,
			  .kind = EVENT_SOCKET,
			  .socket = {.cookie = cookie,
				     .family = AF_INET,
				     .role = role,
				     .local_port = local,
				     .remote_port = remote,
				     .local_addr = {127, 0, 0, 1},
				     .remote_addr = {127, 0, 0, 1}}};

	bench_feed(b, &e);
}

static void recv_text(struct bench *b, int64_t ts_ns, uint64_t cookie, uint32_t tid, uint32_t bytes,
		      uint64_t seq, const char *text)
{
	struct event e = ev_io(ts_ns, EVENT_RECV, cookie, tid, bytes, seq);

	e.io.text = text;
	e.io.arrived_ns = ts_ns - 10;
	bench_feed(b, &e);
}

static void recv_more(struct bench *b, int64_t ts_ns, uint64_t cookie, uint32_t tid, uint32_t bytes,
		      uint64_t seq)
{
	recv_text(b, ts_ns, cookie, tid, bytes, seq, NULL);
}

static void send_it(struct bench *b, int64_t ts_ns, uint64_t cookie, uint32_t tid, uint32_t bytes,
		    uint64_t seq, int status)
{
	struct event e = ev_io(ts_ns, EVENT_SEND, cookie, tid, bytes, seq);

	e.io.status = status;
	bench_feed(b, &e);
}

static void close_it(struct bench *b, int64_t ts_ns, uint64_t cookie, uint32_t tid)
{
	struct event e = ev_io(ts_ns, EVENT_CLOSE, cookie, tid, 0, 0);

	bench_feed(b, &e);
}

static void finish(struct bench *b, int64_t end_ns)
{
	bench_finish(b, end_ns);
	bench_check(b);
}

static int requests(struct bench *b)
{
	int n = 0;

	for (size_t i = 0; i < b->out.n; i++)
		n += b->out.at[i].kind == KIND_REQUEST;
	return n;
}

static struct request request(struct bench *b, int64_t id)
{
	struct request r = {.id = -1};

	for (size_t i = 0; i < b->out.n; i++) {
		if (b->out.at[i].kind != KIND_REQUEST)
			continue;
		request_get(&b->out.at[i], &r);
		if (r.id == id)
			return r;
	}
	fail_msg("no request %d", (int)id);
	return r;
}

static const char *group(struct bench *b, int64_t id)
{
	return names_str(b->names, request(b, id).name);
}

static struct op op(struct bench *b, uint32_t tid, int i)
{
	struct op o;
	const struct interval *iv =
		bench_at(b, track_id(TRACK_OPS, (uint32_t)bench_thread(b, tid, 1500)), i);

	assert_non_null(iv);
	op_get(iv, &o);
	return o;
}

/*
 * One connection, three requests, the last is being worked on at the end:
 *	recv 2000 (arrived 1990), send 2100; recv 3000, body 3050, send 3100 and 3150; recv 4000
 */
static void keepalive(void **state)
{
	struct bench *b = start();
	struct request r;

	(void)state;
	sock(b, A, ROLE_SERVED, 80, 5000);
	recv_text(b, 2000, A, SERVER, 50, 50, "GET /items/17?x=1 HTTP/1.1");
	send_it(b, 2100, A, SERVER, 200, 200, 200);
	recv_text(b, 3000, A, SERVER, 50, 100, "POST /items HTTP/1.1");
	recv_more(b, 3050, A, SERVER, 900, 1000);
	send_it(b, 3100, A, SERVER, 100, 300, 503);
	send_it(b, 3150, A, SERVER, 100, 400, 0);
	recv_text(b, 4000, A, SERVER, 50, 1050, "GET / HTTP/1.1");
	finish(b, 5000);

	assert_int_equal(requests(b), 3);
	r = request(b, 0);
	assert_int_equal(r.start_ns, 1990);
	assert_int_equal(r.end_ns, 2100);
	assert_int_equal(r.status, 200);
	assert_string_equal(group(b, 0), "GET /items/*");
	assert_int_equal(r.parent, NO_INDEX);
	assert_false(r.cut_start || r.cut_end || r.streaming);
	r = request(b, 1);
	assert_int_equal(r.start_ns, 2990);
	assert_int_equal(r.end_ns, 3150);
	assert_int_equal(r.last_ns, 3150);
	assert_int_equal(r.status, 503);
	assert_string_equal(group(b, 1), "POST /items");
	r = request(b, 2);
	assert_true(r.cut_end);
	assert_int_equal(r.end_ns, 5000);
	assert_int_equal(r.last_thread, NO_INDEX);

	/* The chain of request 1: 3150 -> 3100 -> 3050 -> 3000. */
	assert_int_equal(op(b, SERVER, 5).prev_ns, 3100);
	assert_int_equal(op(b, SERVER, 4).prev_ns, 3050);
	assert_int_equal(op(b, SERVER, 3).prev_ns, 3000);
	assert_int_equal(op(b, SERVER, 2).prev, NO_INDEX);
	assert_int_equal(op(b, SERVER, 2).end_ns, 3050);
	assert_int_equal(op(b, SERVER, 6).end_ns, 5000);
	bench_free(b);
}

/*
 * One thread, three connections, one kept upstream U (role unknown; its port has a listener):
 *	A in 2000, to U 2010; B in 2020, out 2030; U answers 2040, A out 2050; C in 2060, to U 2070,
 *	U answers 2080, C out 2090
 */
static void event_loop(void **state)
{
	static const int64_t expected[] = {0, 0, 1, 1, 0, 0, 2, 2, 2, 2};
	struct bench *b = start();

	(void)state;
	sock(b, U, ROLE_UNKNOWN, 6000, 9000);
	sock(b, L, ROLE_LISTEN, 9000, 0);
	sock(b, A, ROLE_SERVED, 80, 5001);
	sock(b, B, ROLE_SERVED, 80, 5002);
	sock(b, C, ROLE_SERVED, 80, 5003);
	recv_text(b, 2000, A, SERVER, 50, 50, "GET /a HTTP/1.1");
	send_it(b, 2010, U, SERVER, 50, 50, 0);
	recv_text(b, 2020, B, SERVER, 50, 50, "GET /b HTTP/1.1");
	send_it(b, 2030, B, SERVER, 50, 50, 200);
	recv_more(b, 2040, U, SERVER, 70, 70);
	send_it(b, 2050, A, SERVER, 70, 70, 200);
	recv_text(b, 2060, C, SERVER, 50, 50, "GET /c HTTP/1.1");
	send_it(b, 2070, U, SERVER, 50, 100, 0);
	recv_more(b, 2080, U, SERVER, 70, 140);
	send_it(b, 2090, C, SERVER, 70, 70, 200);
	finish(b, 3000);
	assert_int_equal(requests(b), 3);
	for (int i = 0; i < 10; i++)
		assert_int_equal(op(b, SERVER, i).request, expected[i]);
	assert_int_equal(request(b, 0).end_ns, 2050);
	assert_int_equal(op(b, SERVER, 4).prev_ns, 2010); /* the slice of /b lies between */
	assert_int_equal(op(b, SERVER, 5).prev_ns, 2040);
	bench_free(b);
}

/* SERVER reads, WORKER answers: the answer is the request's, after SERVER's receive. */
static void handed_to_a_pool(void **state)
{
	struct bench *b = start();
	struct request r;

	(void)state;
	sock(b, A, ROLE_SERVED, 80, 5001);
	recv_text(b, 2000, A, SERVER, 50, 50, "GET /a HTTP/1.1");
	send_it(b, 2100, A, WORKER, 50, 50, 200);
	finish(b, 3000);
	r = request(b, 0);
	assert_int_equal(r.first_thread, bench_thread(b, SERVER, 1500));
	assert_int_equal(r.last_thread, bench_thread(b, WORKER, 1500));
	assert_int_equal(op(b, WORKER, 0).request, 0);
	assert_int_equal(op(b, WORKER, 0).prev, r.first_thread);
	assert_int_equal(op(b, WORKER, 0).prev_ns, 2000);
	bench_free(b);
}

/*
 * CLIENT (recorded, serves nothing) -> A: SERVER -> U: BACKEND.  The send to the backend is
 * recorded at 2030, after the backend's receive at 2025.  The backend's request is a child.
 */
static void sub_request(void **state)
{
	struct bench *b = start();
	struct op o;

	(void)state;
	sock(b, A_PEER, ROLE_CLIENT, 5001, 80);
	sock(b, A, ROLE_SERVED, 80, 5001);
	sock(b, U, ROLE_CLIENT, 6000, 9000);
	sock(b, U_PEER, ROLE_SERVED, 9000, 6000);
	send_it(b, 1990, A_PEER, CLIENT, 50, 50, 0);
	recv_text(b, 2000, A, SERVER, 50, 50, "GET /a HTTP/1.1");
	recv_text(b, 2025, U_PEER, BACKEND, 50, 50, "GET /inner HTTP/1.1");
	send_it(b, 2030, U, SERVER, 50, 50, 0);
	send_it(b, 2040, U_PEER, BACKEND, 60, 60, 200);
	recv_more(b, 2050, U, SERVER, 60, 60);
	send_it(b, 2060, A, SERVER, 70, 70, 200);
	recv_more(b, 2070, A_PEER, CLIENT, 70, 70);
	finish(b, 3000);

	assert_int_equal(requests(b), 2);
	assert_int_equal(request(b, 0).parent, NO_INDEX);
	assert_int_equal(request(b, 1).parent, 0);
	assert_string_equal(group(b, 1), "GET /inner");
	o = op(b, BACKEND, 0); /* the receive of the inner request */
	assert_int_equal(o.sender, bench_thread(b, SERVER, 1500));
	assert_int_equal(o.sender_ns, 2030);
	assert_int_equal(o.sender_request, 0);
	o = op(b, SERVER, 2); /* of its answer */
	assert_int_equal(o.sender, bench_thread(b, BACKEND, 1500));
	assert_int_equal(o.sender_ns, 2040);
	assert_int_equal(o.sender_request, 1);
	assert_false(o.served);
	o = op(b, SERVER, 0); /* from a client that works for no request */
	assert_int_equal(o.sender, bench_thread(b, CLIENT, 1500));
	assert_int_equal(o.sender_request, NO_INDEX);
	assert_true(o.served);
	assert_int_equal(op(b, CLIENT, 1).request, NO_INDEX);
	bench_free(b);
}

/*
 * TCP positions wrap: the send from 2^32-20 to 30 covers 30, and 2^32-1, and 31 if nothing else
 * does (the end of the stream counts one), but not 32.
 */
static void positions_wrap(void **state)
{
	static const uint64_t seqs[] = {30, 0xffffffff, 31, 32};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct bench *b = start();

		sock(b, A_PEER, ROLE_CLIENT, 5001, 80);
		sock(b, A, ROLE_SERVED, 80, 5001);
		send_it(b, 1990, A_PEER, CLIENT, 50, 30, 0);
		recv_more(b, 2000, A, SERVER, 50, seqs[i]);
		finish(b, 3000);
		if (i < 3)
			assert_int_equal(op(b, SERVER, 0).sender_ns, 1990);
		else
			assert_int_equal(op(b, SERVER, 0).sender, NO_INDEX);
		bench_free(b);
	}
}

/* No protocol, a UNIX socket, an answer in two exchanges; the goodbye is no request. */
static void exchanges_without_text(void **state)
{
	struct bench *b = start();
	struct event e = {
		.ts_ns = 1002,
		.kind = EVENT_SOCKET,
		.socket = {.cookie = B, .family = AF_UNIX, .role = ROLE_SERVED, .path = "/run/db"}};

	(void)state;
	bench_feed(b, &e);
	sock(b, A, ROLE_SERVED, 5432, 5001);
	recv_more(b, 2000, A, SERVER, 50, 50);
	send_it(b, 2010, A, SERVER, 5, 5, 0);
	recv_more(b, 2020, A, SERVER, 50, 100);
	send_it(b, 2030, A, SERVER, 5, 10, 0);
	recv_more(b, 2040, A, SERVER, 5, 105); /* goodbye */
	close_it(b, 2050, A, SERVER);
	recv_more(b, 2060, B, WORKER, 5, 5);
	send_it(b, 2070, B, WORKER, 5, 5, 0);
	finish(b, 3000);
	assert_int_equal(requests(b), 3);
	assert_string_equal(group(b, 0), "tcp :5432 server");
	assert_string_equal(group(b, 1), "tcp :5432 server");
	assert_string_equal(group(b, 3), "unix /run/db worker"); /* 2 was the goodbye */
	bench_free(b);
}

/* An end of stream ends no answer and begins no request. */
static void end_of_stream(void **state)
{
	struct bench *b = start();

	(void)state;
	sock(b, A, ROLE_SERVED, 80, 5001);
	recv_text(b, 2000, A, SERVER, 50, 50, "GET /a HTTP/1.0");
	recv_more(b, 2010, A, SERVER, 0, 50); /* the client has sent all it will */
	send_it(b, 2100, A, SERVER, 50, 50, 200);
	recv_more(b, 2200, A, SERVER, 0, 50);
	close_it(b, 2210, A, SERVER);
	finish(b, 3000);
	assert_int_equal(requests(b), 1);
	assert_int_equal(request(b, 0).end_ns, 2100);
	assert_int_equal(op(b, SERVER, 1).dir, OP_EOF);
	assert_int_equal(op(b, SERVER, 1).request, 0);
	assert_int_equal(op(b, SERVER, 3).request, NO_INDEX);
	bench_free(b);
}

/*
 * A connection from before the recording that begins with a send: its request was cut.  One that
 * was accepted in the recording and begins with a send: a greeting.
 */
static void cut_start_and_greeting(void **state)
{
	struct bench *b = start();

	(void)state;
	sock(b, L, ROLE_LISTEN, 80, 0);
	sock(b, A, ROLE_UNKNOWN, 80, 5001);
	sock(b, B, ROLE_SERVED, 25, 5002);
	send_it(b, 2000, A, SERVER, 50, 50, 200);
	send_it(b, 2010, B, WORKER, 50, 50, 0);
	recv_text(b, 2020, A, SERVER, 50, 50, "GET /a HTTP/1.1");
	send_it(b, 2030, A, SERVER, 50, 100, 200);
	finish(b, 3000);
	assert_int_equal(requests(b), 2);
	assert_true(request(b, 0).cut_start);
	assert_int_equal(request(b, 0).start_ns, 1000);
	assert_int_equal(request(b, 0).end_ns, 2000);
	assert_false(request(b, 1).cut_start);
	assert_int_equal(op(b, WORKER, 0).request, NO_INDEX);
	bench_free(b);
}

/* A's data came before the recording did; those on B were there before anybody looked. */
static void arrived_before(void **state)
{
	struct bench *b = start();
	struct event e;

	(void)state;
	sock(b, L, ROLE_LISTEN, 80, 0);
	sock(b, A, ROLE_UNKNOWN, 80, 5001);
	sock(b, B, ROLE_UNKNOWN, 80, 5002);
	e = ev_io(2000, EVENT_RECV, A, SERVER, 50, 50);
	e.io.arrived_ns = 900;
	bench_feed(b, &e);
	send_it(b, 2010, A, SERVER, 50, 50, 200);
	e = ev_io(2020, EVENT_RECV, B, SERVER, 50, 50);
	bench_feed(b, &e);
	send_it(b, 2030, B, SERVER, 50, 50, 200);
	e = ev_io(2040, EVENT_RECV, B, SERVER, 50, 100);
	bench_feed(b, &e);
	send_it(b, 2050, B, SERVER, 50, 100, 200);
	finish(b, 3000);
	assert_int_equal(requests(b), 3);
	assert_true(request(b, 0).cut_start);
	assert_int_equal(request(b, 0).start_ns, 1000);
	assert_true(request(b, 1).cut_start);
	assert_false(request(b, 2).cut_start);
	bench_free(b);
}

/* An accepted UNIX socket looks like one that was there before: its first request is whole. */
static void first_on_a_unix_socket(void **state)
{
	struct bench *b = start();
	struct event e = {.ts_ns = 1002,
			  .kind = EVENT_SOCKET,
			  .socket = {.cookie = A, .family = AF_UNIX, .path = "/run/db"}};

	(void)state;
	bench_feed(b, &e);
	e = ev_io(2000, EVENT_RECV, A, SERVER, 50, 50);
	bench_feed(b, &e);
	send_it(b, 2010, A, SERVER, 50, 50, 0);
	finish(b, 3000);
	assert_int_equal(requests(b), 1);
	assert_false(request(b, 0).cut_start);
	bench_free(b);
}

/* A goodbye that a process reads before it exits is no request that the recording's end cut. */
static void goodbye(void **state)
{
	struct bench *b = start();
	struct event e = {.ts_ns = 1002,
			  .kind = EVENT_SOCKET,
			  .socket = {.cookie = A, .family = AF_UNIX, .path = "/run/db"}};

	(void)state;
	bench_feed(b, &e);
	e.socket.cookie = B;
	bench_feed(b, &e);
	recv_more(b, 2000, A, SERVER, 5, 5);
	recv_more(b, 2010, B, WORKER, 5, 5);
	e = ev_thread(2020, LIFE_EXIT, SERVER, "server");
	bench_feed(b, &e);
	finish(b, 3000);
	assert_int_equal(requests(b), 1);
	assert_int_equal(request(b, 1).first_thread, bench_thread(b, WORKER, 2000));
	assert_true(request(b, 1).cut_end);
	bench_free(b);
}

/* A request that somebody made and nobody answered: it lasted until the connection's end. */
static void no_answer(void **state)
{
	struct bench *b = start();

	(void)state;
	sock(b, A, ROLE_SERVED, 80, 5001);
	sock(b, B, ROLE_SERVED, 80, 5002);
	recv_text(b, 2000, A, SERVER, 50, 50, "GET /a HTTP/1.1");
	recv_more(b, 2000, B, WORKER, 50, 50);
	close_it(b, 2500, A, SERVER);
	close_it(b, 2500, B, WORKER);
	finish(b, 3000);
	assert_int_equal(requests(b), 1);
	assert_string_equal(group(b, 0), "GET /a");
	assert_int_equal(request(b, 0).start_ns, 1990);
	assert_int_equal(request(b, 0).end_ns, 2500);
	assert_int_equal(request(b, 0).last_thread, NO_INDEX);
	assert_false(request(b, 0).cut_end);
	bench_free(b);
}

/* What an event loop asks on a timer of its own, long after an answer, is for nobody's sake; what
 * it asks for a request that it has yet to answer is that one's. */
static void timer_of_an_event_loop(void **state)
{
	for (int answered = 0; answered < 2; answered++) {
		struct bench *b = start();
		struct event e;

		(void)state;
		sock(b, A, ROLE_SERVED, 80, 5001);
		sock(b, U, ROLE_CLIENT, 5003, 90);
		sock(b, U_PEER, ROLE_SERVED, 90, 5003);
		recv_text(b, 2000, A, SERVER, 50, 50, "GET /a HTTP/1.1");
		if (answered)
			send_it(b, 2010, A, SERVER, 50, 50, 200);
		e = ev_switch(2020, 0, SERVER, 0);
		e.sw.obj_kind = OBJ_EPOLL;
		bench_feed(b, &e);
		e = ev_switch(2030, 0, 0, SERVER);
		bench_feed(b, &e);
		send_it(b, 2040, U, SERVER, 50, 50, 0);
		recv_text(b, 2050, U_PEER, BACKEND, 50, 50, "GET /health HTTP/1.1");
		send_it(b, 2060, U_PEER, BACKEND, 50, 50, 200);
		if (!answered)
			send_it(b, 2070, A, SERVER, 50, 50, 200);
		finish(b, 3000);
		assert_int_equal(requests(b), 2);
		assert_int_equal(request(b, 0).parent, NO_INDEX);
		assert_int_equal(request(b, 1).parent, answered ? NO_INDEX : request(b, 0).id);
		bench_free(b);
	}
}

/* "100 Continue" is not the answer; 101 makes a stream that stays one request. */
static void continue_and_upgrade(void **state)
{
	struct bench *b = start();

	(void)state;
	sock(b, A, ROLE_SERVED, 80, 5001);
	recv_text(b, 2000, A, SERVER, 50, 50, "PUT /f HTTP/1.1");
	send_it(b, 2010, A, SERVER, 20, 20, 100);
	recv_more(b, 2020, A, SERVER, 500, 550);
	send_it(b, 2030, A, SERVER, 50, 70, 201);
	recv_text(b, 2040, A, SERVER, 50, 600, "GET /ws HTTP/1.1");
	send_it(b, 2050, A, SERVER, 50, 120, 101);
	recv_more(b, 2060, A, SERVER, 9, 609);
	send_it(b, 2070, A, SERVER, 9, 129, 0);
	finish(b, 3000);
	assert_int_equal(requests(b), 2);
	assert_int_equal(request(b, 0).status, 201);
	assert_int_equal(request(b, 0).end_ns, 2030);
	assert_true(request(b, 1).streaming);
	assert_int_equal(request(b, 1).end_ns, 2070);
	bench_free(b);
}

/* Answers with pauses of a second: one or two are slow work, three are a stream. */
static void streaming(void **state)
{
	(void)state;
	for (int pauses = 2; pauses < 4; pauses++) {
		struct bench *b = start();

		sock(b, A, ROLE_SERVED, 80, 5001);
		recv_text(b, 2000, A, SERVER, 50, 50, "GET /events HTTP/1.1");
		for (int i = 0; i <= pauses; i++)
			send_it(b, 3000 + i * 1100000000ll, A, SERVER, 1, (uint64_t)i + 1,
				i ? 0 : 200);
		finish(b, 9000000000);
		assert_int_equal(request(b, 0).streaming, pauses == 3);
		bench_free(b);
	}
}

/* Two operations of a thread at one instant: the second is put 1 ns later, the chain holds. */
static void same_instant(void **state)
{
	struct bench *b = start();

	(void)state;
	sock(b, A, ROLE_SERVED, 80, 5001);
	recv_text(b, 2000, A, SERVER, 50, 50, "GET / HTTP/1.1");
	send_it(b, 2000, A, SERVER, 50, 50, 200);
	finish(b, 3000);
	assert_int_equal(op(b, SERVER, 1).start_ns, 2001);
	assert_int_equal(op(b, SERVER, 1).prev_ns, 2000);
	assert_int_equal(request(b, 0).last_ns, 2001);
	bench_free(b);
}

/* Any operations on any sockets: nothing overlaps, ids are given once, chains lead to starts. */
static void random_operations(void **state)
{
	static const enum role roles[] = {ROLE_SERVED, ROLE_CLIENT, ROLE_UNKNOWN, ROLE_PAIR};

	(void)state;
	srandom(2);
	for (int round = 0; round < 200; round++) {
		struct bench *b = start();
		int64_t now = 2000;
		uint64_t seq = 0;

		for (unsigned i = 0; i < 8; i++)
			sock(b, i + 1, roles[i / 2], (uint16_t)(80 + i / 2 * 2 + i % 2),
			     (uint16_t)(80 + i / 2 * 2 + 1 - i % 2));
		for (int i = 0; i < 300; i++) {
			uint64_t cookie = (uint64_t)random() % 8 + 1;
			uint32_t tid = SERVER + (uint32_t)random() % 4;
			struct event e = ev_thread(now, LIFE_EXIT, tid, "x");

			now += random() % 3;
			seq += 10;
			switch (random() % 12) {
			case 0:
				close_it(b, now, cookie, tid);
				break;
			case 1:
				bench_feed(b, &e);
				break;
			case 2:
			case 3:
			case 4:
			case 5:
			case 6:
				send_it(b, now, cookie, tid, 10, seq, random() % 600);
				break;
			default:
				recv_text(b, now, cookie, tid, (uint32_t)random() % 3 * 10, seq,
					  random() % 2 ? "GET / HTTP/1.1" : NULL);
			}
		}
		finish(b, now + 10);
		for (size_t i = 1; i < b->out.n; i++) {
			struct request r;

			if (b->out.at[i].kind != KIND_REQUEST)
				continue;
			request_get(&b->out.at[i], &r);
			assert_true(r.id >= 0 && r.parent != r.id);
			assert_true(r.first_ns >= r.start_ns || r.cut_start);
		}
		bench_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keepalive),
		cmocka_unit_test(event_loop),
		cmocka_unit_test(handed_to_a_pool),
		cmocka_unit_test(sub_request),
		cmocka_unit_test(positions_wrap),
		cmocka_unit_test(exchanges_without_text),
		cmocka_unit_test(end_of_stream),
		cmocka_unit_test(cut_start_and_greeting),
		cmocka_unit_test(arrived_before),
		cmocka_unit_test(first_on_a_unix_socket),
		cmocka_unit_test(goodbye),
		cmocka_unit_test(no_answer),
		cmocka_unit_test(timer_of_an_event_loop),
		cmocka_unit_test(continue_and_upgrade),
		cmocka_unit_test(streaming),
		cmocka_unit_test(same_instant),
		cmocka_unit_test(random_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
