/* SPDX-License-Identifier: MIT
 *
 * Problem: a thread was blocked.  What released it, and what was that one doing meanwhile?
 *
 *	released by                 the wait becomes
 *	data it reads next          the sender's line, or its request's chain; network
 *	a thread                    that thread's line, `via` the kind of release; if it is the
 *	                            client of a socket served here, network
 *	a block request             disk, before its submission the submitter's line
 *	a timer                     sleep; disk/throttled if it could not be interrupted
 *	its creation                its maker's line
 *	nothing known               lock/unresolved, the child that ended then, network, unknown
 *	nothing yet                 by its call: sleep, lock, child, network, else unknown
 *
 * Data come first: who is on the CPU when they arrive is often not who sent them.  A stream
 * socket also wakes a sleeper that then sleeps again in the same call (space became free); those
 * sleeps are one wait:
 *
 *	T   |-- blocked --|x|--- blocked ---|   recv returns
 *	                   ^ no release     ^ data arrived
 *
 * Limits: a futex release does not tell a lock from a condition variable; both are `lock`.
 */
#include <string.h>

#include "walk/trip.h"

static const int64_t near_ns = 100000;	     /* from an arrival to the wake it caused */
static const int64_t clock_ns = 20000;	     /* the same, should the order be reversed */
static const int64_t blip_ns = 50000;	     /* awake between two sleeps of one call */
static const int64_t send_ends_ns = 1000000; /* from the wake inside a send to its return */
static const int64_t exit_ns = 1000000;	     /* from waking the parent to the end; from birth to
						its record */

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int socket_of(const struct walk *w, uint64_t cookie)
{
	uint64_t socket;

	return cookie && map_get(&w->socket_by_cookie, cookie, &socket) ? (int)socket - 1
									: NO_INDEX;
}

static const struct sockinfo *info_of(const struct walk *w, int socket)
{
	return socket < 0 ? NULL : names_socket(w->names, socket);
}

bool release_sent(struct walk *w, int thread, int64_t at_ns, struct op *ret)
{
	return walk_op_after(w, thread, at_ns, ret) && ret->dir == OP_SEND &&
	       ret->start_ns - at_ns <= send_ends_ns;
}

/* ------------------------------------------------------------------ by data */

static bool waits_for_data(struct walk *w, const struct absence *x)
{
	enum call call = walk_call(w, x->syscall);

	if (call == CALL_SEND || call == CALL_FUTEX || call == CALL_SLEEP || call == CALL_CHILD)
		return false;
	return x->obj_kind == OBJ_SOCKET || x->obj_kind == OBJ_EPOLL || call == CALL_POLL;
}

/* The read that x waited for: the thread's next operation, if its data came inside of x and the
 * thread woke for them. */
static bool data_of(struct trip *t, const struct absence *x, struct op *ret)
{
	const struct sockinfo *s;
	bool same_socket;

	if (!waits_for_data(t->w, x) || !walk_op_after(t->w, x->thread, x->end_ns, ret) ||
	    ret->dir == OP_SEND || ret->arrived_ns == NO_TIME)
		return false;
	if (ret->arrived_ns < x->start_ns || ret->arrived_ns > x->waking_ns + clock_ns)
		return false;
	s = info_of(t->w, ret->socket);
	same_socket = s && s->cookie &&
		      (s->cookie == x->obj || (x->by == BY_NET && s->cookie == x->waker_obj));
	if (x->obj_kind == OBJ_SOCKET && x->obj && s && s->cookie != x->obj)
		return false;
	return same_socket || x->waking_ns - ret->arrived_ns <= near_ns;
}

/* The start of the first of the sleeps that were one wait on the same socket. */
static int64_t wait_began(struct walk *w, const struct absence *x)
{
	int64_t began_ns = x->start_ns;
	struct absence before;

	while (x->obj_kind == OBJ_SOCKET && walk_absence_before(w, x->thread, began_ns, &before) &&
	       began_ns - before.end_ns <= blip_ns && before.why == WHY_BLOCKED &&
	       before.syscall == x->syscall && before.obj_kind == x->obj_kind &&
	       before.obj == x->obj) {
		struct op op;

		if (walk_op_after(w, x->thread, before.end_ns, &op) && op.start_ns < began_ns)
			break;
		began_ns = before.start_ns;
	}
	return began_ns;
}

static enum via_word peer_word(const struct walk *w, int a, int b)
{
	return walk_same_process(w, a, b) ? VIA_SOCKET : VIA_CALLEE;
}

static bool find_call(struct walk *w, const struct op *op, struct request *ret_callee,
		      struct op *ret_sent)
{
	return op->sender_request >= 0 && op->request >= 0 &&
	       !walk_find_request(w, op->sender_request, ret_callee) &&
	       ret_callee->parent == op->request &&
	       walk_op_at(w, op->sender, op->sender_ns, ret_sent);
}

bool release_is_call(struct walk *w, const struct op *op)
{
	struct request callee;
	struct op sent;

	return find_call(w, op, &callee, &sent);
}

/* The callee's own chain; before it began, its request was on the way. */
static bool callee_explain(struct trip *t, const struct frame *f, const struct op *op,
			   int64_t from_ns)
{
	struct request callee;
	struct op sent;

	if (!find_call(t->w, op, &callee, &sent))
		return false;
	chain_explain(t, f, &callee, &sent, from_ns, via_add(f->via, VIA_CALLEE));
	trip_network(t, f, from_ns, CAUSE_FLIGHT, op->socket, -1, true);
	return true;
}

void release_sender(struct trip *t, const struct frame *f, const struct op *op, int64_t from_ns)
{
	struct frame sender;

	if (from_ns >= t->cursor_ns)
		return;
	if (op->served || op->sender < 0) {
		trip_network(t, f, from_ns, op->served ? CAUSE_REMOTE : CAUSE_PEER, op->socket, -1,
			     true);
		return;
	}
	if (op->sender_ns != NO_TIME && op->sender_ns < t->cursor_ns)
		trip_network(t, f, max64(from_ns, op->sender_ns), CAUSE_FLIGHT, op->socket, -1,
			     true);
	if (callee_explain(t, f, op, from_ns))
		return;
	sender = trip_enter(t, f, op->sender, from_ns,
			    via_add(f->via, peer_word(t->w, f->thread, op->sender)));
	line_explain(t, &sender);
}

/* ------------------------------------------------------------------ by a thread */

/* Is thread in a process that the waiting one started, itself or through others? */
static bool descends(struct walk *w, int thread, int from)
{
	for (int i = 0; i < 8 && thread > THREAD_IDLE; i++) {
		const struct thread *x = names_thread(w->names, thread);

		if (walk_same_process(w, thread, from))
			return i > 0;
		thread = x ? names_leader(w->names, thread, x->first_ns) : NO_INDEX;
		x = names_thread(w->names, thread);
		thread = x ? x->parent : NO_INDEX;
	}
	return false;
}

static enum via_word word_of(struct walk *w, const struct absence *x)
{
	enum call call = walk_call(w, x->syscall);
	struct op op;

	if (call == CALL_FUTEX || x->obj_kind == OBJ_FUTEX)
		return VIA_LOCK;
	if (call == CALL_CHILD || x->obj_kind == OBJ_CHILD)
		return VIA_CHILD;
	if (x->obj_kind == OBJ_SOCKET && walk_call(w, x->waker_syscall) != CALL_KILL)
		return peer_word(w, x->thread, x->waker);
	/* Whatever it is woken by, it waits for what it started: a program's output. */
	if (!walk_is_kernel(w, x->waker) && descends(w, x->waker, x->thread))
		return VIA_CHILD;
	if (walk_call(w, x->waker_syscall) == CALL_KILL)
		return VIA_SIGNAL;
	if (x->obj_kind == OBJ_PIPE)
		return VIA_PIPE;
	if (walk_is_kernel(w, x->waker))
		return VIA_QUEUE;
	if (release_sent(w, x->waker, x->waking_ns, &op))
		return peer_word(w, x->thread, x->waker);
	/* A lock inside the kernel, if it could not be interrupted. */
	return x->state == TASK_DISK ? VIA_LOCK : VIA_QUEUE;
}

static void by_thread(struct trip *t, const struct frame *f, const struct absence *x,
		      int64_t from_ns, enum via_word word)
{
	struct frame waker = trip_enter(t, f, x->waker, from_ns, via_add(f->via, word));

	if (f->job && x->waker == f->job->own_thread) {
		/* It handed the work over: up to then it was the request's own. */
		waker.job = f->job;
		waker.via = f->job->via;
	}
	line_explain(t, &waker);
}

/* A new thread goes on with the work of the one that made it. */
static void by_maker(struct trip *t, const struct frame *f, const struct absence *x,
		     int64_t from_ns)
{
	struct frame maker = trip_enter(t, f, x->waker, from_ns, f->via);

	maker.job = f->job;
	line_explain(t, &maker);
}

/* ------------------------------------------------------------------ by anything else */

static void by_block(struct trip *t, const struct frame *f, const struct absence *x,
		     int64_t from_ns)
{
	struct culprit device = {.kind = CULPRIT_DEVICE, .host = t->w->host, .request = -1};
	struct block block;
	struct frame submitter;

	if (blame_find_block(t->w->blame, x->waker_obj, from_ns, t->cursor_ns, &block)) {
		trip_emit(t, f, from_ns, STATE_DISK, CAUSE_SERVICE, &device, x->syscall, false);
		return;
	}
	if (block.start_ns < t->cursor_ns)
		trip_disk(t, f, &block, max64(from_ns, block.start_ns), x->syscall);
	if (t->cursor_ns <= from_ns)
		return;
	if (block.thread >= 0 && block.thread != f->thread) {
		submitter = trip_enter(t, f, block.thread, from_ns, via_add(f->via, VIA_QUEUE));
		line_explain(t, &submitter);
	} else {
		trip_disk(t, f, &block, from_ns, x->syscall);
	}
}

static void by_timer(struct trip *t, const struct frame *f, const struct absence *x,
		     int64_t from_ns)
{
	enum call call = walk_call(t->w, x->syscall);
	struct culprit limits = {.host = t->w->host, .request = -1, .name = "I/O or memory limit"};
	int64_t owner;

	if (x->state == TASK_DISK || x->state == TASK_IOWAIT) {
		trip_emit(t, f, from_ns, STATE_DISK, CAUSE_THROTTLED, &limits, x->syscall, true);
		return;
	}
	if (call != CALL_OTHER && call != CALL_SLEEP) {
		trip_sleep(t, f, from_ns, true, x->syscall);
		return;
	}
	/* A sleep is its own choice: made for another request, this one waited for that one. */
	owner = f->job ? line_owner(t, f->job, f->thread, x->start_ns) : NO_INDEX;
	if (line_is_foreign(t, f, owner))
		trip_backlog(t, f, from_ns, owner, true);
	else
		trip_sleep(t, f, from_ns, false, x->syscall);
}

static enum cause end_of(const struct walk *w, int socket)
{
	const struct sockinfo *s = info_of(w, socket);

	return s && (s->role == ROLE_SERVED || s->role == ROLE_LISTEN) ? CAUSE_REMOTE : CAUSE_PEER;
}

/* Asleep on a socket that it serves, and not woken from inside: it waits for its client, to ask or
 * to read the answer.  A client is no callee. */
static bool by_client(const struct walk *w, const struct absence *x)
{
	return x->obj_kind == OBJ_SOCKET && x->obj && !walk_is_kernel(w, x->waker) &&
	       !walk_same_process(w, x->thread, x->waker) &&
	       walk_call(w, x->waker_syscall) != CALL_KILL &&
	       end_of(w, socket_of(w, x->obj)) == CAUSE_REMOTE;
}

/* A socket became readable or writable: the one it sleeps on; one of many, the last that became
 * readable before.  On loopback that happens inside the peer's own call. */
static void by_net(struct trip *t, const struct frame *f, const struct absence *x, int64_t from_ns)
{
	int socket = socket_of(t->w, x->obj_kind == OBJ_SOCKET && x->obj ? x->obj : x->waker_obj);
	const struct sockinfo *s = info_of(t->w, socket);
	struct op op;

	if (s && s->peer >= 0 && x->waker > THREAD_IDLE && x->waker != f->thread &&
	    release_sent(t->w, x->waker, x->waking_ns, &op) && op.socket == s->peer)
		by_thread(t, f, x, from_ns, peer_word(t->w, f->thread, x->waker));
	else
		trip_network(t, f, from_ns, end_of(t->w, socket), socket, x->syscall, socket >= 0);
}

/* The child whose exit, or whose leaving its parent's memory (vfork), ended x: by who was alive.
 * NO_INDEX: none, or the wait goes on. */
static int child_of(struct walk *w, const struct absence *x)
{
	bool waits_for_exit = x->obj_kind == OBJ_CHILD;
	int64_t best_ns = NO_TIME;
	int best = NO_INDEX;

	for (int i = 1; !x->open && i < names_threads(w->names); i++) {
		const struct thread *child = names_thread(w->names, i);
		int64_t at_ns = waits_for_exit ? child->end_ns : child->first_ns;

		if (child->tid != child->pid || at_ns == NO_TIME || at_ns <= best_ns ||
		    child->parent < 0 || !walk_same_process(w, child->parent, x->thread))
			continue;
		if (waits_for_exit ? at_ns < x->start_ns || at_ns > x->waking_ns + exit_ns
				   : at_ns < x->start_ns - exit_ns || at_ns > x->waking_ns)
			continue;
		best_ns = at_ns;
		best = i;
	}
	return best;
}

static void by_child(struct trip *t, const struct frame *f, const struct absence *x,
		     int64_t from_ns)
{
	int thread = child_of(t->w, x);
	struct frame child;

	if (thread < 0) {
		trip_emit(t, f, from_ns, STATE_CHILD, CAUSE_UNRESOLVED, NULL, x->syscall, false);
		return;
	}
	child = trip_enter(t, f, thread, from_ns, via_add(f->via, VIA_CHILD));
	child.certain = false;
	line_explain(t, &child);
}

/* What came in between would be seen: it asked, and has no answer yet. */
static bool has_asked(struct walk *w, const struct absence *x, struct op *ret)
{
	return walk_call(w, x->syscall) != CALL_ACCEPT &&
	       walk_op_before(w, x->thread, x->end_ns, ret) && ret->dir == OP_SEND && !ret->served;
}

/* It waits to this moment, ready for whatever comes: an answer if it asked for one, else work. */
static void by_nobody_yet(struct trip *t, const struct frame *f, const struct absence *x,
			  int64_t from_ns)
{
	struct op asked;

	if (has_asked(t->w, x, &asked))
		trip_network(t, f, from_ns, CAUSE_PEER, asked.socket, x->syscall, false);
	else if (f->job)
		trip_unknown(t, f, from_ns, x->syscall);
	else
		trip_anybody(t, f, from_ns, x->syscall, false);
}

/* Poll and select are for anything; epoll and accept are a server's. */
static bool serves(struct walk *w, const struct absence *x)
{
	struct op op;

	return walk_call(w, x->syscall) == CALL_ACCEPT || x->obj_kind == OBJ_EPOLL ||
	       (walk_call(w, x->syscall) == CALL_POLL &&
		walk_op_before(w, x->thread, x->end_ns, &op));
}

/* Nothing is known but what it was doing. */
static void unresolved(struct trip *t, const struct frame *f, const struct absence *x,
		       int64_t from_ns)
{
	enum call call = walk_call(t->w, x->syscall);
	struct culprit device = {.kind = CULPRIT_DEVICE, .host = t->w->host, .request = -1};
	struct culprit limit = {.kind = CULPRIT_TIMER,
				.host = t->w->host,
				.request = -1,
				.name = syscall_name(x->syscall)};

	if (call == CALL_SLEEP || (x->open && call == CALL_OTHER && x->state == TASK_IDLE))
		trip_sleep(t, f, from_ns, false, x->syscall);
	else if (call == CALL_FUTEX || x->obj_kind == OBJ_FUTEX)
		trip_emit(t, f, from_ns, STATE_LOCK, CAUSE_UNRESOLVED, NULL, x->syscall, false);
	else if (call == CALL_CHILD || x->obj_kind == OBJ_CHILD)
		by_child(t, f, x, from_ns);
	else if (x->open && serves(t->w, x))
		by_nobody_yet(t, f, x, from_ns);
	else if (x->open && call == CALL_POLL)
		trip_emit(t, f, from_ns, STATE_SLEEP, CAUSE_TIMEOUT, &limit, x->syscall, false);
	else if (x->obj_kind == OBJ_SOCKET && socket_of(t->w, x->obj) >= 0)
		trip_network(t, f, from_ns, end_of(t->w, socket_of(t->w, x->obj)),
			     socket_of(t->w, x->obj), x->syscall, false);
	else if (x->state == TASK_IOWAIT)
		trip_emit(t, f, from_ns, STATE_DISK, CAUSE_SERVICE, &device, x->syscall, false);
	else
		trip_unknown(t, f, from_ns, x->syscall);
}

/* ------------------------------------------------------------------ the wait */

/* The thread slept until this request's data came: what is left is the wakeup. */
static bool woken_by_own_data(const struct frame *f, const struct absence *x)
{
	return f->job && f->job->arrived_ns != NO_TIME && f->job->arrived_ns >= x->start_ns &&
	       x->waking_ns - f->job->arrived_ns <= near_ns;
}

static void by_data(struct trip *t, const struct frame *f, const struct absence *x,
		    const struct op *op, int64_t from_ns)
{
	/* Woken long after the first byte: it waited for more of them. */
	bool more = x->waking_ns - op->arrived_ns > near_ns;
	int64_t arrived_ns = max64(from_ns, min64(op->arrived_ns, t->cursor_ns));

	if (!more)
		trip_wakeup(t, f, arrived_ns, x->syscall);
	release_sender(t, f, op, max64(f->from_ns, min64(from_ns, wait_began(t->w, x))));
}

static bool has_waker(const struct frame *f, const struct absence *x)
{
	return x->waker > THREAD_IDLE && x->waker != f->thread;
}

/* False if that is not known. */
static bool by_what(struct trip *t, const struct frame *f, const struct absence *x, int64_t from_ns)
{
	switch (x->by) {
	case BY_THREAD:
		if (has_waker(f, x) && by_client(t->w, x))
			trip_network(t, f, from_ns, CAUSE_REMOTE, socket_of(t->w, x->obj),
				     x->syscall, true);
		else if (has_waker(f, x))
			by_thread(t, f, x, from_ns, word_of(t->w, x));
		return has_waker(f, x);
	case BY_NEW:
		if (has_waker(f, x))
			by_maker(t, f, x, from_ns);
		return has_waker(f, x);
	case BY_BLOCK:
		by_block(t, f, x, from_ns);
		return true;
	case BY_TIMER:
		by_timer(t, f, x, from_ns);
		return true;
	case BY_NET:
		by_net(t, f, x, from_ns);
		return true;
	default:
		return false;
	}
}

void release_explain(struct trip *t, const struct frame *f, const struct absence *x,
		     int64_t from_ns)
{
	struct op op;

	if (woken_by_own_data(f, x))
		trip_wakeup(t, f, from_ns, x->syscall);
	else if (!x->open && data_of(t, x, &op))
		by_data(t, f, x, &op, from_ns);
	else if (x->open || x->state == TASK_STOPPED || !by_what(t, f, x, from_ns))
		unresolved(t, f, x, from_ns);
}
