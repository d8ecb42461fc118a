/* SPDX-License-Identifier: MIT
 *
 * What the words of an interval mean: the only place that knows.
 *
 * Thread, cpu, disk and slot are in the track.  Indices are stored plus one, so that "none" is 0
 * and costs nothing; instants as small distances from the interval's start or end; what is rare
 * comes last, for trailing zeros are not stored.  docs/format/intervals.md has the table.
 */
#include "model/model.h"

enum { WHY_BITS = 3, STATE_BITS = 3, OBJ_BITS = 4, BY_BITS = 3 };

static void finish(struct interval *iv, int64_t start_ns, int64_t end_ns, uint32_t track,
		   enum interval_kind kind)
{
	iv->start_ns = start_ns;
	iv->end_ns = end_ns;
	iv->track = track;
	iv->kind = kind;
	iv->n = INTERVAL_WORDS;
	while (iv->n && !iv->v[iv->n - 1])
		iv->n--;
}

/* Word i, 0 beyond the last that was stored. */
static int64_t word(const struct interval *iv, unsigned i)
{
	return i < iv->n ? iv->v[i] : 0;
}

/* Wrapping arithmetic: a damaged file may hold anything. */
static int64_t add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* The next bits of *word, as a small number. */
static unsigned take(uint64_t *bits, unsigned n)
{
	unsigned x = *bits & ((1u << n) - 1);

	*bits >>= n;
	return x;
}

void run_put(const struct run *x, struct interval *ret)
{
	*ret = (struct interval){.v = {x->thread,
				       (int64_t)((uint64_t)(x->syscall + 1) << WHY_BITS | x->why),
				       x->irq_ns, x->steal_ns}};
	finish(ret, x->start_ns, x->end_ns, track_id(TRACK_CPU, (uint32_t)x->cpu), KIND_RUN);
}

void run_get(const struct interval *iv, struct run *ret)
{
	uint64_t facts = (uint64_t)word(iv, 1);

	*ret = (struct run){.start_ns = iv->start_ns,
			    .end_ns = iv->end_ns,
			    .cpu = (int)track_index(iv->track),
			    .thread = (int)word(iv, 0),
			    .why = take(&facts, WHY_BITS),
			    .syscall = (int)(facts & 0xffff) - 1,
			    .irq_ns = word(iv, 2),
			    .steal_ns = word(iv, 3)};
}

void absence_put(const struct absence *x, struct interval *ret)
{
	unsigned flags = x->migrated | x->open << 1 | x->before << 2 | x->lost << 3;
	unsigned facts = x->why | (unsigned)x->state << WHY_BITS |
			 (unsigned)x->obj_kind << (WHY_BITS + STATE_BITS) |
			 (unsigned)x->by << (WHY_BITS + STATE_BITS + OBJ_BITS) |
			 flags << (WHY_BITS + STATE_BITS + OBJ_BITS + BY_BITS);

	*ret = (struct interval){
		.v = {facts, x->syscall + 1, x->cpu + 1, sub(x->end_ns, x->runnable_ns),
		      x->waking_ns == NO_TIME ? 0 : sub(x->runnable_ns, x->waking_ns) + 1,
		      x->waker + 1, x->waker_syscall + 1, (int64_t)x->obj, (int64_t)x->waker_obj,
		      x->quota_ns}};
	finish(ret, x->start_ns, x->end_ns, track_id(TRACK_SCHED, (uint32_t)x->thread),
	       KIND_ABSENCE);
}

void absence_get(const struct interval *iv, struct absence *ret)
{
	uint64_t facts = (uint64_t)word(iv, 0);

	*ret = (struct absence){.start_ns = iv->start_ns,
				.end_ns = iv->end_ns,
				.thread = (int)track_index(iv->track),
				.why = take(&facts, WHY_BITS),
				.state = take(&facts, STATE_BITS),
				.obj_kind = take(&facts, OBJ_BITS),
				.by = take(&facts, BY_BITS),
				.migrated = take(&facts, 1),
				.open = take(&facts, 1),
				.before = take(&facts, 1),
				.lost = take(&facts, 1),
				.syscall = (int)word(iv, 1) - 1,
				.cpu = (int)word(iv, 2) - 1,
				.runnable_ns = sub(iv->end_ns, word(iv, 3)),
				.waker = (int)word(iv, 5) - 1,
				.waker_syscall = (int)word(iv, 6) - 1,
				.obj = (uint64_t)word(iv, 7),
				.waker_obj = (uint64_t)word(iv, 8),
				.quota_ns = word(iv, 9)};
	ret->waking_ns = word(iv, 4) ? sub(ret->runnable_ns, word(iv, 4) - 1) : NO_TIME;
}

void queued_put(const struct queued *x, struct interval *ret)
{
	*ret = (struct interval){.v = {x->cpu}};
	finish(ret, x->start_ns, x->end_ns, track_id(TRACK_QUEUE, (uint32_t)x->thread), KIND_QUEUE);
}

void queued_get(const struct interval *iv, struct queued *ret)
{
	*ret = (struct queued){.start_ns = iv->start_ns,
			       .end_ns = iv->end_ns,
			       .thread = (int)track_index(iv->track),
			       .cpu = (int)word(iv, 0)};
}

void op_put(const struct op *x, struct interval *ret)
{
	int64_t sent = x->sender_ns == NO_TIME ? 0 : sub(x->start_ns, x->sender_ns) * 2 + 1;

	*ret = (struct interval){
		.v = {x->dir | (int64_t)x->served << 2, x->socket + 1, x->request + 1, x->bytes,
		      x->arrived_ns == NO_TIME ? 0 : sub(x->start_ns, x->arrived_ns) + 1,
		      x->prev + 1, x->prev == NO_INDEX ? 0 : sub(x->start_ns, x->prev_ns),
		      x->sender + 1, sent, x->sender_request + 1}};
	finish(ret, x->start_ns, x->end_ns, track_id(TRACK_OPS, (uint32_t)x->thread), KIND_OP);
}

void op_get(const struct interval *iv, struct op *ret)
{
	int64_t arrived = word(iv, 4), sent = word(iv, 8);

	*ret = (struct op){.start_ns = iv->start_ns,
			   .end_ns = iv->end_ns,
			   .thread = (int)track_index(iv->track),
			   .dir = (enum op_dir)(word(iv, 0) & 3),
			   .served = word(iv, 0) >> 2 & 1,
			   .socket = (int)word(iv, 1) - 1,
			   .request = sub(word(iv, 2), 1),
			   .bytes = (uint32_t)word(iv, 3),
			   .arrived_ns = arrived ? sub(iv->start_ns, sub(arrived, 1)) : NO_TIME,
			   .prev = (int)word(iv, 5) - 1,
			   .prev_ns = word(iv, 5) ? sub(iv->start_ns, word(iv, 6)) : NO_TIME,
			   .sender = (int)word(iv, 7) - 1,
			   .sender_ns = sent ? sub(iv->start_ns, sent >> 1) : NO_TIME,
			   .sender_request = sub(word(iv, 9), 1)};
}

void block_put(const struct block *x, struct interval *ret)
{
	*ret = (struct interval){
		.v = {(x->op & 0xff) | x->sync << 8 | x->background << 9 | x->open << 10,
		      (int64_t)x->id, x->thread + 1, x->bytes,
		      x->issued_ns == NO_TIME ? 0 : sub(x->issued_ns, x->start_ns) + 1,
		      (int64_t)x->sector, x->owner + 1}};
	finish(ret, x->start_ns, x->end_ns,
	       track_id(TRACK_DISK, (uint32_t)(x->disk * DISK_SLOTS + x->slot)), KIND_BLOCK);
}

void block_get(const struct interval *iv, struct block *ret)
{
	int64_t facts = word(iv, 0), issued = word(iv, 4);

	*ret = (struct block){.start_ns = iv->start_ns,
			      .end_ns = iv->end_ns,
			      .disk = (int)track_index(iv->track) / DISK_SLOTS,
			      .slot = (int)track_index(iv->track) % DISK_SLOTS,
			      .id = (uint64_t)word(iv, 1),
			      .thread = (int)word(iv, 2) - 1,
			      .bytes = (uint32_t)word(iv, 3),
			      .issued_ns = issued ? add(iv->start_ns, sub(issued, 1)) : NO_TIME,
			      .sector = (uint64_t)word(iv, 5),
			      .owner = (int)word(iv, 6) - 1,
			      .op = (int)(facts & 0xff),
			      .sync = facts >> 8 & 1,
			      .background = facts >> 9 & 1,
			      .open = facts >> 10 & 1};
}

void request_put(const struct request *x, struct interval *ret)
{
	unsigned flags = x->cut_start | x->cut_end << 1 | x->streaming << 2;

	*ret = (struct interval){
		.v = {flags | (int64_t)(uint16_t)x->status << 3, x->id, x->name, x->socket + 1,
		      x->first_thread + 1, sub(x->first_ns, x->start_ns), x->last_thread + 1,
		      x->last_thread == NO_INDEX ? 0 : sub(x->end_ns, x->last_ns), x->parent + 1}};
	finish(ret, x->start_ns, x->end_ns, track_id(TRACK_REQUEST, (uint32_t)x->slot),
	       KIND_REQUEST);
}

void request_get(const struct interval *iv, struct request *ret)
{
	*ret = (struct request){.start_ns = iv->start_ns,
				.end_ns = iv->end_ns,
				.slot = (int)track_index(iv->track),
				.cut_start = word(iv, 0) & 1,
				.cut_end = word(iv, 0) >> 1 & 1,
				.streaming = word(iv, 0) >> 2 & 1,
				.status = (int)(word(iv, 0) >> 3),
				.id = word(iv, 1),
				.name = (uint32_t)word(iv, 2),
				.socket = (int)word(iv, 3) - 1,
				.first_thread = (int)word(iv, 4) - 1,
				.first_ns = add(iv->start_ns, word(iv, 5)),
				.last_thread = (int)word(iv, 6) - 1,
				.last_ns = word(iv, 6) ? sub(iv->end_ns, word(iv, 7)) : NO_TIME,
				.parent = sub(word(iv, 8), 1)};
}

void loss_put(const struct loss *x, struct interval *ret)
{
	*ret = (struct interval){.v = {(int64_t)x->count, x->reason}};
	finish(ret, x->start_ns, x->end_ns, track_id(TRACK_LOSS, (uint32_t)x->cpu), KIND_LOSS);
}

void loss_get(const struct interval *iv, struct loss *ret)
{
	*ret = (struct loss){.start_ns = iv->start_ns,
			     .end_ns = iv->end_ns,
			     .cpu = (int)track_index(iv->track),
			     .count = (uint64_t)word(iv, 0),
			     .reason = (uint32_t)word(iv, 1)};
}
