/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs those before it */
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "path/path.h"

static struct arena a;

static struct segment piece(int64_t start_ns, int64_t end_ns, enum state s, enum cause c)
{
	return (struct segment){.start_ns = start_ns,
				.end_ns = end_ns,
				.state = s,
				.cause = c,
				.host = "h",
				.comm = "web",
				.tid = 7,
				.pid = 7,
				.syscall = -1,
				.culprit = {.kind = CULPRIT_SELF, .request = -1},
				.certain = true};
}

static void add(struct path *p, int64_t start_ns, int64_t end_ns, enum state s, enum cause c)
{
	struct segment x = piece(start_ns, end_ns, s, c);

	path_add(&a, p, &x);
}

/* Backward, as the walk does; pieces of the same kind become one. */
static void joins(void **state)
{
	struct path p = {.start_ns = 0, .end_ns = 50};
	struct err err;

	(void)state;
	add(&p, 40, 50, STATE_RUNNING, CAUSE_SELF);
	add(&p, 30, 40, STATE_RUNNING, CAUSE_SELF);
	add(&p, 30, 30, STATE_DISK, CAUSE_SERVICE); /* of no length */
	add(&p, 20, 30, STATE_DISK, CAUSE_SERVICE);
	add(&p, 0, 20, STATE_RUNNING, CAUSE_SELF);
	assert_int_equal(p.n, 3);
	path_reverse(&p);
	assert_int_equal(path_check(&p, &err), 0);
	assert_int_equal(p.segments[2].start_ns, 30);
	/* Forward. */
	p.end_ns = 60;
	add(&p, 50, 60, STATE_RUNNING, CAUSE_SELF);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.segments[2].end_ns, 60);
	assert_int_equal(path_check(&p, &err), 0);
}

static void check_finds(void **state)
{
	struct share shares[2] = {{.ns = 4}, {.ns = 5}};
	struct path p = {.start_ns = 0, .end_ns = 20};
	struct segment s = piece(10, 20, STATE_DISK, CAUSE_OWN);
	struct err err;

	(void)state;
	add(&p, 0, 10, STATE_RUNNING, CAUSE_SELF);
	assert_int_equal(path_check(&p, &err), -EINVAL); /* too short */
	s.shares = shares;
	s.n_shares = 2;
	path_add(&a, &p, &s);
	assert_int_equal(path_check(&p, &err), -EINVAL);
	assert_string_equal(err.text, "segment 1: shares sum to 9 of 10 ns");
	shares[0].ns = 5;
	assert_int_equal(path_check(&p, &err), 0);
	p.segments[1].start_ns = 11;
	p.segments[1].n_shares = 0;
	assert_int_equal(path_check(&p, &err), -EINVAL); /* a gap */
}

static void budget_sums(void **state)
{
	struct share shares[2] = {
		{{.kind = CULPRIT_CGROUP, .cgroup = "/b", .name = "/b", .request = -1}, 7},
		{{.kind = CULPRIT_CGROUP, .cgroup = "/c", .name = "/c", .request = -1}, 3}};
	struct path p = {.start_ns = 0, .end_ns = 60};
	struct segment s = piece(10, 20, STATE_DISK, CAUSE_NEIGHBOUR);
	struct budget b;

	(void)state;
	add(&p, 0, 10, STATE_RUNNING, CAUSE_SELF);
	s.shares = shares;
	s.n_shares = 2;
	path_add(&a, &p, &s);
	add(&p, 20, 40, STATE_SLEEP, CAUSE_SELF);
	s = piece(40, 50, STATE_DISK, CAUSE_NEIGHBOUR);
	s.culprit = shares[1].culprit;
	s.certain = false;
	path_add(&a, &p, &s);
	add(&p, 50, 60, STATE_RUNNING, CAUSE_SELF);
	budget_of(&a, &p, &b);
	assert_int_equal(b.n, 4);
	assert_int_equal(b.total_ns, 60);
	assert_int_equal(b.lines[0].ns, 20);
	assert_int_equal(b.lines[2].ns, 13); /* /c: 3 + 10 */
	assert_string_equal(b.lines[2].culprit.name, "/c");
	assert_int_equal(b.lines[2].certain_ns, 3);
	assert_int_equal(b.lines[3].ns, 7);
}

static void vias(void **state)
{
	via v = 0;

	(void)state;
	assert_int_equal(via_last(v), VIA_END);
	assert_int_equal(via_at(v, 0), VIA_END);
	v = via_add(via_add(via_add(v, VIA_LOCK), VIA_LOCK), VIA_PIPE);
	assert_int_equal(via_at(v, 0), VIA_LOCK);
	assert_int_equal(via_at(v, 1), VIA_PIPE);
	assert_int_equal(via_at(v, 2), VIA_END);
	assert_int_equal(via_last(v), VIA_PIPE);
	for (int i = 0; i < 20; i++)
		v = via_add(v, i & 1 ? VIA_QUEUE : VIA_CALLEE);
	assert_int_equal(via_at(v, 0), VIA_LOCK); /* full: the outermost stay */
	assert_int_equal(via_at(v, 7), VIA_QUEUE);
	assert_int_equal(via_at(v, 8), VIA_END);
}

static void words(void **state)
{
	(void)state;
	assert_string_equal(state_word(STATE_BACKLOG), "backlog");
	assert_string_equal(cause_word(CAUSE_NEIGHBOUR), "neighbour");
	assert_string_equal(cause_word((enum cause)999), "");
	assert_string_equal(via_word(VIA_CALLEE), "callee");
	assert_string_equal(culprit_word(CULPRIT_REQUEST), "request");
	assert_string_equal(syscall_name(syscall_nr("futex")), "futex");
	assert_null(syscall_name(-1));
	assert_null(syscall_name(1 << 20));
	assert_int_equal(syscall_nr("no_such_call"), -1);
}

static void json(void **state)
{
	struct path p = {.start_ns = 100, .end_ns = 120};
	struct segment s = piece(100, 120, STATE_RUNNING, CAUSE_LOCK);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct budget b;
	struct json j;
	cJSON *doc, *seg;

	(void)state;
	s.via = via_add(0, VIA_LOCK);
	s.syscall = syscall_nr("read");
	s.culprit = (struct culprit){.kind = CULPRIT_THREAD, .tid = 9, .name = "x", .request = -1};
	path_add(&a, &p, &s);
	budget_of(&a, &p, &b);
	json_init(&j, out, 0);
	json_object(&j, NULL);
	budget_json(&j, "budget", &b);
	path_json(&j, "path", &p, 90);
	json_end(&j);
	assert_int_equal(json_fini(&j), 0);
	fclose(out);
	doc = cJSON_Parse(text);
	assert_non_null(doc);
	seg = cJSON_GetArrayItem(cJSON_GetObjectItem(doc, "path"), 0);
	assert_int_equal(cJSON_GetObjectItem(seg, "start_ns")->valueint, 10);
	assert_int_equal(cJSON_GetObjectItem(seg, "end_ns")->valueint, 30);
	assert_string_equal(cJSON_GetObjectItem(seg, "state")->valuestring, "running");
	assert_string_equal(cJSON_GetObjectItem(seg, "syscall")->valuestring, "read");
	assert_string_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(seg, "via"), 0)->valuestring,
			    "lock");
	seg = cJSON_GetArrayItem(cJSON_GetObjectItem(seg, "culprits"), 0);
	assert_int_equal(cJSON_GetObjectItem(seg, "ns")->valueint, 20);
	seg = cJSON_GetArrayItem(cJSON_GetObjectItem(doc, "budget"), 0);
	assert_int_equal(cJSON_GetObjectItem(seg, "ns")->valueint, 20);
	seg = cJSON_GetObjectItem(seg, "culprit");
	assert_string_equal(cJSON_GetObjectItem(seg, "kind")->valuestring, "thread");
	cJSON_Delete(doc);
	free(text);
}

static int setup(void **state)
{
	(void)state;
	arena_init(&a);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_fini(&a);
	return 0;
}

static int64_t sum_of(const struct budget *b)
{
	int64_t sum = 0;

	for (int i = 0; i < b->n; i++)
		sum += b->lines[i].ns;
	return sum;
}

/* 1000 short ones of twenty culprits around a long one: the long one stays as it is, the others
 * become few, nothing is lost. */
static void shortens(void **state)
{
	static char names[20][8];
	struct path p = {.start_ns = 0, .end_ns = 3000};
	struct budget b;
	struct err err;
	int longest = 0;

	(void)state;
	for (int i = 0; i < 1001; i++) {
		int64_t at = i <= 500 ? 2 * i : 998 + 2 * i;
		struct segment s = piece(at, i == 500 ? 2000 : at + 2, STATE_RUNQUEUE,
					 i % 3 ? CAUSE_NEIGHBOUR : CAUSE_OWN);

		snprintf(names[i % 20], sizeof(names[0]), "/%d", i % 20);
		s.culprit = (struct culprit){
			.kind = CULPRIT_CGROUP, .cgroup = names[i % 20], .name = names[i % 20]};
		path_add(&a, &p, &s);
	}
	assert_int_equal(p.n, 1001);
	assert_int_equal(path_check(&p, &err), 0);
	path_shorten(&a, &p, 1001);
	assert_int_equal(p.n, 1001);
	path_shorten(&a, &p, 50);
	if (path_check(&p, &err))
		fail_msg("%s", err.text);
	assert_in_range(p.n, 10, 50);
	assert_int_equal(p.whole_count, 1001);
	for (int i = 0; i < p.n; i++)
		if (!p.segments[i].merged && p.segments[i].end_ns - p.segments[i].start_ns == 1000)
			longest = i;
	assert_true(longest > 0);
	assert_int_equal(p.segments[0].n_shares, 8);
	assert_string_equal(p.segments[0].shares[7].culprit.name, "others");
	assert_int_equal(p.segments[0].cause, CAUSE_NEIGHBOUR);
	budget_of(&a, &p, &b);
	assert_int_equal(sum_of(&b), 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins),       cmocka_unit_test(check_finds),
		cmocka_unit_test(budget_sums), cmocka_unit_test(vias),
		cmocka_unit_test(words),       cmocka_unit_test(json),
		cmocka_unit_test(shortens),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
