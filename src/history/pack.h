/* SPDX-License-Identifier: MIT
 *
 * pack.h - collects intervals and packs them into nodes of level 0.  Private to history/.
 */
#ifndef HISTORY_PACK_H
#define HISTORY_PACK_H
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "history/node.h"

/* An interval whose value is packed already. */
struct item {
	int64_t start_ns, end_ns;
	uint64_t words; /* codes of its words, the first lowest */
	uint32_t track, value_at;
	uint8_t kind, value_bytes;
};

/* Intervals on their way to one or more nodes. */
struct batch {
	struct VEC(struct item) items;
	struct VEC(uint8_t) values;
	size_t node_bytes; /* about what they will take on disk */
};

struct shape_slot;
/* Scratch, kept between nodes so that packing allocates nothing. */
struct packer {
	struct VEC(uint32_t) order, spare; /* items by (track, start) */
	struct VEC(uint8_t) node;	   /* the packed node */
	struct VEC(uint32_t) tracks;	   /* its tracks, ascending */
	struct VEC(uint8_t) shapes;
	struct VEC(struct shape_slot) slots;
	uint32_t stamp;
};

void batch_add(struct batch *b, const struct interval *iv);
void batch_clear(struct batch *b);
void batch_fini(struct batch *b);

/* Sorts the batch's items into p->order. */
void pack_sort(struct packer *p, const struct batch *b);
/* Packs the items p->order[*from..] that make about limit bytes into p->node and p->tracks,
 * fills *ret (pos is the caller's) and moves *from on. */
void pack_node(struct packer *p, const struct batch *b, size_t limit, uint64_t pos, size_t *from,
	       struct node_ref *ret);
/* Sets the checksum; the node is complete but for that. */
void node_seal(uint8_t *node, size_t bytes);
void packer_fini(struct packer *p);

#endif
