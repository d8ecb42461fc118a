/* SPDX-License-Identifier: MIT
 *
 * model.h - from kernel events to intervals: the one state machine, and what its intervals mean.
 *
 * A reader turns its input into `struct event`s in time order (ties: stream, then record number)
 * and feeds them to model_feed(); the model emits intervals, nearly ascending in their end, to a
 * sink (the history writer), and learns names on the way.  Whoever reads a history back uses the
 * typed forms below (absence_get and friends), never the words of an interval.
 *
 * Threads, cgroups, sockets are carried as indices into `struct names`; index 0 of threads is the
 * idle task of every CPU.  A thread is (tid, start time): a reused tid is another thread.
 * Times: int64_t ns, CLOCK_MONOTONIC of the host; NO_TIME where not known.
 *
 * Memory: bounded by threads, open sockets and open requests, not by the number of events.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/interval.h"

struct err;
struct model;
struct names;

#define NO_TIME INT64_MIN
enum { NO_INDEX = -1, THREAD_IDLE = 0, DISK_SLOTS = 1024 };

/* ------------------------------------------------------------------ words */

enum why { /* why a thread left its CPU */
	   WHY_UNKNOWN,
	   WHY_BLOCKED,
	   WHY_PREEMPTED,
	   WHY_YIELDED,
	   WHY_THROTTLED,
	   WHY_EXITED,
	   WHY_IDLE,
};

enum task_state {
	TASK_UNKNOWN,
	TASK_RUNNABLE,
	TASK_SLEEP,
	TASK_DISK,
	TASK_IOWAIT,
	TASK_IDLE,
	TASK_STOPPED,
	TASK_DEAD,
};

enum obj_kind { /* what a system call waits on */
		OBJ_NONE,
		OBJ_FUTEX,
		OBJ_SOCKET,
		OBJ_PIPE,
		OBJ_EVENTFD,
		OBJ_EPOLL,
		OBJ_FILE,
		OBJ_CHILD,
		OBJ_OTHER,
};

enum waker_by {
	BY_UNKNOWN,
	BY_THREAD,
	BY_BLOCK,
	BY_NET,
	BY_TIMER,
	BY_IRQ,
	BY_SOFTIRQ,
	BY_NEW,
};

enum life { LIFE_SNAPSHOT, LIFE_FORK, LIFE_EXEC, LIFE_NAME, LIFE_CGROUP, LIFE_EXIT, LIFE_OPEN };
enum role { ROLE_UNKNOWN, ROLE_LISTEN, ROLE_SERVED, ROLE_CLIENT, ROLE_PAIR };
enum op_dir { OP_RECV, OP_SEND, OP_EOF };

/* ------------------------------------------------------------------ events (input) */

enum event_kind {
	EVENT_SWITCH = 1,
	EVENT_MIGRATE,
	EVENT_THREAD,
	EVENT_CGROUP,
	EVENT_SOCKET,
	EVENT_RECV,
	EVENT_SEND,
	EVENT_CLOSE,
	EVENT_BLOCK,
	EVENT_LOST,
	EVENT_STEAL,
};

struct event_switch {
	uint32_t prev_tid, prev_pid, next_tid, next_pid;
	int64_t prev_since_ns;
	enum why why;
	enum task_state state;
	int syscall; /* -1 none */
	enum obj_kind obj_kind;
	uint64_t obj;
	int64_t irq_ns;
	/* next */
	int64_t left_ns, waking_ns, runnable_ns; /* NO_TIME */
	enum waker_by by;
	uint32_t waker_tid, waker_pid;
	uint64_t waker_obj;
	int waker_syscall;
	int queue_cpu;
	int64_t quota_ns;
	bool first, migrated;
	bool late; /* told when next left again: it happened at prev_since_ns */
};

struct event_thread {
	uint32_t tid, pid, parent_tid;
	enum life what;
	bool kernel, running;
	int64_t birth_ns; /* task->start_time */
	uint64_t cgroup_v2, cgroup_cpu;
	char comm[17];
	/* LIFE_SNAPSHOT: state; LIFE_OPEN: all of these */
	enum task_state state;
	enum why why;
	int64_t left_ns, waking_ns, runnable_ns;
	int syscall;
	enum obj_kind obj_kind;
	uint64_t obj;
	int queue_cpu;
};

struct event_cgroup {
	uint64_t id;
	uint32_t hierarchy; /* 0: v2 */
	int what;	    /* 0 there, 1 made, 2 removed */
	char path[257];
};

struct event_socket {
	uint64_t cookie, peer;
	uint32_t netns, tid;
	int family;
	enum role role;
	uint16_t local_port, remote_port;
	uint8_t local_addr[16], remote_addr[16];
	char path[65];
};

struct event_io { /* RECV, SEND, CLOSE */
	uint64_t cookie;
	uint32_t tid, pid;
	uint64_t seq;
	uint32_t bytes;
	int64_t arrived_ns;   /* RECV */
	uint32_t arrived_tid; /* RECV */
	int status;	      /* SEND: HTTP status or 0 */
	const char *text;     /* RECV: first line of a request, or NULL; lent for the call */
};

struct event_block {
	uint64_t request, sector, owner_cgroup;
	int64_t submitted_ns, inserted_ns, issued_ns, completed_ns;
	uint32_t tid, pid, bytes, dev;
	int op; /* 0 read, 1 write, 2 flush, 3 discard */
	bool sync, meta, background;
	int error;
};

struct event_lost {
	int64_t since_ns;
	uint64_t count;
	uint32_t reason; /* index into model_lost_names */
};

struct event {
	int64_t ts_ns;
	int cpu;
	enum event_kind kind;
	union {
		struct event_switch sw;
		struct event_migrate {
			uint32_t tid, pid;
			int from_cpu, to_cpu;
		} migrate;
		struct event_thread thread;
		struct event_cgroup cgroup;
		struct event_socket socket;
		struct event_io io;
		struct event_block block;
		struct event_lost lost;
		int64_t steal_ns; /* taken from this CPU since the switch before */
	};
};

/* ------------------------------------------------------------------ intervals (output) */

enum interval_kind {
	KIND_RUN = 1,
	KIND_ABSENCE,
	KIND_QUEUE,
	KIND_OP,
	KIND_BLOCK,
	KIND_REQUEST,
	KIND_LOSS,
};

/* TRACK_CPU: a thread held the CPU.  Where nobody is known to have, there is a gap. */
struct run {
	int64_t start_ns, end_ns;
	int cpu;
	int thread;
	int64_t irq_ns;
	int64_t steal_ns; /* the hypervisor had taken the CPU */
	enum why why;	  /* how it ended; WHY_UNKNOWN: open at the end, or the end was not seen */
	int syscall;	  /* in which system call it left, -1 none */
};

/* TRACK_SCHED: a thread was off every CPU.  [start, runnable) blocked, [runnable, end) in a run
 * queue; runnable = start for a preempted, yielded or throttled one; runnable = end if it is still
 * blocked at the end of the recording (then open is set). */
struct absence {
	int64_t start_ns, end_ns;
	int thread;
	enum why why;
	enum task_state state;
	int syscall;
	enum obj_kind obj_kind;
	uint64_t obj;
	int64_t waking_ns;   /* NO_TIME if not known; start <= waking <= runnable */
	int64_t runnable_ns; /* start <= runnable <= end */
	enum waker_by by;
	int waker;	    /* thread index; also the interrupted one; NO_INDEX */
	uint64_t waker_obj; /* BY_BLOCK: request id; BY_NET: socket cookie */
	int waker_syscall;
	int cpu;	  /* in whose queue it stood last, -1 unknown */
	int64_t quota_ns; /* part of it its cgroup was throttled */
	bool migrated;	  /* see TRACK_QUEUE for where it stood */
	bool open;	  /* not ended when the recording did */
	bool before;	  /* began before the recording did: start is the recording's start */
	bool lost;	  /* crosses a loss: the facts above may be of another absence */
};

/* TRACK_QUEUE: a runnable thread stood in cpu's queue; only where it moved. */
struct queued {
	int64_t start_ns, end_ns;
	int thread, cpu;
};

/* TRACK_OPS: a socket operation at start_ns, and the thread had no other until end_ns.  Requests
 * are assembled here: whose work the thread did from start_ns on. */
struct op {
	int64_t start_ns, end_ns;
	int thread;
	enum op_dir dir;
	int socket;	 /* index in names */
	int64_t request; /* id of the request it belongs to, NO_INDEX */
	bool served;	 /* on the request's own client socket */
	uint32_t bytes;
	int64_t arrived_ns; /* RECV: when the data came; NO_TIME */
	/* RECV: the peer's send that covers the last byte, if the peer is on this host */
	int sender; /* thread, NO_INDEX */
	/* start_ns of that operation on the sender's TRACK_OPS; it may be later than this one, for
	 * a send is recorded when it returns.  NO_TIME: the thread was seen, not its send */
	int64_t sender_ns;
	int64_t sender_request; /* what the sender worked for: a request id or NO_INDEX */
	/* the operation of the same request before this one */
	int prev; /* thread, NO_INDEX: this is the first */
	int64_t prev_ns;
};

/* TRACK_DISK: a block request from submission to completion. */
struct block {
	int64_t start_ns, end_ns; /* submitted, completed */
	int disk, slot;
	uint64_t id;
	int64_t issued_ns; /* NO_TIME: not issued */
	int thread;	   /* submitter, NO_INDEX */
	int owner;	   /* cgroup index the data belongs to, NO_INDEX: the submitter's */
	uint32_t bytes;
	uint64_t sector;
	int op;
	bool sync, background, open;
};

/* TRACK_REQUEST: a request, from the arrival of its first bytes to its last send. */
struct request {
	int64_t start_ns, end_ns;
	int slot;
	/* from 0, in order of their first operation; an exchange in no known protocol that was
	 * never answered is no request and leaves a hole */
	int64_t id;
	uint32_t name;		 /* string id in names: the group name */
	int socket;		 /* served socket */
	int status;		 /* HTTP status, 0 unknown */
	int first_thread;	 /* that received the first bytes */
	int64_t first_ns;	 /* start of that operation */
	int last_thread;	 /* that sent the last ones; NO_INDEX: none was sent, and if it is
				  * not cut_end, none ever: it ends with its connection */
	int64_t last_ns;	 /* start of that operation on its TRACK_OPS */
	int64_t parent;		 /* request that it was made for, NO_INDEX: an entry request */
	bool cut_start, cut_end; /* runs over an edge of the recording */
	bool streaming;		 /* 101, or an answer that goes on and on: a group apart */
};

/* TRACK_LOSS: records of cpu were lost. */
struct loss {
	int64_t start_ns, end_ns;
	int cpu;
	uint64_t count;
	uint32_t reason;
};

void run_put(const struct run *x, struct interval *ret);
void run_get(const struct interval *iv, struct run *ret);
void absence_put(const struct absence *x, struct interval *ret);
void absence_get(const struct interval *iv, struct absence *ret);
void queued_put(const struct queued *x, struct interval *ret);
void queued_get(const struct interval *iv, struct queued *ret);
void op_put(const struct op *x, struct interval *ret);
void op_get(const struct interval *iv, struct op *ret);
void block_put(const struct block *x, struct interval *ret);
void block_get(const struct interval *iv, struct block *ret);
void request_put(const struct request *x, struct interval *ret);
void request_get(const struct interval *iv, struct request *ret);
void loss_put(const struct loss *x, struct interval *ret);
void loss_get(const struct interval *iv, struct loss *ret);

/* ------------------------------------------------------------------ the state machine */

typedef int model_sink(const struct interval *iv, void *arg, struct err *err);

/* The model takes names over from the caller only for the time it lives; names outlive it.
 * start_ns: the recording's first instant. */
int model_new(struct names *names, int64_t start_ns, model_sink *sink, void *arg,
	      struct model **ret, struct err *err);
/* Events in time order; an event that goes back in time is counted and clamped. */
int model_feed(struct model *m, const struct event *e, struct err *err);
/* Ends what is open at end_ns.  The model is freed either way. */
int model_finish(struct model *m, int64_t end_ns, struct err *err);
void model_abort(struct model *m);

/* "ring-full", ...; a reason outside the table is "other". */
const char *model_lost_name(uint32_t reason);

/* ------------------------------------------------------------------ names */

struct thread {
	uint32_t tid, pid;
	int64_t birth_ns;
	int64_t first_ns, end_ns; /* seen from; exited at (NO_TIME: lives) */
	int parent;		  /* the thread that forked it, NO_INDEX */
	bool kernel;
};

struct cgroup {
	uint64_t id;
	uint32_t hierarchy;
	uint32_t path;	    /* string id */
	int unit;	    /* the deepest ancestor (or itself) that is a container or unit */
	uint32_t container; /* string id of the container's name, 0: none */
	bool is_system;	    /* the root, init.scope */
};

struct sockinfo {
	uint64_t cookie;
	int family;
	enum role role;
	uint16_t local_port, remote_port;
	uint8_t local_addr[16], remote_addr[16];
	uint32_t netns;
	uint32_t path; /* string id */
	int peer;      /* socket index of the other end on this host, NO_INDEX */
};

struct names *names_new(void);
void names_free(struct names *n);
/* One block of bytes, to be attached to a history and read back.  save: caller frees *ret. */
int names_save(const struct names *n, void **ret, size_t *ret_len);
int names_load(const void *data, size_t len, struct names **ret, struct err *err);

uint32_t names_intern(struct names *n, const char *s);
const char *names_str(const struct names *n, uint32_t id);
int names_threads(const struct names *n); /* how many; indices 0 .. n-1 */
/* NULL for an index out of range; lent. */
const struct thread *names_thread(const struct names *n, int thread);
/* The thread of that tid alive at at_ns, or NO_INDEX. */
int names_find(const struct names *n, uint32_t tid, int64_t at_ns);
/* Thread index of the process's leader, or the thread itself when it is not known. */
int names_leader(const struct names *n, int thread, int64_t at_ns);
/* Name at that instant; "" if never known. */
const char *names_comm(const struct names *n, int thread, int64_t at_ns);
/* Index of the cgroup (in the key's hierarchy) at that instant, NO_INDEX unknown. */
int names_cgroup_of(const struct names *n, int thread, int64_t at_ns);
/* The cpu controller's cgroup: where a quota applies. */
int names_cpu_cgroup_of(const struct names *n, int thread, int64_t at_ns);
int names_cgroups(const struct names *n);
const struct cgroup *names_cgroup(const struct names *n, int cgroup); /* NULL out of range */
/* Of a cgroup of any hierarchy, the one of the key's hierarchy with the same path, else itself. */
int names_cgroup_same(const struct names *n, int cgroup);
int names_sockets(const struct names *n);
const struct sockinfo *names_socket(const struct names *n, int socket);
/* "10.0.0.1:80", "[::1]:80", a UNIX path; local or remote end.  Returns buf. */
const char *names_address(const struct names *n, int socket, bool remote, char *buf, size_t len);
/* "v2" or "cpu". */
const char *names_cgroup_key(const struct names *n);
/* Which hierarchy is the key; chosen by model_finish from what it saw, or forced before. */
void names_set_cgroup_key(struct names *n, const char *key);
/* The controllers of a v1 hierarchy, as in /proc/cgroups: "cpu,cpuacct".  Told before the events;
 * a controller (cpu, blkio) that no hierarchy has is taken to be v2's. */
void names_set_hierarchy(struct names *n, uint32_t hierarchy, const char *controllers);
/* Disks: by dev (major << 20 | minor), with the name of host.json if there is one. */
int names_disk(struct names *n, uint32_t dev);
int names_disks(const struct names *n); /* how many */
const char *names_disk_name(const struct names *n, int disk);
void names_set_disk_name(struct names *n, uint32_t dev, const char *name);

/* The group name of an HTTP request line: method, path without query, with numbers, UUIDs and
 * long hex replaced by '*'.  Returns buf, "" if it is no request line. */
const char *request_group(const char *first_line, char *buf, size_t len);

#endif
