/* SPDX-License-Identifier: MIT
 *
 * node.h - one node of the history tree, on disk and decoded.  Private to history/.
 *
 * A node of level 0 holds intervals, one above it holds references to its children and, for
 * every track below it, a mask of the children that have it.  The structs here are the bytes
 * of the file (docs/format/history.md); all numbers are little endian.
 */
#ifndef HISTORY_NODE_H
#define HISTORY_NODE_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/interval.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's structs are used as they are");

struct err;
struct io;

#define HISTORY_MAGIC "lphist\x1a\n"
enum {
	HISTORY_VERSION = 1,
	HISTORY_INCOMPLETE = 1,
	HISTORY_COMPLETE = 2,
	HISTORY_ATTACHMENTS = 1024, /* at most */
	NODE_FAN = 64,		    /* children: bits of a mask */
	NODE_LEVELS = 16,	    /* far more than 2^63 bytes need */
	NODE_SHAPE_BYTES = 9,	    /* 8 of word codes, 1 of kind */
	NODE_INTERVAL_BYTES = 3,    /* the smallest interval: shape, gap, length */
};

struct file_header {
	char magic[8];
	uint32_t version, state;
	uint32_t node_bytes, attachments;
	uint64_t root_pos;
	uint32_t root_bytes, root_level;
	uint64_t count;
	int64_t start_ns, end_ns;
	uint64_t attach_pos, file_bytes;
	uint32_t track_lo, track_hi;
	uint32_t attach_crc, zero[8];
	uint32_t crc; /* of everything before */
};
static_assert(sizeof(struct file_header) == 128, "file header");
static_assert(offsetof(struct file_header, version) == 8, "file header");
static_assert(offsetof(struct file_header, state) == 12, "file header");
static_assert(offsetof(struct file_header, root_pos) == 24, "file header");
static_assert(offsetof(struct file_header, count) == 40, "file header");
static_assert(offsetof(struct file_header, start_ns) == 48, "file header");
static_assert(offsetof(struct file_header, attach_pos) == 64, "file header");
static_assert(offsetof(struct file_header, track_lo) == 80, "file header");
static_assert(offsetof(struct file_header, attach_crc) == 88, "file header");
static_assert(offsetof(struct file_header, crc) == 124, "file header");

struct file_attachment {
	char name[32]; /* NUL-padded */
	uint64_t pos, bytes;
	uint32_t crc, zero[3];
};
static_assert(sizeof(struct file_attachment) == 64, "attachment");
static_assert(offsetof(struct file_attachment, pos) == 32, "attachment");
static_assert(offsetof(struct file_attachment, crc) == 48, "attachment");

/* What a parent knows of a child. */
struct node_ref {
	uint64_t pos;
	int64_t start_ns, end_ns; /* first start, last end below it */
	uint64_t count;		  /* intervals below it, never 0 */
	uint32_t track_lo, track_hi;
	uint32_t bytes, level;
};
static_assert(sizeof(struct node_ref) == 48, "reference");
static_assert(offsetof(struct node_ref, start_ns) == 8, "reference");
static_assert(offsetof(struct node_ref, count) == 24, "reference");
static_assert(offsetof(struct node_ref, track_lo) == 32, "reference");
static_assert(offsetof(struct node_ref, bytes) == 40, "reference");

struct node_header {
	uint32_t crc;	/* of the rest of the node */
	uint32_t parts; /* level 0: shapes; above: children */
	uint32_t tracks;
	uint32_t zero;
	struct node_ref self;
};
static_assert(sizeof(struct node_header) == 64, "node header");
static_assert(offsetof(struct node_header, tracks) == 8, "node header");
static_assert(offsetof(struct node_header, self) == 16, "node header");

/* A decoded node.  tracks is sorted. */
struct node {
	struct node_ref ref;
	struct node *newer, *older; /* the cache's order of use */
	unsigned pins;		    /* held by a query: not to be freed */
	uint8_t *raw;		    /* the node as read */
	uint32_t tracks;
	const uint32_t *track;
	/* level > 0 */
	uint32_t children;
	const struct node_ref *child;
	const uint64_t *mask; /* by track: children that have it */
	/* level 0: intervals of track[i] are first[i] .. first[i + 1] - 1, by start */
	uint32_t shapes;
	const uint8_t *shape; /* table in raw */
	uint32_t *first;
	int64_t *start_ns, *end_ns;
	uint32_t *value_at, *shape_id; /* by interval: offset in raw, index of shape */
	void *memory;
};

/* CRC-32C of data, going on from crc (0 at first). */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* The same without the processor's instruction; for processors that have none, and tests. */
uint32_t crc32c_tables(uint32_t crc, const void *data, size_t len);

/* Reads and decodes the node at ref.  -EBADMSG for anything that is not exactly as it should
 * be; no size or index in a decoded node needs a check after this. */
int node_read(const struct io *io, int fd, const struct node_ref *ref, struct node **ret,
	      struct err *err);
void node_free(struct node *n);
/* Copies interval i out of a node of level 0. */
void node_interval(const struct node *n, uint32_t i, struct interval *ret);
/* Index of the first track >= track; n->tracks if there is none. */
uint32_t node_track(const struct node *n, uint32_t track);
/* Of intervals [lo, hi) of one track, the first that starts at or after at_ns; hi if none. */
uint32_t node_first_from(const struct node *n, uint32_t lo, uint32_t hi, int64_t at_ns);

/* ---- numbers of variable length ---- */

/* A word is stored in as few bytes as hold it; its code tells how many: 0-8 the value itself,
 * 9-15 the complement of a negative one in code - 8 bytes. */
static inline unsigned word_code(int64_t v)
{
	uint64_t u = v < 0 ? ~(uint64_t)v : (uint64_t)v;
	unsigned bytes = u ? (unsigned)(71 - __builtin_clzll(u)) / 8 : 0;

	if (v >= 0)
		return bytes;
	return bytes == 8 ? 8 : 8 + (bytes ? bytes : 1);
}

static inline unsigned word_bytes(unsigned code)
{
	return code <= 8 ? code : code - 8;
}

static inline uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ (0 - (v >> 63));
}

static inline uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

/* At most 10 bytes; returns where the next goes. */
static inline uint8_t *varint_put(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* NULL if it does not end before end or is longer than 64 bits. */
static inline const uint8_t *varint_get(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
		uint64_t b = *p++;

		v |= (b & 0x7f) << shift;
		if (b < 0x80) {
			*ret = v;
			return shift == 63 && b > 1 ? NULL : p;
		}
	}
	return NULL;
}

#endif
