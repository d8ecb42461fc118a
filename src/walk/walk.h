/* SPDX-License-Identifier: MIT
 *
 * walk.h - the kernel critical path: backward from the end of a request (or of a thread's window),
 * saying for every nanosecond who spent it.
 *
 * explain(thread, a, b) gives segments that tile [a, b) exactly; releases by another thread recurse
 * into that thread (bounded depth and work, then `unknown`).  Cost per path grows with the path,
 * not with the recording: the history is read through its cache.
 */
#ifndef WALK_WALK_H
#define WALK_WALK_H
#include <stdint.h>

#include "model/model.h"
#include "path/path.h"

struct arena;
struct blame;
struct err;
struct history;
struct walk;

struct walk_options {
	const char *host;
	int max_depth;	      /* of recursion into other threads, 0: 64 */
	int64_t max_segments; /* of one path, 0: 100000; beyond it the rest is one `unknown` */
};

/* h, names and blame outlive the walk. */
int walk_new(struct history *h, const struct names *names, struct blame *blame,
	     const struct walk_options *opt, struct walk **ret, struct err *err);
void walk_free(struct walk *w);

/* The path of a request; lives in a. */
int walk_request(struct walk *w, const struct request *r, struct arena *a, struct path *ret,
		 struct err *err);
/* The path of one thread over [from, to): `why -- CMD`, `why --pid`. */
int walk_thread(struct walk *w, int thread, int64_t from_ns, int64_t to_ns, struct arena *a,
		struct path *ret, struct err *err);

/* Requests of the recording in order of id.  Stops when fn is nonzero and returns that. */
typedef int request_fn(const struct request *r, void *arg);
int walk_each_request(struct walk *w, request_fn *fn, void *arg);
/* One by id, -ENOENT. */
int walk_find_request(struct walk *w, int64_t id, struct request *ret);

#endif
