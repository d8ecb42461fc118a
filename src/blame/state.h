/* SPDX-License-Identifier: MIT
 *
 * state.h - what the files of blame share.
 */
#ifndef BLAME_STATE_H
#define BLAME_STATE_H
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "blame/blame.h"

struct lost_span {
	int64_t start_ns, end_ns;
};

struct held { /* a CPU from start to end */
	int64_t start_ns, end_ns;
	int thread; /* HELD_* or an index */
};
enum { HELD_GAP = -1, HELD_QUOTA = -2, HELD_INTERRUPT = -3 };

struct served {			  /* a block request on the victim's disk */
	int64_t start_ns, end_ns; /* issued, completed */
	int thread, owner;
	int op;
	uint32_t bytes;
	uint64_t id;
	double v_start;
};

struct edge { /* where a request in service begins or ends */
	int64_t at_ns;
	uint32_t request;
	bool ends;
};

struct blame {
	struct history *h;
	const struct names *names;
	const char *host;
	struct arena texts;  /* names of culprits */
	struct map named;    /* (pid, comm) -> text */
	struct map parallel; /* disk -> 1: its time rises with the number in flight, 2: does not */
	struct VEC(struct lost_span) lost; /* ascending, apart */
	struct VEC(struct held) held, cut;
	struct VEC(struct queued) stood;
	struct VEC(struct served) served;
	struct VEC(struct edge) edges;
};

/* own, neighbour or system by cgroup indices. */
enum cause blame_class_of_cgroup(struct blame *b, int victim_cgroup, int cgroup);
/* A cgroup as a culprit; NO_INDEX gives an unknown one. */
void blame_cgroup(struct blame *b, int cgroup, struct culprit *ret);
/* thread as a culprit of a wait whose class is cause: process, cgroup or kind of kernel thread. */
void blame_holder(struct blame *b, int thread, int64_t at_ns, enum cause cause,
		  struct culprit *ret);
/* Does the time a request takes not rise with the number in flight?  Measured once. */
bool blame_disk_is_parallel(struct blame *b, int disk);

#endif
