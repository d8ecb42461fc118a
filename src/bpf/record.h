/* SPDX-License-Identifier: MIT
 *
 * record.h - the records of the recorder: one table makes the C structs (kernel and user space)
 * and the CTF metadata, so the two cannot differ.
 *
 * A record is `struct rec_head` and then its fields; natural alignment, padded to 8 bytes.  It
 * goes from the BPF ring buffer into the CTF stream of its CPU byte for byte.  Times are
 * CLOCK_MONOTONIC ns; head.ts is the time of emission, other instants are fields.  0 in an
 * instant means "not known".  tids and pids are those of the initial pid namespace; pid is the
 * thread group.  All padding is zero.  Documented in docs/format/recording.md.
 *
 * To add a record: a REC_xxx table, a line in REC_KINDS, a case in src/read/events.c.
 */
#ifndef BPF_RECORD_H
#define BPF_RECORD_H

#define REC_VERSION 1

#ifndef __KERNEL_TYPES_GIVEN /* BPF programs have these from kernel.h */
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

/* N(type, name): integer.  H(type, name): integer shown in hex.  T(name, size): text, NUL-padded.
 * B(name, size): bytes. */

/* A context switch, both halves.  Who leaves (prev_*) and who comes (next_*). */
#define REC_SWITCH(N, H, T, B)                                                                     \
	N(u32, prev_tid)                                                                           \
	N(u32, prev_pid)                                                                           \
	N(u32, next_tid)                                                                           \
	N(u32, next_pid)                                                                           \
	N(u64, prev_since)     /* on this CPU since; 0 unknown */                                  \
	H(u64, prev_obj)       /* what it waits on, see prev_obj_kind */                           \
	N(u64, next_left)      /* when next left a CPU last */                                     \
	N(u64, next_waking)    /* sched_waking: the waker began; 0: was not blocked */             \
	N(u64, next_runnable)  /* sched_wakeup: in the run queue; 0: runnable since left */        \
	H(u64, next_waker_obj) /* REC_BY_BLOCK: block request id; REC_BY_NET: socket cookie */     \
	N(u64, next_quota)     /* ns of the absence its cpu cgroup was throttled */                \
	N(u32, prev_irq)       /* ns of the run spent in interrupts, saturated */                  \
	N(u32, next_waker_tid) /* current at sched_waking, also in interrupts */                   \
	N(u32, next_waker_pid)                                                                     \
	N(s16, prev_syscall)	   /* -1: not in one */                                            \
	N(s16, next_waker_syscall) /* of the waker, -1 none or in interrupt */                     \
	N(u16, next_queue_cpu)	   /* in whose run queue next stood last */                        \
	N(u8, prev_why)		   /* enum rec_why */                                              \
	N(u8, prev_state)	   /* enum rec_state */                                            \
	N(u8, prev_obj_kind)	   /* enum rec_obj */                                              \
	N(u8, next_waker_by)	   /* enum rec_by */                                               \
	N(u8, next_flags)	   /* REC_NEXT_* */                                                \
	N(u8, pad0)

/* A thread that is runnable, not running, was moved to another CPU's queue. */
#define REC_MIGRATE(N, H, T, B)                                                                    \
	N(u32, tid)                                                                                \
	N(u32, pid)                                                                                \
	N(u16, from_cpu)                                                                           \
	N(u16, to_cpu)                                                                             \
	N(u32, pad0)

/* A thread's life: snapshot at start, fork, exec, rename, cgroup move, exit; OPEN is the state at
 * the end of the recording (left, waking, runnable as in switch).  syscall, obj and obj_kind are
 * those of a snapshot's sleeper, and of OPEN. */
#define REC_THREAD(N, H, T, B)                                                                     \
	N(u32, tid)                                                                                \
	N(u32, pid)                                                                                \
	N(u32, parent_tid) /* of a fork: the thread that forked; else the real parent's pid */     \
	N(u16, what)	   /* enum rec_life */                                                     \
	N(u8, state)	   /* enum rec_state; snapshot, open */                                    \
	N(u8, flags)	   /* REC_THREAD_* */                                                      \
	N(u64, start)	   /* task->start_time: with tid, the identity */                          \
	N(u64, cgroup_v2)  /* kernfs id of the cgroup in the default hierarchy */                  \
	N(u64, cgroup_cpu) /* of the cpu controller's cgroup (v1); same as v2 where v2 has it */   \
	N(u64, left)                                                                               \
	N(u64, waking)                                                                             \
	N(u64, runnable)                                                                           \
	H(u64, obj)                                                                                \
	N(s16, syscall)                                                                            \
	N(u8, obj_kind)                                                                            \
	N(u8, why)                                                                                 \
	N(u16, queue_cpu)                                                                          \
	N(u16, pad0)                                                                               \
	T(comm, 16)

/* A cgroup: at start, made, removed.  Made and removed come from the tracepoints. */
#define REC_CGROUP(N, H, T, B)                                                                     \
	N(u64, cgroup)	  /* kernfs id */                                                          \
	N(u32, hierarchy) /* 0: default (v2); else the v1 hierarchy's number */                    \
	N(u16, what)	  /* 0 there at start, 1 made, 2 removed */                                \
	N(u16, pad0)                                                                               \
	T(path, 256) /* from the hierarchy's root; cut if longer */

/* A stream socket, written once before its first operation, again when its role becomes known. */
#define REC_SOCKET(N, H, T, B)                                                                     \
	H(u64, cookie)                                                                             \
	H(u64, peer)   /* UNIX: the peer's cookie, 0 unknown */                                    \
	N(u32, netns)  /* inode of the network namespace */                                        \
	N(u16, family) /* AF_INET, AF_INET6, AF_UNIX */                                            \
	N(u16, role)   /* enum rec_role */                                                         \
	N(u16, local_port)                                                                         \
	N(u16, remote_port)                                                                        \
	N(u32, tid)	  /* current, when it meant something (not in interrupts), else 0 */       \
	B(local_addr, 16) /* IPv4 in the first four bytes, network order */                        \
	B(remote_addr, 16)                                                                         \
	T(path, 64) /* UNIX: bound or listener's path, '@' first if abstract */

/* A receive that returned data (or 0: end of stream). */
#define REC_RECV(N, H, T, B)                                                                       \
	H(u64, cookie)                                                                             \
	N(u32, tid)                                                                                \
	N(u32, pid)                                                                                \
	N(u64, arrived) /* first data since the previous receive became readable; 0 unknown */     \
	N(u64, seq)	/* stream position after it: TCP copied_seq, UNIX bytes received */        \
	N(u32, bytes)                                                                              \
	N(u32, arrived_tid) /* current when it arrived (the sender on loopback), 0 unknown */

/* The same with the first bytes of a message in a known protocol on a served socket. */
#define REC_REQUEST(N, H, T, B)                                                                    \
	H(u64, cookie)                                                                             \
	N(u32, tid)                                                                                \
	N(u32, pid)                                                                                \
	N(u64, arrived)                                                                            \
	N(u64, seq)                                                                                \
	N(u32, bytes)                                                                              \
	N(u32, arrived_tid)                                                                        \
	T(text, 128) /* first line, the query cut unless --raw-text */

/* A send that took data. */
#define REC_SEND(N, H, T, B)                                                                       \
	H(u64, cookie)                                                                             \
	N(u32, tid)                                                                                \
	N(u32, pid)                                                                                \
	N(u64, seq) /* stream position after it: TCP write_seq, UNIX bytes sent */                 \
	N(u32, bytes)                                                                              \
	N(u16, status) /* HTTP status if the send begins an HTTP/1 answer, else 0 */               \
	N(u16, flags)  /* REC_SEND_* */

/* A stream socket was closed or shut down by its owner, or became unusable. */
#define REC_CLOSE(N, H, T, B)                                                                      \
	H(u64, cookie)                                                                             \
	N(u32, tid)                                                                                \
	N(u32, pid)

/* A block request, written when it completes; at the end of the recording also open ones. */
#define REC_BLOCK(N, H, T, B)                                                                      \
	N(u64, request) /* id, unique in the recording, never 0 */                                 \
	N(u64, sector)                                                                             \
	N(u64, submitted)    /* its first bio was queued */                                        \
	N(u64, inserted)     /* 0: went straight to the driver */                                  \
	N(u64, issued)	     /* 0: not yet */                                                      \
	N(u64, completed)    /* 0: still open */                                                   \
	N(u64, owner_cgroup) /* blkio cgroup the bio is charged to; 0 unknown */                   \
	N(u32, tid)	     /* submitter */                                                       \
	N(u32, pid)                                                                                \
	N(u32, bytes)                                                                              \
	N(u32, dev)  /* major << 20 | minor */                                                     \
	N(u8, op)    /* REQ_OP_*: 0 read, 1 write, 2 flush, 3 discard */                           \
	N(u8, flags) /* REC_BLOCK_* */                                                             \
	N(s16, error)                                                                              \
	N(u32, pad0)

/* Records of this CPU were lost between since and this record. */
#define REC_LOST(N, H, T, B)                                                                       \
	N(u64, since)                                                                              \
	N(u64, count)                                                                              \
	N(u32, reason) /* enum rec_lost_reason */                                                  \
	N(u32, pad0)

/* The hypervisor took time from this CPU since the switch before: told just before the switch that
 * ends that run, and only if there was any. */
#define REC_STEAL(N, H, T, B)                                                                      \
	N(u32, tid) /* who ran */                                                                  \
	N(u32, pid)                                                                                \
	N(u64, ns)

/* K(id, NAME, name) */
#define REC_KINDS(K)                                                                               \
	K(1, SWITCH, switch)                                                                       \
	K(2, MIGRATE, migrate)                                                                     \
	K(3, THREAD, thread)                                                                       \
	K(4, CGROUP, cgroup)                                                                       \
	K(5, SOCKET, socket)                                                                       \
	K(6, RECV, recv)                                                                           \
	K(7, REQUEST, request)                                                                     \
	K(8, SEND, send)                                                                           \
	K(9, CLOSE, close)                                                                         \
	K(10, BLOCK, block)                                                                        \
	K(11, LOST, lost)                                                                          \
	K(12, STEAL, steal)

struct rec_head {
	u64 ts;
	u16 id;	  /* enum rec_id */
	u16 cpu;  /* where it was emitted */
	u32 size; /* of the whole record, head included; a multiple of 8 */
};

#define REC_FIELD_N(type, name) type name;
#define REC_FIELD_T(name, size) char name[size];
#define REC_FIELD_B(name, size) u8 name[size];
#define REC_STRUCT(id_, NAME, name)                                                                \
	struct rec_##name {                                                                        \
		struct rec_head head;                                                              \
		REC_##NAME(REC_FIELD_N, REC_FIELD_N, REC_FIELD_T, REC_FIELD_B)                     \
	};                                                                                         \
	_Static_assert(sizeof(struct rec_##name) % 8 == 0, "rec_" #name " is padded to 8");
REC_KINDS(REC_STRUCT)

#define REC_ID(id, NAME, name) REC_ID_##NAME = id,
enum rec_id { REC_KINDS(REC_ID) REC_ID_MAX = 12 };
enum { REC_MAX_BYTES = 512 };

/* Every packet of a CTF stream begins so: trace.packet.header, then stream.packet.context.  The
 * sizes are in bits; content ends with the last record, the packet has no padding after it. */
#define REC_MAGIC 0xc1fc1fc1u
struct rec_packet {
	u32 magic;
	u8 uuid[16];
	u32 stream_id; /* 0: all streams are of one class, cpu_id tells them apart */
	u64 begin;     /* ts of the first record; not before the end of the packet before */
	u64 end;       /* ts of the last one */
	u64 content_bits;
	u64 packet_bits;
	u64 seq;       /* 0, 1, 2 ... in each stream */
	u64 discarded; /* records of this CPU lost since the start */
	u32 cpu_id;
	u32 pad0;
};
_Static_assert(sizeof(struct rec_packet) == 80, "the packet head is 80 bytes");

/* Why a thread left its CPU. */
enum rec_why {
	REC_WHY_UNKNOWN = 0,
	REC_WHY_BLOCKED = 1,
	REC_WHY_PREEMPTED = 2,
	REC_WHY_YIELDED = 3,
	REC_WHY_THROTTLED = 4, /* CFS quota */
	REC_WHY_EXITED = 5,
	REC_WHY_IDLE = 6, /* the idle task left */
};

/* Decoded from task->__state, so that no bit of any kernel gets out. */
enum rec_state {
	REC_STATE_UNKNOWN = 0,
	REC_STATE_RUNNABLE = 1,
	REC_STATE_SLEEP = 2,   /* interruptible */
	REC_STATE_DISK = 3,    /* uninterruptible */
	REC_STATE_IOWAIT = 4,  /* uninterruptible or not, with task->in_iowait */
	REC_STATE_IDLE = 5,    /* TASK_IDLE: kernel threads */
	REC_STATE_STOPPED = 6, /* stopped, traced, parked, frozen */
	REC_STATE_DEAD = 7,
};

/* What the first argument of the system call stands for. */
enum rec_obj {
	REC_OBJ_NONE = 0,
	REC_OBJ_FUTEX = 1,   /* user address */
	REC_OBJ_SOCKET = 2,  /* cookie (0: not a stream socket) */
	REC_OBJ_PIPE = 3,    /* inode */
	REC_OBJ_EVENTFD = 4, /* 0 */
	REC_OBJ_EPOLL = 5,   /* file address: which epoll instance */
	REC_OBJ_FILE = 6,    /* inode of a regular file or directory */
	REC_OBJ_CHILD = 7,   /* wait4, waitid: the pid asked for */
	REC_OBJ_OTHER = 8,   /* another kind of file */
};

/* Who woke. */
enum rec_by {
	REC_BY_UNKNOWN = 0,
	REC_BY_THREAD = 1,  /* next_waker_tid, in its own context */
	REC_BY_BLOCK = 2,   /* a block completion, in whatever context: next_waker_obj */
	REC_BY_NET = 3,	    /* network softirq: next_waker_obj is the socket if known */
	REC_BY_TIMER = 4,   /* timer interrupt or softirq */
	REC_BY_IRQ = 5,	    /* another hard interrupt */
	REC_BY_SOFTIRQ = 6, /* another soft interrupt */
	REC_BY_NEW = 7,	    /* sched_wakeup_new: it was just created by the waker */
};

enum rec_life {
	REC_LIFE_SNAPSHOT = 0,
	REC_LIFE_FORK = 1,
	REC_LIFE_EXEC = 2,
	REC_LIFE_NAME = 3,
	REC_LIFE_CGROUP = 4,
	REC_LIFE_EXIT = 5,
	REC_LIFE_OPEN = 6,
};

enum rec_role {
	REC_ROLE_UNKNOWN = 0, /* was there before: compare with the listeners */
	REC_ROLE_LISTEN = 1,
	REC_ROLE_SERVED = 2, /* accepted (passive open) */
	REC_ROLE_CLIENT = 3, /* connected (active open) */
	REC_ROLE_PAIR = 4,   /* socketpair or UNIX without any address */
};

enum {
	REC_NEXT_FIRST = 1,	  /* first run of a new thread */
	REC_NEXT_MIGRATED = 2,	  /* moved to another queue while runnable */
	REC_NEXT_LATE = 4,	  /* not seen when it happened, at prev_since, but when next left */
	REC_THREAD_KERNEL = 1,	  /* PF_KTHREAD */
	REC_THREAD_RUNNING = 2,	  /* on a CPU at the snapshot */
	REC_SEND_MORE = 1,	  /* MSG_MORE */
	REC_BLOCK_SYNC = 1,	  /* REQ_SYNC */
	REC_BLOCK_META = 2,	  /* REQ_META */
	REC_BLOCK_BACKGROUND = 4, /* REQ_BACKGROUND: writeback */
};

enum rec_lost_reason {
	REC_LOST_RING_FULL = 0, /* the ring buffer had no room */
	REC_LOST_TASK_STORAGE,	/* no task storage: a stamp could not be kept */
	REC_LOST_SOCK_STORAGE,
	REC_LOST_BLOCK_MAP,   /* map of requests in flight was full */
	REC_LOST_BLOCK_START, /* completion without a start */
	REC_LOST_NEGATIVE,    /* a difference below zero was dropped */
	REC_LOST_USER_WRITE,  /* user space could not write a packet */
	REC_LOST_OTHER,
	REC_LOST_REASONS
};
#define REC_LOST_NAMES                                                                             \
	{                                                                                          \
		"ring-full", "task-storage", "socket-storage", "block-map", "block-start",         \
			"negative", "user-write", "other"                                          \
	}

#endif
