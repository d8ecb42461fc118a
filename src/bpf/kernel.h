/* SPDX-License-Identifier: MIT
 *
 * kernel.h - the few kernel types and fields that the programs read.
 *
 * Not a dump of one kernel: offsets are found at load time from the running kernel's BTF
 * (CO-RE), so a struct lists only what is used, in any order.  A name with ___ is another
 * kernel's form of the struct before it.
 */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
#define __KERNEL_TYPES_GIVEN

#define PF_WQ_WORKER 0x00000020
#define PF_KTHREAD   0x00200000

#define AF_UNIX	    1
#define AF_INET	    2
#define AF_INET6    10
#define SOCK_STREAM 1
#define IPPROTO_TCP 6
#define MSG_PEEK    0x2
#define MSG_MORE    0x8000

/* net/tcp_states.h */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT,
	TCP_SYN_RECV,
	TCP_FIN_WAIT1,
	TCP_FIN_WAIT2,
	TCP_TIME_WAIT,
	TCP_CLOSE,
	TCP_CLOSE_WAIT,
	TCP_LAST_ACK,
	TCP_LISTEN,
	TCP_CLOSING
};

#define S_IFMT	 0170000
#define S_IFSOCK 0140000
#define S_IFREG	 0100000
#define S_IFBLK	 0060000
#define S_IFDIR	 0040000
#define S_IFIFO	 0010000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* --- tasks and scheduling */

struct thread_info {
	u32 cpu;
	int preempt_count; /* arm64; x86 has a per-CPU variable */
};

struct list_head {
	struct list_head *next;
};

struct rq {
	int cpu;
	u64 clock;
};

struct cfs_rq {
	struct rq *rq;
	u64 throttled_clock_self;
	u64 throttled_clock_self_time;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_group {
	struct cgroup_subsys_state css;
	struct cfs_rq **cfs_rq;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
};

struct file_operations;

struct file {
	const struct file_operations *f_op;
	void *private_data;
	struct inode *f_inode;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct signal_struct {
	struct list_head thread_head;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int prio;
	struct sched_entity se;
	struct task_group *sched_task_group;
	bool throttled;
	int exit_state;
	unsigned int in_iowait : 1;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	u64 start_time;
	char comm[16];
	struct files_struct *files;
	struct signal_struct *signal;
	struct list_head thread_node;
	struct css_set *cgroups;
	struct sched_info {
		u64 last_arrival; /* on a CPU, by the run queue's clock */
	} sched_info;
};

/* Before 5.16 */
struct task_struct___with_cpu {
	unsigned int cpu;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di, si, dx, r10;
	unsigned long orig_ax;
};
#define REGS_SYSCALL(regs) ((s64)(regs)->orig_ax)
#define REGS_ARG1(regs)	   ((regs)->di)
#define REGS_ARG2(regs)	   ((regs)->si)
#define REGS_ARG3(regs)	   ((regs)->dx)
#define REGS_ARG4(regs)	   ((regs)->r10)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#define REGS_SYSCALL(r) ((s64)(r)->syscallno)
#define REGS_ARG1(r)	((r)->orig_x0)
#define REGS_ARG2(r)	((r)->regs[1])
#define REGS_ARG3(r)	((r)->regs[2])
#define REGS_ARG4(r)	((r)->regs[3])
#else
#error "which registers hold a system call's number and arguments here?"
#endif

/* What the hypervisor writes for each CPU (KVM). */
struct kvm_steal_time {
	u64 steal; /* ns since it started, in which it had to wait for a real one */
};

/* --- sockets */

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	u16 sk_type;
};

struct socket {
	struct sock *sk;
};

struct sk_buff {
	unsigned int len;
	unsigned char *data;
};

struct tcp_sock {
	u32 copied_seq;
	u32 write_seq;
};

typedef struct {
	int counter;
} atomic_t;

struct refcount_struct {
	atomic_t refs;
};

struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	struct refcount_struct refcnt;
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

/* --- block devices */

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	struct blkcg_gq *bi_blkg;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
	u64 io_start_time_ns;
};

enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_PREFLUSH = 18,
	__REQ_BACKGROUND = 20,
};

/* --- what iterators are given */

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

#pragma clang attribute pop

#endif
