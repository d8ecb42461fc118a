/* SPDX-License-Identifier: MIT
 *
 * names.h - the table behind model.h's names_*: how it is filled.  Private to model/.
 *
 * Facts that change (a thread's name, its cgroups) are chains of changes, newest first; an
 * instant before the oldest gets the oldest.  Indices never change; nothing is ever removed.
 */
#ifndef MODEL_NAMES_H
#define MODEL_NAMES_H
#include "base/map.h"
#include "base/vec.h"
#include "model/model.h"

enum fact { FACT_COMM, FACT_V2, FACT_CPU, FACT_COUNT };
enum {
	NAMES_TIDS = 1 << 22, /* pid_max at its largest; above it, damage */
	NAMES_LIMIT = 1 << 28 /* of threads and sockets: what a track's index can hold */
};

struct change {
	int64_t since_ns;
	int32_t value; /* string id or cgroup index */
	int32_t older; /* index in changes, NO_INDEX; always smaller than its own */
};

struct thread_links {
	int32_t newest[FACT_COUNT]; /* index in changes */
	int32_t same_tid;	    /* the thread that had this tid before */
};

struct disk {
	uint32_t dev, name;
};

struct names {
	struct strtab strings;
	struct VEC(struct thread) threads;
	struct VEC(struct thread_links) links; /* by thread */
	struct VEC(struct change) changes;
	struct VEC(struct cgroup) cgroups;
	struct VEC(struct sockinfo) sockets;
	struct VEC(struct disk) disks;
	struct VEC(int32_t) by_tid; /* newest thread + 1 */
	struct map cgroup_by_id, cgroup_by_path, socket_by_cookie;
	uint32_t cpu_hierarchy, blkio_hierarchy; /* 0: v2's */
	bool key_is_v2, key_chosen;
};

/* The newest thread of that tid, dead or alive, or NO_INDEX; 0 is the idle task. */
static inline int names_newest(const struct names *n, uint32_t tid)
{
	return tid < n->by_tid.n ? n->by_tid.at[tid] - 1 : NO_INDEX;
}

/* Makes a thread, which is from now on the newest of its tid.  NO_INDEX: tid is impossible, or
 * there are too many. */
int names_add_thread(struct names *n, uint32_t tid, uint32_t pid, int64_t birth_ns,
		     int64_t first_ns);
/* since NO_TIME: known to have been so at the start; ignored if something is known already. */
void names_add_fact(struct names *n, int thread, enum fact f, int64_t since_ns, int32_t value);
/* Index of a cgroup, made without a path if it is not known; NO_INDEX for id 0. */
int names_cgroup_index(struct names *n, uint32_t hierarchy, uint64_t id);
void names_set_cgroup(struct names *n, uint32_t hierarchy, uint64_t id, const char *path);
/* Index of the socket, made if it is not known; NO_INDEX: too many. */
int names_socket_index(struct names *n, uint64_t cookie);
struct sockinfo *names_socket_at(struct names *n, int socket);
/* Units and containers from the paths, and the cgroup key if it was not forced. */
void names_finish(struct names *n);

#endif
