/* SPDX-License-Identifier: MIT
 *
 * path.h - the critical path of one request, and its budget.
 *
 * A path is a list of segments that tile [start_ns, end_ns) without gap or overlap, in ascending
 * order.  A budget is the path summed by (state, cause, via, culprit); it adds up to the duration
 * exactly.  Where a path came from (kernel walk, spans, library) does not show here.
 * Strings are lent: by the arena or names the path was made with.
 */
#ifndef PATH_PATH_H
#define PATH_PATH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct json;

/* clang-format off */
#define STATES(S)										   \
	S(RUNNING, "running") S(RUNQUEUE, "runqueue") S(DISK, "disk") S(SLEEP, "sleep") S(NETWORK, "network")\
	S(BACKLOG, "backlog") S(LOCK, "lock") S(CHILD, "child") S(UNKNOWN, "unknown") S(LOST, "lost")
#define CAUSES(C)										   \
	C(NONE, "") C(SELF, "self") C(LOCK, "lock") C(CALLEE, "callee") C(CHILD, "child")	   \
	C(INTERRUPT, "interrupt") C(STEAL, "steal") C(OWN, "own") C(NEIGHBOUR, "neighbour")	   \
	C(SYSTEM, "system") C(QUOTA, "quota") C(IDLE, "idle") C(SERVICE, "service")		   \
	C(THROTTLED, "throttled") C(TIMEOUT, "timeout") C(FLIGHT, "flight") C(REMOTE, "remote")	   \
	C(PEER, "peer") C(REQUEST, "request") C(UNRESOLVED, "unresolved")
#define VIAS(V)											   \
	V(LOCK, "lock") V(CHILD, "child") V(PIPE, "pipe") V(SOCKET, "socket")			   \
	V(SIGNAL, "signal") V(TIMER, "timer") V(QUEUE, "queue") V(CALLEE, "callee")
#define CULPRITS(K)										   \
	K(UNKNOWN, "unknown") K(THREAD, "thread") K(PROCESS, "process") K(CGROUP, "cgroup")	   \
	K(DEVICE, "device") K(TIMER, "timer") K(REMOTE, "remote") K(REQUEST, "request")		   \
	K(SELF, "self")
/* clang-format on */

#define PATH_WORD_STATE(n, s)	STATE_##n,
#define PATH_WORD_CAUSE(n, s)	CAUSE_##n,
#define PATH_WORD_VIA(n, s)	VIA_##n,
#define PATH_WORD_CULPRIT(n, s) CULPRIT_##n,
enum state { STATES(PATH_WORD_STATE) STATE_COUNT };
enum cause { CAUSES(PATH_WORD_CAUSE) CAUSE_COUNT };
enum via_word { VIA_END, VIAS(PATH_WORD_VIA) VIA_COUNT };
enum culprit_kind { CULPRITS(PATH_WORD_CULPRIT) CULPRIT_COUNT };

const char *state_word(enum state s);
const char *cause_word(enum cause c);
const char *via_word(enum via_word v);
const char *culprit_word(enum culprit_kind k);

/* The waits that led here, outermost first, four bits each; equal neighbours are written once. */
typedef uint32_t via;
/* via with v added as the innermost; unchanged when it is full or ends in v already. */
via via_add(via v, enum via_word word);
/* The innermost word, VIA_END if empty. */
enum via_word via_last(via v);
/* The i-th word from outside, VIA_END after the last. */
enum via_word via_at(via v, int i);

struct culprit {
	enum culprit_kind kind;
	uint32_t pid, tid;			      /* 0 unknown */
	bool kernel;				      /* a kernel thread */
	const char *host, *cgroup, *container, *comm; /* "" or NULL if unknown */
	const char *name; /* what to call it in a sentence: "/b", "postgres (pid 12)", "sda" */
	int64_t request;  /* CULPRIT_REQUEST: its id; else -1 */
};

/* At the grain of a finding: the same culprit over many requests.  A process is its name in its
 * cgroup (a pool of workers, or a child started for each request, is one culprit); a thread is
 * itself; a kernel thread is its kind; ids are ignored for containers, cgroups and devices. */
bool culprit_same(const struct culprit *a, const struct culprit *b);
uint64_t culprit_hash(const struct culprit *c);

struct share { /* a part of a segment's time */
	struct culprit culprit;
	int64_t ns;
};

struct segment {
	int64_t start_ns, end_ns;
	const char *host, *comm; /* whose thread the path is on */
	uint32_t tid, pid;
	enum state state;
	enum cause cause;
	via via;
	int syscall;		/* number, -1 none */
	struct culprit culprit; /* the one with the largest share */
	const struct share
		*shares; /* all of them; they sum to end - start.  NULL: culprit has all */
	int n_shares;
	const struct segment_alternative *alternatives;
	int n_alternatives;
	bool certain; /* no guess was needed (finding.certain_ns sums these) */
	int merged;   /* path_shorten: how many this one stands for; 0: itself */
};

struct segment_alternative { /* another thread that could have been the one that released */
	uint32_t tid, pid;
	const char *comm;
	const char *why_not;
};

struct path {
	const char *name; /* group */
	const char *host;
	uint32_t tid, pid;
	int64_t start_ns, end_ns;
	bool cut;
	struct segment *segments;
	int n, cap;
	int whole_count; /* segments before path_shorten; 0: n */
};

/* Appends; a segment that continues the last one (all equal, touching) is joined to it.  Segments
 * of no length are dropped.  The walk goes backward: path_reverse when done. */
void path_add(struct arena *a, struct path *p, const struct segment *s);
void path_reverse(struct path *p);
/* Checks that the segments tile the path and shares sum up.  -EINVAL and the first fault. */
int path_check(const struct path *p, struct err *err);

/* Leaves at most `most` segments (2 or more): short neighbours become one, which tells of the
 * largest among them and has shares for all.  A budget is made before.  No change if it fits. */
void path_shorten(struct arena *a, struct path *p, int most);

struct budget_line {
	enum state state;
	enum cause cause;
	via via;
	struct culprit culprit;
	int64_t ns;
	int64_t certain_ns;
};

struct budget {
	struct budget_line *lines; /* largest first */
	int n, cap;
	int64_t total_ns; /* = the path's duration */
};

/* Sums p by key, shares apart; culprits equal at the grain of a finding are one line. */
void budget_of(struct arena *a, const struct path *p, struct budget *ret);

/* The objects of design.md's JSON: culprit, budget array, path array. */
void culprit_json(struct json *j, const char *key, const struct culprit *c);
void budget_json(struct json *j, const char *key, const struct budget *b);
void path_json(struct json *j, const char *key, const struct path *p, int64_t zero_ns);

/* "read", "futex", ...; NULL if the number has no name on this machine's architecture. */
const char *syscall_name(int nr);
int syscall_nr(const char *name);

#endif
