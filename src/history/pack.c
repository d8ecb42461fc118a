/* SPDX-License-Identifier: MIT
 *
 * pack.c - packs intervals into a node of level 0.
 *
 * Problem: an interval has up to nineteen numbers, most small, many zero; two million of them a
 * second must become about 20 bytes each, and be found again without unpacking their node.
 *
 * Idea: inside a node they are sorted by track and start, so that the track is written once and
 * the start is the small gap since the track's last end.  Values are stored in as few bytes as
 * each word needs.  Which words need how many bytes repeats: this *shape* (four bits a word, and
 * the kind) goes into a table of the node, and an interval names it in one or two bytes.
 *
 *	header | track +2, 3 intervals | shape gap length value | ... | track +1 ... | shapes
 *
 * Invariants: values are packed when an interval arrives, with nothing from its neighbours, so
 * they can be moved as bytes and read alone.  A node's size is estimated while it fills and
 * exact when written: sizes vary by some percent around the aim.
 *
 * Cost: one pass to pack, a radix sort of at most three passes, one pass to write.
 */
#include <stdlib.h>
#include <string.h>

#include "history/pack.h"

enum {
	ITEM_BYTES = 7, /* what an interval takes beside its value, as a rule */
	ITEM_MAX = 40,	/* and what more at most: group 10, shape 5 + 9, times 20, less 7 */
	RADIX_BITS = 11,
};

struct shape_slot {
	uint64_t words;
	uint32_t id, stamp; /* empty if the stamp is not the packer's */
	uint8_t kind;
};

void batch_add(struct batch *b, const struct interval *iv)
{
	struct item it = {.start_ns = iv->start_ns,
			  .end_ns = iv->end_ns,
			  .track = iv->track,
			  .value_at = (uint32_t)b->values.n,
			  .kind = iv->kind};

	vec_reserve(&b->values, b->values.n + INTERVAL_WORDS * sizeof(int64_t));
	uint8_t *p = b->values.at + b->values.n, *from = p;

	for (unsigned i = 0; i < iv->n; i++) {
		unsigned code = word_code(iv->v[i]);
		int64_t v = code > 8 ? ~iv->v[i] : iv->v[i];

		memcpy(p, &v, sizeof(v)); /* what is too much is overwritten by the next */
		p += word_bytes(code);
		it.words |= (uint64_t)code << 4 * i;
	}
	it.value_bytes = (uint8_t)(p - from);
	b->values.n += it.value_bytes;
	vec_push(&b->items, it);
	b->node_bytes += ITEM_BYTES + it.value_bytes;
}

void batch_clear(struct batch *b)
{
	b->items.n = b->values.n = b->node_bytes = 0;
}

void batch_fini(struct batch *b)
{
	vec_fini(&b->items);
	vec_fini(&b->values);
}

void packer_fini(struct packer *p)
{
	vec_fini(&p->order);
	vec_fini(&p->spare);
	vec_fini(&p->node);
	vec_fini(&p->tracks);
	vec_fini(&p->shapes);
	vec_fini(&p->slots);
}

/* ---- order ---- */

/* One stable pass over RADIX_BITS of the track; skipped if they are all the same. */
static void radix_pass(struct packer *p, const struct item *items, size_t n, unsigned shift)
{
	uint32_t count[1 << RADIX_BITS] = {0}, sum = 0;
	const uint32_t mask = (1 << RADIX_BITS) - 1;

	for (size_t i = 0; i < n; i++)
		count[items[i].track >> shift & mask]++;
	if (count[items[0].track >> shift & mask] == n)
		return;
	for (uint32_t d = 0; d <= mask; d++) {
		uint32_t here = count[d];

		count[d] = sum;
		sum += here;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t item = p->order.at[i];

		p->spare.at[count[items[item].track >> shift & mask]++] = item;
	}
	uint32_t *sorted = p->spare.at;

	p->spare.at = p->order.at;
	p->order.at = sorted;
}

struct late {
	int64_t start_ns;
	uint32_t item;
};

static int by_start(const void *a, const void *b)
{
	const struct late *la = a, *lb = b;

	if (la->start_ns != lb->start_ns)
		return la->start_ns < lb->start_ns ? -1 : 1;
	return la->item < lb->item ? -1 : la->item > lb->item;
}

static void sort_late(uint32_t *order, size_t n, const struct item *items)
{
	struct VEC(struct late) late = {0};

	vec_reserve(&late, n);
	for (size_t i = 0; i < n; i++)
		late.at[i] = (struct late){items[order[i]].start_ns, order[i]};
	qsort(late.at, n, sizeof(*late.at), by_start);
	for (size_t i = 0; i < n; i++)
		order[i] = late.at[i].item;
	vec_fini(&late);
}

/* The intervals of a track come in order, unless some were late. */
static void sort_groups(uint32_t *order, size_t n, const struct item *items)
{
	for (size_t from = 0, to; from < n; from = to) {
		bool sorted = true;

		for (to = from + 1; to < n && items[order[to]].track == items[order[from]].track;
		     to++)
			sorted &= items[order[to]].start_ns >= items[order[to - 1]].start_ns;
		if (!sorted)
			sort_late(order + from, to - from, items);
	}
}

void pack_sort(struct packer *p, const struct batch *b)
{
	size_t n = b->items.n, cap;

	vec_reserve(&p->order, n);
	vec_reserve(&p->spare, n);
	cap = p->order.cap < p->spare.cap ? p->order.cap : p->spare.cap;
	p->order.cap = p->spare.cap = cap; /* the passes exchange them */
	p->order.n = n;
	for (size_t i = 0; i < n; i++)
		p->order.at[i] = (uint32_t)i;
	for (unsigned shift = 0; n && shift < 32; shift += RADIX_BITS)
		radix_pass(p, b->items.at, n, shift);
	sort_groups(p->order.at, n, b->items.at);
}

/* ---- shapes ---- */

static void shapes_start(struct packer *p, size_t items)
{
	size_t want = 64;

	while (want < 2 * items)
		want *= 2;
	if (p->slots.n < want) {
		vec_reserve(&p->slots, want);
		memset(p->slots.at, 0, want * sizeof(*p->slots.at));
		p->slots.n = want;
		p->stamp = 0;
	}
	p->stamp++;
	p->shapes.n = 0;
}

static uint32_t shape_id(struct packer *p, const struct item *it)
{
	uint64_t hash = (it->words ^ (uint64_t)it->kind << 56) * 0x9e3779b97f4a7c15u;
	size_t mask = p->slots.n - 1, i = hash >> 32 & mask;
	struct shape_slot *s;

	for (;; i = (i + 1) & mask) {
		s = &p->slots.at[i];
		if (s->stamp != p->stamp)
			break;
		if (s->words == it->words && s->kind == it->kind)
			return s->id;
	}
	*s = (struct shape_slot){it->words, (uint32_t)(p->shapes.n / NODE_SHAPE_BYTES), p->stamp,
				 it->kind};
	vec_reserve(&p->shapes, p->shapes.n + NODE_SHAPE_BYTES);
	memcpy(p->shapes.at + p->shapes.n, &it->words, sizeof(it->words));
	p->shapes.at[p->shapes.n + 8] = it->kind;
	p->shapes.n += NODE_SHAPE_BYTES;
	return s->id;
}

/* ---- the node ---- */

/* Items from..ret-1 make about limit bytes; bounds and the most they can take go to ref. */
static size_t pack_measure(const struct packer *p, const struct batch *b, size_t limit, size_t from,
			   struct node_ref *ref, size_t *ret_max)
{
	size_t i = from, bytes = 0;

	for (; i < p->order.n && bytes < limit; i++) {
		const struct item *it = &b->items.at[p->order.at[i]];

		bytes += ITEM_BYTES + it->value_bytes;
		if (i == from || it->start_ns < ref->start_ns)
			ref->start_ns = it->start_ns;
		if (i == from || it->end_ns > ref->end_ns)
			ref->end_ns = it->end_ns;
	}
	ref->count = i - from;
	ref->track_lo = b->items.at[p->order.at[from]].track;
	ref->track_hi = b->items.at[p->order.at[i - 1]].track;
	*ret_max = sizeof(struct node_header) + bytes + ref->count * ITEM_MAX;
	return i;
}

static size_t group_end(const struct packer *p, const struct item *items, size_t i, size_t to)
{
	uint32_t track = items[p->order.at[i]].track;

	while (++i < to && items[p->order.at[i]].track == track)
		;
	return i;
}

static uint8_t *pack_item(struct packer *p, const struct batch *b, const struct item *it,
			  int64_t last_ns, uint8_t *out)
{
	out = varint_put(out, shape_id(p, it));
	out = varint_put(out, zigzag((uint64_t)it->start_ns - (uint64_t)last_ns));
	out = varint_put(out, (uint64_t)it->end_ns - (uint64_t)it->start_ns);
	memcpy(out, b->values.at + it->value_at, it->value_bytes);
	return out + it->value_bytes;
}

static uint8_t *pack_groups(struct packer *p, const struct batch *b, size_t from, size_t to,
			    const struct node_ref *ref, uint8_t *out)
{
	const struct item *items = b->items.at;
	uint32_t last_track = ref->track_lo;

	for (size_t i = from; i < to;) {
		size_t end = group_end(p, items, i, to);
		uint32_t track = items[p->order.at[i]].track;
		int64_t last_ns = ref->start_ns;

		vec_push(&p->tracks, track);
		out = varint_put(out, track - last_track);
		out = varint_put(out, end - i);
		last_track = track;
		for (; i < end; i++) {
			const struct item *it = &items[p->order.at[i]];

			out = pack_item(p, b, it, last_ns, out);
			last_ns = it->end_ns;
		}
	}
	return out;
}

void node_seal(uint8_t *node, size_t bytes)
{
	uint32_t crc = crc32c(0, node + sizeof(crc), bytes - sizeof(crc));

	memcpy(node, &crc, sizeof(crc));
}

void pack_node(struct packer *p, const struct batch *b, size_t limit, uint64_t pos, size_t *from,
	       struct node_ref *ret)
{
	struct node_header head = {.self = {.pos = pos}};
	size_t max, to = pack_measure(p, b, limit, *from, &head.self, &max);

	vec_reserve(&p->node, max);
	p->tracks.n = 0;
	shapes_start(p, to - *from);
	uint8_t *end = pack_groups(p, b, *from, to, &head.self, p->node.at + sizeof(head));

	memcpy(end, p->shapes.at, p->shapes.n);
	p->node.n = (size_t)(end - p->node.at) + p->shapes.n;
	head.self.bytes = (uint32_t)p->node.n;
	head.parts = (uint32_t)(p->shapes.n / NODE_SHAPE_BYTES);
	head.tracks = (uint32_t)p->tracks.n;
	memcpy(p->node.at, &head, sizeof(head));
	node_seal(p->node.at, p->node.n);
	*ret = head.self;
	*from = to;
}
