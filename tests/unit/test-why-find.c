/* SPDX-License-Identifier: MIT
 *
 * Which requests of a recording `longpole why` explains.  The recording is written by hand:
 *
 *	A   asked of server, never answered (a one-way protocol); meanwhile server asks backend: B
 *	C   asked of server and answered; meanwhile server asks proxy: D, which asks backend: E
 *	F   an HTTP request that server never answered
 *
 *	server (tid 10)   A read .. B asked ........ C read . D asked .......... D's answer, C's
 *	proxy (tid 20)                                          D read E asked .. E's answer, D's
 *	backend (tid 30)             B read, answered                     E read, answered
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/why.h"
#include "streams.h"

enum { SERVER = 10, PROXY = 20, BACKEND = 30 };
static char top[] = "/tmp/longpole-test.XXXXXX";
static char dir[64];

static void sock(struct hand *h, u64 cookie, enum rec_role role, u16 local, u16 remote)
{
	struct rec_socket r = {.cookie = cookie,
			       .family = AF_INET,
			       .role = role,
			       .local_port = local,
			       .remote_port = remote,
			       .local_addr = {127, 0, 0, 1},
			       .remote_addr = {127, 0, 0, 1}};

	hand_add(h, &r, REC_ID_SOCKET, 0, 1000);
}

/* The two ends of a connection to port: cookie of the client's, cookie + 1 of the server's. */
static void connection(struct hand *h, u64 cookie, u16 port)
{
	sock(h, cookie, REC_ROLE_CLIENT, (u16)(5000 + cookie), port);
	sock(h, cookie + 1, REC_ROLE_SERVED, port, (u16)(5000 + cookie));
}

static void asked(struct hand *h, u64 ts, u64 cookie, u32 tid, const char *line)
{
	struct rec_request r = {.cookie = cookie,
				.tid = tid,
				.pid = tid,
				.arrived = ts - 1,
				.seq = 10,
				.bytes = 10};

	snprintf(r.text, sizeof(r.text), "%s", line);
	hand_add(h, &r, REC_ID_REQUEST, 0, ts);
}

static void sent(struct hand *h, u64 ts, u64 cookie, u32 tid)
{
	struct rec_send r = {.cookie = cookie, .tid = tid, .pid = tid, .seq = 10, .bytes = 10};

	hand_add(h, &r, REC_ID_SEND, 0, ts);
}

static void got(struct hand *h, u64 ts, u64 cookie, u32 tid)
{
	struct rec_recv r = {.cookie = cookie,
			     .tid = tid,
			     .pid = tid,
			     .arrived = ts - 1,
			     .seq = 10,
			     .bytes = 10};

	hand_add(h, &r, REC_ID_RECV, 0, ts);
}

static int setup(void **state)
{
	struct hand h;

	(void)state;
	if (!mkdtemp(top))
		return 1;
	snprintf(dir, sizeof(dir), "%s/a.lp", top);
	hand_open(&h, dir);
	connection(&h, 1, 80);	/* A */
	connection(&h, 3, 81);	/* B */
	connection(&h, 5, 80);	/* C */
	connection(&h, 7, 82);	/* D */
	connection(&h, 9, 81);	/* E */
	connection(&h, 11, 80); /* F */
	got(&h, 1100, 2, SERVER);
	sent(&h, 1110, 3, SERVER);
	asked(&h, 1120, 4, BACKEND, "GET /b HTTP/1.1");
	sent(&h, 1130, 4, BACKEND);
	got(&h, 1140, 3, SERVER);
	asked(&h, 1200, 6, SERVER, "GET /c HTTP/1.1");
	sent(&h, 1210, 7, SERVER);
	asked(&h, 1220, 8, PROXY, "GET /d HTTP/1.1");
	sent(&h, 1230, 9, PROXY);
	asked(&h, 1240, 10, BACKEND, "GET /e HTTP/1.1");
	sent(&h, 1250, 10, BACKEND);
	got(&h, 1260, 9, PROXY);
	sent(&h, 1270, 8, PROXY);
	got(&h, 1280, 7, SERVER);
	sent(&h, 1290, 6, SERVER);
	asked(&h, 1300, 12, SERVER, "GET /f HTTP/1.1");
	for (u64 cookie = 1; cookie <= 12; cookie++) {
		struct rec_close r = {.cookie = cookie, .tid = SERVER, .pid = SERVER};

		hand_add(&h, &r, REC_ID_CLOSE, 0, 2000);
	}
	hand_close(&h, 1000, 3000, 1);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

/* The names of what is explained, in their order. */
static void expect(struct why_filter filter, const char *names)
{
	struct why_options opt = {.filter = filter};
	const struct profile_group *g;
	struct why_found *found;
	struct err err = {0};
	char text[256] = "";
	int n;

	if (why_find(dir, &opt, &found, &err))
		fail_msg("%s", err.text);
	n = profile_groups(why_found_get(found)->profile, &g);
	for (int i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? ", " : "",
			 g[i].name);
	assert_string_equal(text, names);
	why_found_free(found);
}

/* What an exchange that was never answered asked of others is nobody's part. */
static void entries(void **state)
{
	(void)state;
	expect((struct why_filter){0}, "GET /f (no answer), GET /c, GET /b");
	expect((struct why_filter){.pattern = "/b"}, "GET /b");
}

/* backend's E is a part of server's C, through proxy: whoever asks for both gets C alone. */
static void inner_ones(void **state)
{
	(void)state;
	expect((struct why_filter){.pid = BACKEND}, "GET /b, GET /e");
	expect((struct why_filter){.pid = PROXY}, "GET /d");
	expect((struct why_filter){.pid = SERVER}, "GET /f (no answer), GET /c");
}

/* What `record` was limited to counts, until why is told otherwise. */
static void limited_as_recorded(void **state)
{
	char text[300];
	struct hand h;

	(void)state;
	snprintf(h.dir, sizeof(h.dir), "%s", dir);
	snprintf(text, sizeof(text),
		 "{\"format\":\"longpole.recording/1\",\"start_ns\":\"1000\",\"end_ns\":\"3000\","
		 "\"complete\":true,\"report\":{\"pids\":[%d,%d,\"x\"],\"cgroups\":[]}}",
		 PROXY, BACKEND);
	hand_file(&h, "host.json", text);
	expect((struct why_filter){0}, "GET /d, GET /b");
	expect((struct why_filter){.pid = SERVER}, "GET /f (no answer), GET /c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries),
		cmocka_unit_test(inner_ones),
		cmocka_unit_test(limited_as_recorded),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
