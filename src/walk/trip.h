/* SPDX-License-Identifier: MIT
 *
 * trip.h - what the files of the walk share: one trip backward along one path.
 *
 * The trip's cursor is where it stands; everything from there to the path's end is explained.
 * Each function here explains [from, cursor) and leaves the cursor at from: what is emitted always
 * ends at the cursor, so a path tiles by construction.
 */
#ifndef WALK_TRIP_H
#define WALK_TRIP_H
#include "base/map.h"
#include "base/vec.h"
#include "blame/blame.h"
#include "walk/walk.h"

enum call { /* what kind of waiting a system call does */
	    CALL_OTHER,
	    CALL_POLL,
	    CALL_ACCEPT,
	    CALL_READ,
	    CALL_SEND,
	    CALL_FUTEX,
	    CALL_SLEEP,
	    CALL_CHILD,
	    CALL_KILL,
};

struct request_place {
	uint32_t track;
	int64_t start_ns;
};

struct walk {
	struct history *h;
	const struct names *names;
	struct blame *blame;
	const char *host; /* owned */
	int max_depth;
	int64_t max_segments;
	uint8_t call[1024];			   /* enum call by number */
	struct map socket_by_cookie;		   /* cookie -> index + 1 */
	struct VEC(struct request_place) requests; /* by id */
	bool requests_known;
	int broken; /* the history could not be read: a negative errno */
};

struct trip {
	struct walk *w;
	struct arena *a;
	struct path *p;
	int64_t cursor_ns;
	int64_t steps; /* left before it gives up */
};

/* The request on whose behalf the threads of a frame work. */
struct job {
	int64_t request;
	via via;	    /* how the path came to this request */
	int own_thread;	    /* the thread that handed the work over, NO_INDEX */
	int64_t arrived_ns; /* since then its data wait to be read, or NO_TIME */
};

/* One thread's line of the path, and the lines that led to it. */
struct frame {
	const struct frame *up;
	int thread;
	int victim; /* whose unit is "own": the thread, or the user thread it works for */
	via via;
	bool certain;
	int depth;
	int64_t from_ns, to_ns; /* of no length until line_explain: then it bars its thread below */
	const struct job *job;	/* NULL: the thread is not the request's own */
};

/* ---- walk.c */

/* What is so on a thread's tracks; false if there is none. */
bool walk_absence_before(struct walk *w, int thread, int64_t at_ns, struct absence *ret);
bool walk_absence_after(struct walk *w, int thread, int64_t at_ns, struct absence *ret);
bool walk_op_before(struct walk *w, int thread, int64_t at_ns, struct op *ret);
bool walk_op_after(struct walk *w, int thread, int64_t at_ns, struct op *ret);
/* The operation that starts exactly then. */
bool walk_op_at(struct walk *w, int thread, int64_t at_ns, struct op *ret);
enum call walk_call(const struct walk *w, int syscall);
bool walk_is_kernel(const struct walk *w, int thread);
bool walk_same_process(const struct walk *w, int a, int b);
/* A wait in which a thread is free for whatever comes: poll and its kind, accept. */
bool walk_is_idle(const struct walk *w, const struct absence *x);

/* ---- emit.c: [from, cursor) is so */

/* A new line below up: its thread, victim, certainty, depth. */
struct frame trip_enter(const struct trip *t, const struct frame *up, int thread, int64_t from_ns,
			via v);
/* syscall: -1 none. */
void trip_emit(struct trip *t, const struct frame *f, int64_t from_ns, enum state state,
	       enum cause cause, const struct culprit *c, int syscall, bool certain);
/* unknown, or lost where records were. */
void trip_unknown(struct trip *t, const struct frame *f, int64_t from_ns, int syscall);
/* Runnable, nothing in the way: a wakeup on its way. */
void trip_wakeup(struct trip *t, const struct frame *f, int64_t from_ns, int syscall);
/* A server waits for its next request, whose sender is not known yet. */
void trip_anybody(struct trip *t, const struct frame *f, int64_t from_ns, int syscall,
		  bool certain);
void trip_network(struct trip *t, const struct frame *f, int64_t from_ns, enum cause cause,
		  int socket, int syscall, bool certain);
void trip_sleep(struct trip *t, const struct frame *f, int64_t from_ns, bool timeout, int syscall);
/* The thread worked for another request. */
void trip_backlog(struct trip *t, const struct frame *f, int64_t from_ns, int64_t request,
		  bool certain);
/* The thread ran. */
void trip_running(struct trip *t, const struct frame *f, int64_t from_ns, bool certain);
/* A wait divided by blame. */
void trip_runqueue(struct trip *t, const struct frame *f, const struct absence *x, int64_t from_ns);
void trip_disk(struct trip *t, const struct frame *f, const struct block *x, int64_t from_ns,
	       int syscall);
/* The work limit is reached: what is left becomes unknown. */
bool trip_spent(struct trip *t);

/* ---- line.c: a thread */
void line_explain(struct trip *t, struct frame *f);
/* For which request thread worked at at_ns, as a part of job's path (or NULL); NO_INDEX: none or
 * not known. */
int64_t line_owner(struct trip *t, const struct job *job, int thread, int64_t at_ns);
bool line_is_foreign(struct trip *t, const struct frame *f, int64_t owner);

/* ---- release.c: the blocked part of an absence */
void release_explain(struct trip *t, const struct frame *f, const struct absence *x,
		     int64_t from_ns);
/* Blocked on a socket until the data of op came: the cursor is at their arrival. */
void release_sender(struct trip *t, const struct frame *f, const struct op *op, int64_t from_ns);
/* Did the sender of op's data work for a request of its own, made for op's? */
bool release_is_call(struct walk *w, const struct op *op);
/* Did the thread send on a socket right after at_ns?  -> the operation */
bool release_sent(struct walk *w, int thread, int64_t at_ns, struct op *ret);

/* ---- chain.c: a request's operations, from last backward; the cursor ends at from_ns or the
 * request's start, whichever is later. */
void chain_explain(struct trip *t, const struct frame *up, const struct request *r,
		   const struct op *last, int64_t from_ns, via v);

#endif
