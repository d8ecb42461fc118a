/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/json.h"
#include "path/path.h"

static const char *text(const char *s)
{
	return s ? s : "";
}

void culprit_json(struct json *j, const char *key, const struct culprit *c)
{
	json_object(j, key);
	json_str(j, "kind", culprit_word(c->kind));
	json_str(j, "host", text(c->host));
	json_str(j, "cgroup", text(c->cgroup));
	json_str(j, "container", text(c->container));
	json_str(j, "comm", text(c->comm));
	json_uint(j, "pid", c->pid);
	json_uint(j, "tid", c->tid);
	json_str(j, "name", text(c->name));
	if (c->kernel)
		json_bool(j, "kernel", true);
	if (c->kind == CULPRIT_REQUEST)
		json_int(j, "request", c->request);
	json_end(j);
}

static void words_json(struct json *j, enum state state, enum cause cause, via v)
{
	json_str(j, "state", state_word(state));
	json_str(j, "cause", cause_word(cause));
	json_array(j, "via");
	for (int i = 0; via_at(v, i) != VIA_END; i++)
		json_str(j, NULL, via_word(via_at(v, i)));
	json_end(j);
}

void budget_json(struct json *j, const char *key, const struct budget *b)
{
	json_array(j, key);
	for (int i = 0; i < b->n; i++) {
		const struct budget_line *l = &b->lines[i];

		json_object(j, NULL);
		words_json(j, l->state, l->cause, l->via);
		json_int(j, "ns", l->ns);
		json_int(j, "certain_ns", l->certain_ns);
		culprit_json(j, "culprit", &l->culprit);
		json_end(j);
	}
	json_end(j);
}

static void syscall_json(struct json *j, int nr)
{
	char number[32];

	snprintf(number, sizeof(number), "syscall_%d", nr);
	json_str(j, "syscall", nr < 0 ? "" : syscall_name(nr) ? syscall_name(nr) : number);
}

static void share_json(struct json *j, const struct culprit *c, int64_t ns)
{
	json_object(j, NULL);
	culprit_json(j, "culprit", c);
	json_int(j, "ns", ns);
	json_end(j);
}

static void shares_json(struct json *j, const struct segment *s)
{
	json_array(j, "culprits");
	for (int i = 0; i < s->n_shares; i++)
		share_json(j, &s->shares[i].culprit, s->shares[i].ns);
	if (!s->n_shares)
		share_json(j, &s->culprit, s->end_ns - s->start_ns);
	json_end(j);
}

static void alternatives_json(struct json *j, const struct segment *s)
{
	json_array(j, "alternatives");
	for (int i = 0; i < s->n_alternatives; i++) {
		json_object(j, NULL);
		json_uint(j, "tid", s->alternatives[i].tid);
		json_uint(j, "pid", s->alternatives[i].pid);
		json_str(j, "comm", text(s->alternatives[i].comm));
		json_str(j, "why_not", text(s->alternatives[i].why_not));
		json_end(j);
	}
	json_end(j);
}

static void segment_json(struct json *j, const struct segment *s, int64_t zero_ns)
{
	json_object(j, NULL);
	json_int(j, "start_ns", s->start_ns - zero_ns);
	json_int(j, "end_ns", s->end_ns - zero_ns);
	json_str(j, "host", text(s->host));
	json_uint(j, "tid", s->tid);
	json_uint(j, "pid", s->pid);
	json_str(j, "comm", text(s->comm));
	words_json(j, s->state, s->cause, s->via);
	syscall_json(j, s->syscall);
	json_bool(j, "certain", s->certain);
	if (s->merged)
		json_int(j, "merged", s->merged);
	culprit_json(j, "culprit", &s->culprit);
	shares_json(j, s);
	alternatives_json(j, s);
	json_end(j);
}

void path_json(struct json *j, const char *key, const struct path *p, int64_t zero_ns)
{
	json_array(j, key);
	for (int i = 0; i < p->n; i++)
		segment_json(j, &p->segments[i], zero_ns);
	json_end(j);
}
