/* SPDX-License-Identifier: MIT
 *
 * read.c - opens a history and finds one interval: at, before, after.
 *
 * Problem: following one request asks some fifty such questions, and there are a hundred
 * thousand requests.  "Before" may have to look back over the whole recording, because the
 * thread slept.
 *
 * Idea: go down from the root only into children that hold this track at all (the mask) and
 * whose time allows an answer, likeliest first.  Since intervals of a track do not overlap, one
 * that reaches the instant asked for is the answer and ends the search; otherwise the best so far
 * rules out the children whose bounds cannot beat it.
 *
 * Cost: as a rule one node per level; a node in the cache costs a binary search over its tracks
 * and one over the track's intervals.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "history/cache.h"
#include "history/history.h"

enum { CACHE_NODES = 512 };

/* ---- opening ---- */

static int bad(const struct history *h, struct err *err, uint64_t offset, const char *what)
{
	return err_set(err, -EBADMSG, "'%s' is damaged at offset %" PRIu64 ": %s", h->path, offset,
		       what);
}

static int check_root(struct history *h, struct err *err)
{
	const struct file_header *f = &h->head;

	if (f->count == 0)
		return f->root_pos || f->root_bytes ? bad(h, err, 24, "no intervals, but nodes")
						    : 0;
	if (f->count > f->file_bytes / NODE_INTERVAL_BYTES || f->root_level >= NODE_LEVELS ||
	    f->start_ns >= f->end_ns || f->track_lo > f->track_hi ||
	    f->root_bytes < sizeof(struct node_header) || f->root_bytes > f->attach_pos ||
	    f->root_pos < sizeof(*f) || f->root_pos > f->attach_pos - f->root_bytes)
		return bad(h, err, 24, "its root is impossible");
	h->root = (struct node_ref){f->root_pos, f->start_ns, f->end_ns,     f->count,
				    f->track_lo, f->track_hi, f->root_bytes, f->root_level};
	return 0;
}

static int check_header(struct history *h, uint64_t size, struct err *err)
{
	const struct file_header *f = &h->head;

	if (memcmp(f->magic, HISTORY_MAGIC, sizeof(f->magic)))
		return bad(h, err, 0, "it is not a history");
	if (f->version != HISTORY_VERSION)
		return err_set(err, -ESTALE, "'%s' is a history of version %u, this is %d", h->path,
			       f->version, HISTORY_VERSION);
	if (crc32c(0, f, offsetof(struct file_header, crc)) != f->crc)
		return bad(h, err, 0, "wrong checksum of the header");
	if (f->state == HISTORY_INCOMPLETE)
		return err_set(err, -ESTALE, "'%s' is incomplete: its writer did not finish",
			       h->path);
	if (f->state != HISTORY_COMPLETE || f->attachments > HISTORY_ATTACHMENTS)
		return bad(h, err, 12, "its header is impossible");
	if (size != f->file_bytes)
		return bad(h, err, size,
			   size < f->file_bytes ? "the file is cut short" : "the file is too long");
	if (f->attach_pos < sizeof(*f) || f->attach_pos > size ||
	    size - f->attach_pos != f->attachments * sizeof(struct file_attachment))
		return bad(h, err, 64, "its list of attachments is impossible");
	return check_root(h, err);
}

/* All len bytes at pos, which is inside the file. */
static int read_exact(struct history *h, void *data, size_t len, uint64_t pos, struct err *err)
{
	ssize_t got = io_pread_all(&h->io, h->fd, data, len, (off_t)pos);

	if (got < 0)
		return err_set(err, (int)got, "cannot read '%s' at offset %" PRIu64 ": %s", h->path,
			       pos, strerror((int)-got));
	return (size_t)got == len ? 0 : bad(h, err, pos + (size_t)got, "the file is cut short");
}

static int check_attachments(struct history *h, struct err *err)
{
	const struct file_header *f = &h->head;
	size_t bytes = f->attachments * sizeof(*h->attachments);

	h->attachments = malloc(bytes + 1);
	h->attached = calloc(f->attachments + 1, sizeof(*h->attached));
	if (!h->attachments || !h->attached)
		return err_set(err, -ENOMEM, "no memory to open '%s'", h->path);
	int r = read_exact(h, h->attachments, bytes, f->attach_pos, err);

	if (r < 0)
		return r;
	if (crc32c(0, h->attachments, bytes) != f->attach_crc)
		return bad(h, err, f->attach_pos, "wrong checksum of the attachments' list");
	for (uint32_t i = 0; i < f->attachments; i++) {
		const struct file_attachment *a = &h->attachments[i];

		if (a->name[sizeof(a->name) - 1] || a->bytes > f->attach_pos ||
		    a->pos < sizeof(*f) || a->pos > f->attach_pos - a->bytes)
			return bad(h, err, f->attach_pos + i * sizeof(*a),
				   "an attachment is impossible");
	}
	return 0;
}

static int open_file(struct history *h, struct err *err)
{
	struct stat st;

	h->fd = open(h->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* never waits on a fifo */
	if (h->fd < 0 || fstat(h->fd, &st) < 0)
		return err_set(err, -errno, "cannot open '%s': %s", h->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EBADMSG, "'%s' is not a file", h->path);
	if (st.st_size == 0)
		return err_set(err, -ESTALE, "'%s' is incomplete: it is empty", h->path);
	if ((uint64_t)st.st_size < sizeof(h->head))
		return bad(h, err, (uint64_t)st.st_size, "the header is cut short");
	int r = read_exact(h, &h->head, sizeof(h->head), 0, err);

	if (r == 0)
		r = check_header(h, (uint64_t)st.st_size, err);
	return r < 0 ? r : check_attachments(h, err);
}

int history_open(const char *path, const struct history_options *opt, struct history **ret,
		 struct err *err)
{
	struct history *h = calloc(1, sizeof(*h));
	int r;

	if (!h || !(h->path = strdup(path))) {
		free(h);
		return err_set(err, -ENOMEM, "no memory to open '%s'", path);
	}
	h->fd = -1;
	h->io = opt && opt->io ? *opt->io : io_real;
	h->max_nodes = opt && opt->cache_nodes ? opt->cache_nodes : CACHE_NODES;
	r = open_file(h, err);
	if (r < 0)
		history_close(h);
	else
		*ret = h;
	return r;
}

void history_close(struct history *h)
{
	if (!h)
		return;
	cache_clear(h);
	for (uint32_t i = 0; h->attached && i < h->head.attachments; i++)
		free(h->attached[i]);
	free(h->attached);
	free(h->attachments);
	if (h->fd >= 0)
		close(h->fd);
	free(h->path);
	free(h);
}

void history_bounds(const struct history *h, int64_t *ret_start_ns, int64_t *ret_end_ns)
{
	*ret_start_ns = h->root.start_ns;
	*ret_end_ns = h->root.end_ns;
}

uint64_t history_count(const struct history *h)
{
	return h->root.count;
}

/* ---- attachments ---- */

int attachment_load(struct history *h, uint32_t i, struct err *err)
{
	const struct file_attachment *a = &h->attachments[i];
	void *data;
	int r;

	if (h->attached[i])
		return 0;
	if (!(data = malloc(a->bytes + 1)))
		return err_set(err, -ENOMEM, "no memory for '%s' of '%s'", a->name, h->path);
	r = read_exact(h, data, a->bytes, a->pos, err);
	if (r == 0 && crc32c(0, data, a->bytes) != a->crc)
		r = bad(h, err, a->pos, "wrong checksum of an attachment");
	if (r < 0) {
		free(data);
		return r;
	}
	h->attached[i] = data;
	return 0;
}

int history_attachment(struct history *h, const char *name, const void **ret, size_t *ret_len)
{
	for (uint32_t i = 0; i < h->head.attachments; i++) {
		if (strcmp(h->attachments[i].name, name))
			continue;
		int r = attachment_load(h, i, NULL);

		if (r < 0)
			return r;
		*ret = h->attached[i];
		*ret_len = h->attachments[i].bytes;
		return 0;
	}
	return -ENOENT;
}

/* ---- one interval ---- */

enum want { WANT_AT, WANT_BEFORE, WANT_AFTER };

struct search {
	struct history *h;
	enum want want;
	uint32_t track;
	int64_t at_ns; /* AT: covers it; BEFORE: starts at or before it; AFTER: at or after it */
	bool found, done;
	struct interval best;
};

/* Could this child hold something better than what is known? */
static bool may_help(const struct search *s, const struct node_ref *c)
{
	switch (s->want) {
	case WANT_AT:
		return c->start_ns <= s->at_ns && c->end_ns > s->at_ns;
	case WANT_BEFORE: /* its last start is before its end */
		return c->start_ns <= s->at_ns && (!s->found || c->end_ns - 1 > s->best.start_ns);
	case WANT_AFTER:
		return c->end_ns - 1 >= s->at_ns && (!s->found || c->start_ns < s->best.start_ns);
	}
	return false;
}

/* Is a likelier than b to hold the answer, or to hold a better one? */
static bool likelier(const struct search *s, const struct node_ref *a, const struct node_ref *b)
{
	if (s->want == WANT_AFTER) {
		int64_t start_a = a->start_ns > s->at_ns ? a->start_ns : s->at_ns;
		int64_t start_b = b->start_ns > s->at_ns ? b->start_ns : s->at_ns;

		return start_a != start_b ? start_a < start_b : a->end_ns < b->end_ns;
	}
	int64_t end_a = a->end_ns - 1 < s->at_ns ? a->end_ns - 1 : s->at_ns;
	int64_t end_b = b->end_ns - 1 < s->at_ns ? b->end_ns - 1 : s->at_ns;

	return end_a != end_b ? end_a > end_b : a->start_ns > b->start_ns;
}

static void search_leaf(struct search *s, const struct node *n, uint32_t group)
{
	uint32_t lo = n->first[group], hi = n->first[group + 1];
	uint32_t i = node_first_from(n, lo, hi, s->at_ns);
	bool exact = i < hi && n->start_ns[i] == s->at_ns;

	if (s->want == WANT_AFTER) {
		if (i == hi || (s->found && n->start_ns[i] >= s->best.start_ns))
			return;
	} else {
		if (!exact && i-- == lo)
			return;
		if (s->want == WANT_AT ? n->end_ns[i] <= s->at_ns
				       : s->found && n->start_ns[i] <= s->best.start_ns)
			return;
	}
	node_interval(n, i, &s->best);
	s->found = true;
	/* No other of this track lies between this one and at_ns. */
	s->done = exact || (s->want != WANT_AFTER && n->end_ns[i] > s->at_ns);
}

static int search_node(struct search *s, const struct node_ref *ref);

static int search_children(struct search *s, const struct node *n, uint64_t mask)
{
	while (mask && !s->done) {
		const struct node_ref *next = NULL;

		for (uint64_t m = mask; m; m &= m - 1) {
			const struct node_ref *c = &n->child[__builtin_ctzll(m)];

			if (!may_help(s, c))
				mask &= ~(m & -m);
			else if (!next || likelier(s, c, next))
				next = c;
		}
		if (!next)
			return 0;
		mask &= ~(1ull << (next - n->child));
		int r = search_node(s, next);

		if (r < 0)
			return r;
	}
	return 0;
}

static int search_node(struct search *s, const struct node_ref *ref)
{
	struct node *n;
	int r = cache_get(s->h, ref, &n, NULL);

	if (r < 0)
		return r;
	uint32_t i = node_track(n, s->track);

	if (i < n->tracks && n->track[i] == s->track) {
		if (n->ref.level)
			r = search_children(s, n, n->mask[i]);
		else
			search_leaf(s, n, i);
	}
	cache_put(s->h, n);
	return r;
}

static int search(struct history *h, enum want want, uint32_t track, int64_t at_ns,
		  struct interval *ret)
{
	struct search s = {.h = h, .want = want, .track = track, .at_ns = at_ns};
	int r = h->root.count ? search_node(&s, &h->root) : 0;

	if (r < 0)
		return r;
	if (!s.found)
		return -ENOENT;
	*ret = s.best;
	return 0;
}

int history_at(struct history *h, uint32_t track, int64_t at_ns, struct interval *ret)
{
	return search(h, WANT_AT, track, at_ns, ret);
}

int history_before(struct history *h, uint32_t track, int64_t at_ns, struct interval *ret)
{
	if (at_ns == INT64_MIN)
		return -ENOENT;
	return search(h, WANT_BEFORE, track, at_ns - 1, ret);
}

int history_after(struct history *h, uint32_t track, int64_t at_ns, struct interval *ret)
{
	return search(h, WANT_AFTER, track, at_ns, ret);
}
