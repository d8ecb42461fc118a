/* SPDX-License-Identifier: MIT
 *
 * cache.h - an open history: its file and a bounded set of decoded nodes.  Private to history/.
 *
 * The node least recently used goes first.  A pinned node stays: callbacks may ask the history
 * again while a node is in use, so the set can grow beyond its bound by the depth of the tree.
 */
#ifndef HISTORY_CACHE_H
#define HISTORY_CACHE_H
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/map.h"
#include "history/node.h"

struct history {
	int fd;
	struct io io;
	char *path;
	struct file_header head;
	struct node_ref root; /* bytes 0: empty */
	struct map nodes;     /* by pos */
	struct node *newest, *oldest;
	size_t max_nodes, n_nodes;
	struct file_attachment *attachments;
	void **attached; /* loaded so far */
};

/* Lends the node at ref, pinned; give it back with cache_put. */
int cache_get(struct history *h, const struct node_ref *ref, struct node **ret, struct err *err);
void cache_put(struct history *h, struct node *n);
/* Reads and checks attachment i, once. */
int attachment_load(struct history *h, uint32_t i, struct err *err);
void cache_clear(struct history *h);

#endif
