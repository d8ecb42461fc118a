/* SPDX-License-Identifier: MIT
 *
 * blame.h - a victim's waiting time charged to whoever held the resource during exactly that time.
 *
 * Every function tiles the interval it is given with pieces in descending order; shares always sum
 * to the wait.  Classes as in design.md section 6: own (the same container or unit), neighbour,
 * system (kernel threads, root cgroup, init.scope, longpole itself), quota, idle.
 *
 * The victim is the thread whose unit decides what is own: a kernel worker that a user thread
 * waits for stands in its run queue for that user thread's sake.
 * Strings live as long as the blame or its names, shares as long as the arena.
 */
#ifndef BLAME_BLAME_H
#define BLAME_BLAME_H
#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "path/path.h"

struct arena;
struct blame;
struct err;
struct history;

/* h and names outlive the blame; host is copied. */
int blame_new(struct history *h, const struct names *names, const char *host, struct blame **ret,
	      struct err *err);
void blame_free(struct blame *b);

/* One piece of a wait: state and cause are set by blame, shares where the time is divided. */
struct blame_piece {
	int64_t start_ns, end_ns;
	enum state state;
	enum cause cause;
	struct culprit culprit;
	const struct share *shares; /* largest first; NULL: culprit has all */
	int n_shares;
	bool certain;
};
/* Nonzero stops, and is what the caller returns. */
typedef int blame_fn(const struct blame_piece *p, void *arg);

/* Runnable from from_ns to to_ns, a part of absence x: who held that CPU.  x->quota_ns of x's whole
 * wait is quota: first where nobody of its cgroup ran (a throttled group cannot), earliest first. */
int blame_runqueue(struct blame *b, int victim, const struct absence *x, int64_t from_ns,
		   int64_t to_ns, blame_fn *fn, void *arg);

/* The block request of that id that was in flight in [from_ns, to_ns], or -ENOENT. */
int blame_find_block(struct blame *b, uint64_t id, int64_t from_ns, int64_t to_ns,
		     struct block *ret);
/* The victim waited for block request x from from_ns to to_ns. */
int blame_disk(struct blame *b, int victim, const struct block *x, int64_t from_ns, int64_t to_ns,
	       struct arena *a, blame_fn *fn, void *arg);

/* The culprit a thread is at at_ns: CULPRIT_SELF, THREAD, PROCESS or CGROUP. */
void blame_thread(struct blame *b, int thread, int64_t at_ns, enum culprit_kind kind,
		  struct culprit *ret);
/* own, neighbour or system, as seen by victim. */
enum cause blame_class(struct blame *b, int victim, int other, int64_t at_ns);
/* Were records of any CPU lost in [from_ns, to_ns)? */
bool blame_lost(const struct blame *b, int64_t from_ns, int64_t to_ns);

#endif
