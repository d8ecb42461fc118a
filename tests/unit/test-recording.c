/* SPDX-License-Identifier: MIT
 *
 * Recordings written by hand: whole, cut short, damaged at every byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "history/history.h"
#include "read/read.h"
#include "streams.h"

static char top[] = "/tmp/longpole-test.XXXXXX";
static char dir[64], stream_path[128];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/a.lp", top);
	snprintf(stream_path, sizeof(stream_path), "%s/kernel/stream_1", dir);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void add_switch(struct hand *h, unsigned cpu, u64 ts, u32 prev, u32 next)
{
	struct rec_switch s = {.prev_tid = prev,
			       .prev_pid = prev,
			       .next_tid = next,
			       .next_pid = next,
			       .prev_why = REC_WHY_BLOCKED,
			       .prev_syscall = -1};

	hand_add(h, &s, REC_ID_SWITCH, cpu, ts);
}

static void add_sockets(struct hand *h)
{
	struct rec_socket s = {.cookie = 5, .family = 2, .role = REC_ROLE_SERVED, .local_port = 80};
	struct rec_request r = {
		.cookie = 5, .tid = 7, .pid = 7, .bytes = 9, .seq = 9, .text = "GET /x/1 HTTP/1.1"};
	struct rec_send w = {.cookie = 5, .tid = 7, .pid = 7, .bytes = 9, .seq = 9, .status = 200};
	struct rec_thread t = {.tid = 7, .pid = 7, .what = REC_LIFE_NAME, .comm = "web"};

	hand_add(h, &t, REC_ID_THREAD, 1, 1010);
	hand_add(h, &s, REC_ID_SOCKET, 1, 1020);
	hand_add(h, &r, REC_ID_REQUEST, 1, 1030);
	hand_add(h, &w, REC_ID_SEND, 1, 1040);
}

/* Two streams whose times alternate; stream 1 has two packets. */
static void write_small(int complete)
{
	struct hand h;
	struct rec_head unknown[2] = {0};

	hand_open(&h, dir);
	add_sockets(&h);
	hand_flush(&h, 1);
	hand_put(&h, unknown, 99, 1, 1100, sizeof(unknown));
	for (u64 i = 0; i < 5; i++) {
		add_switch(&h, 0, 1200 + 20 * i, i % 2, 1 - i % 2);
		add_switch(&h, 1, 1210 + 20 * i, 7 * (i % 2), 7 - 7 * (i % 2));
	}
	hand_close(&h, 1000, 2000, complete);
}

struct seen {
	int n;
	int64_t last_ns;
	uint64_t lost;
};

static int see(const struct event *e, void *arg, struct err *err)
{
	struct seen *s = arg;

	(void)err;
	assert_true(e->ts_ns >= s->last_ns);
	s->last_ns = e->ts_ns;
	s->n++;
	if (e->kind == EVENT_LOST)
		s->lost++;
	return 0;
}

static void whole(void **state)
{
	struct recording *r;
	struct seen s = {0};

	(void)state;
	write_small(1);
	assert_int_equal(recording_open(dir, &r, NULL), 0);
	assert_string_equal(r->host, "h");
	assert_true(r->complete);
	assert_int_equal(r->end_ns - r->start_ns, 1000);
	assert_int_equal(recording_each(r, see, &s, NULL), 0);
	assert_int_equal(s.n, 14); /* the unknown record is no event */
	assert_int_equal(r->n_records, 15);
	assert_int_equal(r->records[REC_ID_SWITCH], 10);
	assert_int_equal(r->records[REC_ID_REQUEST], 1);
	assert_int_equal(recording_scan(r, NULL), 0);
	assert_int_equal(r->n_records, 15);
	/* 1000 -> 5000, 3000 -> 7200: 1.1 wall ns per ns between, 1 outside */
	assert_int_equal(recording_wall_ns(r, 2000), 6100);
	assert_int_equal(recording_wall_ns(r, 900), 4900);
	assert_int_equal(recording_wall_ns(r, 3100), 7300);
	recording_close(r);
}

static void cached_history(void **state)
{
	struct recording *r;
	struct history *h;
	struct names *n;
	char damage[512], path[128];
	uint64_t count;

	(void)state;
	write_small(1);
	snprintf(path, sizeof(path), "%s/history", dir);
	for (int round = 0; round < 4; round++) {
		/* built; found; damaged and built again; of other streams and built again */
		if (round == 2)
			assert_int_equal(truncate(path, 100), 0);
		if (round == 3) {
			teardown(NULL);
			write_small(1);
			assert_int_equal(io_write_file(path, "x", 1, 0600, NULL), 0);
		}
		assert_int_equal(recording_open(dir, &r, NULL), 0);
		assert_int_equal(recording_history(r, &h, &n, damage, sizeof(damage), NULL), 0);
		assert_string_equal(damage, "");
		assert_int_equal(r->n_records, 15);
		if (round)
			assert_int_equal(history_count(h), count);
		count = history_count(h);
		assert_true(count > 10);
		assert_string_equal(names_comm(n, names_find(n, 7, 1500), 1500), "web");
		assert_string_equal(names_disk_name(n, 0), "sda");
		history_close(h);
		names_free(n);
		recording_close(r);
		assert_int_equal(access(path, F_OK), 0);
	}
}

static int read_all(struct err *err, struct seen *s)
{
	struct recording *r;
	int rc = recording_open(dir, &r, err);

	if (rc)
		return rc;
	rc = recording_each(r, see, s, err);
	recording_close(r);
	return rc;
}

static off_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Cut at every byte: of a killed recorder's the whole packets are read; else it is damage, what
 * was before it is given and the rest becomes a loss. */
static void cut_short(void **state)
{
	struct err err;
	struct seen s;

	(void)state;
	for (int complete = 0; complete < 2; complete++) {
		write_small(complete);
		for (off_t len = size_of(stream_path); len-- > 0;) {
			off_t first = 80 + sizeof(struct rec_thread) + sizeof(struct rec_socket) +
				      sizeof(struct rec_request) + sizeof(struct rec_send);
			int rc;

			assert_int_equal(truncate(stream_path, len), 0);
			err = (struct err){0};
			s = (struct seen){0};
			rc = read_all(&err, &s);
			if (!complete || len == 0 || len == first) {
				assert_int_equal(rc, 0);
				assert_int_equal(s.n, len >= first ? 9 : 5);
				continue;
			}
			assert_int_equal(rc, -EBADMSG);
			assert_non_null(strstr(err.text, "stream_1: offset "));
			assert_int_equal(s.lost, 1);
			assert_int_equal(s.n, len >= first ? 10 : 6);
		}
		teardown(NULL);
	}
}

/* Each byte of a stream flipped: read, or one clear sentence. */
static void flipped(void **state)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	size_t len;
	char *text;

	(void)state;
	write_small(1);
	assert_int_equal(io_read_file(stream_path, 1 << 20, &text, &len, NULL), 0);
	for (size_t i = 0; i < 3 * len; i++) {
		struct err err = {0};
		struct seen s = {0};
		int rc;

		text[i / 3] ^= (char)flips[i % 3];
		assert_int_equal(io_write_file(stream_path, text, len, 0600, NULL), 0);
		text[i / 3] ^= (char)flips[i % 3];
		rc = read_all(&err, &s);
		assert_true(rc == 0 || rc == -EBADMSG);
		assert_true(s.n >= 5); /* stream 0 is whole */
		if (rc)
			assert_non_null(strstr(err.text, "offset"));
	}
	free(text);
}

/* Damage inside the first packet: the second is read, and the history says what is missing. */
static void damage_in_the_middle(void **state)
{
	struct recording *r;
	struct history *h;
	struct names *n;
	char damage[512];
	u32 size = 7;
	int fd;

	(void)state;
	write_small(1);
	fd = open(stream_path, O_WRONLY);
	assert_int_equal(pwrite(fd, &size, sizeof(size), 80 + offsetof(struct rec_head, size)), 4);
	close(fd);
	for (int round = 0; round < 2; round++) { /* built, then kept */
		assert_int_equal(recording_open(dir, &r, NULL), 0);
		assert_int_equal(recording_history(r, &h, &n, damage, sizeof(damage), NULL), 0);
		assert_non_null(strstr(damage, "stream_1: offset 80: impossible record size"));
		assert_int_equal(r->records[REC_ID_SWITCH], 10);
		assert_int_equal(r->records[REC_ID_SEND], 0);
		assert_int_equal(r->records[REC_ID_LOST], 0);
		assert_int_equal(r->lost.records, 1);
		history_close(h);
		names_free(n);
		recording_close(r);
	}
}

/* The packet in the middle was cut out: what is left is whole, but not all. */
static void packet_missing(void **state)
{
	struct err err = {0};
	struct seen s = {0};
	struct hand h;

	(void)state;
	hand_open(&h, dir);
	for (u64 ts = 1000; ts < 1003; ts++) {
		struct rec_switch r = {.prev_tid = 0};

		hand_add(&h, &r, REC_ID_SWITCH, 1, ts);
		hand_flush(&h, 1);
		h.seq[1] += ts == 1000;
	}
	hand_close(&h, 1000, 2000, 1);
	assert_int_equal(read_all(&err, &s), -EBADMSG);
	assert_non_null(strstr(err.text, "a packet is missing before this one"));
	assert_int_equal(s.n, 4);
	assert_int_equal(s.lost, 1);
}

static void flip_a_bit(const char *path)
{
	size_t len;
	char *text;

	assert_int_equal(io_read_file(path, 1 << 20, &text, &len, NULL), 0);
	text[len / 3] ^= 0x10;
	assert_int_equal(io_write_file(path, text, len, 0600, NULL), 0);
	free(text);
}

/* The same history without intervals, and with counts of another size. */
static void shorten_counts(const char *path)
{
	static const char *const parts[] = {"names", "source", "damage", "counts"};
	struct history_writer *w;
	struct history *h;
	const void *data;
	size_t len;

	assert_int_equal(history_open(path, NULL, &h, NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(history_create(path, NULL, &w, NULL), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(history_attachment(h, parts[i], &data, &len), 0);
		assert_int_equal(history_attach(w, parts[i], data, len - (i == 3), NULL), 0);
	}
	assert_int_equal(history_finish(w, NULL), 0);
	history_close(h);
}

/* A kept history that is damaged inside, or whose counts are of another size, is built again. */
static void bad_history(void **state)
{
	struct recording *r;
	struct history *h;
	struct names *n;
	char path[128];

	(void)state;
	write_small(1);
	snprintf(path, sizeof(path), "%s/history", dir);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(recording_open(dir, &r, NULL), 0);
		assert_int_equal(recording_history(r, &h, &n, NULL, 0, NULL), 0);
		assert_true(history_count(h) > 0);
		assert_int_equal(history_verify(h, NULL), 0);
		assert_true(r->n_records > 0);
		history_close(h);
		names_free(n);
		recording_close(r);
		(round ? shorten_counts : flip_a_bit)(path);
	}
}

/* Ctrl-C while it is built: nothing is left. */
static void interrupted_build(void **state)
{
	volatile sig_atomic_t stop = 1;
	struct err err = {0};
	struct recording *r;
	struct history *h;
	struct names *n;
	char path[128];

	(void)state;
	write_small(1);
	snprintf(path, sizeof(path), "%s/history", dir);
	assert_int_equal(recording_open(dir, &r, NULL), 0);
	r->stop = &stop;
	assert_int_equal(recording_history(r, &h, &n, NULL, 0, &err), -EINTR);
	assert_string_equal(err.text, "interrupted");
	assert_int_equal(access(path, F_OK), -1);
	recording_close(r);
}

static void expect_refusal(int code, const char *words)
{
	struct err err = {0};
	struct recording *r;

	assert_int_equal(recording_open(dir, &r, &err), code);
	if (!strstr(err.text, words))
		fail_msg("'%s' lacks '%s'", err.text, words);
}

static void refused(void **state)
{
	static const char version_9[] =
		"/* CTF 1.8 */ uuid = \"01020304-0506-0708-090a-0b0c0d0e0f10\"; "
		"tracer_name = \"longpole\"; tracer_major = 9;";
	struct hand h = {0};

	(void)state;
	expect_refusal(-ENOENT, "No such file");
	assert_int_equal(mkdir(dir, 0700), 0);
	expect_refusal(-EINVAL, "is not a recording");
	teardown(NULL);
	write_small(1);
	snprintf(h.dir, sizeof(h.dir), "%s", dir);
	hand_file(&h, "kernel/metadata", version_9);
	expect_refusal(-ESTALE, "version 9");
	hand_file(&h, "kernel/metadata", "/* CTF 1.8 */ trace {}");
	expect_refusal(-EBADMSG, "not written by longpole");
	hand_file(&h, "kernel/metadata", "CTF2");
	expect_refusal(-EBADMSG, "not CTF 1.8");
	hand_file(&h, "host.json", "{\"format\": nonsense");
	expect_refusal(-EBADMSG, "host.json: offset");
	hand_file(&h, "host.json", "[]");
	expect_refusal(-EBADMSG, "format ''");
	hand_file(&h, "host.json", "{\"format\":\"longpole.recording/1\",\"cpus\":\"x\"}");
	expect_refusal(-EBADMSG, "no start_ns");
}

/* A folder that cannot be written (to whoever is not root): the history is temporary. */
static void read_only(void **state)
{
	struct recording *r;
	struct history *h;
	struct names *n;
	char path[128];

	(void)state;
	write_small(1);
	snprintf(path, sizeof(path), "%s/history", dir);
	if (geteuid() == 0) {
		print_message("SKIP: root may write into every folder\n");
		skip();
	}
	assert_int_equal(chmod(dir, 0500), 0);
	assert_int_equal(recording_open(dir, &r, NULL), 0);
	assert_int_equal(recording_history(r, &h, &n, NULL, 0, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	history_close(h);
	names_free(n);
	recording_close(r);
	chmod(dir, 0700);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whole),	      TEST(cached_history),
		TEST(cut_short),      TEST(flipped),
		TEST(refused),	      TEST(damage_in_the_middle),
		TEST(read_only),      TEST(bad_history),
		TEST(packet_missing), TEST(interrupted_build),
	};
	int rc;

	if (!mkdtemp(top))
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(top);
	return rc;
}
