/* SPDX-License-Identifier: MIT
 *
 * Problem: a request is not one thread's line.  Its threads serve others in between, wait for its
 * data, hand it over.
 * Idea: its operations on sockets form a chain; between two of them one of these happened:
 *
 *	send on the same thread         the thread's line
 *	read, data were there before    the thread's line
 *	read, data arrived in between   three parts:
 *
 *	   op(k-1)       own end          arrived            op(k)
 *	   |  thread's line |  sender's     |  thread's line    |
 *	   |  for R         |  line, flight |  backlog, queue   |
 *
 *	   own end: the thread began to wait, or turned to another request; none, if the sender
 *	   worked for a request of its own, made for this one (a callee), which began before that
 *	operation on another thread     the new thread's line; when that leads to the one that handed
 *	                                the work over, it is the request's own again
 *
 * Before the first operation the data waited to be read since the request's start.
 * A part of an answer that an event loop sends later than the one before waited for the client to
 * read that; a first send to another service, for the connection.  An event loop that sends after serving others (its helper thread had the work meanwhile) is
 * followed through its last wakeup, if that came from a thread or a timer.
 */
#include <string.h>

#include "walk/trip.h"

enum { SCAN = 1000 }; /* absences or operations looked at for one question */

struct link { /* one step of the chain */
	const struct request *r;
	struct op op, prev;
	bool has_prev;
	int64_t lower_ns;
	struct job job;
	const struct frame *up;
	via via;
};

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void own_line(struct trip *t, struct link *l, int thread, int64_t from_ns)
{
	struct frame f;

	if (from_ns >= t->cursor_ns)
		return;
	f = trip_enter(t, l->up, thread, from_ns, l->via);
	f.job = &l->job;
	line_explain(t, &f);
}

static bool waits_for_more(struct walk *w, const struct absence *x)
{
	return walk_is_idle(w, x) || (x->runnable_ns > x->start_ns && x->obj_kind == OBJ_SOCKET &&
				      walk_call(w, x->syscall) != CALL_SEND);
}

/* When the thread stopped working for the request after from_ns: it waits, or it turns to another
 * request's socket; at the latest to_ns. */
static int64_t own_end(struct trip *t, const struct request *r, int thread, int64_t from_ns,
		       int64_t to_ns)
{
	struct absence x;
	struct op op;
	int64_t at_ns = from_ns + 1;

	for (int i = 0; i < SCAN && walk_op_after(t->w, thread, at_ns, &op); i++) {
		if (op.start_ns >= to_ns)
			break;
		if (op.request >= 0 && op.request != r->id) {
			to_ns = op.start_ns;
			break;
		}
		at_ns = op.start_ns + 1;
	}
	at_ns = from_ns;
	for (int i = 0; i < SCAN && walk_absence_after(t->w, thread, at_ns, &x); i++) {
		if (x.start_ns >= to_ns)
			break;
		if (waits_for_more(t->w, &x))
			return x.start_ns;
		at_ns = x.start_ns + 1;
	}
	return to_ns;
}

/* A line for what happens between the operations: the thread that waits for them. */
static struct frame waiting_frame(struct trip *t, struct link *l, int thread, int64_t from_ns)
{
	struct frame f = trip_enter(t, l->up, thread, from_ns, l->via);

	f.job = &l->job;
	return f;
}

/* It stood in a run queue when the answer came, often behind the callee itself, and had so little
 * left to do that on another CPU it would have been waiting for the answer by then. */
static bool would_have_waited(struct trip *t, const struct link *l, int thread, int64_t arrived_ns)
{
	struct absence x;

	return l->has_prev && walk_absence_before(t->w, thread, arrived_ns, &x) &&
	       x.end_ns > arrived_ns && x.runnable_ns == x.start_ns &&
	       l->op.start_ns - x.end_ns < arrived_ns - max64(x.start_ns, l->lower_ns);
}

static void read_later(struct trip *t, struct link *l, int64_t arrived_ns)
{
	int thread = l->has_prev ? l->prev.thread : l->op.thread;
	int64_t end_ns;
	struct frame f;

	l->job.arrived_ns = arrived_ns;
	own_line(t, l, l->op.thread, arrived_ns);
	l->job.arrived_ns = NO_TIME;
	end_ns = l->has_prev ? own_end(t, l->r, thread, l->lower_ns, t->cursor_ns) : l->lower_ns;
	/* It waited when the answer came, so what it did after the question held up nobody: the
	 * callee's own request is the path, from the question on. */
	if ((end_ns < t->cursor_ns || would_have_waited(t, l, thread, arrived_ns)) &&
	    release_is_call(t->w, &l->op))
		end_ns = l->lower_ns;
	f = waiting_frame(t, l, l->op.thread, end_ns);
	release_sender(t, &f, &l->op, end_ns);
	own_line(t, l, thread, l->lower_ns);
}

/* ------------------------------------------------------------------ an event loop's helper */

static bool has_foreign(struct trip *t, const struct link *l, int64_t from_ns, int64_t to_ns)
{
	struct op op;

	for (int i = 0; i < SCAN && walk_op_after(t->w, l->op.thread, from_ns, &op); i++) {
		if (op.start_ns >= to_ns)
			return false;
		if (op.request >= 0 && op.request != l->r->id)
			return true;
		from_ns = op.start_ns + 1;
	}
	return false;
}

/* The idle wait out of which the loop came to send. */
static bool last_idle(struct trip *t, const struct link *l, struct absence *ret)
{
	int64_t at_ns = min64(l->op.start_ns, t->cursor_ns);

	for (int i = 0; i < SCAN && walk_absence_before(t->w, l->op.thread, at_ns, ret); i++) {
		if (ret->start_ns <= l->lower_ns)
			return false;
		if (walk_is_idle(t->w, ret))
			return ret->end_ns <= at_ns;
		at_ns = ret->start_ns;
	}
	return false;
}

static bool helper_explain(struct trip *t, struct link *l)
{
	struct absence x;
	struct frame f, helper;
	struct op sent;
	int64_t end_ns;

	if (!has_foreign(t, l, l->lower_ns + 1, l->op.start_ns) || !last_idle(t, l, &x) ||
	    has_foreign(t, l, x.end_ns, l->op.start_ns))
		return false;
	if (x.by == BY_THREAD && x.waker > THREAD_IDLE && x.waker != l->op.thread &&
	    release_sent(t->w, x.waker, x.waking_ns, &sent))
		return false;
	if (x.by != BY_THREAD && x.by != BY_TIMER)
		return false;
	own_line(t, l, l->op.thread, x.waking_ns);
	end_ns = own_end(t, l->r, l->op.thread, l->lower_ns, t->cursor_ns);
	f = waiting_frame(t, l, l->op.thread, end_ns);
	if (x.by == BY_TIMER) {
		trip_sleep(t, &f, end_ns, true, x.syscall);
	} else {
		helper = trip_enter(t, &f, x.waker, end_ns, via_add(l->via, VIA_QUEUE));
		line_explain(t, &helper);
	}
	own_line(t, l, l->op.thread, l->lower_ns);
	return true;
}

/* ------------------------------------------------------------------ a send that had to wait */

/* Another part of the answer, after which the client had to read. */
static bool goes_on(const struct op *op, const struct op *prev)
{
	return op->served && prev->served && prev->dir == OP_SEND && prev->socket == op->socket;
}

/* Out of an idle wait that nothing but the socket it sends on can have ended: room for more of the
 * answer; a connection made, or room for more of a question. */
static bool waited_for_room(struct trip *t, const struct link *l, struct absence *ret)
{
	const struct op *op = &l->op;
	struct op first;

	if (!l->has_prev || op->dir != OP_SEND || l->prev.thread != op->thread ||
	    (op->served && !goes_on(op, &l->prev)))
		return false;
	if (!last_idle(t, l, ret) || has_foreign(t, l, ret->end_ns, op->start_ns))
		return false;
	if (ret->by == BY_THREAD)
		return op->served && walk_op_at(t->w, l->r->first_thread, l->r->first_ns, &first) &&
		       first.sender == ret->waker;
	return ret->by == BY_NET;
}

static bool room_explain(struct trip *t, struct link *l)
{
	struct absence x;
	struct frame f;
	int64_t end_ns;

	if (!waited_for_room(t, l, &x))
		return false;
	own_line(t, l, l->op.thread, x.waking_ns);
	end_ns = own_end(t, l->r, l->op.thread, l->lower_ns, t->cursor_ns);
	f = waiting_frame(t, l, l->op.thread, end_ns);
	trip_network(t, &f, end_ns, l->op.served ? CAUSE_REMOTE : CAUSE_PEER, l->op.socket,
		     x.syscall, l->op.served);
	own_line(t, l, l->op.thread, l->lower_ns);
	return true;
}

/* ------------------------------------------------------------------ the chain */

static void link_explain(struct trip *t, struct link *l)
{
	int64_t arrived_ns = l->op.dir == OP_SEND || l->op.arrived_ns == NO_TIME
				     ? l->lower_ns
				     : min64(l->op.arrived_ns, t->cursor_ns);

	if (arrived_ns > l->lower_ns) {
		read_later(t, l, arrived_ns);
		return;
	}
	if (!l->has_prev && l->op.dir != OP_SEND)
		l->job.arrived_ns = l->lower_ns;
	else if (l->op.dir == OP_SEND && l->job.own_thread < 0 &&
		 (room_explain(t, l) || helper_explain(t, l)))
		return;
	own_line(t, l, l->op.thread, l->lower_ns);
}

/* Links whose order is broken would go on for ever. */
static bool step_back(struct trip *t, struct link *l, int64_t floor_ns)
{
	l->has_prev = l->op.prev >= 0 && l->op.prev_ns < l->op.start_ns &&
		      walk_op_at(t->w, l->op.prev, l->op.prev_ns, &l->prev);
	l->lower_ns = l->has_prev ? max64(l->prev.start_ns, floor_ns) : floor_ns;
	l->job = (struct job){.request = l->r->id,
			      .via = l->via,
			      .own_thread = l->has_prev && l->prev.thread != l->op.thread
						    ? l->prev.thread
						    : NO_INDEX,
			      .arrived_ns = NO_TIME};
	return l->has_prev;
}

void chain_explain(struct trip *t, const struct frame *up, const struct request *r,
		   const struct op *last, int64_t from_ns, via v)
{
	int64_t floor_ns = max64(from_ns, r->start_ns);
	struct link l = {.r = r, .op = *last, .up = up, .via = v};
	bool more;

	l.job = (struct job){.request = r->id, .via = v, .own_thread = -1, .arrived_ns = NO_TIME};
	own_line(t, &l, last->thread, max64(floor_ns, last->start_ns));
	more = up->depth <= t->w->max_depth;
	while (more && t->cursor_ns > floor_ns && !trip_spent(t)) {
		more = step_back(t, &l, floor_ns);
		link_explain(t, &l);
		l.op = l.prev;
	}
	trip_unknown(t, up, floor_ns, -1);
}
