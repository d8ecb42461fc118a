/* SPDX-License-Identifier: MIT
 *
 * Who a thread is as a culprit, and of which class to a victim.
 *
 *	          kernel thread, longpole      -> system   named by its kind or process
 *	holder -> the victim's container/unit  -> own      named by its process
 *	          root cgroup, init.scope      -> system   named by its process
 *	          any other                    -> neighbour, named by its container or cgroup
 *
 * Limits: a thread whose cgroup was never seen is own if it is of the victim's process, else
 * system.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "blame/state.h"
#include "history/history.h"

/* ------------------------------------------------------------------ losses */

static int note_loss(const struct interval *iv, void *arg)
{
	struct blame *b = arg;

	vec_push(&b->lost, (struct lost_span){iv->start_ns, iv->end_ns});
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct lost_span *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Sorted and merged, so that one bisection answers. */
static int load_losses(struct blame *b)
{
	size_t n = 0;
	int r = history_range(b->h, track_id(TRACK_LOSS, 0), track_id(TRACK_LOSS, UINT32_MAX),
			      INT64_MIN, INT64_MAX, 0, note_loss, b);

	if (r < 0)
		return r;
	if (b->lost.n)
		qsort(b->lost.at, b->lost.n, sizeof(*b->lost.at), by_start);
	for (size_t i = 0; i < b->lost.n; i++) {
		struct lost_span *last = n ? &b->lost.at[n - 1] : NULL;

		if (!last || last->end_ns < b->lost.at[i].start_ns)
			b->lost.at[n++] = b->lost.at[i];
		else if (last->end_ns < b->lost.at[i].end_ns)
			last->end_ns = b->lost.at[i].end_ns;
	}
	b->lost.n = n;
	return 0;
}

bool blame_lost(const struct blame *b, int64_t from_ns, int64_t to_ns)
{
	size_t lo = 0, hi = b->lost.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->lost.at[mid].end_ns <= from_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < b->lost.n && b->lost.at[lo].start_ns < to_ns;
}

/* ------------------------------------------------------------------ life */

int blame_new(struct history *h, const struct names *names, const char *host, struct blame **ret,
	      struct err *err)
{
	struct blame *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return err_set(err, -ENOMEM, "out of memory");
	b->h = h;
	b->names = names;
	arena_init(&b->texts);
	b->host = arena_strdup(&b->texts, host ? host : "");
	r = load_losses(b);
	if (r < 0) {
		blame_free(b);
		return err_set(err, r, "cannot read the history's losses: %s", strerror(-r));
	}
	*ret = b;
	return 0;
}

void blame_free(struct blame *b)
{
	if (!b)
		return;
	arena_fini(&b->texts);
	map_fini(&b->named);
	map_fini(&b->parallel);
	vec_fini(&b->lost);
	vec_fini(&b->held);
	vec_fini(&b->cut);
	vec_fini(&b->stood);
	vec_fini(&b->served);
	vec_fini(&b->edges);
	free(b);
}

/* ------------------------------------------------------------------ class */

static int unit_of(const struct names *names, int cgroup)
{
	const struct cgroup *c = names_cgroup(names, cgroup);

	return c && c->unit >= 0 ? c->unit : cgroup;
}

enum cause blame_class_of_cgroup(struct blame *b, int victim_cgroup, int cgroup)
{
	const struct cgroup *c = names_cgroup(b->names, cgroup);

	if (victim_cgroup >= 0 && unit_of(b->names, victim_cgroup) == unit_of(b->names, cgroup))
		return CAUSE_OWN;
	return !c || c->is_system ? CAUSE_SYSTEM : CAUSE_NEIGHBOUR;
}

static bool is_kernel(const struct names *names, int thread)
{
	const struct thread *t = names_thread(names, thread);

	return t && t->kernel;
}

static bool same_process(const struct names *names, int a, int b)
{
	const struct thread *x = names_thread(names, a), *y = names_thread(names, b);

	return a == b || (x && y && x->pid && x->pid == y->pid);
}

/* The recorder counts as the system wherever it was started. */
static bool is_recorder(const struct names *names, int thread, int64_t at_ns)
{
	return !strcmp(names_comm(names, thread, at_ns), "longpole");
}

enum cause blame_class(struct blame *b, int victim, int other, int64_t at_ns)
{
	if (same_process(b->names, victim, other))
		return CAUSE_OWN;
	if (is_kernel(b->names, other) || is_recorder(b->names, other, at_ns))
		return CAUSE_SYSTEM;
	return blame_class_of_cgroup(b, names_cgroup_of(b->names, victim, at_ns),
				     names_cgroup_of(b->names, other, at_ns));
}

/* ------------------------------------------------------------------ names */

/* "kworker/u8:3-events" and "ksoftirqd/1" are of the kinds kworker and ksoftirqd, "jbd2/sda1-8" of
 * jbd2, "nvme0q1" stays as it is but for the number at its end. */
static const char *kernel_kind(struct blame *b, const char *comm)
{
	size_t len = strcspn(comm, "/:");
	char *kind;

	while (len > 1 && isdigit((unsigned char)comm[len - 1]) && strncmp(comm, "jbd2", len) != 0)
		len--;
	kind = arena_alloc(&b->texts, len + 1);
	memcpy(kind, comm, len);
	return kind;
}

/* One text for each (pid, comm); comm is interned, so its address stands for it. */
static const char *name_of(struct blame *b, uint32_t pid, bool kernel, const char *comm)
{
	uint64_t key = (uint64_t)(uintptr_t)comm * 0x9e3779b97f4a7c15u ^ (kernel ? 0 : pid);
	uint64_t *text = map_at(&b->named, key);

	if (*text)
		return (const char *)(uintptr_t)*text;
	*text = (uint64_t)(uintptr_t)(kernel ? kernel_kind(b, *comm ? comm : "kernel")
					     : arena_printf(&b->texts, "%s (pid %u)",
							    *comm ? comm : "?", pid));
	return (const char *)(uintptr_t)*text;
}

static void fill_cgroup(struct blame *b, int cgroup, struct culprit *ret)
{
	const struct cgroup *c = names_cgroup(b->names, cgroup);

	ret->cgroup = c ? names_str(b->names, c->path) : "";
	ret->container = c && c->container ? names_str(b->names, c->container) : "";
}

void blame_cgroup(struct blame *b, int cgroup, struct culprit *ret)
{
	*ret = (struct culprit){.kind = CULPRIT_CGROUP, .host = b->host, .request = -1};
	fill_cgroup(b, cgroup, ret);
	ret->comm = "";
	ret->name = *ret->container ? ret->container : ret->cgroup;
	if (!*ret->name)
		ret->kind = CULPRIT_UNKNOWN;
}

void blame_thread(struct blame *b, int thread, int64_t at_ns, enum culprit_kind kind,
		  struct culprit *ret)
{
	const struct thread *t = names_thread(b->names, thread);
	const char *comm = names_comm(b->names, thread, at_ns);
	int leader = kind == CULPRIT_PROCESS ? names_leader(b->names, thread, at_ns) : thread;

	*ret = (struct culprit){.kind = kind, .host = b->host, .request = -1};
	if (leader >= 0 && leader != thread)
		comm = names_comm(b->names, leader, at_ns);
	fill_cgroup(b, names_cgroup_of(b->names, thread, at_ns), ret);
	ret->comm = comm;
	if (t) {
		ret->pid = t->pid;
		ret->tid = t->tid;
		ret->kernel = t->kernel;
	}
	if (kind == CULPRIT_CGROUP)
		ret->name = *ret->container ? ret->container : ret->cgroup;
	else
		ret->name = name_of(b, ret->pid, ret->kernel, comm);
}

/* The cgroup that stands for a neighbour is its unit: what runs below belongs to it. */
static void unit_culprit(struct blame *b, int thread, int64_t at_ns, struct culprit *ret)
{
	int cgroup = names_cgroup_of(b->names, thread, at_ns);
	struct culprit unit;

	blame_thread(b, thread, at_ns, CULPRIT_CGROUP, ret);
	blame_cgroup(b, unit_of(b->names, cgroup), &unit);
	ret->cgroup = unit.cgroup;
	if (*unit.container)
		ret->container = unit.container;
	ret->name = *ret->container ? ret->container : ret->cgroup;
}

void blame_holder(struct blame *b, int thread, int64_t at_ns, enum cause cause, struct culprit *ret)
{
	if (cause == CAUSE_NEIGHBOUR)
		unit_culprit(b, thread, at_ns, ret);
	else if (is_kernel(b->names, thread))
		blame_thread(b, thread, at_ns, CULPRIT_THREAD, ret);
	else
		blame_thread(b, thread, at_ns, CULPRIT_PROCESS, ret);
}
