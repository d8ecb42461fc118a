/* SPDX-License-Identifier: MIT
 *
 * ring.h - the user's end of a BPF ring buffer, mapped, read in place, never waited on.
 */
#ifndef RECORD_RING_H
#define RECORD_RING_H
#include <stddef.h>
#include <stdint.h>

struct ring;
struct rec_head;

/* fd: the map's; stays the caller's. */
int ring_open(int fd, size_t bytes, struct ring **ret);
void ring_close(struct ring *r);
/* Bytes that wait. */
size_t ring_fill(const struct ring *r);
/* Gives every finished record to fn, which must not keep the pointer, and frees their room.
 * Returns the bytes read, or what fn returned if that was negative (then what fn had not seen
 * stays). */
typedef int ring_fn(const struct rec_head *record, void *arg);
int64_t ring_drain(struct ring *r, ring_fn *fn, void *arg);

#endif
