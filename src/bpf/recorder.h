/* SPDX-License-Identifier: MIT
 *
 * recorder.h - what the recorder's program and its loader share, beside the records (record.h).
 */
#ifndef BPF_RECORDER_H
#define BPF_RECORDER_H

#include "bpf/record.h"

/* cfg_call[number of system call]: what its first argument is, where its buffer is. */
enum {
	CALL_SLOTS = 512,
	CALL_ARG = 0x0f, /* mask of the next five */
	CALL_NONE = 0,
	CALL_FD = 1,
	CALL_FUTEX = 2,
	CALL_CHILD = 3,	 /* wait4: a pid */
	CALL_CHILD2 = 4, /* waitid: the pid is the second argument */
	CALL_YIELD = 5,
	CALL_SENDFILE = 6, /* the first argument is where the bytes go */
	CALL_SPLICE = 7,   /* from the first to the third */
	CALL_FD_FLAGS = 8, /* as CALL_FD; the fourth argument is MSG_* */
	CALL_BUF = 0x10,   /* second argument: bytes */
	CALL_IOV = 0x20,   /* second argument: struct iovec[] */
	CALL_MSG = 0x40,   /* second argument: struct msghdr; third: MSG_* */
	CALL_SEND = 0x80,
};

/* How wakers in interrupts are known: irq_mode. */
enum {
	IRQ_BY_COUNT = 0,	/* entries and exits are counted */
	IRQ_BY_PREEMPT = 1,	/* preempt_count, a per-CPU variable */
	IRQ_BY_THREAD_INFO = 2, /* preempt_count, in thread_info */
};

/* Per CPU, read by user space at the end. */
struct recorder_count {
	u64 records;
	u64 lost[REC_LOST_REASONS];
};

/* A block request in flight; in the map by its address. */
struct recorder_block {
	u64 id;
	u64 sector;
	u64 submitted, inserted, issued;
	u64 owner_cgroup;
	u32 tid, pid;
	u32 bytes;
	u32 dev;
	u8 op, flags;
	u8 pad[6];
};
enum { BLOCK_SLOTS = 8192 };

/* What is known of a thread; in task storage.  Stamps are cleared when they are used. */
struct recorder_thread {
	u64 left;     /* when it left a CPU; 0: never seen, or running */
	u64 waking;   /* sched_waking since it came last */
	u64 runnable; /* sched_wakeup since it left */
	u64 waker_obj;
	u64 obj;
	u64 throttle_queue; /* address of its cfs_rq when it became runnable there */
	u64 throttle_base;  /* that queue's throttled time then */
	u64 quota;	    /* throttled time in queues it was moved away from */
	u64 fop;	    /* f_op of the file it waited on last, and what kind of file that is */
	u32 waker_tid, waker_pid;
	s16 waker_syscall;
	s16 syscall;
	u16 queue_cpu;
	u8 fop_kind;
	u8 waker_by;
	u8 why, state, obj_kind, flags;
	u8 pad[4];
};

/* What is known of a CPU. */
struct recorder_cpu {
	u64 since;	/* when in_tid came */
	u64 queue_addr; /* of this CPU's run queue, from which per-CPU variables are found */
	u64 stolen_ns;	/* by the hypervisor, when in_tid came */
	u64 irq_ns;	/* hard interrupts since then */
	u64 irq_since;
	u64 done_ns; /* last block completion, 0: not in this interrupt or run */
	u64 done_id;
	u64 ready_cookie; /* last socket that became readable, 0: not in this softirq or run */
	u64 delivered;	  /* when the current send made data readable, 0: it did not */
	u32 delivered_to; /* ports of the socket that could be read then, as its peer has them */
	u32 pad0;
	u64 lost_since, lost_count; /* not yet told by a REC_LOST */
	u64 last_block;		    /* number of block requests begun here */
	u64 last_socket;	    /* number of sockets met first here, where we number them */
	u32 in_tid;		    /* who was switched in last */
	u32 hard_depth, soft_depth; /* IRQ_BY_COUNT */
	u8 in_known;
	u8 irq_kind; /* of the last hard interrupt: REC_BY_TIMER, REC_BY_IRQ */
	u8 softirq;  /* vector of the last soft interrupt */
	u8 done_context;
	struct recorder_thread idle; /* stands in where a thread has no storage; never timed */
	struct recorder_count count;
};

#endif
