/* SPDX-License-Identifier: MIT
 *
 * tally.h - inside of a profile, shared by profile.c (who is slow) and findings.c (on what).
 */
#ifndef PROFILE_TALLY_H
#define PROFILE_TALLY_H
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct note { /* one request */
	int64_t id, start_ns, duration_ns;
	uint32_t group;
	bool cut, slow, typical, wanted, keep;
};

enum side { SLOW, TYPICAL, SIDES }; /* basis all: everything is on side SLOW */

struct key { /* (state, cause, via, culprit) in one group */
	enum state state;
	enum cause cause;
	via via;
	struct culprit culprit;
	struct {
		__int128 ns, certain_ns;
		int64_t requests;
	} by[SIDES];
	int64_t example_ns, example_start_ns;
	uint32_t example_tid;
	int example_syscall;
	uint32_t victim_pid;
	const char *victim_comm;
	uint32_t next; /* key of the same hash + 1, 0 none */
};

struct tally { /* of one group */
	struct profile_group pub;
	uint32_t place; /* in the sorted list */
	struct VEC(struct key) keys;
	struct map by_hash; /* index in keys + 1 */
	struct {
		__int128 ns, dark_ns;
		int64_t requests;
	} walked[SIDES];
};

struct kept { /* a path worth showing */
	struct note note;
	bool streaming;
	struct path path;
	struct budget budget;
};

struct profile {
	struct profile_options opt;
	struct arena arena;
	struct map texts; /* hash of a string: its copy in arena */
	struct VEC(struct note) notes;
	struct VEC(struct tally) groups;
	struct map group_ids; /* copied name: index + 1 */
	struct map note_ids;  /* id: index in notes + 1 */
	struct profile_group *sorted;
	struct VEC(struct kept) kept;
	struct VEC(struct finding) findings;
	struct path *slowest;
	struct budget *slowest_budgets;
	int n_slowest;
	bool ranked;
};

/* The same pointer for the same text, for the profile's life.  NULL gives "". */
const char *profile_text(struct profile *p, const char *s);
/* Slower first; ties: earlier first, then the smaller id. */
int note_order(const struct note *a, const struct note *b);

#endif
