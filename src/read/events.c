/* SPDX-License-Identifier: MIT
 *
 * Records as events.  Whatever a record holds, the event is one the model can take.
 */
#include <assert.h>
#include <string.h>

#include "read/files.h"

static_assert((int)REC_WHY_IDLE == (int)WHY_IDLE && (int)REC_STATE_DEAD == (int)TASK_DEAD &&
		      (int)REC_OBJ_OTHER == (int)OBJ_OTHER && (int)REC_BY_NEW == (int)BY_NEW &&
		      (int)REC_LIFE_OPEN == (int)LIFE_OPEN && (int)REC_ROLE_PAIR == (int)ROLE_PAIR,
	      "the model's words are the record's");

static int64_t when(u64 ns)
{
	return ns && ns <= INT64_MAX ? (int64_t)ns : NO_TIME;
}

/* A length of time; nothing lasts longer than what fits. */
static int64_t lasting(u64 ns)
{
	return ns <= INT64_MAX / 2 ? (int64_t)ns : 0;
}

/* A system call's number, -1 for none. */
static int call(s16 number)
{
	return number < 0 ? -1 : number;
}

/* A word of an enum; one that is not known is 0, "unknown". */
#define WORD(type, value, last) ((value) <= (unsigned)(last) ? (enum type)(value) : (enum type)0)

static void copy_text(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
	to[len] = '\0';
}

static void from_switch(const struct rec_switch *r, struct event *e)
{
	e->kind = EVENT_SWITCH;
	e->sw = (struct event_switch){.prev_tid = r->prev_tid,
				      .prev_pid = r->prev_pid,
				      .next_tid = r->next_tid,
				      .next_pid = r->next_pid,
				      .prev_since_ns = when(r->prev_since),
				      .why = WORD(why, r->prev_why, WHY_IDLE),
				      .state = WORD(task_state, r->prev_state, TASK_DEAD),
				      .syscall = call(r->prev_syscall),
				      .obj_kind = WORD(obj_kind, r->prev_obj_kind, OBJ_OTHER),
				      .obj = r->prev_obj,
				      .irq_ns = r->prev_irq,
				      .left_ns = when(r->next_left),
				      .waking_ns = when(r->next_waking),
				      .runnable_ns = when(r->next_runnable),
				      .by = WORD(waker_by, r->next_waker_by, BY_NEW),
				      .waker_tid = r->next_waker_tid,
				      .waker_pid = r->next_waker_pid,
				      .waker_obj = r->next_waker_obj,
				      .waker_syscall = call(r->next_waker_syscall),
				      .queue_cpu = r->next_queue_cpu,
				      .quota_ns = lasting(r->next_quota),
				      .first = r->next_flags & REC_NEXT_FIRST,
				      .migrated = r->next_flags & REC_NEXT_MIGRATED,
				      .late = r->next_flags & REC_NEXT_LATE};
}

static void from_thread(const struct rec_thread *r, struct event *e)
{
	struct event_thread *t = &e->thread;

	e->kind = EVENT_THREAD;
	*t = (struct event_thread){.tid = r->tid,
				   .pid = r->pid,
				   .parent_tid = r->parent_tid,
				   .what = WORD(life, r->what, LIFE_OPEN),
				   .kernel = r->flags & REC_THREAD_KERNEL,
				   .running = r->flags & REC_THREAD_RUNNING,
				   .birth_ns = when(r->start),
				   .cgroup_v2 = r->cgroup_v2,
				   .cgroup_cpu = r->cgroup_cpu,
				   .state = WORD(task_state, r->state, TASK_DEAD),
				   .why = WORD(why, r->why, WHY_IDLE),
				   .left_ns = when(r->left),
				   .waking_ns = when(r->waking),
				   .runnable_ns = when(r->runnable),
				   .syscall = call(r->syscall),
				   .obj_kind = WORD(obj_kind, r->obj_kind, OBJ_OTHER),
				   .obj = r->obj,
				   .queue_cpu = r->queue_cpu};
	copy_text(t->comm, r->comm, sizeof(r->comm));
}

static void from_cgroup(const struct rec_cgroup *r, struct event *e)
{
	e->kind = EVENT_CGROUP;
	e->cgroup.id = r->cgroup;
	e->cgroup.hierarchy = r->hierarchy;
	e->cgroup.what = r->what;
	copy_text(e->cgroup.path, r->path, sizeof(r->path));
}

static void from_socket(const struct rec_socket *r, struct event *e)
{
	struct event_socket *s = &e->socket;

	e->kind = EVENT_SOCKET;
	*s = (struct event_socket){.cookie = r->cookie,
				   .peer = r->peer,
				   .netns = r->netns,
				   .tid = r->tid,
				   .family = r->family,
				   .role = WORD(role, r->role, ROLE_PAIR),
				   .local_port = r->local_port,
				   .remote_port = r->remote_port};
	memcpy(s->local_addr, r->local_addr, sizeof(s->local_addr));
	memcpy(s->remote_addr, r->remote_addr, sizeof(s->remote_addr));
	copy_text(s->path, r->path, sizeof(r->path));
}

static void from_recv(const struct rec_recv *r, struct event *e)
{
	e->kind = EVENT_RECV;
	e->io = (struct event_io){.cookie = r->cookie,
				  .tid = r->tid,
				  .pid = r->pid,
				  .seq = r->seq,
				  .bytes = r->bytes,
				  .arrived_ns = when(r->arrived),
				  .arrived_tid = r->arrived_tid};
}

static void from_request(const struct rec_request *r, struct event *e, char *text)
{
	e->kind = EVENT_RECV;
	copy_text(text, r->text, sizeof(r->text));
	e->io = (struct event_io){.cookie = r->cookie,
				  .tid = r->tid,
				  .pid = r->pid,
				  .seq = r->seq,
				  .bytes = r->bytes,
				  .arrived_ns = when(r->arrived),
				  .arrived_tid = r->arrived_tid,
				  .text = text};
}

static void from_send(const struct rec_send *r, struct event *e)
{
	e->kind = EVENT_SEND;
	e->io = (struct event_io){.cookie = r->cookie,
				  .tid = r->tid,
				  .pid = r->pid,
				  .seq = r->seq,
				  .bytes = r->bytes,
				  .arrived_ns = NO_TIME,
				  .status = r->status};
}

static void from_block(const struct rec_block *r, struct event *e)
{
	e->kind = EVENT_BLOCK;
	e->block = (struct event_block){.request = r->request,
					.sector = r->sector,
					.owner_cgroup = r->owner_cgroup,
					.submitted_ns = when(r->submitted),
					.inserted_ns = when(r->inserted),
					.issued_ns = when(r->issued),
					.completed_ns = when(r->completed),
					.tid = r->tid,
					.pid = r->pid,
					.bytes = r->bytes,
					.dev = r->dev,
					.op = r->op,
					.sync = r->flags & REC_BLOCK_SYNC,
					.meta = r->flags & REC_BLOCK_META,
					.background = r->flags & REC_BLOCK_BACKGROUND,
					.error = r->error};
}

/* The record's size was checked against its kind. */
bool event_from(const struct rec_head *rec, struct event *e, char *text)
{
	e->ts_ns = (int64_t)rec->ts;
	e->cpu = rec->cpu;
	switch (rec->id) {
	case REC_ID_SWITCH:
		from_switch((const struct rec_switch *)rec, e);
		return true;
	case REC_ID_MIGRATE: {
		const struct rec_migrate *r = (const struct rec_migrate *)rec;

		e->kind = EVENT_MIGRATE;
		e->migrate = (struct event_migrate){r->tid, r->pid, r->from_cpu, r->to_cpu};
		return true;
	}
	case REC_ID_THREAD:
		from_thread((const struct rec_thread *)rec, e);
		return true;
	case REC_ID_CGROUP:
		from_cgroup((const struct rec_cgroup *)rec, e);
		return true;
	case REC_ID_SOCKET:
		from_socket((const struct rec_socket *)rec, e);
		return true;
	case REC_ID_RECV:
		from_recv((const struct rec_recv *)rec, e);
		return true;
	case REC_ID_REQUEST:
		from_request((const struct rec_request *)rec, e, text);
		return true;
	case REC_ID_SEND:
		from_send((const struct rec_send *)rec, e);
		return true;
	case REC_ID_CLOSE: {
		const struct rec_close *r = (const struct rec_close *)rec;

		e->kind = EVENT_CLOSE;
		e->io = (struct event_io){
			.cookie = r->cookie, .tid = r->tid, .pid = r->pid, .arrived_ns = NO_TIME};
		return true;
	}
	case REC_ID_BLOCK:
		from_block((const struct rec_block *)rec, e);
		return true;
	case REC_ID_STEAL:
		e->kind = EVENT_STEAL;
		e->steal_ns = lasting(((const struct rec_steal *)rec)->ns);
		return true;
	case REC_ID_LOST: {
		const struct rec_lost *r = (const struct rec_lost *)rec;

		e->kind = EVENT_LOST;
		e->lost = (struct event_lost){when(r->since), r->count, r->reason};
		return true;
	}
	}
	return false;
}
