/* SPDX-License-Identifier: MIT
 *
 * The report of `longpole why` on a made-up host: the text is compared with golden/why-*.txt
 * (LONGPOLE_ACCEPT=1 writes them anew), the selection of requests with what it should choose.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scoped.h"
#include "base/str.h"
#include "cli/why.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t US = 1000, MS = 1000000, SECOND = 1000000000;
/* 2026-11-29 23:32:10 UTC */
static const int64_t WALL = INT64_C(1795995130) * 1000000000;

struct fixture {
	struct why_report w;
	struct profile *p;
	struct arena arena;
	struct path path;
	int64_t next_id;
};

static void start(struct fixture *f)
{
	*f = (struct fixture){.p = profile_new(NULL)};
	arena_init(&f->arena);
	f->w = (struct why_report){.subject = SUBJECT_REQUESTS,
				   .subject_name = "",
				   .host = "web1",
				   .cgroup_key = "v2",
				   .command_status = -1,
				   .start_ns = 5 * SECOND,
				   .end_ns = 15 * SECOND,
				   .wall_ns = WALL,
				   .recorder_cpu_pct = 1.23,
				   .records = 1234567,
				   .bytes = 98765432,
				   .top = 5,
				   .profile = f->p};
}

static void stop(struct fixture *f)
{
	profile_free(f->p);
	arena_fini(&f->arena);
}

static int64_t note(struct fixture *f, const char *group, int64_t start_ns, int64_t duration_ns)
{
	profile_note(f->p, &(struct profile_request){.id = f->next_id,
						     .group = group,
						     .start_ns = f->w.start_ns + start_ns,
						     .duration_ns = duration_ns});
	f->w.request_count++;
	return f->next_id++;
}

static const struct culprit self = {.kind = CULPRIT_SELF, .comm = "nginx", .request = -1};
static const struct culprit stress = {.kind = CULPRIT_CGROUP,
				      .comm = "stress",
				      .cgroup = "/b",
				      .name = "/b",
				      .pid = 4700,
				      .tid = 4711,
				      .request = -1};
static const struct culprit disk = {
	.kind = CULPRIT_DEVICE, .comm = "", .name = "sda", .request = -1};
static const struct culprit holder = {.kind = CULPRIT_THREAD,
				      .comm = "flusher",
				      .name = "flusher",
				      .pid = 812,
				      .tid = 815,
				      .request = -1};

static void path_start(struct fixture *f, int64_t start_ns)
{
	f->path = (struct path){.name = "",
				.host = "web1",
				.pid = 812,
				.tid = 812,
				.start_ns = f->w.start_ns + start_ns};
	f->path.end_ns = f->path.start_ns;
}

static void piece(struct fixture *f, enum state state, enum cause cause, via way, int syscall,
		  const struct culprit *c, int64_t ns)
{
	struct segment s = {.start_ns = f->path.end_ns,
			    .end_ns = f->path.end_ns + ns,
			    .host = "web1",
			    .comm = "nginx",
			    .tid = 812,
			    .pid = 812,
			    .state = state,
			    .cause = cause,
			    .via = way,
			    .syscall = syscall,
			    .culprit = *c,
			    .certain = true};

	path_add(&f->arena, &f->path, &s);
	f->path.end_ns = s.end_ns;
}

static void path_done(struct fixture *f, int64_t id)
{
	struct err err = {0};

	if (path_check(&f->path, &err) < 0)
		fail_msg("%s", err.text);
	profile_add(f->p, id, &f->path);
}

static char *report(struct fixture *f)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	why_text(&f->w, out, false);
	fclose(out);
	return text;
}

static void check_width(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (len > 80)
			fail_msg("%zu columns: %.*s", len, (int)len, text);
		if (len && text[len - 1] == ' ')
			fail_msg("blank at the end: %.*s", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

static void check_golden(const char *name, const char *text)
{
	scoped(str_fini) struct str path = {0};
	scoped(free) char *want = NULL;
	size_t len;

	str_addf(&path, "tests/unit/golden/why-%s.txt", name);
	if (getenv("LONGPOLE_ACCEPT"))
		assert_int_equal(io_write_file(str_get(&path), text, strlen(text), 0644, NULL), 0);
	assert_int_equal(io_read_file(str_get(&path), 1 << 20, &want, &len, NULL), 0);
	assert_string_equal(text, want);
}

static void check_text(struct fixture *f, const char *golden)
{
	struct err err = {0};
	scoped(free) char *text = NULL;

	profile_findings(f->p);
	if (profile_check(f->p, &err) < 0)
		fail_msg("%s", err.text);
	text = report(f);
	check_width(text);
	check_golden(golden, text);
}

/* 400 of GET /slow, 12 of them in the sixth second behind /b; 300 of GET /fast. */
static void test_neighbour(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	for (int i = 0; i < 400; i++)
		note(&f, "GET /slow/*", i * 25 * MS,
		     i >= 200 && i < 212 ? 45 * MS + i * 10 * US : 4 * MS + i * US);
	for (int i = 0; i < 300; i++)
		note(&f, "GET /fast", i * 30 * MS, 300 * US + i % 7 * US);
	note(&f, "GET /rare/with/a/very/long/name/that/does/not/fit", 2 * SECOND, 9 * MS);
	f.w.cut_count = 1;
	profile_rank(f.p);
	for (int i = 0; i < 400; i++) {
		if (!profile_wanted(f.p, i))
			continue;
		path_start(&f, i * 25 * MS);
		piece(&f, STATE_RUNNING, CAUSE_SELF, 0, -1, &self, MS);
		piece(&f, STATE_DISK, CAUSE_SERVICE, 0, syscall_nr("read"), &disk, 80 * US);
		for (int k = 0; k < 5; k++)
			piece(&f, k & 1 ? STATE_RUNNING : STATE_RUNQUEUE,
			      k & 1 ? CAUSE_SELF : CAUSE_IDLE, 0, -1, &self, 20 * US);
		if (i >= 200 && i < 212)
			piece(&f, STATE_RUNQUEUE, CAUSE_NEIGHBOUR, 0, syscall_nr("epoll_wait"),
			      &stress, 41 * MS + i * 10 * US);
		else
			piece(&f, STATE_RUNQUEUE, CAUSE_NEIGHBOUR, 0, -1, &stress, i * US + 1);
		piece(&f, STATE_RUNNING, CAUSE_LOCK, via_add(via_add(0, VIA_SOCKET), VIA_LOCK), -1,
		      &holder,
		      (i >= 200 && i < 212 ? 2820 : 2819) * US + (i < 200 || i >= 212) * 999);
		path_done(&f, i);
	}
	for (int i = 400; i < 700; i++) {
		if (!profile_wanted(f.p, i))
			continue;
		path_start(&f, (i - 400) * 30 * MS);
		piece(&f, STATE_RUNNING, CAUSE_SELF, 0, -1, &self, 300 * US + (i - 400) % 7 * US);
		path_done(&f, i);
	}
	path_start(&f, 2 * SECOND);
	piece(&f, STATE_UNKNOWN, CAUSE_NONE, 0, -1, &self, 9 * MS);
	path_done(&f, 700);
	f.w.lost_count = 1200;
	f.w.lost[0].name = "ring-full";
	f.w.lost[0].count = 1200;
	f.w.lost_reasons = 1;
	f.w.kept = "/tmp/evening.lp";
	check_text(&f, "neighbour");
	stop(&f);
}

static void test_command(void **state)
{
	static const struct culprit cc1 = {
		.kind = CULPRIT_PROCESS, .comm = "cc1", .pid = 99, .tid = 99, .request = -1};
	struct fixture f;

	(void)state;
	start(&f);
	f.w.subject = SUBJECT_COMMAND;
	f.w.subject_name = f.w.command = "make -j2";
	f.w.command_pid = 90;
	f.w.command_status = 2 << 8;
	note(&f, "make -j2", 0, 9 * SECOND);
	profile_rank(f.p);
	path_start(&f, 0);
	for (int i = 0; i < 30; i++) {
		piece(&f, STATE_RUNNING, CAUSE_SELF, 0, -1, &self, 10 * MS);
		piece(&f, STATE_RUNNING, CAUSE_CHILD, via_add(0, VIA_CHILD), syscall_nr("wait4"),
		      &cc1, 250 * MS);
		piece(&f, STATE_RUNQUEUE, CAUSE_OWN, via_add(0, VIA_CHILD), -1, &cc1, 25 * MS);
		piece(&f, STATE_DISK, CAUSE_SERVICE, via_add(0, VIA_CHILD), syscall_nr("openat"),
		      &disk, 15 * MS);
	}
	path_done(&f, 0);
	check_text(&f, "command");
	stop(&f);
}

/* Every state and cause has a sentence and an advice with all words in braces filled in. */
static void test_every_sentence(void **state)
{
	struct profile_group g = {.name = "GET /x", .count = 100, .slow_count = 5};
	struct why_report w = {.subject = SUBJECT_REQUESTS, .subject_name = ""};
	scoped(str_fini) struct str s = {0};

	(void)state;
	for (int st = 0; st < STATE_COUNT; st++)
		for (int c = 0; c < CAUSE_COUNT; c++) {
			struct finding x = {.group = &g,
					    .state = (enum state)st,
					    .cause = (enum cause)c,
					    .culprit = stress,
					    .extra_ns = MS,
					    .count = 5};

			str_clear(&s);
			why_sentence(&w, &x, &s);
			str_add(&s, " ");
			why_advice(&x, &s);
			assert_null(strpbrk(str_get(&s), "{}"));
			assert_true(s.len > 60);
		}
}

static void assert_sleep_says(enum culprit_kind kind, via way, const char *part)
{
	struct profile_group g = {.name = "GET /x", .count = 100, .slow_count = 5};
	struct why_report w = {.subject = SUBJECT_REQUESTS, .subject_name = ""};
	struct finding x = {.group = &g,
			    .state = STATE_SLEEP,
			    .cause = CAUSE_SELF,
			    .via = way,
			    .culprit = {.kind = kind, .comm = "job", .pid = 7, .tid = 8},
			    .extra_ns = MS,
			    .count = 5};
	scoped(str_fini) struct str s = {0};

	why_sentence(&w, &x, &s);
	if (!strstr(str_get(&s), part))
		fail_msg("%s: %s", part, str_get(&s));
}

/* A sleep is one's own only if nobody else was waited for. */
static void test_whose_sleep(void **state)
{
	(void)state;
	assert_sleep_says(CULPRIT_SELF, 0, "slept 1.00 ms more on a timer of their own: ");
	assert_sleep_says(CULPRIT_THREAD, via_add(0, VIA_LOCK),
			  "for a lock while its holder, job (tid 8), slept on a timer: ");
	assert_sleep_says(
		CULPRIT_PROCESS, via_add(0, VIA_CHILD),
		"for a process started on the way, job (pid 7), which slept on a timer: ");
	assert_sleep_says(CULPRIT_PROCESS, via_add(0, VIA_PIPE),
			  "for job (pid 7) to end its sleep on a timer, reached through a pipe: ");
	assert_sleep_says(CULPRIT_THREAD, via_add(via_add(0, VIA_PIPE), VIA_LOCK),
			  "slept on a timer, reached through a pipe, then a lock: ");
}

static int64_t when(const char *text)
{
	struct why_when w = {0};

	if (why_when_parse(text, &w, NULL) < 0)
		return -1;
	return why_when_ns(&w, WALL, 3600 * SECOND) / MS;
}

static void test_when(void **state)
{
	struct err err = {0};
	struct why_when w;

	(void)state;
	assert_int_equal(when("2s"), 2000);
	assert_int_equal(when("250ms"), 250);
	assert_int_equal(when("23:32:12"), 2000);
	assert_int_equal(when("23:33"), 50000);
	assert_int_equal(when("23:32:12.25"), 2250);
	assert_int_equal(when("00:10:10"), 38 * 60 * 1000); /* the next day */
	assert_int_equal(when("23:32:00"), -10000);
	assert_int_equal(when("2026-11-29T23:32:11Z"), 1000);
	assert_int_equal(when("2026-11-29 23:32:11"), 1000);
	assert_int_equal(when("2026-11-30T01:32:11+02:00"), 1000);
	assert_int_equal(when("2026-11-29T22:32:11-0100"), 1000);
	assert_true(when("2024-02-29T00:00:00Z") < 0 && when("2200-12-31T23:59:59Z") > 0);
	for (const char *const *bad =
		     (const char *const[]){"24:00:00", "1:2:3", "x", "12:60",
					   "2026-13-01T00:00:00Z", "12:00:00Z", "12:00:00 pm", "",
					   "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
					   "2026-02-29T00:00:00Z", NULL};
	     *bad; bad++)
		assert_int_equal(why_when_parse(*bad, &w, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is no instant"));
}

static void test_wrap(void **state)
{
	char *text = NULL, word[201];
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	memset(word, 'A', 200);
	word[200] = '\0';
	why_wrap(out, "a \033[2J\nb", 0, 2);
	why_wrap(out, word, 3, 10);
	why_wrap(out, "\xc3\xa9", 79, 10);
	fclose(out);
	assert_true(strstr(text, "a \\x1b[2J\\x0ab\n") == text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
	free(text);
}

static void test_names(void **state)
{
	struct why_filter part = {.pattern = "/cart"}, glob = {.pattern = "GET /*/items"},
			  any = {0};

	(void)state;
	assert_true(why_name_matches(&any, "GET /x"));
	assert_true(why_name_matches(&part, "GET /cart/items"));
	assert_false(why_name_matches(&part, "GET /card"));
	assert_true(why_name_matches(&glob, "GET /cart/items"));
	assert_false(why_name_matches(&glob, "GET /cart/items/x"));
}

static void test_cgroups(void **state)
{
	(void)state;
	assert_true(why_cgroup_matches("/a", "/a"));
	assert_true(why_cgroup_matches("a/", "/a/b"));
	assert_false(why_cgroup_matches("/a", "/ab"));
	assert_true(why_cgroup_matches("/", "/ab"));
	assert_true(why_cgroup_matches("/sys/fs/cgroup/a", "/a/b"));
	assert_true(why_cgroup_matches("/sys/fs/cgroup/unified/a", "/a"));
	assert_true(why_cgroup_matches("/sys/fs/cgroup/cpu,cpuacct/a/b", "/a/b/c"));
	assert_false(why_cgroup_matches("/sys/fs/cgroup/cpu/a", "/b"));
}

static void test_counts(void **state)
{
	scoped(str_fini) struct str s = {0};

	(void)state;
	for (uint64_t n = 1; n < 10000000; n *= 100) {
		why_count(n, &s);
		str_add(&s, " ");
	}
	assert_string_equal(str_get(&s), "1 100 10,000 1,000,000 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbour),      cmocka_unit_test(test_command),
		cmocka_unit_test(test_every_sentence), cmocka_unit_test(test_when),
		cmocka_unit_test(test_wrap),	       cmocka_unit_test(test_names),
		cmocka_unit_test(test_cgroups),	       cmocka_unit_test(test_counts),
		cmocka_unit_test(test_whose_sleep),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
