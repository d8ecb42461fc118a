/* SPDX-License-Identifier: MIT
 *
 * recorder-life.bpf.h - fork, exec, exit, names, cgroups; and the iterators that say what there
 * was at the start and what is still open at the end.
 */
#ifndef BPF_RECORDER_LIFE_BPF_H
#define BPF_RECORDER_LIFE_BPF_H

#include "bpf/recorder-sched.bpf.h"

enum { THREADS_MOVED_MAX = 4096 };

/* p may also be an address found by walking a list: everything is read with probes. */
static __always_inline void put_thread(struct rec_thread *r, struct task_struct *p, u16 what)
{
	r->tid = BPF_CORE_READ(p, pid);
	r->pid = BPF_CORE_READ(p, tgid);
	r->parent_tid = BPF_CORE_READ(p, real_parent, tgid);
	r->what = what;
	r->flags = BPF_CORE_READ(p, flags) & PF_KTHREAD ? REC_THREAD_KERNEL : 0;
	r->start = BPF_CORE_READ(p, start_time);
	r->cgroup_v2 = BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
	if (bpf_core_field_exists(p->sched_task_group))
		r->cgroup_cpu = BPF_CORE_READ(p, sched_task_group, css.cgroup, kn, id);
	/* the root task group of some kernels has no cgroup of its own */
	if (!r->cgroup_cpu)
		r->cgroup_cpu = r->cgroup_v2;
	r->syscall = -1;
	bpf_probe_read_kernel(r->comm, sizeof(r->comm), p->comm);
}

/* Its caller asks at once whether there is one: later, Linux 6.1 takes the answer for open and
 * misses the submit. */
inlined struct rec_thread *reserve_thread(struct task_struct *p, u16 what)
{
	struct recorder_cpu *cs = this_cpu();
	struct rec_thread *r;

	if (!cs)
		return NULL;
	r = RESERVE(cs, bpf_ktime_get_ns(), THREAD, thread);
	if (!r)
		return NULL;
	CLEAR_BODY(r);
	put_thread(r, p, what);
	return r;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct recorder_cpu *cs = this_cpu();
	struct rec_thread *r;

	/* made here, where no queue is locked */
	if (cs)
		thread_state(cs, child);
	r = reserve_thread(child, REC_LIFE_FORK);
	if (!r)
		return 0;
	r->parent_tid = parent->pid;
	submit(r);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p, int old_tid)
{
	struct recorder_cpu *cs = this_cpu();
	struct rec_thread *r;

	/* it took the place, and the number, of its process's first thread */
	if (cs && cs->in_tid == (u32)old_tid)
		cs->in_tid = p->pid;
	r = reserve_thread(p, REC_LIFE_EXEC);
	if (r)
		submit(r);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *p)
{
	struct rec_thread *r = reserve_thread(p, REC_LIFE_EXIT);

	if (r)
		submit(r);
	return 0;
}

/* Called before the name changes. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *p, const char *comm)
{
	struct rec_thread *r = reserve_thread(p, REC_LIFE_NAME);

	if (!r)
		return 0;
	__builtin_memset(r->comm, 0, sizeof(r->comm));
	bpf_probe_read_kernel_str(r->comm, sizeof(r->comm), comm);
	submit(r);
	return 0;
}

/* --- cgroups */

struct moved {
	struct list_head *at;
	struct list_head *head;
};

static long moved_thread(u32 i, struct moved *m)
{
	struct list_head *at = m->at;
	struct task_struct *p;
	struct rec_thread *r;

	(void)i;
	if (!at || at == m->head)
		return 1;
	p = (void *)at - bpf_core_field_offset(struct task_struct, thread_node);
	r = reserve_thread(p, REC_LIFE_CGROUP);
	if (r)
		submit(r);
	m->at = BPF_CORE_READ(at, next);
	return 0;
}

/* One thread, or all of its process: then the tracepoint names the leader only. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, struct cgroup *to, const char *path, struct task_struct *p, bool all)
{
	struct moved m = {};
	struct rec_thread *r;

	if (all) {
		struct list_head *head = (void *)p->signal +
					 bpf_core_field_offset(struct signal_struct, thread_head);

		m.head = head;
		m.at = BPF_CORE_READ(head, next);
		bpf_loop(THREADS_MOVED_MAX, moved_thread, &m, 0);
		return 0;
	}
	r = reserve_thread(p, REC_LIFE_CGROUP);
	if (r)
		submit(r);
	return 0;
}

inlined int cgroup_changed(struct cgroup *cg, const char *path, u16 what)
{
	struct recorder_cpu *cs = this_cpu();
	struct rec_cgroup *r;

	if (!cs)
		return 0;
	r = RESERVE(cs, bpf_ktime_get_ns(), CGROUP, cgroup);
	if (!r)
		return 0;
	CLEAR_BODY(r);
	r->cgroup = cg->kn->id;
	r->hierarchy = cg->root->hierarchy_id;
	r->what = what;
	bpf_probe_read_kernel_str(r->path, sizeof(r->path), path);
	submit(r);
	return 0;
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_cgroup_mkdir, struct cgroup *cg, const char *path)
{
	return cgroup_changed(cg, path, 1);
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(on_cgroup_rmdir, struct cgroup *cg, const char *path)
{
	return cgroup_changed(cg, path, 2);
}

/* --- iterators: records go to whoever reads them, not into the ring, so that many threads
 * cannot fill it */

inlined void put_iter_head(struct rec_head *head, u16 id, u32 bytes)
{
	head->ts = bpf_ktime_get_ns();
	head->id = id;
	head->cpu = 0;
	head->size = bytes;
}

/* What a thread waits in that has been asleep since before the recording: if it never wakes, no
 * switch will tell. */
inlined void put_wait(struct rec_thread *r, struct task_struct *p)
{
	struct recorder_thread t = {};
	struct pt_regs *regs = NULL;

	t.syscall = call_of(p, &regs);
	if (t.syscall >= 0 && regs)
		wait_object(p, &t, regs);
	r->syscall = t.syscall;
	r->obj = t.obj;
	r->obj_kind = t.obj_kind;
}

SEC("iter/task")
int on_each_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct rec_thread r = {};

	struct recorder_cpu *cs = this_cpu();

	if (!cs || !p || p->exit_state)
		return 0;
	if (p->pid)
		thread_state(cs, p);
	put_iter_head(&r.head, REC_ID_THREAD, sizeof(r));
	put_thread(&r, p, REC_LIFE_SNAPSHOT);
	r.state = decode_state(p->__state, in_iowait(p));
	r.queue_cpu = task_cpu(p);
	if (p->on_cpu)
		r.flags |= REC_THREAD_RUNNING;
	else if (p->__state)
		put_wait(&r, p);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

/* A thread that is off its CPU when the recording ends: its absence so far. */
SEC("iter/task")
int on_each_open(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct recorder_thread *t;
	struct rec_thread r = {};

	if (!p)
		return 0;
	t = bpf_task_storage_get(&threads, p, NULL, 0);
	if (!t || !t->left || t->why == REC_WHY_EXITED)
		return 0;
	put_iter_head(&r.head, REC_ID_THREAD, sizeof(r));
	put_thread(&r, p, REC_LIFE_OPEN);
	r.state = t->state;
	r.why = t->why;
	r.left = t->left;
	if (t->why == REC_WHY_BLOCKED && t->runnable) {
		r.waking = t->waking > t->left ? t->waking : t->left;
		r.runnable = t->runnable;
	}
	r.syscall = t->syscall;
	r.obj = t->obj;
	r.obj_kind = t->obj_kind;
	r.queue_cpu = t->queue_cpu;
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

#endif
