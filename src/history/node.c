/* SPDX-License-Identifier: MIT
 *
 * node.c - reads a node and makes it searchable.
 *
 * Problem: `why` asks millions of small questions of the same few hundred nodes, and the file
 * may be damaged, or made by somebody who wishes us ill.
 *
 * Idea: check everything once, on reading, so that searches need no checks.  Of the intervals
 * only times and places are unpacked (24 bytes each); the value stays packed in the node's own
 * bytes until somebody asks for that interval.
 *
 * What holds of a decoded node:
 *  1. its header says exactly what its parent said of it;
 *  2. tracks ascend; the intervals of a track ascend by start; start < end; all lie in bounds;
 *  3. a child lies before its parent in the file and on a lower level: no cycles;
 *  4. the children's counts sum to the node's, none is 0; with the file's count limited by its
 *     size, a walk over a tree whose parents share children ends soon too.
 *
 * Cost: about 10 ns per interval, and a checksum.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/io.h"
#include "history/node.h"

static int bad(const struct node *n, struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "damaged at offset %" PRIu64 ": %s", n->ref.pos, what);
}

void node_free(struct node *n)
{
	if (!n)
		return;
	free(n->memory);
	free(n->raw);
	free(n);
}

uint32_t node_track(const struct node *n, uint32_t track)
{
	uint32_t lo = 0, hi = n->tracks;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (n->track[mid] < track)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint32_t node_first_from(const struct node *n, uint32_t lo, uint32_t hi, int64_t at_ns)
{
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (n->start_ns[mid] < at_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t shape_words(const struct node *n, uint32_t id)
{
	uint64_t words;

	memcpy(&words, n->shape + (size_t)id * NODE_SHAPE_BYTES, sizeof(words));
	return words;
}

static unsigned shape_value_bytes(uint64_t words)
{
	unsigned sum = 0;

	for (; words; words >>= 4)
		sum += word_bytes(words & 15);
	return sum;
}

void node_interval(const struct node *n, uint32_t i, struct interval *ret)
{
	uint64_t words = shape_words(n, n->shape_id[i]);
	const uint8_t *p = n->raw + n->value_at[i];
	uint32_t group = 0, hi = n->tracks;

	while (hi - group > 1) { /* the last group that starts at or before i */
		uint32_t mid = group + (hi - group) / 2;

		if (n->first[mid] <= i)
			group = mid;
		else
			hi = mid;
	}
	memset(ret, 0, sizeof(*ret));
	ret->start_ns = n->start_ns[i];
	ret->end_ns = n->end_ns[i];
	ret->track = n->track[group];
	ret->kind = n->shape[(size_t)n->shape_id[i] * NODE_SHAPE_BYTES + 8];
	for (; words; words >>= 4, ret->n++) {
		unsigned code = words & 15;
		uint64_t v = 0;

		memcpy(&v, p, word_bytes(code));
		p += word_bytes(code);
		ret->v[ret->n] = code > 8 ? (int64_t)~v : (int64_t)v;
	}
}

/* ---- level 0 ---- */

struct decoder {
	struct node *n;
	const uint8_t *p, *end;
	uint32_t *track;
	uint8_t *value_bytes; /* by shape */
	uint32_t i;	      /* intervals so far */
};

static int decode_interval(struct decoder *d, int64_t *last_ns, int64_t *from_ns)
{
	struct node *n = d->n;
	uint64_t shape, gap, length;

	if (!(d->p = varint_get(d->p, d->end, &shape)) || shape >= n->shapes ||
	    !(d->p = varint_get(d->p, d->end, &gap)) ||
	    !(d->p = varint_get(d->p, d->end, &length)) || d->value_bytes[shape] > d->end - d->p)
		return -EBADMSG;
	int64_t start = (int64_t)((uint64_t)*last_ns + unzigzag(gap));
	int64_t end = (int64_t)((uint64_t)start + length);

	if (start < *from_ns || end <= start || end > n->ref.end_ns)
		return -EBADMSG;
	n->start_ns[d->i] = start;
	n->end_ns[d->i] = end;
	n->shape_id[d->i] = (uint32_t)shape;
	n->value_at[d->i] = (uint32_t)(d->p - n->raw);
	d->p += d->value_bytes[shape];
	d->i++;
	*last_ns = end;
	*from_ns = start;
	return 0;
}

static int decode_group(struct decoder *d, uint32_t group)
{
	struct node *n = d->n;
	int64_t last_ns = n->ref.start_ns, from_ns = n->ref.start_ns;
	uint64_t step, count;

	if (!(d->p = varint_get(d->p, d->end, &step)) || !(d->p = varint_get(d->p, d->end, &count)))
		return -EBADMSG;
	if (group ? step == 0 || step > n->ref.track_hi - d->track[group - 1] : step != 0)
		return -EBADMSG;
	if (count == 0 || count > n->ref.count - d->i)
		return -EBADMSG;
	d->track[group] = (group ? d->track[group - 1] : n->ref.track_lo) + (uint32_t)step;
	n->first[group] = d->i;
	for (; count; count--)
		if (decode_interval(d, &last_ns, &from_ns) < 0)
			return -EBADMSG;
	return 0;
}

static int decode_groups(struct decoder *d)
{
	struct node *n = d->n;

	for (uint32_t i = 0; i < n->shapes; i++)
		d->value_bytes[i] = (uint8_t)shape_value_bytes(shape_words(n, i));
	for (uint32_t i = 0; i < n->tracks; i++)
		if (decode_group(d, i) < 0)
			return -EBADMSG;
	n->first[n->tracks] = d->i;
	if (d->i != n->ref.count || d->p != d->end || d->track[n->tracks - 1] != n->ref.track_hi)
		return -EBADMSG;
	return 0;
}

static int decode_leaf(struct node *n, const struct node_header *head, struct err *err)
{
	uint64_t body = n->ref.bytes - sizeof(*head), count = n->ref.count;

	if (count > body / NODE_INTERVAL_BYTES || head->tracks == 0 || head->tracks > count ||
	    head->parts == 0 || head->parts > count || head->parts > body / NODE_SHAPE_BYTES)
		return bad(n, err, "the node's counts do not fit into it");
	n->tracks = head->tracks;
	n->shapes = head->parts;
	n->shape = n->raw + n->ref.bytes - (size_t)n->shapes * NODE_SHAPE_BYTES;
	n->memory = malloc(count * (2 * sizeof(int64_t) + 2 * sizeof(uint32_t)) +
			   (2 * (size_t)n->tracks + 1) * sizeof(uint32_t) + n->shapes);
	if (!n->memory)
		return err_set(err, -ENOMEM, "no memory for a node of the history");
	n->start_ns = n->memory;
	n->end_ns = n->start_ns + count;
	n->value_at = (uint32_t *)(n->end_ns + count);
	n->shape_id = n->value_at + count;
	n->first = n->shape_id + count;
	struct decoder d = {.n = n, .p = n->raw + sizeof(*head), .end = n->shape};

	n->track = d.track = n->first + n->tracks + 1;
	d.value_bytes = (uint8_t *)(d.track + n->tracks);
	return decode_groups(&d) < 0 ? bad(n, err, "its intervals are not in order") : 0;
}

/* ---- above ---- */

static bool child_fits(const struct node_ref *parent, const struct node_ref *c)
{
	return c->level < parent->level && c->bytes >= sizeof(struct node_header) &&
	       c->bytes <= parent->pos && c->pos >= sizeof(struct file_header) &&
	       c->pos <= parent->pos - c->bytes && c->start_ns >= parent->start_ns &&
	       c->end_ns <= parent->end_ns && c->start_ns < c->end_ns &&
	       c->track_lo >= parent->track_lo && c->track_hi <= parent->track_hi &&
	       c->track_lo <= c->track_hi && c->count > 0;
}

static int check_children(const struct node *n, struct err *err)
{
	uint64_t left = n->ref.count;

	for (uint32_t i = 0; i < n->children; i++) {
		if (!child_fits(&n->ref, &n->child[i]) || n->child[i].count > left)
			return bad(n, err, "a child does not fit into it");
		left -= n->child[i].count;
	}
	return left ? bad(n, err, "its children hold fewer intervals than it says") : 0;
}

static int check_directory(const struct node *n, struct err *err)
{
	uint64_t all = n->children == NODE_FAN ? ~0ull : (1ull << n->children) - 1;

	for (uint32_t i = 0; i < n->tracks; i++)
		if ((i && n->track[i] <= n->track[i - 1]) || !n->mask[i] || n->mask[i] & ~all)
			return bad(n, err, "its directory of tracks is not in order");
	if (n->track[0] != n->ref.track_lo || n->track[n->tracks - 1] != n->ref.track_hi)
		return bad(n, err, "its directory of tracks does not match its bounds");
	return 0;
}

static int decode_inner(struct node *n, const struct node_header *head, struct err *err)
{
	uint64_t need = sizeof(*head) + head->parts * (uint64_t)sizeof(struct node_ref) +
			head->tracks * (uint64_t)(sizeof(uint64_t) + sizeof(uint32_t));

	if (head->parts < 2 || head->parts > NODE_FAN || head->tracks == 0 || need != n->ref.bytes)
		return bad(n, err, "the node's counts do not fit into it");
	n->children = head->parts;
	n->tracks = head->tracks;
	n->child = (const struct node_ref *)(n->raw + sizeof(*head));
	n->mask = (const uint64_t *)(n->child + n->children);
	n->track = (const uint32_t *)(n->mask + n->tracks);
	int r = check_children(n, err);

	return r < 0 ? r : check_directory(n, err);
}

static int check_header(struct node *n, const struct node_header *head, struct err *err)
{
	const uint8_t *rest = n->raw + sizeof(head->crc);

	if (crc32c(0, rest, n->ref.bytes - sizeof(head->crc)) != head->crc)
		return bad(n, err, "wrong checksum");
	if (memcmp(&head->self, &n->ref, sizeof(n->ref)) || head->zero)
		return bad(n, err, "the node is not the one its parent means");
	return 0;
}

static int node_load(struct node *n, const struct io *io, int fd, struct err *err)
{
	struct node_header head;

	if (n->ref.bytes < sizeof(head) || !(n->raw = malloc(n->ref.bytes)))
		return err_set(err, -ENOMEM, "no memory for a node of the history");
	ssize_t got = io_pread_all(io, fd, n->raw, n->ref.bytes, (off_t)n->ref.pos);

	if (got < 0)
		return err_set(err, (int)got, "cannot read at offset %" PRIu64 ": %s", n->ref.pos,
			       strerror((int)-got));
	if ((size_t)got < n->ref.bytes)
		return bad(n, err, "the file ends inside the node");
	memcpy(&head, n->raw, sizeof(head));
	int r = check_header(n, &head, err);

	if (r < 0)
		return r;
	return n->ref.level ? decode_inner(n, &head, err) : decode_leaf(n, &head, err);
}

int node_read(const struct io *io, int fd, const struct node_ref *ref, struct node **ret,
	      struct err *err)
{
	struct node *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return err_set(err, -ENOMEM, "no memory for a node of the history");
	n->ref = *ref;
	r = node_load(n, io, fd, err);
	if (r < 0)
		node_free(n);
	else
		*ret = n;
	return r;
}
