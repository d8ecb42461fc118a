/* SPDX-License-Identifier: MIT
 *
 * From a recording to what `longpole why` has to say: chooses the requests, walks the paths that
 * the profile wants, and if there are no requests walks threads instead.
 *
 * Who is explained:
 *	requests	if any matched
 *	the command	of `-- CMD`, if it and its children served none
 *	the process	of --pid or --cgroup, if it served none: each of its threads is a group's
 *			"request", so that profile and report need not know the difference
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/scoped.h"
#include "base/str.h"
#include "base/vec.h"
#include "blame/blame.h"
#include "bpf/record.h"
#include "cli/why.h"
#include "history/history.h"
#include "model/model.h"
#include "read/read.h"
#include "walk/walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256 }; /* say_partial names it */

struct candidate { /* a request, or a thread's time */
	int64_t id, parent, start_ns, end_ns;
	const char *name; /* lent by names; a thread's by the arena */
	int thread;	  /* NO_INDEX: it is a request */
	bool cut, streaming, own;
};

struct why_found {
	struct why_report why;
	struct recording *recording;
	struct history *history;
	struct names *names;
	struct blame *blame;
	struct walk *walk;
	struct profile *profile;
	struct arena arena;
	struct VEC(struct candidate) candidates;
	const struct why_options *opt; /* the caller's, or limited */
	struct why_options limited;    /* as the recording is */
	struct str partial;
	char damage[256];
	bool too_many; /* threads */
};

void why_found_free(struct why_found *f)
{
	if (!f)
		return;
	profile_free(f->profile);
	walk_free(f->walk);
	blame_free(f->blame);
	names_free(f->names);
	history_close(f->history);
	recording_close(f->recording);
	vec_fini(&f->candidates);
	arena_fini(&f->arena);
	str_fini(&f->partial);
	free(f);
}

struct why_report *why_found_get(struct why_found *f)
{
	return &f->why;
}

const char *why_found_partial(const struct why_found *f)
{
	return str_get(&f->partial);
}

static bool stopped(const struct why_found *f)
{
	return f->opt->stop && *f->opt->stop;
}

static void say_partial(struct why_found *f, const char *text)
{
	str_addf(&f->partial, "%s%s", f->partial.len ? "\n" : "", text);
}

/* --- opening */

static int open_recording(struct why_found *f, const char *path, struct err *err)
{
	int rc = recording_open(path, &f->recording, err);

	if (rc < 0)
		return rc;
	f->recording->stop = f->opt->stop;
	rc = recording_history(f->recording, &f->history, &f->names, f->damage, sizeof(f->damage),
			       err);
	if (rc < 0)
		return rc;
	rc = blame_new(f->history, f->names, f->recording->host, &f->blame, err);
	if (rc < 0)
		return rc;
	return walk_new(f->history, f->names, f->blame,
			&(struct walk_options){.host = f->recording->host}, &f->walk, err);
}

static void note_losses(struct why_found *f)
{
	const struct recording *r = f->recording;
	struct why_report *w = &f->why;

	w->lost_count = r->lost.records;
	for (int i = 0; i < WHY_LOST_REASONS; i++) {
		if (!r->lost.by_reason[i])
			continue;
		w->lost[w->lost_reasons].name = model_lost_name((uint32_t)i);
		w->lost[w->lost_reasons++].count = r->lost.by_reason[i];
	}
	if (r->lost.records)
		say_partial(f,
			    r->lost.by_reason[REC_LOST_RING_FULL]
				    ? "records were lost: times around them may be wrong; a larger "
				      "--buffer helps"
				    : "records were lost: times around them may be wrong");
	if (f->damage[0])
		say_partial(f, f->damage);
	if (!r->complete)
		say_partial(f, "the recorder did not end this recording; what it had written "
			       "is explained");
}

static void set_window(struct why_found *f)
{
	const struct why_filter *filter = &f->opt->filter;
	const struct recording *r = f->recording;
	int64_t length_ns = r->end_ns - r->start_ns, wall_ns = recording_wall_ns(r, r->start_ns);
	int64_t from_ns = 0, to_ns = length_ns;

	if (filter->begin.given)
		from_ns = why_when_ns(&filter->begin, wall_ns, length_ns);
	if (filter->end.given)
		to_ns = why_when_ns(&filter->end, wall_ns, length_ns);
	from_ns = from_ns < 0 ? 0 : from_ns > length_ns ? length_ns : from_ns;
	to_ns = to_ns < from_ns ? from_ns : to_ns > length_ns ? length_ns : to_ns;
	f->why.start_ns = r->start_ns + from_ns;
	f->why.end_ns = r->start_ns + to_ns;
	f->why.wall_ns = recording_wall_ns(r, f->why.start_ns);
}

static void set_facts(struct why_found *f)
{
	const struct recording *r = f->recording;

	f->why.host = r->host ? r->host : "";
	f->why.cgroup_key = names_cgroup_key(f->names);
	f->why.command = r->command;
	f->why.command_pid = r->command_pid;
	f->why.command_status = r->command ? r->command_status : -1;
	f->why.recorder_cpu_pct = r->recorder_cpu_pct;
	f->why.records = r->n_records;
	f->why.bytes = r->bytes;
	set_window(f);
	note_losses(f);
}

/* --- choosing requests */

static const char *group_name(struct why_found *f, const struct request *r)
{
	const char *name = names_str(f->names, r->name);

	if (r->last_thread == NO_INDEX && !r->cut_end)
		return arena_printf(&f->arena, "%s (no answer)", name);
	return r->streaming ? arena_printf(&f->arena, "%s (streaming)", name) : name;
}

static bool served_by_wanted(const struct why_found *f, const struct request *r)
{
	const struct why_filter *filter = &f->opt->filter;

	if (!why_is_limited(filter))
		return true;
	return why_thread_matches(filter, f->names, r->first_thread, r->first_ns) ||
	       why_thread_matches(filter, f->names, r->last_thread, r->last_ns);
}

/* A request made by one that was never answered, and so is in no list, is its own. */
static bool is_entry(const struct why_found *f, const struct request *r)
{
	struct request parent;

	return r->parent == NO_INDEX || walk_find_request(f->walk, r->parent, &parent) < 0;
}

static int take_request(const struct request *r, void *arg)
{
	struct why_found *f = arg;
	const struct why_filter *filter = &f->opt->filter;
	bool entry = why_is_limited(filter) || is_entry(f, r);
	const char *name;

	if (stopped(f))
		return -EINTR;
	if (!entry || r->start_ns >= f->why.end_ns || r->end_ns <= f->why.start_ns ||
	    (filter->begin.given && r->start_ns < f->why.start_ns) || !served_by_wanted(f, r))
		return 0;
	name = group_name(f, r);
	if (!why_name_matches(filter, name))
		return 0;
	vec_push(&f->candidates, (struct candidate){
					 .id = r->id,
					 .parent = r->parent,
					 .start_ns = r->start_ns,
					 .end_ns = r->end_ns,
					 .name = name,
					 .thread = NO_INDEX,
					 .cut = r->cut_start || r->cut_end,
					 .streaming = r->streaming,
					 .own = f->why.command_pid > 0 &&
						why_descends(f->names, r->first_thread,
							     (uint32_t)f->why.command_pid),
				 });
	return 0;
}

/* Was it made for one of ids, be it through others?  Callers are older than what they call. */
static bool is_inner(const struct why_found *f, const struct candidate *c, const struct map *ids)
{
	struct request r = {.id = c->id, .parent = c->parent};

	while (r.parent != NO_INDEX && r.parent < r.id) {
		if (map_get(ids, (uint64_t)r.parent, NULL))
			return true;
		if (walk_find_request(f->walk, r.parent, &r) < 0)
			return false;
	}
	return false;
}

/* With --pid or --cgroup a request that another server here made counts as well, unless that
 * one is wanted too: then it is a part of it. */
static void drop_inner(struct why_found *f)
{
	struct map ids = {0};
	size_t kept = 0;

	for (size_t i = 0; i < f->candidates.n; i++)
		map_put(&ids, (uint64_t)f->candidates.at[i].id, 1);
	for (size_t i = 0; i < f->candidates.n; i++)
		if (!is_inner(f, &f->candidates.at[i], &ids))
			f->candidates.at[kept++] = f->candidates.at[i];
	f->candidates.n = kept;
	map_fini(&ids);
}

/* `why -- CMD` is about CMD: requests served by others are only counted. */
static void keep_own(struct why_found *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->candidates.n; i++)
		if (f->candidates.at[i].own)
			f->candidates.at[kept++] = f->candidates.at[i];
	f->why.elsewhere_count = (int64_t)(f->candidates.n - kept);
	f->candidates.n = kept;
}

static int choose_requests(struct why_found *f, struct err *err)
{
	int rc = walk_each_request(f->walk, take_request, f);

	if (rc == -EINTR)
		return err_set(err, rc, "interrupted");
	if (rc < 0)
		return err_set(err, rc, "the requests of the recording cannot be read");
	drop_inner(f);
	if (f->opt->own_command)
		keep_own(f);
	for (size_t i = 0; i < f->candidates.n; i++)
		f->why.cut_count += f->candidates.at[i].cut;
	f->why.request_count = (int64_t)f->candidates.n;
	return 0;
}

/* --- choosing threads */

static void take_thread(struct why_found *f, int thread, const char *name)
{
	const struct thread *t = names_thread(f->names, thread);
	int64_t from_ns = f->why.start_ns, to_ns = f->why.end_ns;

	if (t->first_ns != NO_TIME && t->first_ns > from_ns)
		from_ns = t->first_ns;
	if (t->end_ns != NO_TIME && t->end_ns < to_ns)
		to_ns = t->end_ns;
	if (from_ns < to_ns && f->candidates.n == MAX_THREADS && !f->too_many) {
		f->too_many = true;
		say_partial(f, "only the first 256 threads are explained");
	}
	if (from_ns < to_ns && f->candidates.n < MAX_THREADS)
		vec_push(&f->candidates, (struct candidate){.id = (int64_t)f->candidates.n,
							    .parent = NO_INDEX,
							    .start_ns = from_ns,
							    .end_ns = to_ns,
							    .name = name,
							    .thread = thread});
}

/* Short enough for a sentence. */
static const char *command_name(struct why_found *f)
{
	const char *line = f->why.command;

	return strlen(line) <= 32 ? line : arena_printf(&f->arena, "%.29s...", line);
}

/* The thread that was started as the command: the last of that pid, for pids are reused. */
static void choose_command(struct why_found *f)
{
	uint32_t pid = (uint32_t)f->why.command_pid;

	for (int i = names_threads(f->names) - 1; i > 0; i--) {
		const struct thread *t = names_thread(f->names, i);

		if (t->tid != pid || t->pid != pid)
			continue;
		f->why.subject = SUBJECT_COMMAND;
		f->why.subject_name = command_name(f);
		take_thread(f, i, f->why.subject_name);
		return;
	}
}

static const char *thread_name(struct why_found *f, int thread)
{
	const struct thread *t = names_thread(f->names, thread);
	const char *comm = names_comm(f->names, thread, f->why.end_ns - 1);

	return arena_printf(&f->arena, "%s (pid %" PRIu32 ")", *comm ? comm : "?", t->pid);
}

static const char *limit_name(struct why_found *f)
{
	const struct why_filter *filter = &f->opt->filter;
	const char *cgroup = filter->cgroup_count ? filter->cgroups[0] : filter->cgroup;
	int64_t pid = filter->pid_count ? filter->pids[0] : filter->pid;
	bool more = filter->cgroup_count > 1 || (!cgroup && filter->pid_count > 1);

	return cgroup ? arena_printf(&f->arena, "cgroup %s%s", cgroup, more ? " and others" : "")
		      : arena_printf(&f->arena, "pid %" PRId64 "%s", pid,
				     more ? " and others" : "");
}

static void choose_processes(struct why_found *f)
{
	const struct why_filter *filter = &f->opt->filter;

	f->why.subject = SUBJECT_PROCESS;
	f->why.subject_name = limit_name(f);
	for (int i = 1; i < names_threads(f->names); i++) {
		const struct thread *t = names_thread(f->names, i);
		int64_t at_ns = t->first_ns > f->why.start_ns ? t->first_ns : f->why.start_ns;

		if (why_thread_matches(filter, f->names, i, at_ns))
			take_thread(f, i, thread_name(f, i));
	}
}

/* --- walking */

static void note_all(struct why_found *f)
{
	f->profile = profile_new(&f->opt->profile);
	f->why.profile = f->profile;
	for (size_t i = 0; i < f->candidates.n; i++) {
		const struct candidate *c = &f->candidates.at[i];

		profile_note(f->profile,
			     &(struct profile_request){.id = c->id,
						       .group = c->name,
						       .start_ns = c->start_ns,
						       .duration_ns = c->end_ns - c->start_ns,
						       .cut = c->cut,
						       .streaming = c->streaming});
	}
	profile_rank(f->profile);
}

static int walk_one(struct why_found *f, const struct candidate *c, struct arena *scratch,
		    struct err *err)
{
	struct path path = {0};
	struct request r;
	int rc;

	if (c->thread != NO_INDEX) {
		rc = walk_thread(f->walk, c->thread, c->start_ns, c->end_ns, scratch, &path, err);
	} else {
		rc = walk_find_request(f->walk, c->id, &r);
		if (rc < 0)
			return err_set(err, rc, "request %" PRId64 " cannot be read again", c->id);
		rc = walk_request(f->walk, &r, scratch, &path, err);
	}
	if (rc < 0)
		return rc;
	profile_add(f->profile, c->id, &path);
	return 0;
}

static int walk_all(struct why_found *f, struct err *err)
{
	struct progress progress = {.what = "explaining"};
	struct arena scratch;
	int rc = 0;

	arena_init(&scratch);
	for (size_t i = 0; i < f->candidates.n && rc >= 0; i++) {
		if (!profile_wanted(f->profile, f->candidates.at[i].id))
			continue;
		progress_show(&progress, "request %zu of %zu", i + 1, f->candidates.n);
		rc = stopped(f) ? err_set(err, -EINTR, "interrupted")
				: walk_one(f, &f->candidates.at[i], &scratch, err);
		arena_reset(&scratch);
	}
	progress_done(&progress);
	arena_fini(&scratch);
	return rc < 0 ? rc : 0;
}

/* --pid and --cgroup of `record` count unless this command has its own. */
static void limit_as_recorded(struct why_found *f)
{
	const struct recording *r = f->recording;

	if (why_is_limited(&f->opt->filter))
		return;
	f->limited = *f->opt;
	f->limited.filter.pids = r->report_pids;
	f->limited.filter.pid_count = r->n_report_pids;
	f->limited.filter.cgroups = r->report_cgroups;
	f->limited.filter.cgroup_count = r->n_report_cgroups;
	f->opt = &f->limited;
}

static int find(struct why_found *f, const char *recording, struct err *err)
{
	int rc = open_recording(f, recording, err);

	if (rc < 0)
		return rc;
	limit_as_recorded(f);
	set_facts(f);
	rc = choose_requests(f, err);
	if (rc < 0)
		return rc;
	if (!f->candidates.n && why_is_limited(&f->opt->filter))
		choose_processes(f);
	else if (!f->candidates.n && !f->opt->filter.pattern && f->why.command_pid > 0)
		choose_command(f);
	note_all(f);
	rc = walk_all(f, err);
	if (rc < 0)
		return rc;
	profile_findings(f->profile);
	return profile_check(f->profile, err);
}

int why_find(const char *recording, const struct why_options *opt, struct why_found **ret,
	     struct err *err)
{
	struct why_found *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		abort();
	arena_init(&f->arena);
	f->opt = opt;
	f->why.subject_name = "";
	f->why.command_status = -1;
	f->why.top = opt->profile.top ? opt->profile.top : 5;
	rc = find(f, recording, err);
	if (rc < 0) {
		why_found_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}
