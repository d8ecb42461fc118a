/* SPDX-License-Identifier: MIT
 *
 * state.h - what the state machine remembers.  Private to model/.
 *
 * model.c hands an event to one of the parts: sched.c (switches, migrations), life.c (threads'
 * lives), disk.c, requests.c (sockets and requests).  Each emits intervals through model_emit().
 */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H
#include "base/map.h"
#include "base/vec.h"
#include "model/model.h"
#include "model/names.h"

struct err;

enum where {
	WHERE_UNKNOWN, /* not seen on or off a CPU yet */
	WHERE_ON,
	WHERE_OFF, /* absence is being filled */
};

struct move { /* to another CPU's queue */
	int64_t at_ns;
	int from, to;
};

struct thread_state {
	enum where where;
	bool newborn; /* forked, has not run yet */
	struct absence absence;
	struct VEC(struct move) moves; /* during absence */
	int64_t sched_free_ns;	       /* end of the last absence emitted */
	/* operations */
	bool has_op;
	struct op op;
	uint64_t op_seq;	 /* of a receive: stream position after it */
	uint32_t op_arrived_tid; /* of a receive */
	int64_t ops_free_ns;
	int64_t request; /* whom it works for, NO_INDEX */
};

struct cpu_state {
	int thread;	  /* switched in last, NO_INDEX: not known */
	int64_t since_ns; /* since then */
	int64_t run_free_ns, loss_free_ns;
	int64_t steal_ns; /* since the last switch */
	/* did something here, though another was switched in last */
	int seen_thread; /* NO_INDEX */
	int64_t seen_ns; /* the first time */
};

struct sock;
struct open_request;
struct slots VEC(int64_t); /* by slot: free from then on */

struct model {
	struct names *names;
	int64_t start_ns, now_ns;
	model_sink *sink;
	void *arg;
	uint64_t backwards;			   /* events that went back in time */
	int64_t last_loss_ns;			   /* NO_TIME: nothing was lost yet */
	struct VEC(struct thread_state *) threads; /* by thread index, NULL: nothing to remember */
	struct VEC(bool) gone;			   /* by thread index; those beyond are not */
	struct VEC(struct cpu_state) cpus;
	struct VEC(struct slots *) disks;
	struct slots request_slots;
	/* requests.c */
	struct VEC(struct sock *) socks; /* by socket index, NULL: nothing to remember */
	struct map requests;		 /* id of an open request -> struct open_request * */
	int64_t next_request;
	struct map listeners; /* see roles.c */
	struct map by_ends;   /* both addresses, or the peer's cookie -> socket index */
};

/* Gives iv to the sink; what has no length is dropped. */
int model_emit(struct model *m, const struct interval *iv, struct err *err);
/* The thread of tid that does something now: made if it is not known or had gone.  NO_INDEX only
 * for an impossible tid. */
int model_thread(struct model *m, uint32_t tid, uint32_t pid);
/* The same where a record speaks of what it did before: it may have gone since. */
int model_mention(struct model *m, uint32_t tid, uint32_t pid);
bool model_has_gone(const struct model *m, int thread);
/* It left its CPU for good: nothing of it is remembered. */
void model_gone(struct model *m, int thread);
struct thread_state *model_thread_state(struct model *m, int thread);
/* The first slot free at from_ns, taken until end_ns. */
int slots_take(struct slots *s, int64_t from_ns, int64_t end_ns);

static inline int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t min_ns(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t clamp_ns(int64_t x, int64_t lo, int64_t hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

/* sched.c */
int sched_switch(struct model *m, const struct event *e, struct err *err);
/* The thread does something on e's CPU: it runs there. */
void sched_seen(struct model *m, const struct event *e, int thread);
void sched_migrate(struct model *m, const struct event *e);
/* The thread is off its CPU since since_ns; the caller fills in more. */
struct absence *sched_leave(struct model *m, int thread, int64_t since_ns);
/* Does left_ns, told at the end of an absence, name its beginning? */
bool sched_halves_fit(const struct absence *x, int64_t left_ns);
/* The hypervisor took time since the last switch on e's CPU. */
void sched_steal(struct model *m, const struct event *e);
int sched_loss(struct model *m, const struct event *e, struct err *err);
int sched_finish(struct model *m, int64_t end_ns, struct err *err);

/* life.c */
int life_thread(struct model *m, const struct event *e, struct err *err);
void life_cgroup(struct model *m, const struct event *e);

/* disk.c */
int disk_block(struct model *m, const struct event *e, struct err *err);

/* roles.c: sockets by address */
/* Takes in what is known of a socket; finds its peer. */
void roles_socket(struct model *m, int socket, const struct event_socket *e);
/* It was closed: its addresses may be another's soon. */
void roles_forget(struct model *m, int socket);
/* The role, worked out from the listeners where the recorder could not tell. */
enum role roles_of(struct model *m, int socket);

/* requests.c */
int requests_socket(struct model *m, const struct event *e);
int requests_io(struct model *m, const struct event *e, struct err *err);
int requests_close(struct model *m, const struct event *e, struct err *err);
/* The thread waits for whatever comes. */
void requests_idle(struct model *m, int thread);
/* The thread does nothing any more. */
int requests_thread_ends(struct model *m, int thread, int64_t at_ns, struct err *err);
int requests_finish(struct model *m, int64_t end_ns, struct err *err);
void requests_free(struct model *m);

#endif
