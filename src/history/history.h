/* SPDX-License-Identifier: MIT
 *
 * history.h - the history tree: intervals on disk, and what was track T doing at time t?
 *
 * Per track the tree holds intervals that never overlap; a gap is legal.  Times are int64_t
 * nanoseconds on the recording's clock, half-open.  Calls return 0 or a negative errno and
 * write no output when they fail.  An open history never changes; struct history has a bounded
 * cache of decoded nodes inside, so one thread at a time.  Format: docs/format/history.md.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H
#include <stddef.h>
#include <stdint.h>

#include "model/interval.h"

struct err;
struct io;
struct history;	       /* reader */
struct history_writer; /* writer */

struct history_options {
	size_t node_bytes;   /* 0: 32 KiB, about */
	size_t cache_nodes;  /* reader: decoded nodes kept, 0: 512 */
	const struct io *io; /* NULL: the kernel's */
};

/* ---- writing ---- */

/* Makes path (mode 0600), replacing an old one; until finish it is marked incomplete. */
int history_create(const char *path, const struct history_options *opt, struct history_writer **ret,
		   struct err *err);
/* Adds one interval.  Ends should come in nearly ascending order; a late one costs height,
 * never correctness.  -EINVAL for start >= end or n too large. */
int history_add(struct history_writer *w, const struct interval *iv, struct err *err);
/* Keeps a named piece of data (names, tables) beside the intervals; name at most 31 bytes. */
int history_attach(struct history_writer *w, const char *name, const void *data, size_t len,
		   struct err *err);
/* Writes what is left and marks the file complete.  The writer is freed either way; a history
 * that could not be finished is removed. */
int history_finish(struct history_writer *w, struct err *err);
/* Gives up: frees the writer and removes the file.  NULL is fine. */
void history_abort(struct history_writer *w);

/* ---- reading ---- */

/* Maps or opens path.  -ENOENT: not there; -ESTALE: incomplete, or of another version (rebuild
 * it); -EBADMSG: damaged, the sentence names the offset.  The caller closes *ret. */
int history_open(const char *path, const struct history_options *opt, struct history **ret,
		 struct err *err);
void history_close(struct history *h);

/* First start and last end over all intervals; 0, 0 when empty. */
void history_bounds(const struct history *h, int64_t *ret_start_ns, int64_t *ret_end_ns);
uint64_t history_count(const struct history *h);
/* Lent until close; -ENOENT if there is none of that name. */
int history_attachment(struct history *h, const char *name, const void **ret, size_t *ret_len);

/* The interval of track covering at_ns, or -ENOENT in a gap.  Stabbing query, O(depth) nodes. */
int history_at(struct history *h, uint32_t track, int64_t at_ns, struct interval *ret);
/* The interval of track with the largest start < at_ns (it may cover at_ns), or -ENOENT. */
int history_before(struct history *h, uint32_t track, int64_t at_ns, struct interval *ret);
/* The interval of track with the smallest start >= at_ns, or -ENOENT. */
int history_after(struct history *h, uint32_t track, int64_t at_ns, struct interval *ret);

/* Calls fn for every interval of tracks [track_lo, track_hi] that meets [from_ns, to_ns).  On one
 * track in ascending order; over several tracks in no order.  With resolution_ns > 0, of the
 * intervals shorter than that at most one per track and resolution step is given.  Stops when fn
 * returns nonzero and returns that. */
typedef int history_fn(const struct interval *iv, void *arg);
int history_range(struct history *h, uint32_t track_lo, uint32_t track_hi, int64_t from_ns,
		  int64_t to_ns, int64_t resolution_ns, history_fn *fn, void *arg);

/* Reads every node and verifies checksums, bounds and order; what `longpole info` runs. */
int history_verify(struct history *h, struct err *err);

#endif
