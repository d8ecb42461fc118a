/* SPDX-License-Identifier: MIT
 *
 * Problem: of a request only its end is visible.  What did it wait for, nanosecond by nanosecond?
 * Idea: go backward.  At the end some thread ran; before that it was absent; an absence says by
 * whom it was released, and that one's line is followed, but never to before the wait began.
 *
 *	T  ──run──┐ blocked                ┌─queue─┬──run──> end        line.c   a thread's line
 *	          │                  wakes │       │                    release.c  who ended a wait
 *	W  ───────┼────────run─────────────┘      hog ran               chain.c  a request's operations
 *	          └ W is followed to here, then T again                 emit.c   words and culprits
 *
 * A thread serves many requests, so a request is not one thread's line but a chain of socket
 * operations; between two of them its data were on the way, or waited for a thread that was busy
 * with another (chain.c).  Across a call the path goes on in the callee's own chain.
 *
 * Invariants:
 *  1. Whatever is emitted ends at the cursor and moves it back: a path tiles by construction.
 *  2. A line is never entered for a time at which a line above it has the same thread.
 *  3. A line stays inside the wait that led to it; depth, steps and segments are bounded.
 * Cost: a few stabbing queries per segment; memory by the segments, in the caller's arena.
 * docs/critical-path-kernel.md has the rules with drawings.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "history/history.h"
#include "walk/trip.h"

/* ------------------------------------------------------------------ tracks */

/* A history may be damaged in ways its checksums do not see; times in order are relied on here. */
static void sane(struct absence *x)
{
	if (x->runnable_ns < x->start_ns || x->runnable_ns > x->end_ns)
		x->runnable_ns = x->start_ns;
	if (x->waking_ns < x->start_ns || x->waking_ns > x->runnable_ns)
		x->waking_ns = x->runnable_ns;
}

/* What cannot be read is no gap: the path that met it is none. */
static bool found(struct walk *w, int rc)
{
	if (rc && rc != -ENOENT)
		w->broken = rc;
	return !rc;
}

bool walk_absence_before(struct walk *w, int thread, int64_t at_ns, struct absence *ret)
{
	struct interval iv;

	if (!found(w, history_before(w->h, track_id(TRACK_SCHED, (uint32_t)thread), at_ns, &iv)))
		return false;
	absence_get(&iv, ret);
	sane(ret);
	return true;
}

bool walk_absence_after(struct walk *w, int thread, int64_t at_ns, struct absence *ret)
{
	struct interval iv;

	if (!found(w, history_after(w->h, track_id(TRACK_SCHED, (uint32_t)thread), at_ns, &iv)))
		return false;
	absence_get(&iv, ret);
	sane(ret);
	return true;
}

bool walk_op_before(struct walk *w, int thread, int64_t at_ns, struct op *ret)
{
	struct interval iv;

	if (!found(w, history_before(w->h, track_id(TRACK_OPS, (uint32_t)thread), at_ns, &iv)))
		return false;
	op_get(&iv, ret);
	return true;
}

bool walk_op_after(struct walk *w, int thread, int64_t at_ns, struct op *ret)
{
	struct interval iv;

	if (!found(w, history_after(w->h, track_id(TRACK_OPS, (uint32_t)thread), at_ns, &iv)))
		return false;
	op_get(&iv, ret);
	return true;
}

bool walk_op_at(struct walk *w, int thread, int64_t at_ns, struct op *ret)
{
	struct op op;

	if (thread < 0 || at_ns == NO_TIME || !walk_op_after(w, thread, at_ns, &op) ||
	    op.start_ns != at_ns)
		return false;
	*ret = op;
	return true;
}

/* ------------------------------------------------------------------ small questions */

static void know_calls(struct walk *w)
{
	static const struct {
		const char *names;
		enum call call;
	} table[] = {
		{"epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 io_uring_enter "
		 "io_getevents io_pgetevents",
		 CALL_POLL},
		{"accept accept4", CALL_ACCEPT},
		{"read readv recvfrom recvmsg recvmmsg splice preadv2", CALL_READ},
		{"write writev sendto sendmsg sendmmsg sendfile connect pwritev2", CALL_SEND},
		{"futex futex_waitv", CALL_FUTEX},
		{"nanosleep clock_nanosleep pause", CALL_SLEEP},
		{"wait4 waitid vfork clone clone3 fork", CALL_CHILD},
		{"kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal",
		 CALL_KILL},
	};
	char name[32];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (const char *s = table[i].names; *s; s += strspn(s, " ")) {
			size_t len = strcspn(s, " ");
			int nr;

			memcpy(name, s, len);
			name[len] = 0;
			nr = syscall_nr(name);
			if (nr >= 0 && nr < (int)sizeof(w->call))
				w->call[nr] = table[i].call;
			s += len;
		}
}

enum call walk_call(const struct walk *w, int syscall)
{
	return syscall >= 0 && syscall < (int)sizeof(w->call) ? w->call[syscall] : CALL_OTHER;
}

bool walk_is_kernel(const struct walk *w, int thread)
{
	const struct thread *t = names_thread(w->names, thread);

	return t && t->kernel;
}

bool walk_same_process(const struct walk *w, int a, int b)
{
	const struct thread *x = names_thread(w->names, a), *y = names_thread(w->names, b);

	return a == b || (x && y && x->pid && x->pid == y->pid);
}

bool walk_is_idle(const struct walk *w, const struct absence *x)
{
	enum call call = walk_call(w, x->syscall);

	return x->runnable_ns > x->start_ns &&
	       (call == CALL_POLL || call == CALL_ACCEPT || x->obj_kind == OBJ_EPOLL);
}

/* ------------------------------------------------------------------ requests */

static int note_request(const struct interval *iv, void *arg)
{
	struct walk *w = arg;
	struct request r;

	request_get(iv, &r);
	if (r.id < 0 || (uint64_t)r.id >= history_count(w->h))
		return 0;
	while (w->requests.n <= (size_t)r.id)
		vec_push(&w->requests, (struct request_place){0, 0});
	w->requests.at[r.id] = (struct request_place){iv->track, iv->start_ns};
	return 0;
}

/* Where each request is, by id; the requests themselves stay in the history. */
static void know_requests(struct walk *w)
{
	if (w->requests_known)
		return;
	w->requests_known = true;
	found(w,
	      history_range(w->h, track_id(TRACK_REQUEST, 0), track_id(TRACK_REQUEST, UINT32_MAX),
			    INT64_MIN, INT64_MAX, 0, note_request, w));
}

int walk_find_request(struct walk *w, int64_t id, struct request *ret)
{
	const struct request_place *place;
	struct interval iv;

	know_requests(w);
	if (id < 0 || (size_t)id >= w->requests.n)
		return -ENOENT;
	place = &w->requests.at[id];
	if (!place->track || !found(w, history_at(w->h, place->track, place->start_ns, &iv)))
		return -ENOENT;
	request_get(&iv, ret);
	return 0;
}

int walk_each_request(struct walk *w, request_fn *fn, void *arg)
{
	struct request r;

	know_requests(w);
	for (size_t i = 0; i < w->requests.n; i++) {
		int e = walk_find_request(w, (int64_t)i, &r) ? 0 : fn(&r, arg);

		if (e)
			return e;
	}
	return w->broken;
}

/* ------------------------------------------------------------------ life */

static void know_sockets(struct walk *w)
{
	for (int i = 0; i < names_sockets(w->names); i++)
		map_put(&w->socket_by_cookie, names_socket(w->names, i)->cookie, (uint64_t)i + 1);
}

int walk_new(struct history *h, const struct names *names, struct blame *blame,
	     const struct walk_options *opt, struct walk **ret, struct err *err)
{
	struct walk *w = calloc(1, sizeof(*w));
	char *host = strdup(opt && opt->host ? opt->host : "");

	if (!w || !host) {
		free(w);
		free(host);
		return err_set(err, -ENOMEM, "out of memory");
	}
	w->h = h;
	w->names = names;
	w->blame = blame;
	w->host = host;
	w->max_depth = opt && opt->max_depth ? opt->max_depth : 64;
	w->max_segments = opt && opt->max_segments ? opt->max_segments : 100000;
	know_calls(w);
	know_sockets(w);
	*ret = w;
	return 0;
}

void walk_free(struct walk *w)
{
	if (!w)
		return;
	map_fini(&w->socket_by_cookie);
	vec_fini(&w->requests);
	free((char *)w->host);
	free(w);
}

/* ------------------------------------------------------------------ paths */

static void path_of_thread(struct walk *w, int thread, struct path *ret)
{
	const struct thread *t = names_thread(w->names, thread);

	ret->host = w->host;
	ret->tid = t ? t->tid : 0;
	ret->pid = t ? t->pid : 0;
}

static struct trip trip_new(struct walk *w, struct arena *a, struct path *p)
{
	/* Joined pieces are work too: a few for each segment. */
	return (struct trip){
		.w = w, .a = a, .p = p, .cursor_ns = p->end_ns, .steps = w->max_segments * 4};
}

static int trip_done(struct trip *t, struct err *err)
{
	int broken = t->w->broken;

	assert(t->cursor_ns == t->p->start_ns || t->p->end_ns <= t->p->start_ns);
	path_reverse(t->p);
	return broken ? err_set(err, broken, "the history cannot be read: %s", strerror(-broken))
		      : 0;
}

int walk_request(struct walk *w, const struct request *r, struct arena *a, struct path *ret,
		 struct err *err)
{
	int thread = r->last_thread >= 0 ? r->last_thread : r->first_thread;
	struct frame root;
	struct trip t;
	struct op last;
	struct job job = {.request = r->id, .own_thread = NO_INDEX, .arrived_ns = NO_TIME};

	if (r->end_ns <= r->start_ns)
		return err_set(err, -EINVAL, "request %lld has no length", (long long)r->id);
	*ret = (struct path){.name = names_str(w->names, r->name),
			     .start_ns = r->start_ns,
			     .end_ns = r->end_ns,
			     .cut = r->cut_start || r->cut_end};
	path_of_thread(w, thread, ret);
	t = trip_new(w, a, ret);
	root = trip_enter(&t, NULL, thread, r->start_ns, 0);
	if (walk_op_at(w, r->last_thread, r->last_ns, &last)) {
		chain_explain(&t, &root, r, &last, r->start_ns, 0);
	} else {
		/* Nothing was sent yet: what the thread that took it has done since. */
		root.job = &job;
		job.arrived_ns = r->start_ns;
		line_explain(&t, &root);
	}
	trip_unknown(&t, &root, r->start_ns, -1);
	return trip_done(&t, err);
}

int walk_thread(struct walk *w, int thread, int64_t from_ns, int64_t to_ns, struct arena *a,
		struct path *ret, struct err *err)
{
	struct frame root;
	struct trip t;

	if (!names_thread(w->names, thread))
		return err_set(err, -ENOENT, "thread %d is not in the recording", thread);
	if (from_ns > to_ns)
		return err_set(err, -EINVAL, "the window ends before it begins");
	*ret = (struct path){.name = names_comm(w->names, thread, to_ns - 1),
			     .start_ns = from_ns,
			     .end_ns = to_ns};
	path_of_thread(w, thread, ret);
	t = trip_new(w, a, ret);
	root = trip_enter(&t, NULL, thread, from_ns, 0);
	line_explain(&t, &root);
	return trip_done(&t, err);
}
