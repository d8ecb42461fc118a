/* SPDX-License-Identifier: MIT
 *
 * From what the walk found to segments: words, culprits, and the cursor's step back.
 */
#include <string.h>

#include "base/arena.h"
#include "walk/trip.h"

struct frame trip_enter(const struct trip *t, const struct frame *up, int thread, int64_t from_ns,
			via v)
{
	return (struct frame){.up = up,
			      .thread = thread,
			      .victim = up && walk_is_kernel(t->w, thread) ? up->victim : thread,
			      .via = v,
			      .certain = up ? up->certain : true,
			      .depth = up ? up->depth + 1 : 0,
			      .from_ns = from_ns,
			      .to_ns = from_ns};
}

bool trip_spent(struct trip *t)
{
	if (t->p->n >= t->w->max_segments)
		t->steps = 0;
	else if (t->steps > 0)
		t->steps--;
	return t->steps <= 0;
}

static struct segment segment_at(struct trip *t, const struct frame *f, int64_t from_ns)
{
	const struct thread *thread = names_thread(t->w->names, f->thread);

	return (struct segment){.start_ns = from_ns,
				.end_ns = t->cursor_ns,
				.host = t->w->host,
				.comm = names_comm(t->w->names, f->thread, t->cursor_ns - 1),
				.tid = thread ? thread->tid : 0,
				.pid = thread ? thread->pid : 0,
				.via = f->via,
				.syscall = -1,
				.certain = f->certain};
}

void trip_emit(struct trip *t, const struct frame *f, int64_t from_ns, enum state state,
	       enum cause cause, const struct culprit *c, int syscall, bool certain)
{
	struct segment s;

	if (from_ns >= t->cursor_ns)
		return;
	s = segment_at(t, f, from_ns);
	s.state = state;
	s.cause = cause;
	s.syscall = syscall;
	s.certain = s.certain && certain;
	s.culprit = c ? *c : (struct culprit){.host = t->w->host, .request = -1};
	path_add(t->a, t->p, &s);
	t->cursor_ns = from_ns;
}

void trip_unknown(struct trip *t, const struct frame *f, int64_t from_ns, int syscall)
{
	bool lost = blame_lost(t->w->blame, from_ns, t->cursor_ns);

	trip_emit(t, f, from_ns, lost ? STATE_LOST : STATE_UNKNOWN, CAUSE_NONE, NULL, syscall,
		  false);
}

void trip_wakeup(struct trip *t, const struct frame *f, int64_t from_ns, int syscall)
{
	struct culprit c = {.host = t->w->host, .request = -1, .name = "wakeup"};

	trip_emit(t, f, from_ns, STATE_RUNQUEUE, CAUSE_IDLE, &c, syscall, true);
}

void trip_anybody(struct trip *t, const struct frame *f, int64_t from_ns, int syscall, bool certain)
{
	struct culprit c = {.host = t->w->host, .request = -1, .name = "whoever asks next"};

	trip_emit(t, f, from_ns, STATE_NETWORK, CAUSE_REMOTE, &c, syscall, certain);
}

void trip_network(struct trip *t, const struct frame *f, int64_t from_ns, enum cause cause,
		  int socket, int syscall, bool certain)
{
	struct culprit c = {.kind = CULPRIT_REMOTE, .host = t->w->host, .request = -1};
	const struct sockinfo *s = names_socket(t->w->names, socket);
	char buf[128];

	if (s && s->role == ROLE_LISTEN) {
		trip_anybody(t, f, from_ns, syscall, certain);
		return;
	}
	c.name = socket < 0 ? ""
			    : arena_strdup(t->a, names_address(t->w->names, socket, true, buf,
							       sizeof(buf)));
	if (!*c.name)
		c.kind = CULPRIT_UNKNOWN;
	trip_emit(t, f, from_ns, STATE_NETWORK, cause, &c, syscall, certain);
}

/* The innermost wait that says whose work this is: a queue, pipe or signal inside of it only
 * moved the work on. */
static enum via_word owner_word(via v)
{
	enum via_word word = VIA_END;

	for (int i = 0; via_at(v, i) != VIA_END; i++)
		if (via_at(v, i) == VIA_LOCK || via_at(v, i) == VIA_CALLEE ||
		    via_at(v, i) == VIA_CHILD)
			word = via_at(v, i);
	return word;
}

/* The thread of a line as the one who spent the time. */
static void line_culprit(struct trip *t, const struct frame *f, struct culprit *ret)
{
	enum culprit_kind kind = CULPRIT_PROCESS;

	if (!f->via)
		kind = CULPRIT_SELF;
	else if (owner_word(f->via) == VIA_LOCK || walk_is_kernel(t->w, f->thread))
		kind = CULPRIT_THREAD;
	blame_thread(t->w->blame, f->thread, t->cursor_ns - 1, kind, ret);
}

void trip_sleep(struct trip *t, const struct frame *f, int64_t from_ns, bool timeout, int syscall)
{
	enum cause cause = owner_word(f->via) == VIA_CALLEE ? CAUSE_CALLEE : CAUSE_SELF;
	struct culprit c;

	line_culprit(t, f, &c);
	if (timeout)
		cause = CAUSE_TIMEOUT;
	if (timeout && c.kind == CULPRIT_SELF) {
		c.kind = CULPRIT_TIMER;
		c.name = syscall_name(syscall) ? syscall_name(syscall) : "timer";
	}
	trip_emit(t, f, from_ns, STATE_SLEEP, cause, &c, syscall, true);
}

void trip_backlog(struct trip *t, const struct frame *f, int64_t from_ns, int64_t request,
		  bool certain)
{
	struct request q;
	struct culprit c;

	blame_thread(t->w->blame, f->thread, t->cursor_ns - 1, CULPRIT_REQUEST, &c);
	c.request = request;
	c.name = walk_find_request(t->w, request, &q) ? "" : names_str(t->w->names, q.name);
	trip_emit(t, f, from_ns, STATE_BACKLOG, CAUSE_REQUEST, &c, -1, certain);
}

void trip_running(struct trip *t, const struct frame *f, int64_t from_ns, bool certain)
{
	static const enum cause causes[VIA_COUNT] = {[VIA_END] = CAUSE_SELF,
						     [VIA_LOCK] = CAUSE_LOCK,
						     [VIA_CALLEE] = CAUSE_CALLEE,
						     [VIA_CHILD] = CAUSE_CHILD};
	struct culprit c;

	line_culprit(t, f, &c);
	trip_emit(t, f, from_ns, STATE_RUNNING, causes[owner_word(f->via)], &c, -1, certain);
}

struct blaming {
	struct trip *t;
	const struct frame *f;
	int syscall;
};

static int add_piece(const struct blame_piece *p, void *arg)
{
	struct blaming *b = arg;
	struct segment s = segment_at(b->t, b->f, p->start_ns);

	s.state = p->state;
	s.cause = p->cause;
	s.syscall = b->syscall;
	s.culprit = p->culprit;
	s.shares = p->shares;
	s.n_shares = p->n_shares;
	s.certain = s.certain && p->certain;
	path_add(b->t->a, b->t->p, &s);
	b->t->cursor_ns = p->start_ns;
	return trip_spent(b->t);
}

void trip_runqueue(struct trip *t, const struct frame *f, const struct absence *x, int64_t from_ns)
{
	struct blaming b = {t, f, -1};

	blame_runqueue(t->w->blame, f->victim, x, from_ns, t->cursor_ns, add_piece, &b);
	trip_unknown(t, f, from_ns, -1);
}

void trip_disk(struct trip *t, const struct frame *f, const struct block *x, int64_t from_ns,
	       int syscall)
{
	struct blaming b = {t, f, syscall};

	blame_disk(t->w->blame, f->victim, x, from_ns, t->cursor_ns, t->a, add_piece, &b);
	trip_unknown(t, f, from_ns, syscall);
}
