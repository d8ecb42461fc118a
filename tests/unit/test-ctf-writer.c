/* SPDX-License-Identifier: MIT
 *
 * The CTF writer: order within a stream, packets, numbers, a disk that fills up, and a text
 * that babeltrace2 takes.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/scoped.h"
#include "bpf/record.h"
#include "record/ctf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/lp-ctf-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct ctf *open_with(size_t packet_bytes, const struct io *io)
{
	struct ctf_options o = {.dir = dir,
				.cpus = 2,
				.host = "a \"host\"",
				.kernel = "6.1",
				.uuid = {1, 2, 3},
				.packet_bytes = packet_bytes,
				.io = io};
	struct ctf *c = NULL;
	struct err err = {0};

	assert_int_equal(ctf_open(&o, &c, &err), 0);
	return c;
}

static int add(struct ctf *c, int cpu, uint64_t ts, uint32_t tid)
{
	struct rec_migrate r = {.head = {ts, REC_ID_MIGRATE, (uint16_t)cpu, sizeof(r)}, .tid = tid};
	struct err err = {0};

	return ctf_add(c, &r.head, &err);
}

static void finish(struct ctf *c)
{
	struct err err = {0};

	assert_int_equal(ctf_finish(c, &err), 0);
	ctf_close(c);
}

/* Reads a stream back, checks every packet, and puts the migrations' times and tids into ret. */
static int read_stream(int cpu, uint64_t *ret_ts, uint32_t *ret_tid, int max, int *ret_packets)
{
	char path[128];
	scoped(free) char *data = NULL;
	size_t len = 0, at = 0;
	uint64_t last = 0;
	int n = 0;

	*ret_packets = 0;
	snprintf(path, sizeof(path), "%s/stream_%d", dir, cpu);
	assert_int_equal(io_read_file(path, 1 << 24, &data, &len, NULL), 0);
	while (at < len) {
		const struct rec_packet *p = (const void *)(data + at);
		size_t end = at + p->content_bits / 8;

		assert_int_equal(p->magic, REC_MAGIC);
		assert_int_equal(p->seq, *ret_packets);
		assert_int_equal(p->cpu_id, cpu);
		assert_int_equal(p->content_bits, p->packet_bits);
		assert_true(end <= len && p->begin >= last && p->end >= p->begin);
		for (at += sizeof(*p); at < end; n++) {
			const struct rec_migrate *r = (const void *)(data + at);

			assert_true(n < max && r->head.ts >= last);
			last = r->head.ts;
			ret_ts[n] = last;
			ret_tid[n] = r->tid;
			at += r->head.size;
		}
		assert_int_equal(p->end, last);
		assert_int_equal(at, end);
		++*ret_packets;
	}
	return n;
}

/* 1000 ns apart, each third one 1500 ns earlier than it should be: it goes before its elder. */
static void records_are_put_in_order(void **state)
{
	struct ctf *c = open_with(0, NULL);
	uint64_t ts[16];
	uint32_t tid[16];
	int packets;

	(void)state;
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(add(c, 1, 10000 + i * 1000 - (i % 3 == 2 ? 1500 : 0), i), 0);
	finish(c);
	assert_int_equal(read_stream(1, ts, tid, 16, &packets), 9);
	assert_int_equal(packets, 1);
	/* 10000 10500 11000 | 13000 13500 14000 | ... */
	for (uint32_t i = 0; i < 9; i += 3) {
		assert_int_equal(tid[i], i);
		assert_int_equal(tid[i + 1], i + 2);
		assert_int_equal(tid[i + 2], i + 1);
	}
	assert_int_equal(ts[1], 10500);
}

/* A stream without records has no file: readers take an empty one for damage. */
static void a_silent_cpu_has_no_file(void **state)
{
	struct ctf *c = open_with(0, NULL);
	char path[128];

	(void)state;
	add(c, 1, 1000, 1);
	finish(c);
	snprintf(path, sizeof(path), "%s/stream_0", dir);
	assert_int_equal(access(path, F_OK), -1);
}

/* Packets of 8 KiB, records 10 us apart: what is up to 1 ms (100 records) old is held, so a
 * record that comes 500 us late still finds its place in the next packet. */
static void late_records_cross_packets(void **state)
{
	enum { N = 3000 };
	static uint64_t ts[N];
	static uint32_t tid[N];
	struct ctf *c = open_with(8192, NULL);
	int packets, n;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(add(c, 0, 5000000 + i * 10000 - (i % 50 == 49 ? 500000 : 0), i),
				 0);
	assert_int_equal(ctf_late(c), 0);
	finish(c);
	n = read_stream(0, ts, tid, N, &packets);
	assert_int_equal(n, N);
	assert_true(packets > 10);
}

/* Older than what is on disk: it takes the time of the end of what is. */
static void too_late_is_clamped_and_counted(void **state)
{
	uint64_t ts[4];
	uint32_t tid[4];
	struct ctf *c = open_with(0, NULL);
	struct err err = {0};
	int packets;

	(void)state;
	add(c, 0, 1000, 1);
	add(c, 0, 2000, 2);
	assert_int_equal(ctf_tick(c, 5000000000, &err), 0);
	add(c, 0, 1500, 3);
	assert_int_equal(ctf_late(c), 1);
	finish(c);
	assert_int_equal(read_stream(0, ts, tid, 4, &packets), 3);
	assert_int_equal(packets, 2);
	assert_int_equal(tid[2], 3);
	assert_int_equal(ts[2], 2000);
}

/* A second after it began a packet is written, without what is younger than a millisecond. */
static void old_packets_are_written(void **state)
{
	struct ctf *c = open_with(0, NULL);
	struct err err = {0};

	(void)state;
	add(c, 0, 1000000000, 1);
	add(c, 0, 2000000000, 2);
	assert_int_equal(ctf_tick(c, 1900000000, &err), 0);
	assert_int_equal(ctf_bytes(c), 0);
	assert_int_equal(ctf_tick(c, 2000000001, &err), 0);
	assert_int_equal(ctf_bytes(c), sizeof(struct rec_packet) + sizeof(struct rec_migrate));
	finish(c);
}

static void losses_are_cumulative(void **state)
{
	struct ctf *c = open_with(0, NULL);
	struct rec_lost lost = {.head = {100, REC_ID_LOST, 0, sizeof(lost)}, .count = 7};
	struct rec_packet p;
	struct err err = {0};
	scoped(free) char *data = NULL;
	char path[128];

	(void)state;
	assert_int_equal(ctf_add(c, &lost.head, &err), 0);
	lost.head.ts = 200;
	assert_int_equal(ctf_add(c, &lost.head, &err), 0);
	finish(c);
	snprintf(path, sizeof(path), "%s/stream_0", dir);
	assert_int_equal(io_read_file(path, 4096, &data, NULL, NULL), 0);
	memcpy(&p, data, sizeof(p));
	assert_int_equal(p.discarded, 14);
}

/* --- a disk that takes the first packet and then half of the second */

static size_t room;

static ssize_t small_disk(int fd, const void *data, size_t len, off_t at)
{
	if (!room) {
		errno = ENOSPC;
		return -1;
	}
	if (len > room)
		len = room;
	room -= len;
	return pwrite(fd, data, len, at);
}

static void a_full_disk_leaves_whole_packets(void **state)
{
	const struct io io = {.pwrite = small_disk, .pread = pread};
	static uint64_t ts[4000];
	static uint32_t tid[4000];
	struct ctf *c = open_with(8192, &io);
	int packets, rc = 0;

	(void)state;
	room = 8192 + 4000;
	for (uint32_t i = 0; i < 4000 && !rc; i++)
		rc = add(c, 0, 1000000 + i * 20000, i);
	assert_int_equal(rc, -ENOSPC);
	ctf_close(c);
	assert_true(read_stream(0, ts, tid, 4000, &packets) > 100);
	assert_int_equal(packets, 1);
}

static void nonsense_is_refused(void **state)
{
	struct ctf *c = open_with(0, NULL);

	(void)state;
	assert_int_equal(add(c, 2, 1, 1), -EBADMSG);
	finish(c);
}

/* --- texts */

static void check_cut(const char *in, bool raw, const char *want)
{
	char text[64] = {0};

	memcpy(text, in, strlen(in));
	request_text_cut(text, sizeof(text), raw);
	assert_string_equal(text, want);
	for (size_t i = strlen(want); i < sizeof(text); i++)
		assert_int_equal(text[i], 0);
}

static void request_lines_are_cut(void **state)
{
	(void)state;
	check_cut("GET /a HTTP/1.1\r\nCookie: secret\r\n", false, "GET /a HTTP/1.1");
	check_cut("GET /a?key=secret HTTP/1.1\r\nHost: b", false, "GET /a HTTP/1.1");
	check_cut("GET /a?key=secret HTTP/1.1\r\nHost: b", true, "GET /a?key=secret HTTP/1.1");
	check_cut("GET /a?key=secret-that-goes-on", false, "GET /a");
	check_cut("GET /a?x=1?y=2 HTTP/1.0\n", false, "GET /a HTTP/1.0");
	check_cut("GET /a?key=a secret HTTP/1.1\r\n", false, "GET /a HTTP/1.1");
	check_cut("GET /a?key=a secret that goes on", false, "GET /a");
	check_cut("GET /a?key=secret HTTP/1.", false, "GET /a");
	check_cut("GET http://me:secret@b/a HTTP/1.1\n", false, "GET http://b/a HTTP/1.1");
	check_cut("GET http://me:secret@b/a HTTP/1.1\n", true, "GET http://me:secret@b/a HTTP/1.1");
	check_cut("GET http://b/@a HTTP/1.1\n", false, "GET http://b/@a HTTP/1.1");
	check_cut("GET ?", false, "GET ");
	check_cut("", false, "");
}

/* --- the whole through babeltrace2 */

static void every_kind_is_described(void **state)
{
	struct ctf_options o = {.host = "h", .kernel = "k"};
	scoped(free) char *text = ctf_metadata(&o);

	(void)state;
	assert_memory_equal(text, "/* CTF 1.8 */", 13);
#define DESCRIBED(id, NAME, name) assert_non_null(strstr(text, "name = \"" #name "\";"));
	REC_KINDS(DESCRIBED)
}

static void add_each_kind(struct ctf *c)
{
	struct err err = {0};
	uint64_t ts = 1000;

#define ADD_KIND(id_, NAME, name)                                                                  \
	{                                                                                          \
		struct rec_##name r = {.head = {ts++, REC_ID_##NAME, 0, sizeof(r)}};               \
		assert_int_equal(ctf_add(c, &r.head, &err), 0);                                    \
	}
	REC_KINDS(ADD_KIND)
}

static void babeltrace_prints_every_kind(void **state)
{
	struct ctf *c = open_with(0, NULL);
	char command[200], line[4096];
	int lines = 0, named = 0;
	FILE *f;

	(void)state;
	if (system("command -v babeltrace2 >/dev/null")) {
		ctf_close(c);
		print_message("SKIP: babeltrace2 is not installed\n");
		skip();
	}
	add_each_kind(c);
	finish(c);
	snprintf(command, sizeof(command), "babeltrace2 --clock-cycles %s 2>&1", dir);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		lines++;
#define NAMED(id, NAME, name) named += strstr(line, " " #name ": ") != NULL;
		REC_KINDS(NAMED)
	}
	assert_int_equal(pclose(f), 0);
	assert_int_equal(lines, REC_ID_MAX); /* so it warned of nothing */
	assert_int_equal(named, REC_ID_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(records_are_put_in_order),		 TEST(a_silent_cpu_has_no_file),
		TEST(late_records_cross_packets),	 TEST(too_late_is_clamped_and_counted),
		TEST(old_packets_are_written),		 TEST(losses_are_cumulative),
		TEST(a_full_disk_leaves_whole_packets),	 TEST(nonsense_is_refused),
		cmocka_unit_test(request_lines_are_cut), cmocka_unit_test(every_kind_is_described),
		TEST(babeltrace_prints_every_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
