/* SPDX-License-Identifier: MIT
 *
 * profile.h - many paths: groups of requests, what the slow ones spend more on than typical ones,
 * and the findings, ranked.
 *
 * Two passes.  First every request's (group, duration) is added: profile_note().  Then
 * profile_rank() fixes slow and typical per group, and profile_wanted() says which requests need
 * their path; those are added with profile_add().  profile_findings() ends it.  Rules as in
 * design.md section 7 (Groups, slow, typical, findings).  All strings given are copied; all that
 * is returned is lent until profile_free.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H
#include <stdbool.h>
#include <stdint.h>

#include "path/path.h"

struct arena;
struct err;
struct profile;

struct profile_options {
	double percentile; /* slow is above it; 0: 95 */
	int64_t slower_ns; /* slow is above this instead; 0: not */
	int sample; /* paths wanted per group and class at the most, evenly spread; 0: 2000 */
	int top;    /* slowest requests kept with their path; 0: 5 */
};

struct profile_request {
	int64_t id; /* the caller's, for profile_wanted; never twice */
	const char *group;
	int64_t start_ns, duration_ns;
	bool cut;	/* runs over an edge of the recording: in no percentile */
	bool streaming; /* of a group whose length says nothing: ranked after all others */
};

struct profile_group {
	const char *name;
	int64_t count, slow_count, typical_count;
	int64_t cut_count; /* not in count */
	int64_t slow_over_ns, p50_ns, p95_ns, p99_ns;
	int64_t mean_ns, mean_slow_ns, mean_typical_ns;
	double unknown_share; /* unknown and lost of the walked slow requests' time */
	bool basis_all;	      /* too few or too even: findings rank the mean */
	bool streaming;
};

struct finding {
	int rank;
	const struct profile_group *group;
	bool basis_all;
	enum state state;
	enum cause cause;
	via via;
	struct culprit culprit;
	int64_t extra_ns;   /* mean per slow request (basis all: mean per request) */
	double share;	    /* of mean slow - mean typical (basis all: of the mean) */
	double presence;    /* of the slow requests */
	int64_t count;	    /* slow requests of the group (basis all: its requests) */
	int64_t certain_ns; /* the part of extra_ns that needed no guess */
	int64_t mean_slow_ns, mean_typical_ns; /* of this key */
	/* the findings of a group that differ in via only: their extra times together, by which they
	 * rank; and which they are */
	int64_t family_ns;
	int family;
	/* where it was largest in one request */
	int64_t example_ns;	  /* how much of it */
	int64_t example_start_ns; /* of that request */
	uint32_t example_tid;	  /* of the culprit, 0 none */
	int example_syscall;	  /* the victim's, -1 none */
	uint32_t victim_pid;	  /* the victim: whose thread the path was on */
	const char *victim_comm;  /* "" unknown */
};

struct profile *profile_new(const struct profile_options *opt); /* NULL: all defaults */
void profile_free(struct profile *p);
void profile_note(struct profile *p, const struct profile_request *r);
void profile_rank(struct profile *p);
/* Should the path of this request be walked?  Cut ones are only kept among the slowest. */
bool profile_wanted(const struct profile *p, int64_t id);
/* The path of a wanted request. */
void profile_add(struct profile *p, int64_t id, const struct path *path);
void profile_findings(struct profile *p);
/* -EINVAL if the extra times of all keys do not sum to the difference of the means. */
int profile_check(const struct profile *p, struct err *err);

/* From profile_rank on: by the extra time of all their slow requests, the largest first. */
int profile_groups(const struct profile *p, const struct profile_group **ret);
/* Slow-vs-typical ones first, then those with basis all, then streaming groups; each by extra
 * time times count, where one culprit reached in several ways counts with all of them. */
int profile_finding_list(const struct profile *p, const struct finding **ret);
/* The slowest requests with path (path_shorten) and budget, slowest first; one of the first finding's group is
 * always among them. */
int profile_slowest(const struct profile *p, const struct path **ret_paths,
		    const struct budget **ret_budgets);
/* All requests for the time line, in the order of profile_note.  Slow only where a group has
 * slow ones that count (or slower_ns was given). */
typedef void profile_each_fn(int64_t start_ns, int64_t duration_ns, bool slow, void *arg);
void profile_each(const struct profile *p, profile_each_fn *fn, void *arg);

#endif
