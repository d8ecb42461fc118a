/* SPDX-License-Identifier: MIT
 *
 * write.c - builds the history tree.
 *
 * Problem: intervals arrive by ascending end, more than fit into memory.  A question about one
 * instant should read few nodes, so a node's time should be short; but a thread that slept for a
 * minute has an interval a minute long, and there may be ten thousand of those at once.
 *
 * Idea (the State History Tree of Montplaisir, Ezzati-Jivan, Wininger and Dagenais, with
 * children that may overlap as in Prieur-Drevon's): only one branch is open, from the root to a
 * leaf.  Each of its levels has a window of time and takes the intervals that start in it or in
 * the window before; one that starts earlier climbs.  What climbed to a level is not kept in
 * the inner node but in a batch beside it.  A full batch is sorted by track and becomes a few more
 * leaves below that level, each with few tracks; the branch below goes on undisturbed.
 *
 *	level 2   root [ . . . ]------------------ batch: the longest
 *	                 |  |  \
 *	level 1    node [.] [.] [. . . .]--------- batch: longer than a leaf's window
 *	                         | | | |
 *	level 0              leaf  leaf (batch, open)
 *
 * So long intervals never fill the nodes above and never close the branch: there is no tower of
 * empty nodes.  For each track below it an inner node has a mask of the children that hold it:
 * a search goes straight to the node of a thread that slept all along.
 *
 * Invariants:
 *  1. every level accepts what starts at accept_ns or later; the top accepts everything;
 *  2. a node is written once, after its children, in one write; it has 2 to 64 children (a
 *     single child takes its parent's place);
 *  3. bounds come from what a node holds, not from windows: order costs speed, not correctness;
 *  4. the header says "incomplete" until the last byte before it is written.
 *
 * Cost: about 250 ns and 20 bytes per interval.  Memory: 8 nodes per level above the leaves,
 * and 16 bytes per track and level.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/map.h"
#include "base/scoped.h"
#include "history/history.h"
#include "history/pack.h"

enum {
	NODE_BYTES = 32 << 10, /* if the caller does not care */
	NODE_BYTES_MIN = 256,
	NODE_BYTES_MAX = 16 << 20,
	BATCH_NODES = 8,	  /* a climbers' batch becomes that many leaves, or one more */
	FAN_SOFT = NODE_FAN - 11, /* closing adds a child from below and a last batch */
};

struct level {
	int64_t from_ns, accept_ns; /* start of the window, and of the one before */
	struct batch batch;
	unsigned children;
	struct node_ref child[NODE_FAN];
	struct map masks; /* by track */
};

struct history_writer {
	int fd;
	char *path;
	struct io io;
	size_t node_bytes;
	uint64_t end; /* of the file so far */
	int broken;   /* the errno that made it useless */
	uint64_t count;
	int64_t last_ns; /* the last end */
	unsigned top;
	struct level *level[NODE_LEVELS];
	struct packer packer;
	struct VEC(struct file_attachment) attachments;
};

/* ---- the file ---- */

static int writer_put(struct history_writer *w, const void *data, size_t len, uint64_t at,
		      struct err *err)
{
	int r = io_pwrite_all(&w->io, w->fd, data, len, (off_t)at);

	if (r >= 0)
		return 0;
	w->broken = r;
	return err_set(err, r, "cannot write '%s' at offset %llu: %s", w->path,
		       (unsigned long long)at, strerror(-r));
}

static int writer_append(struct history_writer *w, const void *data, size_t len, struct err *err)
{
	int r = writer_put(w, data, len, w->end, err);

	if (r == 0)
		w->end += len;
	return r;
}

static int put_header(struct history_writer *w, struct file_header *head, struct err *err)
{
	memcpy(head->magic, HISTORY_MAGIC, sizeof(head->magic));
	head->version = HISTORY_VERSION;
	head->node_bytes = (uint32_t)w->node_bytes;
	head->crc = crc32c(0, head, offsetof(struct file_header, crc));
	return writer_put(w, head, sizeof(*head), 0, err);
}

/* Removes the file, unless somebody has put another in its place. */
static void writer_unlink(const struct history_writer *w)
{
	struct stat ours, there;

	if (fstat(w->fd, &ours) == 0 && lstat(w->path, &there) == 0 &&
	    ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
		unlink(w->path);
}

static void level_free(struct level *l)
{
	if (!l)
		return;
	batch_fini(&l->batch);
	map_fini(&l->masks);
	free(l);
}

static void writer_free(struct history_writer *w)
{
	for (unsigned k = 0; k < NODE_LEVELS; k++)
		level_free(w->level[k]);
	packer_fini(&w->packer);
	vec_fini(&w->attachments);
	if (w->fd >= 0)
		close(w->fd);
	free(w->path);
	free(w);
}

static struct level *level_new(void)
{
	struct level *l = calloc(1, sizeof(*l));

	if (!l)
		abort(); /* as vec and map do */
	l->accept_ns = l->from_ns = INT64_MIN;
	return l;
}

static int writer_open(struct history_writer *w, struct err *err)
{
	struct file_header head = {.state = HISTORY_INCOMPLETE};

	/* A reader of the old file keeps it: unlink, never truncate. */
	if (unlink(w->path) < 0 && errno != ENOENT)
		return err_set(err, -errno, "cannot replace '%s': %s", w->path, strerror(errno));
	w->fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return err_set(err, -errno, "cannot create '%s': %s", w->path, strerror(errno));
	w->end = sizeof(head);
	int r = put_header(w, &head, err);

	if (r < 0)
		writer_unlink(w);
	return r;
}

int history_create(const char *path, const struct history_options *opt, struct history_writer **ret,
		   struct err *err)
{
	size_t node_bytes = opt && opt->node_bytes ? opt->node_bytes : NODE_BYTES;

	if (node_bytes < NODE_BYTES_MIN || node_bytes > NODE_BYTES_MAX)
		return err_set(err, -EINVAL, "a history's nodes have %d to %d bytes, not %zu",
			       NODE_BYTES_MIN, NODE_BYTES_MAX, node_bytes);
	struct history_writer *w = calloc(1, sizeof(*w));

	if (!w || !(w->path = strdup(path))) {
		free(w);
		return err_set(err, -ENOMEM, "no memory to write '%s'", path);
	}
	w->fd = -1;
	w->io = opt && opt->io ? *opt->io : io_real;
	w->node_bytes = node_bytes;
	w->top = 1;
	w->level[0] = level_new();
	w->level[1] = level_new();
	int r = writer_open(w, err);

	if (r < 0)
		writer_free(w);
	else
		*ret = w;
	return r;
}

/* ---- the branch ---- */

static int level_up(struct history_writer *w, unsigned k, struct err *err)
{
	if (k == NODE_LEVELS)
		return err_set(err, w->broken = -EFBIG, "'%s' has too many levels", w->path);
	if (!w->level[k])
		w->level[k] = level_new();
	if (w->top < k)
		w->top = k;
	return 0;
}

static void child_add(struct level *l, const struct node_ref *ref)
{
	assert(l->children < NODE_FAN);
	l->child[l->children++] = *ref;
}

/* Writes level k's batch as leaves below level 1 or k. */
static int batch_write(struct history_writer *w, unsigned k, struct err *err)
{
	struct batch *b = &w->level[k]->batch;
	struct level *parent = w->level[k ? k : 1];
	struct packer *p = &w->packer;
	struct node_ref ref;

	pack_sort(p, b);
	for (size_t from = 0; from < b->items.n;) {
		pack_node(p, b, w->node_bytes, w->end, &from, &ref);
		int r = writer_append(w, p->node.at, p->node.n, err);

		if (r < 0)
			return r;
		for (size_t i = 0; i < p->tracks.n; i++)
			*map_at(&parent->masks, p->tracks.at[i]) |= 1ull << parent->children;
		child_add(parent, &ref);
	}
	batch_clear(b);
	return 0;
}

struct entry {
	uint64_t mask;
	uint32_t track;
};

static int by_track(const void *a, const void *b)
{
	uint32_t ta = ((const struct entry *)a)->track, tb = ((const struct entry *)b)->track;

	return ta < tb ? -1 : ta > tb;
}

static struct entry *level_directory(const struct level *l)
{
	struct entry *dir = malloc(l->masks.n * sizeof(*dir));
	uint64_t track, mask;
	size_t at = 0, n = 0;

	if (!dir)
		abort();
	while (map_next(&l->masks, &at, &track, &mask))
		dir[n++] = (struct entry){mask, (uint32_t)track};
	qsort(dir, n, sizeof(*dir), by_track);
	return dir;
}

static void level_bounds(const struct level *l, struct node_ref *ret)
{
	ret->start_ns = INT64_MAX;
	ret->end_ns = INT64_MIN;
	for (unsigned i = 0; i < l->children; i++) {
		const struct node_ref *c = &l->child[i];

		ret->start_ns = c->start_ns < ret->start_ns ? c->start_ns : ret->start_ns;
		ret->end_ns = c->end_ns > ret->end_ns ? c->end_ns : ret->end_ns;
		ret->count += c->count;
	}
}

/* header | references | masks | tracks */
static void pack_inner(struct packer *p, const struct level *l, const struct entry *dir,
		       struct node_header *head)
{
	size_t n = l->masks.n, refs = l->children * sizeof(struct node_ref);

	p->node.n = sizeof(*head) + refs + n * (sizeof(uint64_t) + sizeof(uint32_t));
	vec_reserve(&p->node, p->node.n);
	uint8_t *masks = p->node.at + sizeof(*head) + refs, *tracks = masks + n * sizeof(uint64_t);

	head->parts = l->children;
	head->tracks = (uint32_t)n;
	head->self.bytes = (uint32_t)p->node.n;
	head->self.track_lo = dir[0].track;
	head->self.track_hi = dir[n - 1].track;
	memcpy(p->node.at, head, sizeof(*head));
	memcpy(p->node.at + sizeof(*head), l->child, refs);
	for (size_t i = 0; i < n; i++) {
		memcpy(masks + i * sizeof(uint64_t), &dir[i].mask, sizeof(uint64_t));
		memcpy(tracks + i * sizeof(uint32_t), &dir[i].track, sizeof(uint32_t));
	}
	node_seal(p->node.at, p->node.n);
}

/* Hands level k's children to the level above, as one node if there are several. */
static int level_close(struct history_writer *w, unsigned k, struct err *err)
{
	struct level *l = w->level[k], *parent = w->level[k + 1];
	scoped(free) struct entry *dir = level_directory(l);
	struct node_header head = {.self = {.pos = w->end, .level = k}};

	if (l->masks.n > UINT32_MAX / 32) /* a node's size has 32 bits */
		return err_set(err, w->broken = -EFBIG, "'%s' has too many tracks", w->path);
	if (l->children > 1) {
		level_bounds(l, &head.self);
		pack_inner(&w->packer, l, dir, &head);
		int r = writer_append(w, w->packer.node.at, w->packer.node.n, err);

		if (r < 0)
			return r;
	} else {
		head.self = l->child[0];
	}
	for (size_t i = 0; i < l->masks.n; i++)
		*map_at(&parent->masks, dir[i].track) |= 1ull << parent->children;
	child_add(parent, &head.self);
	l->children = 0;
	map_fini(&l->masks);
	l->masks = (struct map){0};
	return 0;
}

/* Writes all of levels 0..k into level k + 1 and starts new windows. */
static int branch_close(struct history_writer *w, unsigned k, struct err *err)
{
	int r = level_up(w, k + 1, err);

	for (unsigned j = 0; j <= k && r == 0; j++) {
		if (w->level[j]->batch.items.n)
			r = batch_write(w, j, err);
		if (r == 0 && j && w->level[j]->children)
			r = level_close(w, j, err);
		w->level[j]->accept_ns = w->level[j]->from_ns;
		w->level[j]->from_ns = w->last_ns;
	}
	return r;
}

static int batch_full(struct history_writer *w, unsigned k, struct err *err)
{
	struct level *l = w->level[k];
	int r = batch_write(w, k, err);

	if (r == 0 && k == 0) {
		l->accept_ns = l->from_ns;
		l->from_ns = w->last_ns;
	}
	for (k = k ? k : 1; r == 0 && w->level[k]->children >= FAN_SOFT; k++)
		r = branch_close(w, k, err);
	return r;
}

int history_add(struct history_writer *w, const struct interval *iv, struct err *err)
{
	unsigned k = 0;

	if (w->broken)
		return err_set(err, w->broken, "'%s' could not be written", w->path);
	if (iv->start_ns >= iv->end_ns || iv->n > INTERVAL_WORDS)
		return err_set(err, -EINVAL,
			       "an interval of track %#x from %lld to %lld ns with %u words",
			       iv->track, (long long)iv->start_ns, (long long)iv->end_ns, iv->n);
	if (!w->count++)
		w->level[0]->accept_ns = w->level[0]->from_ns = iv->start_ns;
	w->last_ns = iv->end_ns;
	while (k < w->top && iv->start_ns < w->level[k]->accept_ns)
		k++;
	struct batch *b = &w->level[k]->batch;

	batch_add(b, iv);
	if (b->node_bytes < (k ? BATCH_NODES * w->node_bytes : w->node_bytes))
		return 0;
	return batch_full(w, k, err);
}

int history_attach(struct history_writer *w, const char *name, const void *data, size_t len,
		   struct err *err)
{
	struct file_attachment a = {.pos = w->end, .bytes = len, .crc = crc32c(0, data, len)};

	if (w->broken)
		return err_set(err, w->broken, "'%s' could not be written", w->path);
	if (!*name || strlen(name) >= sizeof(a.name))
		return err_set(err, -EINVAL, "'%s' is no name for an attachment", name);
	if (w->attachments.n == HISTORY_ATTACHMENTS)
		return err_set(err, -ENOSPC, "'%s' has too many attachments", w->path);
	for (size_t i = 0; i < w->attachments.n; i++)
		if (!strcmp(w->attachments.at[i].name, name))
			return err_set(err, -EEXIST, "'%s' is attached already", name);
	memcpy(a.name, name, strlen(name));
	int r = writer_append(w, data, len, err);

	if (r == 0)
		vec_push(&w->attachments, a);
	return r;
}

static int writer_finish(struct history_writer *w, struct err *err)
{
	size_t attach_bytes = w->attachments.n * sizeof(struct file_attachment);
	int r = w->broken ? err_set(err, w->broken, "'%s' could not be written", w->path)
			  : branch_close(w, w->top, err);

	if (r < 0)
		return r;
	struct file_header head = {
		.state = HISTORY_COMPLETE,
		.attachments = (uint32_t)w->attachments.n,
		.attach_pos = w->end,
		.attach_crc = crc32c(0, w->attachments.at, attach_bytes),
		.file_bytes = w->end + attach_bytes,
	};

	if (w->count) {
		const struct node_ref *root = &w->level[w->top]->child[0];

		head.root_pos = root->pos;
		head.root_bytes = root->bytes;
		head.root_level = root->level;
		head.count = root->count;
		head.start_ns = root->start_ns;
		head.end_ns = root->end_ns;
		head.track_lo = root->track_lo;
		head.track_hi = root->track_hi;
	}
	r = writer_append(w, w->attachments.at, attach_bytes, err);
	return r < 0 ? r : put_header(w, &head, err);
}

int history_finish(struct history_writer *w, struct err *err)
{
	int r = writer_finish(w, err);

	if (r < 0)
		writer_unlink(w);
	writer_free(w);
	return r;
}

void history_abort(struct history_writer *w)
{
	if (!w)
		return;
	writer_unlink(w);
	writer_free(w);
}
