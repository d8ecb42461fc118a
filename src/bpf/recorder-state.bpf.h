/* SPDX-License-Identifier: MIT
 *
 * recorder-state.bpf.h - maps, knobs, and the way into the ring: the base of recorder.bpf.c, which
 * alone includes it.
 */
#ifndef BPF_RECORDER_STATE_H
#define BPF_RECORDER_STATE_H

#include "bpf/kernel.h"
#include "bpf/recorder.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define inlined static __always_inline

/* --- knobs, set before loading */

const volatile u8 cfg_call[CALL_SLOTS]; /* see CALL_* */
const volatile s64 cfg_preempt_offset;	/* of __preempt_count from runqueues, per CPU; 0 unknown */
const volatile s64 cfg_steal_offset;	/* of the hypervisor's steal_time; 0: there is none */
const volatile bool cfg_switch_has_state; /* sched_switch's fourth argument is prev_state */
const volatile bool cfg_by_calls;	  /* sockets are seen where system calls end */
const volatile bool cfg_has_cast;	  /* the kernel has bpf_rdonly_cast */
const volatile u32 cfg_version = REC_VERSION;

/* Since Linux 6.2; reading through it costs a load, a probe read costs a call. */
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;
#define CAST(p, type) ((type *)bpf_rdonly_cast((p), bpf_core_type_id_kernel(type)))

/* How interrupts are told: chosen by the loader's self-check, after loading. */
u32 irq_mode = IRQ_BY_COUNT;

/* f_op of every socket's file, once one was met. */
u64 socket_fop = 0;

/* When the last program was attached: what began before was not seen, and is no loss. */
u64 attached_ns = 0;

/* --- maps */

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* One ring per CPU, made by the loader.  No producer ever waits for another CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct recorder_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct recorder_cpu);
} cpus SEC(".maps");

inlined struct recorder_cpu *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

inlined void count_lost(struct recorder_cpu *cs, enum rec_lost_reason reason)
{
	/* an interrupt's may come in between */
	__sync_fetch_and_add(&cs->count.lost[reason], 1);
}

/* Byte by byte: not every length of memcmp is built in. */
inlined bool begins(const char *text, const char *word, u32 len)
{
	bool same = true;

#pragma unroll
	for (u32 i = 0; i < len; i++)
		same &= text[i] == word[i];
	return same;
}
#define BEGINS(text, word) begins((text), (word), sizeof(word) - 1)

/* --- records */

static __noinline void emit_lost(struct recorder_cpu *cs, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct rec_lost *r;

	if (!cs || !ring)
		return;
	r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);
	if (!r)
		return;
	__builtin_memset(r, 0, sizeof(*r));
	r->head = (struct rec_head){now, REC_ID_LOST, cpu, sizeof(*r)};
	r->since = cs->lost_since;
	r->count = cs->lost_count;
	r->reason = REC_LOST_RING_FULL;
	cs->lost_since = now;
	__sync_fetch_and_sub(&cs->lost_count, r->count);
	cs->count.records++;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* Room for a record of this CPU, its head filled; NULL: counted as lost. */
inlined void *reserve(struct recorder_cpu *cs, u64 now, enum rec_id id, u32 bytes)
{
	u32 cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct rec_head *head;

	if (!ring)
		return NULL;
	if (cs->lost_count)
		emit_lost(cs, now);
	head = bpf_ringbuf_reserve(ring, bytes, 0);
	if (!head) {
		if (!cs->lost_count++)
			cs->lost_since = now;
		count_lost(cs, REC_LOST_RING_FULL);
		return NULL;
	}
	head->ts = now;
	head->id = id;
	head->cpu = cpu;
	head->size = bytes;
	cs->count.records++;
	return head;
}

#define RESERVE(cs, now, NAME, name)                                                               \
	((struct rec_##name *)reserve((cs), (now), REC_ID_##NAME, sizeof(struct rec_##name)))
#define CLEAR_BODY(r) __builtin_memset(&(r)->head + 1, 0, sizeof(*(r)) - sizeof((r)->head))

inlined void submit(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* --- threads */

inlined struct recorder_thread *thread_state(struct recorder_cpu *cs, struct task_struct *p)
{
	struct recorder_thread *t;

	t = bpf_task_storage_get(&threads, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		count_lost(cs, REC_LOST_TASK_STORAGE);
	return t;
}

/* The system call that p is in, -1 for none; regs are those it was entered with. */
inlined s64 call_of(struct task_struct *p, struct pt_regs **ret)
{
	struct pt_regs *regs;

	if (p->flags & PF_KTHREAD)
		return -1;
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	*ret = regs;
	return regs ? REGS_SYSCALL(regs) : -1;
}

inlined u8 call_class(s64 number)
{
	u64 i = number;

	if (i >= CALL_SLOTS)
		return 0;
	/* The compiler knows the bound and would drop the mask; the verifier has lost it. */
	asm volatile("" : "+r"(i));
	return cfg_call[i & (CALL_SLOTS - 1)];
}

/* --- files: an address, whose fields are read with probes */

inlined struct file *file_of(struct task_struct *p, u32 fd)
{
	struct files_struct *files = p->files;
	struct file *file = NULL;

	if (!files || fd >= files->fdt->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), files->fdt->fd + fd);
	return file;
}

/* --- this CPU's variables, which have no symbol that a program may use */

inlined void find_queue(struct recorder_cpu *cs)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct cfs_rq *queue;
	u64 addr = 0;

	if (!bpf_core_field_exists(me->se.cfs_rq))
		return;
	queue = me->se.cfs_rq;
	/* The address leaves the verifier's sight as a number: it is read with a probe. */
	bpf_probe_read_kernel(&addr, sizeof(addr), &queue->rq);
	if (addr && queue->rq->cpu == bpf_get_smp_processor_id())
		cs->queue_addr = addr;
}

inlined u64 percpu_address(struct recorder_cpu *cs, s64 offset)
{
	if (!cs->queue_addr)
		find_queue(cs);
	return cs->queue_addr ? cs->queue_addr + offset : 0;
}

/* What the hypervisor has taken from this CPU since it started. */
inlined u64 stolen(struct recorder_cpu *cs)
{
	u64 at = percpu_address(cs, cfg_steal_offset), ns = 0;

	if (cfg_has_cast)
		return at ? CAST((void *)at, struct kvm_steal_time)->steal : 0;
	bpf_probe_read_kernel(&ns, sizeof(ns), (void *)at);
	return ns;
}

/* --- interrupts */

enum { IN_HARD = 1, IN_SOFT = 2 };

/* In which interrupts this CPU is: IN_HARD and IN_SOFT, 0: a thread's own context. */
inlined u32 irq_context(struct recorder_cpu *cs)
{
	u32 count = 0;

	if (irq_mode == IRQ_BY_THREAD_INFO &&
	    bpf_core_field_exists(struct thread_info, preempt_count)) {
		count = bpf_get_current_task_btf()->thread_info.preempt_count;
	} else if (irq_mode == IRQ_BY_PREEMPT) {
		bpf_probe_read_kernel(&count, sizeof(count),
				      (void *)percpu_address(cs, cfg_preempt_offset));
	} else {
		return (cs->hard_depth ? IN_HARD : 0) | (cs->soft_depth ? IN_SOFT : 0);
	}
	/* preempt_count: NMI and hard interrupts above bit 16; bit 8 is a soft one being served
	 * (bit 9 and up only tell that they are held off). */
	return (count & 0x00ff0000 ? IN_HARD : 0) | (count & 0x100 ? IN_SOFT : 0);
}

#endif
