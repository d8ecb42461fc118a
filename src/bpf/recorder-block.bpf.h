/* SPDX-License-Identifier: MIT
 *
 * recorder-block.bpf.h - block requests: kept by address from submission to completion, one
 * record at the end.
 *
 * The kernel completes a request in parts, and reuses its memory at once: a part that leaves
 * bytes over is not the end, and a start at a known address replaces what was there.
 */
#ifndef BPF_RECORDER_BLOCK_BPF_H
#define BPF_RECORDER_BLOCK_BPF_H

#include "bpf/recorder-state.bpf.h"

enum { OP_MASK = 0xff, OP_WRITE = 1, OP_FLUSH = 2 };
#define IN_FLIGHT_MAX_NS 5000000000ull

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BLOCK_SLOTS);
	__type(key, u64);
	__type(value, struct recorder_block);
} blocks SEC(".maps");

#define REQ_BIT(flags, bit) ((flags) >> bpf_core_enum_value(enum req_flag_bits, bit) & 1)

inlined u8 block_op(u32 flags, u32 bytes)
{
	u8 op = flags & OP_MASK;

	/* fsync without data is an empty write with a flush before it. */
	return op == OP_WRITE && !bytes && REQ_BIT(flags, __REQ_PREFLUSH) ? OP_FLUSH : op;
}

inlined u8 block_flags(u32 flags)
{
	return (REQ_BIT(flags, __REQ_SYNC) ? REC_BLOCK_SYNC : 0) |
	       (REQ_BIT(flags, __REQ_META) ? REC_BLOCK_META : 0) |
	       (REQ_BIT(flags, __REQ_BACKGROUND) ? REC_BLOCK_BACKGROUND : 0);
}

inlined u64 block_owner(struct request *rq)
{
	struct bio *bio = rq->bio;

	if (!bpf_core_field_exists(bio->bi_blkg))
		return 0;
	return bio ? BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup, kn, id) : 0;
}

inlined u32 block_dev(struct request *rq)
{
	struct gendisk *disk = rq->q->disk;

	return disk ? (u32)disk->major << 20 | (u32)disk->first_minor : 0;
}

inlined void block_describe(struct request *rq, struct recorder_block *b)
{
	u32 flags = rq->cmd_flags;

	b->sector = rq->__sector;
	b->bytes = rq->__data_len;
	b->op = block_op(flags, b->bytes);
	b->flags = block_flags(flags);
}

/* What is known of a request; not of one that ended and could not be removed. */
inlined struct recorder_block *block_known(u64 key)
{
	struct recorder_block *b = bpf_map_lookup_elem(&blocks, &key);

	return b && b->id ? b : NULL;
}

/* A request not seen before; its submitter is current. */
static __noinline int block_begin(struct request *rq, u64 submitted, u64 inserted, u64 issued)
{
	struct recorder_cpu *cs = this_cpu();
	u64 key = (u64)rq, me = bpf_get_current_pid_tgid();
	struct recorder_block b = {};

	if (!cs || !rq)
		return 0;
	block_describe(rq, &b);
	b.id = (u64)(bpf_get_smp_processor_id() + 1) << 40 | ++cs->last_block;
	b.submitted = submitted;
	b.inserted = inserted;
	b.issued = issued;
	b.owner_cgroup = block_owner(rq);
	b.dev = block_dev(rq);
	b.tid = me;
	b.pid = me >> 32;
	if (bpf_map_update_elem(&blocks, &key, &b, BPF_ANY))
		count_lost(cs, REC_LOST_BLOCK_MAP);
	return 0;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(on_block_start, struct request *rq)
{
	return block_begin(rq, bpf_ktime_get_ns(), 0, 0);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_block_insert, struct request *rq)
{
	u64 now = bpf_ktime_get_ns();
	struct recorder_block *b = block_known((u64)rq);

	if (!b)
		return block_begin(rq, now, now, 0);
	b->inserted = now;
	return 0;
}

/* Bios may have been merged into it since it was submitted. */
SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_block_issue, struct request *rq)
{
	u64 now = bpf_ktime_get_ns();
	struct recorder_block *b = block_known((u64)rq);

	if (!b)
		return block_begin(rq, now, 0, now);
	b->issued = now;
	block_describe(rq, b);
	return 0;
}

inlined void emit_block(struct recorder_cpu *cs, const struct recorder_block *b, int error, u64 now)
{
	struct rec_block *r = RESERVE(cs, now, BLOCK, block);

	if (!r)
		return;
	r->request = b->id;
	r->sector = b->sector;
	r->submitted = b->submitted;
	r->inserted = b->inserted;
	r->issued = b->issued;
	r->completed = now;
	r->owner_cgroup = b->owner_cgroup;
	r->tid = b->tid;
	r->pid = b->pid;
	r->bytes = b->bytes;
	r->dev = b->dev;
	r->op = b->op;
	r->flags = b->flags;
	r->error = error;
	r->pad0 = 0;
	submit(r);
}

/* Some disks keep the instant of issue, some that of submission, some neither. */
inlined bool began_before(struct request *rq, u64 now)
{
	u64 at = rq->io_start_time_ns ? rq->io_start_time_ns : rq->start_time_ns;

	if (!attached_ns)
		return true;
	return at ? at < attached_ns : now < attached_ns + IN_FLIGHT_MAX_NS;
}

/* What was in flight when the recording began has no start and is not written.  Neither is the
 * second end of a write that is followed by a flush: its data and the flush were told. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_block_complete, struct request *rq, int error, unsigned int bytes)
{
	struct recorder_cpu *cs = this_cpu();
	u64 key = (u64)rq, now;
	struct recorder_block *b;

	if (!cs || bytes < rq->__data_len)
		return 0;
	now = bpf_ktime_get_ns();
	b = block_known(key);
	if (!b) {
		if (bytes && !began_before(rq, now))
			count_lost(cs, REC_LOST_BLOCK_START);
		return 0;
	}
	cs->done_ns = now;
	cs->done_id = b->id;
	cs->done_context = irq_context(cs);
	emit_block(cs, b, error, now);
	/* fails in an interrupt that found the map at work */
	if (bpf_map_delete_elem(&blocks, &key))
		b->id = 0;
	return 0;
}

#endif
