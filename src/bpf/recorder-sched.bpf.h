/* SPDX-License-Identifier: MIT
 *
 * recorder-sched.bpf.h - who runs, who waits, who wakes: the part of recorder.bpf.c that runs most.
 *
 * One record per switch carries the whole absence of the thread that comes; waking and wakeup
 * only leave stamps in the thread's storage.
 *
 *	blocks		waking		wakeup		comes		  time -->
 *	  |--- blocked ----|-- idle ------|-- run queue --|
 *	 left	        waking	       runnable		 now: one record
 *
 * 1. A stamp is of this absence: left, runnable and the quota base are set when the thread
 *    leaves or becomes runnable, and cleared when it comes.
 * 2. waking may be earlier than left (the waker saw the state before the CPU was given up), so
 *    leaving does not clear it; it is used only if the thread had blocked, and clamped to left.
 * 3. The idle task has no storage and no times; recorder_cpu.idle stands in for it.
 * Cost: one clock read per hook, no map but task storage and the CPU's own state.
 */
#ifndef BPF_RECORDER_SCHED_H
#define BPF_RECORDER_SCHED_H

#include "bpf/recorder-sock.bpf.h"

enum { VEC_HI, VEC_TIMER, VEC_NET_TX, VEC_NET_RX, VEC_BLOCK, VEC_IRQ_POLL, VEC_SCHED, VEC_HRTIMER };
enum { DONE_RECENT_NS = 100000, MAX_RT_PRIO = 100 };

/* --- what a thread waits on */

inlined u8 anon_file_kind(struct file *file)
{
	const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	char text[12] = {};

	bpf_probe_read_kernel_str(text, sizeof(text), name);
	if (BEGINS(text, "[eventpoll]"))
		return REC_OBJ_EPOLL;
	if (BEGINS(text, "[eventfd]"))
		return REC_OBJ_EVENTFD;
	return REC_OBJ_OTHER;
}

static __noinline u8 file_kind(struct file *file)
{
	u32 mode = BPF_CORE_READ(file, f_inode, i_mode);

	switch (mode & S_IFMT) {
	case S_IFSOCK:
		return REC_OBJ_SOCKET;
	case S_IFIFO:
		return REC_OBJ_PIPE;
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return REC_OBJ_FILE;
	}
	return anon_file_kind(file);
}

/* What tells files apart, read in the way that this kernel has. */

inlined u64 file_fop(struct file *file)
{
	return cfg_has_cast ? (u64)CAST(file, struct file)->f_op : (u64)BPF_CORE_READ(file, f_op);
}

inlined u64 file_inode_number(struct file *file)
{
	return cfg_has_cast ? CAST(file, struct file)->f_inode->i_ino
			    : BPF_CORE_READ(file, f_inode, i_ino);
}

inlined u64 file_cookie(struct file *file)
{
	struct socket *socket;

	if (cfg_by_calls)
		return known_cookie(sock_of_file(file));
	if (!cfg_has_cast) {
		socket = BPF_CORE_READ(file, private_data);
		return BPF_CORE_READ(socket, sk, __sk_common.skc_cookie.counter);
	}
	socket = CAST(CAST(file, struct file)->private_data, struct socket);
	return socket->sk->__sk_common.skc_cookie.counter;
}

/* Files of one f_op are of one kind, and a thread mostly waits on the same kind again. */
inlined void wait_file(struct task_struct *p, struct recorder_thread *t, u32 fd)
{
	struct file *file = file_of(p, fd);
	u64 fop;

	if (!file)
		return;
	fop = file_fop(file);
	if (fop != t->fop) {
		t->fop = fop;
		t->fop_kind = file_kind(file);
	}
	t->obj_kind = t->fop_kind;
	if (t->fop_kind == REC_OBJ_SOCKET)
		t->obj = file_cookie(file);
	else if (t->fop_kind == REC_OBJ_EPOLL)
		t->obj = (u64)file;
	else if (t->fop_kind != REC_OBJ_EVENTFD)
		t->obj = file_inode_number(file);
}

inlined void wait_object(struct task_struct *p, struct recorder_thread *t, struct pt_regs *regs)
{
	switch (call_class(t->syscall) & CALL_ARG) {
	case CALL_FD:
	case CALL_FD_FLAGS:
	case CALL_SENDFILE:
	case CALL_SPLICE:
		wait_file(p, t, REGS_ARG1(regs));
		break;
	case CALL_FUTEX:
		t->obj_kind = REC_OBJ_FUTEX;
		t->obj = REGS_ARG1(regs);
		break;
	case CALL_CHILD:
		t->obj_kind = REC_OBJ_CHILD;
		t->obj = (s64)(s32)REGS_ARG1(regs);
		break;
	case CALL_CHILD2:
		t->obj_kind = REC_OBJ_CHILD;
		t->obj = (s64)(s32)REGS_ARG2(regs);
		break;
	}
}

/* --- quota: how long the thread's run queue has been throttled, its parents' quotas included */

inlined u64 throttled_ns(struct cfs_rq *queue)
{
	u64 ns, began;

	ns = queue->throttled_clock_self_time;
	began = queue->throttled_clock_self;
	if (began) {
		u64 clock = queue->rq->clock;

		ns += clock > began ? clock - began : 0;
	}
	return ns;
}

inlined void quota_begin(struct task_struct *p, struct recorder_thread *t)
{
	struct cfs_rq *queue;

	if (!bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time))
		return;
	queue = p->se.cfs_rq;
	t->throttle_queue = (u64)queue;
	t->throttle_base = throttled_ns(queue);
}

inlined u64 quota_until(struct task_struct *p, struct recorder_thread *t)
{
	struct cfs_rq *queue;
	u64 ns;

	if (!bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time))
		return 0;
	queue = p->se.cfs_rq;
	ns = throttled_ns(queue);
	if (t->throttle_queue != (u64)queue || ns <= t->throttle_base || p->prio < MAX_RT_PRIO)
		return t->quota;
	return t->quota + ns - t->throttle_base;
}

/* --- switch */

/* The macro has a p of its own. */
inlined bool in_iowait(struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD(task, in_iowait);
}

inlined u8 decode_state(u64 state, bool iowait)
{
	if (!state)
		return REC_STATE_RUNNABLE;
	if (state & 0x80)
		return REC_STATE_DEAD;
	if (iowait)
		return REC_STATE_IOWAIT;
	if (state & 0x2)
		return state & 0x400 ? REC_STATE_IDLE : REC_STATE_DISK;
	if (state & 0x1)
		return REC_STATE_SLEEP;
	if (state & (0x4 | 0x8 | 0x40 | 0x8000))
		return REC_STATE_STOPPED;
	return state & 0x1000 ? REC_STATE_DISK : REC_STATE_UNKNOWN;
}

inlined u8 why_left(struct task_struct *p, u64 state, s16 call)
{
	if (state)
		return state & 0x80 ? REC_WHY_EXITED : REC_WHY_BLOCKED;
	if (bpf_core_field_exists(p->throttled) && p->throttled)
		return REC_WHY_THROTTLED;
	return (call_class(call) & CALL_ARG) == CALL_YIELD ? REC_WHY_YIELDED : REC_WHY_PREEMPTED;
}

inlined void leave(struct recorder_cpu *cs, struct task_struct *p, struct recorder_thread *t,
		   u64 state, u64 now)
{
	struct pt_regs *regs = NULL;

	t->left = now;
	t->runnable = 0;
	t->quota = 0;
	t->flags = 0;
	t->obj = 0;
	t->obj_kind = REC_OBJ_NONE;
	t->queue_cpu = bpf_get_smp_processor_id();
	t->syscall = call_of(p, &regs);
	t->why = why_left(p, state, t->syscall);
	t->state = decode_state(state, in_iowait(p));
	if (!state)
		quota_begin(p, t);
	else if (t->syscall >= 0 && regs)
		wait_object(p, t, regs);
}

inlined void put_prev(struct recorder_cpu *cs, struct rec_switch *r, struct task_struct *p,
		      const struct recorder_thread *t)
{
	r->prev_tid = p->pid;
	r->prev_pid = p->tgid;
	r->prev_since = cs->in_known && cs->in_tid == r->prev_tid ? cs->since : 0;
	r->prev_obj = t->obj;
	r->prev_irq = cs->in_known ? (cs->irq_ns > (u32)-1 ? (u32)-1 : cs->irq_ns) : 0;
	r->prev_syscall = t->syscall;
	r->prev_why = t->why;
	r->prev_state = t->state;
	r->prev_obj_kind = t->obj_kind;
}

/* The waker counts only for a thread that had blocked, or of which we do not know.  One from
 * before it left is of this absence only if the wakeup came after. */
inlined bool was_woken(const struct recorder_thread *t)
{
	return t->waking && (!t->left || t->why == REC_WHY_BLOCKED) &&
	       (t->runnable || t->waking > t->left);
}

inlined void put_waker(struct rec_switch *r, const struct recorder_thread *t)
{
	if (!was_woken(t)) {
		r->next_waking = r->next_runnable = r->next_waker_obj = 0;
		r->next_waker_tid = r->next_waker_pid = 0;
		r->next_waker_by = REC_BY_UNKNOWN;
		r->next_waker_syscall = -1;
		return;
	}
	r->next_waking = t->waking > t->left ? t->waking : t->left;
	r->next_runnable = t->runnable > r->next_waking ? t->runnable : r->next_waking;
	r->next_waker_obj = t->waker_obj;
	r->next_waker_tid = t->waker_tid;
	r->next_waker_pid = t->waker_pid;
	r->next_waker_by = t->waker_by;
	r->next_waker_syscall = t->waker_syscall;
}

inlined void put_next(struct rec_switch *r, struct task_struct *p, const struct recorder_thread *t)
{
	r->next_tid = p->pid;
	r->next_pid = p->tgid;
	r->next_left = t->left;
	r->next_quota = t->left || t->runnable ? quota_until(p, (struct recorder_thread *)t) : 0;
	if (t->left && r->next_quota > r->head.ts - t->left)
		r->next_quota = r->head.ts - t->left;
	r->next_queue_cpu = t->left || t->runnable ? t->queue_cpu : r->head.cpu;
	r->next_flags = t->flags;
	r->pad0 = 0;
	put_waker(r, t);
}

inlined void arrive(struct recorder_cpu *cs, struct task_struct *p, struct recorder_thread *t,
		    u64 now)
{
	t->left = t->waking = t->runnable = t->waker_obj = t->quota = 0;
	t->waker_by = REC_BY_UNKNOWN;
	t->flags = 0;
	cs->in_tid = p->pid;
	cs->in_known = true;
	cs->since = now;
	cs->irq_ns = 0;
	cs->ready_cookie = 0;
	cs->delivered = 0;
	cs->done_ns = 0;
}

/* When p came to this CPU by the kernel's own account, not before the last switch seen; 0: the
 * kernel keeps none. */
inlined u64 came_by_account(const struct recorder_cpu *cs, struct task_struct *p, u64 now)
{
	u64 clock, came;

	if (!bpf_core_field_exists(p->sched_info.last_arrival) ||
	    !bpf_core_field_exists(p->se.cfs_rq))
		return 0;
	clock = p->se.cfs_rq->rq->clock;
	came = p->sched_info.last_arrival;
	if (!came || clock <= came || clock - came >= now)
		return 0;
	came = now - (clock - came);
	return came > cs->since ? came : cs->since;
}

/* Switches away from some threads are not seen (those of pid 1 on some virtual machines): the one
 * that brought p is told now that p leaves, with the stamps of the absence that it ended. */
inlined void coming_unseen(struct recorder_cpu *cs, struct task_struct *p,
			   struct recorder_thread *t, u64 now)
{
	struct rec_switch *r;
	u64 came, waking, waker_obj = t->waker_obj;
	u8 waker_by = t->waker_by;

	if (!cs->in_known || cs->in_tid == (u32)p->pid || !(t->left || t->waking))
		return;
	came = came_by_account(cs, p, now);
	/* woken since it came: that is of the wait to come */
	waking = t->waking > came ? t->waking : 0;
	r = came ? RESERVE(cs, now, SWITCH, switch) : NULL;
	if (!r)
		return;
	CLEAR_BODY(r);
	r->prev_tid = cs->in_tid;
	r->prev_since = came;
	r->prev_syscall = -1;
	if (waking)
		t->waking = 0;
	put_next(r, p, t);
	r->next_flags |= REC_NEXT_LATE;
	submit(r);
	arrive(cs, p, t, came);
	if (waking) {
		t->waking = waking;
		t->waker_obj = waker_obj;
		t->waker_by = waker_by;
	}
}

inlined void idle_leaves(struct recorder_thread *t)
{
	t->why = REC_WHY_IDLE;
	t->state = REC_STATE_RUNNABLE;
	t->syscall = -1;
}

/* Seldom: a record of its own costs the others nothing. */
static __noinline int emit_steal(struct recorder_cpu *cs, u64 now, u64 who, u64 ns)
{
	struct rec_steal *r = RESERVE(cs, now, STEAL, steal);

	if (!r)
		return 0;
	r->tid = who;
	r->pid = who >> 32;
	r->ns = ns;
	submit(r);
	return 0;
}

inlined void note_steal(struct recorder_cpu *cs, struct task_struct *prev, u64 now)
{
	u64 total = stolen(cs), before = cs->stolen_ns;

	if (total == before)
		return;
	cs->stolen_ns = total;
	if (cs->in_known && total > before)
		emit_steal(cs, now, (u64)prev->tgid << 32 | (u32)prev->pid, total - before);
}

inlined int handle_switch(struct task_struct *prev, struct task_struct *next, u64 state)
{
	u64 now = bpf_ktime_get_ns();
	struct recorder_cpu *cs = this_cpu();
	struct recorder_thread *left = NULL, *came = NULL;
	struct rec_switch *r;

	if (!cs)
		return 0;
	if (prev->pid && (left = thread_state(cs, prev))) {
		coming_unseen(cs, prev, left, now);
		leave(cs, prev, left, state, now);
	} else {
		idle_leaves(&cs->idle);
	}
	if (next->pid)
		came = thread_state(cs, next);
	if (cfg_steal_offset)
		note_steal(cs, prev, now);
	r = RESERVE(cs, now, SWITCH, switch);
	if (r) {
		put_prev(cs, r, prev, left ? left : &cs->idle);
		put_next(r, next, came ? came : &cs->idle);
		submit(r);
	}
	arrive(cs, next, came ? came : &cs->idle, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 state = cfg_switch_has_state ? (u32)ctx[3] : prev->__state;

	return handle_switch(prev, next, ctx[0] ? 0 : state);
}

/* --- wakeups */

/* Who woke t: a thread, or what kind of interrupt. */
inlined void put_irq_waker(struct recorder_cpu *cs, struct recorder_thread *t, u32 context, u64 now)
{
	if (cs->done_ns && cs->done_context == context && now - cs->done_ns < DONE_RECENT_NS) {
		t->waker_by = REC_BY_BLOCK;
		t->waker_obj = cs->done_id;
	} else if (context & IN_HARD) {
		t->waker_by = cs->irq_kind;
	} else if (cs->softirq == VEC_NET_RX || cs->softirq == VEC_NET_TX) {
		t->waker_by = REC_BY_NET;
		t->waker_obj = cs->ready_cookie;
	} else if (cs->softirq == VEC_TIMER || cs->softirq == VEC_HRTIMER) {
		t->waker_by = REC_BY_TIMER;
	} else {
		t->waker_by = REC_BY_SOFTIRQ;
	}
}

/* A completion may also be delivered by a thread (work queue, polling): it counts if the woken
 * thread waited for I/O. */
inlined bool waits_for_io(struct task_struct *p)
{
	return p->__state & 0x2 || in_iowait(p);
}

/* Where arrival on UNIX sockets has no hook: a wake by a sending call is no later than it. */
inlined void wakes_reader(struct recorder_cpu *cs, s16 call, u64 now)
{
	if (cs->delivered || !delivers(call_class(call)))
		return;
	cs->delivered = now;
	cs->delivered_to = 0;
}

inlined void put_thread_waker(struct recorder_cpu *cs, struct task_struct *p,
			      struct recorder_thread *t, u64 now)
{
	struct pt_regs *regs;

	t->waker_syscall = call_of(bpf_get_current_task_btf(), &regs);
	t->waker_by = REC_BY_THREAD;
	if (cfg_by_calls)
		wakes_reader(cs, t->waker_syscall, now);
	if (cs->done_ns && !cs->done_context && now - cs->done_ns < DONE_RECENT_NS &&
	    waits_for_io(p)) {
		t->waker_by = REC_BY_BLOCK;
		t->waker_obj = cs->done_id;
	}
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	u64 now = bpf_ktime_get_ns(), me = bpf_get_current_pid_tgid();
	struct recorder_cpu *cs = this_cpu();
	struct recorder_thread *t;
	u32 context;

	if (!cs || p->pid == (u32)me)
		return 0;
	t = thread_state(cs, p);
	if (!t)
		return 0;
	t->waking = now;
	t->waker_tid = me;
	t->waker_pid = me >> 32;
	t->waker_obj = 0;
	t->waker_syscall = -1;
	context = irq_context(cs);
	if (context)
		put_irq_waker(cs, t, context, now);
	else
		put_thread_waker(cs, p, t, now);
	return 0;
}

inlined u32 task_cpu(struct task_struct *p)
{
	if (!bpf_core_field_exists(struct thread_info, cpu))
		return ((struct task_struct___with_cpu *)p)->cpu;
	return p->thread_info.cpu;
}

/* On its CPU still: it was woken before it gave up the CPU, and never waited. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	struct recorder_cpu *cs = this_cpu();
	struct recorder_thread *t;

	if (!cs || p->on_cpu)
		return 0;
	t = thread_state(cs, p);
	if (!t)
		return 0;
	t->runnable = bpf_ktime_get_ns();
	t->queue_cpu = task_cpu(p);
	quota_begin(p, t);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	u64 me = bpf_get_current_pid_tgid();
	struct recorder_cpu *cs = this_cpu();
	struct recorder_thread *t;
	struct pt_regs *regs;

	if (!cs)
		return 0;
	t = thread_state(cs, p);
	if (!t)
		return 0;
	t->waking = t->runnable = bpf_ktime_get_ns();
	t->waker_tid = me;
	t->waker_pid = me >> 32;
	t->waker_by = REC_BY_NEW;
	t->waker_syscall = call_of(bpf_get_current_task_btf(), &regs);
	t->queue_cpu = task_cpu(p);
	t->flags = REC_NEXT_FIRST;
	quota_begin(p, t);
	return 0;
}

/* --- migration: of interest only while it stands in a queue */

/* The same of another queue, an address. */
inlined u64 throttled_there(struct cfs_rq *queue)
{
	u64 ns = BPF_CORE_READ(queue, throttled_clock_self_time);
	u64 began = BPF_CORE_READ(queue, throttled_clock_self), clock;

	if (!began)
		return ns;
	clock = BPF_CORE_READ(queue, rq, clock);
	return clock > began ? ns + clock - began : ns;
}

/* The queue it leaves is done with; the one it goes to counts from here. */
inlined void quota_move(struct task_struct *p, struct recorder_thread *t, int cpu)
{
	struct cfs_rq *queue = NULL, **queues;

	t->quota = quota_until(p, t);
	queues = p->sched_task_group->cfs_rq;
	bpf_probe_read_kernel(&queue, sizeof(queue), queues + cpu);
	t->throttle_queue = (u64)queue;
	t->throttle_base = queue ? throttled_there(queue) : 0;
}

inlined void emit_migrate(struct recorder_cpu *cs, struct task_struct *p, int cpu, u64 now)
{
	struct rec_migrate *r = RESERVE(cs, now, MIGRATE, migrate);

	if (!r)
		return;
	r->tid = p->pid;
	r->pid = p->tgid;
	r->from_cpu = task_cpu(p);
	r->to_cpu = cpu;
	r->pad0 = 0;
	submit(r);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p, int cpu)
{
	struct recorder_cpu *cs = this_cpu();
	struct recorder_thread *t = bpf_task_storage_get(&threads, p, NULL, 0);

	if (!cs || !t || !(t->runnable || (t->left && t->why != REC_WHY_BLOCKED)))
		return 0;
	t->flags |= REC_NEXT_MIGRATED;
	t->queue_cpu = cpu;
	if (bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time))
		quota_move(p, t, cpu);
	emit_migrate(cs, p, cpu, bpf_ktime_get_ns());
	return 0;
}

/* --- interrupts: what kind, and for how long the hard ones */

inlined int irq_begins(u8 kind)
{
	struct recorder_cpu *cs = this_cpu();

	if (!cs)
		return 0;
	cs->hard_depth++;
	cs->irq_kind = kind;
	cs->done_ns = 0;
	cs->irq_since = bpf_ktime_get_ns();
	return 0;
}

inlined int irq_ends(void)
{
	struct recorder_cpu *cs = this_cpu();
	u64 now = bpf_ktime_get_ns();

	if (!cs)
		return 0;
	if (cs->hard_depth)
		cs->hard_depth--;
	if (cs->irq_since && now > cs->irq_since)
		cs->irq_ns += now - cs->irq_since;
	cs->irq_since = 0;
	/* the next one may have no hook */
	cs->irq_kind = REC_BY_IRQ;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq)
{
	return irq_begins(REC_BY_IRQ);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit)
{
	return irq_ends();
}

SEC("tp_btf/local_timer_entry")
int BPF_PROG(on_local_timer)
{
	return irq_begins(REC_BY_TIMER);
}

SEC("tp_btf/local_timer_exit")
int BPF_PROG(on_local_timer_exit)
{
	return irq_ends();
}

/* Where the timer is an interrupt like any other, or one without a hook. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer)
{
	struct recorder_cpu *cs = this_cpu();

	if (cs)
		cs->irq_kind = REC_BY_TIMER;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_hrtimer_exit)
{
	struct recorder_cpu *cs = this_cpu();

	if (cs)
		cs->irq_kind = REC_BY_IRQ;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int vector)
{
	struct recorder_cpu *cs = this_cpu();

	if (!cs)
		return 0;
	cs->softirq = vector;
	cs->done_ns = 0;
	cs->ready_cookie = 0;
	cs->soft_depth = 1;
	return 0;
}

/* Only attached where soft interrupts must be counted. */
SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit)
{
	struct recorder_cpu *cs = this_cpu();

	if (cs)
		cs->soft_depth = 0;
	return 0;
}

#endif
