/* SPDX-License-Identifier: MIT
 *
 * cache.c - decoded nodes by file position, in order of use.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "history/cache.h"

static void unlink_node(struct history *h, struct node *n)
{
	*(n->newer ? &n->newer->older : &h->newest) = n->older;
	*(n->older ? &n->older->newer : &h->oldest) = n->newer;
}

static void link_newest(struct history *h, struct node *n)
{
	n->newer = NULL;
	n->older = h->newest;
	*(h->newest ? &h->newest->newer : &h->oldest) = n;
	h->newest = n;
}

static void evict(struct history *h)
{
	struct node *n = h->oldest;

	while (n && h->n_nodes > h->max_nodes) {
		struct node *newer = n->newer;

		if (!n->pins) {
			unlink_node(h, n);
			map_del(&h->nodes, n->ref.pos, NULL);
			node_free(n);
			h->n_nodes--;
		}
		n = newer;
	}
}

static int load(struct history *h, const struct node_ref *ref, struct node **ret, struct err *err)
{
	int r = node_read(&h->io, h->fd, ref, ret, err);

	if (r < 0)
		return r;
	map_put(&h->nodes, ref->pos, (uintptr_t)*ret);
	link_newest(h, *ret);
	h->n_nodes++;
	(*ret)->pins++;
	evict(h);
	return 0;
}

int cache_get(struct history *h, const struct node_ref *ref, struct node **ret, struct err *err)
{
	struct node *n = h->newest;
	uint64_t found;

	if (!n || n->ref.pos != ref->pos) {
		if (!map_get(&h->nodes, ref->pos, &found))
			return load(h, ref, ret, err);
		n = (struct node *)(uintptr_t)found;
		unlink_node(h, n);
		link_newest(h, n);
	}
	/* Two parents that disagree about one child: a file made to mislead. */
	if (memcmp(&n->ref, ref, sizeof(*ref)))
		return err_set(err, -EBADMSG, "damaged at offset %" PRIu64 ": two parents",
			       ref->pos);
	n->pins++;
	*ret = n;
	return 0;
}

void cache_put(struct history *h, struct node *n)
{
	n->pins--;
	if (h->n_nodes > h->max_nodes)
		evict(h);
}

void cache_clear(struct history *h)
{
	for (struct node *n = h->newest, *older; n; n = older) {
		older = n->older;
		node_free(n);
	}
	map_fini(&h->nodes);
	h->newest = h->oldest = NULL;
	h->n_nodes = 0;
}
