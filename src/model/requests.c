/* SPDX-License-Identifier: MIT
 *
 * Requests: whose work is it that a thread does?
 *
 * Problem: a thread serves many requests in turn, a request passes through many threads, and
 * nobody says which is which.  What can be seen are operations on sockets.
 *
 * Idea: follow them.  Each served socket has at most one open request R; a receive after an
 * answer (or the first) opens the next.  A thread works for R from an operation on a socket of
 * R's until one on a socket of another; a client socket is R's from a send made in such a slice.
 *
 *	served socket A   recv(R1)                        send(R1)   recv(R2) ...
 *	client socket U             send(R1)    recv(R1)
 *	served socket B                  recv(R3) . . .
 *	thread            |---R1----|-R1-|--R3--|---R1----|---R1-----|--R2--
 *
 * Each operation becomes an interval of its thread, until the thread's next one, with the id of
 * the request, the operation of the same request before it, and, for a receive, the peer's send
 * that covers its last byte, found by the position in the stream.  A send is recorded when it
 * returns, so it may come after the receive it caused: the receive stays open until its thread's
 * next operation, and the send looks there.
 *
 * Invariants:
 * I1  Operations of a thread have different starts (a later one at the same time moves by 1 ns).
 * I2  A request's operations form a chain by prev that ends at its first receive.
 * I3  A request is emitted once: at the next one on its socket, at the close, or at the end.
 *
 * A thread that answered R and then sleeps in epoll works for nobody: what an event loop asks of
 * others afterwards, on a timer of its own, is not for R's sake.
 *
 * Limits: pipelined HTTP requests count as one; streams that carry several requests at once
 * (HTTP/2) are exchanges, not requests; a thread that took work over without a socket operation
 * works for its former request until it has one.
 */
#include "model/state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SENDS_KEPT = 16, STREAMING_PAUSES = 3, GROUP_TEXT = 160 };
#define STREAMING_PAUSE_NS 1000000000 /* between sends of one answer */

struct sent {
	uint64_t from, to; /* stream positions */
	int thread;
	int64_t op_ns, request;
};

struct open_request {
	struct request r;
	bool answered; /* a send since the last receive */
	bool spoken;   /* it began with a line of a known protocol */
	int pauses;
	int chain_thread; /* its last operation */
	int64_t chain_ns;
};

/* A socket that is open, or whose peer is. */
struct sock {
	struct open_request *open; /* served sockets */
	int64_t owner;		   /* client sockets: request, NO_INDEX */
	bool there_before, used, http, upgraded, closed;
	int last_status;
	struct sent sent[SENDS_KEPT];
	unsigned n_sent;    /* counts up; the newest is at (n_sent - 1) % SENDS_KEPT */
	int waiting_thread; /* has a receive whose send is not known yet */
	int64_t waiting_ns; /* start of that operation */
	uint32_t name;	    /* of requests without text, made with ... */
	int name_thread;    /* ... the name of this thread */
};

static struct sock *sock_at(struct model *m, int socket)
{
	while (m->socks.n <= (size_t)socket)
		vec_push(&m->socks, NULL);
	if (!m->socks.at[socket]) {
		struct sock *s = calloc(1, sizeof(*s));

		if (!s)
			abort();
		s->owner = s->waiting_thread = s->name_thread = NO_INDEX;
		m->socks.at[socket] = s;
	}
	return m->socks.at[socket];
}

/* NULL if there is nothing to remember of it. */
static struct sock *sock_known(const struct model *m, int socket)
{
	return socket >= 0 && (size_t)socket < m->socks.n ? m->socks.at[socket] : NULL;
}

static struct open_request *request_open(const struct model *m, int64_t id)
{
	uint64_t p = 0;

	return id >= 0 && map_get(&m->requests, (uint64_t)id, &p)
		       ? (struct open_request *)(uintptr_t)p
		       : NULL;
}

/* ---- which send a receive was answered by ---- */

/* TCP positions wrap at 32 bits. */
static bool covers(const struct sent *s, uint64_t seq, bool tcp)
{
	if (tcp)
		return (uint32_t)(s->to - seq) < (uint32_t)(s->to - s->from);
	return s->from < seq && seq <= s->to;
}

static const struct sent *find_send(const struct sock *peer, uint64_t seq, bool tcp)
{
	unsigned kept = peer->n_sent < SENDS_KEPT ? peer->n_sent : SENDS_KEPT;

	for (unsigned i = 1; i <= kept; i++) {
		const struct sent *s = &peer->sent[(peer->n_sent - i) % SENDS_KEPT];

		if (covers(s, seq, tcp))
			return s;
	}
	return NULL;
}

/* The first receive of a request tells for whose sake it was made. */
static void set_parent(struct model *m, const struct op *op)
{
	struct open_request *r = op->served ? request_open(m, op->request) : NULL;

	if (r && op->prev == NO_INDEX && op->sender_request != op->request)
		r->r.parent = op->sender_request;
}

/* True if the send of the thread's open receive, which reached seq, is known now. */
static bool resolve(struct model *m, struct thread_state *t, uint64_t seq)
{
	const struct sockinfo *info = names_socket(m->names, t->op.socket);
	const struct sock *peer = sock_known(m, info->peer);
	const struct sent *s = peer ? find_send(peer, seq, info->family != AF_UNIX) : NULL;

	if (!s)
		return false;
	t->op.sender = s->thread;
	t->op.sender_ns = s->op_ns;
	t->op.sender_request = s->request;
	set_parent(m, &t->op);
	return true;
}

/* Its send was not recorded; who was on the CPU when it arrived was most likely inside it. */
static void guess_sender(struct model *m, struct thread_state *t)
{
	const struct sockinfo *info = names_socket(m->names, t->op.socket);
	int thread = names_newest(m->names, t->op_arrived_tid);

	if (info->peer == NO_INDEX || thread <= THREAD_IDLE || thread == t->op.thread ||
	    m->names->threads.at[thread].kernel)
		return;
	t->op.sender = thread;
	t->op.sender_request = model_thread_state(m, thread)->request;
	set_parent(m, &t->op);
}

/* The last chance.  A receive that met the end of the stream behind the data reached one more. */
static void settle_sender(struct model *m, struct thread_state *t)
{
	bool tcp = names_socket(m->names, t->op.socket)->family != AF_UNIX;

	if (resolve(m, t, t->op_seq) || (tcp && resolve(m, t, t->op_seq - 1)))
		return;
	guess_sender(m, t);
}

static void remember_send(struct model *m, struct sock *s, const struct op *op,
			  const struct event_io *io)
{
	const struct sockinfo *info = names_socket(m->names, op->socket);
	struct sock *peer = sock_known(m, info->peer);
	struct thread_state *reader;

	s->sent[s->n_sent++ % SENDS_KEPT] =
		(struct sent){io->seq - io->bytes, io->seq, op->thread, op->start_ns, op->request};
	if (!peer || peer->waiting_thread == NO_INDEX)
		return;
	reader = model_thread_state(m, peer->waiting_thread);
	if (!reader->has_op || reader->op.start_ns != peer->waiting_ns ||
	    resolve(m, reader, reader->op_seq))
		peer->waiting_thread = NO_INDEX;
}

/* ---- operations ---- */

static int end_op(struct model *m, struct thread_state *t, int64_t end_ns, struct err *err)
{
	struct interval iv;

	if (!t->has_op)
		return 0;
	if (t->op.dir == OP_RECV && t->op.sender == NO_INDEX)
		settle_sender(m, t);
	t->has_op = false;
	t->op.end_ns = max_ns(end_ns, t->op.start_ns + 1);
	t->ops_free_ns = t->op.end_ns;
	op_put(&t->op, &iv);
	return model_emit(m, &iv, err);
}

static void begin_op(struct thread_state *t, const struct event *e, int thread, int socket)
{
	const struct event_io *io = &e->io;
	bool recv = e->kind == EVENT_RECV;

	t->has_op = true;
	t->op_seq = io->seq;
	t->op_arrived_tid = recv ? io->arrived_tid : 0;
	t->op = (struct op){.start_ns = max_ns(e->ts_ns, t->ops_free_ns),
			    .thread = thread,
			    .dir = !recv       ? OP_SEND
				   : io->bytes ? OP_RECV
					       : OP_EOF,
			    .socket = socket,
			    .request = NO_INDEX,
			    .bytes = io->bytes,
			    .arrived_ns = NO_TIME,
			    .sender = NO_INDEX,
			    .sender_ns = NO_TIME,
			    .sender_request = NO_INDEX,
			    .prev = NO_INDEX,
			    .prev_ns = NO_TIME};
	if (recv && io->arrived_ns != NO_TIME)
		t->op.arrived_ns = min_ns(io->arrived_ns, t->op.start_ns);
}

/* The operation is one of id's: it joins the chain, and the thread works for id from here on. */
static void belong(struct model *m, struct thread_state *t, int64_t id)
{
	struct open_request *r = request_open(m, id);

	t->op.request = t->request = id;
	if (!r)
		return;
	t->op.prev = r->chain_thread;
	t->op.prev_ns = r->chain_ns;
	r->chain_thread = t->op.thread;
	r->chain_ns = t->op.start_ns;
}

/* ---- requests ---- */

static uint32_t plain_name(struct model *m, struct sock *s, const struct op *op)
{
	const struct sockinfo *info = names_socket(m->names, op->socket);
	const char *comm = names_comm(m->names, op->thread, op->start_ns);
	char text[GROUP_TEXT];

	if (s->name && s->name_thread == op->thread)
		return s->name;
	if (info->family == AF_UNIX)
		snprintf(text, sizeof(text), "unix %s %s", names_str(m->names, info->path), comm);
	else
		snprintf(text, sizeof(text), "tcp :%u %s", info->local_port, comm);
	s->name = names_intern(m->names, text);
	s->name_thread = op->thread;
	return s->name;
}

static uint32_t request_name(struct model *m, struct sock *s, const struct op *op,
			     const char *first_line)
{
	char text[GROUP_TEXT];

	if (first_line && request_group(first_line, text, sizeof(text))[0])
		return names_intern(m->names, text);
	return plain_name(m, s, op);
}

/* Did the first data of a connection come before the recording began?  Of UNIX sockets it is not
 * known which were there before. */
static bool nobody_saw(struct model *m, const struct sock *s, const struct thread_state *t)
{
	return s->there_before && !s->used &&
	       names_socket(m->names, t->op.socket)->family != AF_UNIX;
}

static void open_request(struct model *m, struct sock *s, struct thread_state *t,
			 const char *first_line)
{
	struct open_request *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->r = (struct request){.start_ns = t->op.start_ns,
				.id = m->next_request++,
				.name = request_name(m, s, &t->op, first_line),
				.socket = t->op.socket,
				.first_thread = t->op.thread,
				.first_ns = t->op.start_ns,
				.last_thread = NO_INDEX,
				.last_ns = NO_TIME,
				.parent = NO_INDEX};
	if (t->op.arrived_ns != NO_TIME)
		r->r.start_ns = max_ns(t->op.arrived_ns, m->start_ns);
	r->r.cut_start =
		t->op.arrived_ns == NO_TIME ? nobody_saw(m, s, t) : t->op.arrived_ns < m->start_ns;
	r->spoken = first_line != NULL;
	r->chain_thread = NO_INDEX;
	r->chain_ns = NO_TIME;
	s->open = r;
	s->upgraded = false;
	map_put(&m->requests, (uint64_t)r->r.id, (uintptr_t)r);
}

static int emit_request(struct model *m, struct request *r, struct err *err)
{
	struct interval iv;

	r->end_ns = max_ns(r->end_ns, r->start_ns + 1);
	r->slot = slots_take(&m->request_slots, r->start_ns, r->end_ns);
	request_put(r, &iv);
	return model_emit(m, &iv, err);
}

/* No more of it comes.  One that was never answered lasted until then; in no known protocol it is
 * none, but the client's goodbye. */
static int end_request(struct model *m, struct sock *s, int64_t at_ns, struct err *err)
{
	struct open_request *r = s->open;
	int rc = 0;

	if (!r)
		return 0;
	if (r->r.last_thread == NO_INDEX)
		r->r.end_ns = at_ns;
	if (r->r.last_thread != NO_INDEX || r->spoken)
		rc = emit_request(m, &r->r, err);
	map_del(&m->requests, (uint64_t)r->r.id, NULL);
	s->open = NULL;
	free(r);
	return rc;
}

/* Does a receive continue the open request?  Its body does; so does what follows a "100
 * Continue", and everything on a connection that became a stream. */
static bool continues(const struct sock *s, const char *first_line)
{
	if (!s->open)
		return false;
	return !s->open->answered || s->upgraded ||
	       (s->http && !first_line && s->last_status == 100);
}

static int served_recv(struct model *m, struct sock *s, struct thread_state *t,
		       const struct event_io *io, struct err *err)
{
	int rc = 0;

	s->http |= io->text != NULL;
	t->op.served = true;
	if (!continues(s, io->text)) {
		rc = end_request(m, s, t->op.start_ns, err);
		open_request(m, s, t, io->text);
	}
	if (!s->upgraded)
		s->open->answered = false;
	belong(m, t, s->open->r.id);
	return rc;
}

/* Answers that go on and on are no longer answers: their duration says nothing. */
static void note_pause(struct open_request *r, int64_t at_ns)
{
	if (r->answered && at_ns - r->r.end_ns > STREAMING_PAUSE_NS)
		r->r.streaming |= ++r->pauses >= STREAMING_PAUSES;
}

static void served_send(struct model *m, struct sock *s, struct thread_state *t,
			const struct event_io *io)
{
	struct open_request *r = s->open;

	if (!r && s->there_before) { /* its beginning was before the recording's */
		open_request(m, s, t, NULL);
		r = s->open;
		r->r.cut_start = true;
		r->r.start_ns = m->start_ns;
	}
	if (!r) { /* the server speaks first: a greeting, no answer */
		t->request = NO_INDEX;
		return;
	}
	t->op.served = true;
	belong(m, t, r->r.id);
	note_pause(r, t->op.start_ns);
	r->answered = true;
	r->r.last_thread = t->op.thread;
	r->r.last_ns = r->r.end_ns = t->op.start_ns;
	if (io->status) {
		s->last_status = io->status;
		s->upgraded |= io->status == 101;
		r->r.streaming |= io->status == 101;
		if (!r->r.status || r->r.status == 100)
			r->r.status = io->status;
	}
}

static void served_eof(struct model *m, struct sock *s, struct thread_state *t)
{
	bool unanswered = s->open && !s->open->answered;

	belong(m, t, unanswered ? s->open->r.id : NO_INDEX);
}

static int served_io(struct model *m, struct sock *s, struct thread_state *t,
		     const struct event_io *io, struct err *err)
{
	if (t->op.dir == OP_RECV)
		return served_recv(m, s, t, io, err);
	if (t->op.dir == OP_SEND)
		served_send(m, s, t, io);
	else
		served_eof(m, s, t);
	return 0;
}

/* A socket pair hands the work of whoever sent to whoever receives. */
static void pair_io(struct model *m, struct sock *s, struct thread_state *t)
{
	const struct sock *peer = sock_known(m, names_socket(m->names, t->op.socket)->peer);

	if (t->op.dir == OP_SEND)
		s->owner = t->request;
	else if (peer && request_open(m, peer->owner))
		t->request = peer->owner;
	belong(m, t, t->request);
}

static void client_io(struct model *m, struct sock *s, struct thread_state *t)
{
	if (t->op.dir == OP_SEND)
		s->owner = t->request;
	belong(m, t, s->owner);
}

/* ---- events ---- */

int requests_socket(struct model *m, const struct event *e)
{
	const struct event_socket *so = &e->socket;
	int socket = names_socket_index(m->names, so->cookie);
	bool is_new = socket >= 0 && !sock_known(m, socket);

	if (socket < 0)
		return 0;
	if (is_new && so->role != ROLE_LISTEN)
		sock_at(m, socket)->there_before = so->role == ROLE_UNKNOWN;
	roles_socket(m, socket, so);
	return 0;
}

static int classify(struct model *m, struct sock *s, struct thread_state *t,
		    const struct event_io *io, struct err *err)
{
	enum role role = roles_of(m, t->op.socket);

	if (role == ROLE_SERVED)
		return served_io(m, s, t, io, err);
	if (role == ROLE_PAIR)
		pair_io(m, s, t);
	else
		client_io(m, s, t);
	return 0;
}

/* Looks for the send now, and if it is not there yet, lets it look for us. */
static void await_send(struct model *m, struct sock *s, struct thread_state *t)
{
	if (resolve(m, t, t->op_seq))
		return;
	s->waiting_thread = t->op.thread;
	s->waiting_ns = t->op.start_ns;
}

int requests_io(struct model *m, const struct event *e, struct err *err)
{
	int socket = names_socket_index(m->names, e->io.cookie);
	int thread = model_thread(m, e->io.tid, e->io.pid), rc;
	struct thread_state *t;
	struct sock *s;

	if (socket < 0 || thread <= THREAD_IDLE)
		return 0;
	sched_seen(m, e, thread);
	t = model_thread_state(m, thread);
	s = sock_at(m, socket);
	rc = end_op(m, t, e->ts_ns, err);
	if (rc)
		return rc;
	begin_op(t, e, thread, socket);
	rc = classify(m, s, t, &e->io, err);
	s->used = true;
	if (t->op.dir == OP_SEND)
		remember_send(m, s, &t->op, &e->io);
	else if (t->op.dir == OP_RECV)
		await_send(m, s, t);
	return rc;
}

static void sock_free(struct model *m, int socket)
{
	free(m->socks.at[socket]->open);
	free(m->socks.at[socket]);
	m->socks.at[socket] = NULL;
}

/* What was sent is kept until the peer, who may still read it, is closed too. */
int requests_close(struct model *m, const struct event *e, struct err *err)
{
	uint64_t socket;
	struct sock *s, *peer;
	int peer_index, rc;

	if (!map_get(&m->names->socket_by_cookie, e->io.cookie, &socket))
		return 0;
	s = sock_known(m, (int)socket);
	if (!s)
		return 0;
	rc = end_request(m, s, e->ts_ns, err);
	roles_forget(m, (int)socket);
	s->closed = true;
	peer_index = names_socket(m->names, (int)socket)->peer;
	peer = sock_known(m, peer_index);
	if (peer && !peer->closed)
		return rc;
	sock_free(m, (int)socket);
	if (peer) {
		if (!rc)
			rc = end_request(m, peer, e->ts_ns,
					 err); /* one that came after its close */
		sock_free(m, peer_index);
	}
	return rc;
}

void requests_idle(struct model *m, int thread)
{
	struct thread_state *t = model_thread_state(m, thread);
	const struct open_request *r = request_open(m, t->request);

	if (!r || r->answered)
		t->request = NO_INDEX;
}

int requests_thread_ends(struct model *m, int thread, int64_t at_ns, struct err *err)
{
	struct thread_state *t = (size_t)thread < m->threads.n ? m->threads.at[thread] : NULL;

	if (!t)
		return 0;
	t->request = NO_INDEX;
	return end_op(m, t, at_ns, err);
}

/* Who has exited answers no more.  Not every close is recorded: not those of UNIX sockets. */
static bool process_has_gone(const struct model *m, int thread)
{
	const struct thread *t = names_thread(m->names, thread);
	const struct thread *leader;

	if (!t || t->end_ns == NO_TIME)
		return false;
	leader = names_thread(m->names, names_leader(m->names, thread, t->first_ns));
	return !leader || leader->end_ns != NO_TIME;
}

/* The recording ends in the middle of it, or maybe only before the next one. */
static int cut_request(struct model *m, struct sock *s, int64_t end_ns, struct err *err)
{
	struct request *r = &s->open->r;

	if (r->last_thread == NO_INDEX && process_has_gone(m, s->open->chain_thread))
		return 0;
	if (!s->open->answered) {
		r->cut_end = true;
		r->end_ns = end_ns;
		return emit_request(m, r, err);
	}
	return emit_request(m, r, err);
}

int requests_finish(struct model *m, int64_t end_ns, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < m->threads.n && !rc; i++)
		if (m->threads.at[i])
			rc = end_op(m, m->threads.at[i], end_ns, err);
	for (size_t i = 0; i < m->socks.n && !rc; i++)
		if (m->socks.at[i] && m->socks.at[i]->open)
			rc = cut_request(m, m->socks.at[i], end_ns, err);
	return rc;
}

void requests_free(struct model *m)
{
	for (size_t i = 0; i < m->socks.n; i++) {
		if (m->socks.at[i])
			free(m->socks.at[i]->open);
		free(m->socks.at[i]);
	}
	vec_fini(&m->socks);
	map_fini(&m->requests);
	map_fini(&m->listeners);
	map_fini(&m->by_ends);
}
