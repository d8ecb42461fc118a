/* SPDX-License-Identifier: MIT
 *
 * interval.h - the one thing longpole stores: something was so on a track from start to end.
 *
 * Half-open [start_ns, end_ns), CLOCK_MONOTONIC ns of the host; start_ns < end_ns always.
 * Intervals of one track never overlap; a gap is legal and means "not observed" (on a thread's
 * scheduling track: running).  What the value words mean depends on kind (model.h); the
 * history stores them without knowing.  Trailing words that are zero need not be stored:
 * n may be smaller after a round trip, v[n..] is then zero.
 */
#ifndef MODEL_INTERVAL_H
#define MODEL_INTERVAL_H
#include <stdint.h>

enum { INTERVAL_WORDS = 16 };

/* A track is a class and an index in it: track_id(TRACK_CPU, 3). */
enum track_class {
	TRACK_CPU = 1,	   /* by cpu: runs (who held this CPU) */
	TRACK_SCHED = 2,   /* by thread: absences from the CPU */
	TRACK_QUEUE = 3,   /* by thread: where it stood when it moved while runnable */
	TRACK_OPS = 4,	   /* by thread: from a socket operation to the thread's next one */
	TRACK_DISK = 5,	   /* by disk * DISK_SLOTS + slot: one block request in flight */
	TRACK_REQUEST = 6, /* by slot: one request being served */
	TRACK_LOSS = 7,	   /* by cpu: records were lost here */
};

static inline uint32_t track_id(enum track_class c, uint32_t index)
{
	return (uint32_t)c << 28 | (index & 0x0fffffffu);
}

static inline uint32_t track_index(uint32_t track)
{
	return track & 0x0fffffffu;
}

struct interval {
	int64_t start_ns, end_ns;
	uint32_t track;
	uint8_t kind; /* enum interval_kind in model.h */
	uint8_t n;    /* words used in v, at most INTERVAL_WORDS */
	int64_t v[INTERVAL_WORDS];
};

#endif
