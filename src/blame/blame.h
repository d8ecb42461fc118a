/* SPDX-License-Identifier: MIT
 *
 * blame.h - a victim's waiting time charged to whoever held the resource during exactly that time.
 *
 * Every function tiles the interval it is given, backward or forward in time as the pieces come
 * out; shares always sum to the wait.  Classes as in design.md section 6: own (the same container
 * or unit), neighbour, system (kernel threads, root cgroup, init.scope, longpole), interrupt,
 * quota, idle.
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

int blame_new(struct history *h, const struct names *names, const char *host, struct blame **ret,
	      struct err *err);
void blame_free(struct blame *b);

/* One piece of a wait: state and cause are set by blame, shares where the time is divided. */
struct blame_piece {
	int64_t start_ns, end_ns;
	enum state state;
	enum cause cause;
	struct culprit culprit;
	const struct share *shares;
	int n_shares;
	bool certain;
};
typedef int blame_fn(const struct blame_piece *p, void *arg);

/* A victim stood runnable from from_ns to to_ns, a part of absence x: who held that CPU.  Pieces in
 * descending order.  Quota first: x->quota_ns of it, at its beginning. */
int blame_runqueue(struct blame *b, const struct absence *x, int64_t from_ns, int64_t to_ns,
		   struct arena *a, blame_fn *fn, void *arg);
/* A victim waited for block request id (BY_BLOCK) from from_ns to to_ns.  Descending. */
int blame_disk(struct blame *b, int victim, uint64_t id, int64_t from_ns, int64_t to_ns,
	       struct arena *a, blame_fn *fn, void *arg);

/* The culprit a thread is at at_ns, with names from the names table (strings live in a). */
void blame_thread(struct blame *b, int thread, int64_t at_ns, enum culprit_kind kind,
		  struct arena *a, struct culprit *ret);
/* own, neighbour or system, as seen by victim. */
enum cause blame_class(struct blame *b, int victim, int other, int64_t at_ns);

#endif
