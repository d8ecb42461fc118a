/* SPDX-License-Identifier: MIT
 *
 * streams.h - for tests and benchmarks: a recording written by hand, record by record.
 */
#ifndef UNIT_STREAMS_H
#define UNIT_STREAMS_H
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bpf/record.h"

enum { HAND_CPUS = 4, HAND_PACKET = 256 * 1024 };

struct hand {
	char dir[256];
	size_t packet_bytes; /* a packet is closed before it grows over it */
	FILE *stream[HAND_CPUS];
	char *buf[HAND_CPUS];
	size_t len[HAND_CPUS];
	uint64_t first[HAND_CPUS], last[HAND_CPUS], seq[HAND_CPUS];
};

static const uint8_t hand_uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static inline void hand_file(const struct hand *h, const char *name, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", h->dir, name);
	f = fopen(path, "w");
	assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static inline void hand_open(struct hand *h, const char *dir)
{
	char path[300];

	*h = (struct hand){.packet_bytes = HAND_PACKET};
	snprintf(h->dir, sizeof(h->dir), "%s", dir);
	snprintf(path, sizeof(path), "%s/kernel", dir);
	assert(mkdir(dir, 0700) == 0 && mkdir(path, 0700) == 0);
	hand_file(h, "kernel/metadata",
		  "/* CTF 1.8 */\ntrace {\n\tmajor = 1;\n\tminor = 8;\n"
		  "\tuuid = \"01020304-0506-0708-090a-0b0c0d0e0f10\";\n};\n"
		  "env {\n\ttracer_name = \"longpole\";\n\ttracer_major = 1;\n};\n");
}

static inline void hand_flush(struct hand *h, unsigned cpu)
{
	struct rec_packet p = {.magic = REC_MAGIC,
			       .begin = h->first[cpu],
			       .end = h->last[cpu],
			       .content_bits = (sizeof(p) + h->len[cpu]) * 8,
			       .packet_bits = (sizeof(p) + h->len[cpu]) * 8,
			       .seq = h->seq[cpu]++,
			       .cpu_id = cpu};
	char path[300];

	if (!h->len[cpu])
		return;
	memcpy(p.uuid, hand_uuid, sizeof(p.uuid));
	if (!h->stream[cpu]) {
		snprintf(path, sizeof(path), "%s/kernel/stream_%u", h->dir, cpu);
		h->stream[cpu] = fopen(path, "w");
	}
	assert(h->stream[cpu] && fwrite(&p, sizeof(p), 1, h->stream[cpu]) == 1);
	assert(fwrite(h->buf[cpu], h->len[cpu], 1, h->stream[cpu]) == 1);
	h->len[cpu] = 0;
}

/* Fills in the head of a record and adds it to its CPU's stream. */
static inline void hand_put(struct hand *h, struct rec_head *rec, u16 id, unsigned cpu, u64 ts,
			    size_t size)
{
	*rec = (struct rec_head){ts, id, (u16)cpu, (u32)size};
	if (!h->buf[cpu])
		h->buf[cpu] = malloc(HAND_PACKET);
	if (sizeof(struct rec_packet) + h->len[cpu] + size > h->packet_bytes)
		hand_flush(h, cpu);
	if (!h->len[cpu])
		h->first[cpu] = ts;
	h->last[cpu] = ts;
	memcpy(h->buf[cpu] + h->len[cpu], rec, size);
	h->len[cpu] += size;
}
#define hand_add(h, rec, id, cpu, ts) hand_put(h, &(rec)->head, id, cpu, ts, sizeof(*(rec)))

static inline void hand_close(struct hand *h, uint64_t start_ns, uint64_t end_ns, int complete)
{
	char text[800];

	for (unsigned i = 0; i < HAND_CPUS; i++) {
		hand_flush(h, i);
		if (h->stream[i])
			assert(fclose(h->stream[i]) == 0);
		free(h->buf[i]);
	}
	snprintf(text, sizeof(text),
		 "{\"format\":\"longpole.recording/1\",\"host\":\"h\",\"boot_id\":\"b\","
		 "\"kernel\":\"6\",\"start_ns\":\"%llu\",\"end_ns\":\"%llu\",\"complete\":%s,"
		 "\"cpus\":%d,\"clocks\":[{\"monotonic\":\"1000\",\"realtime\":\"5000\","
		 "\"boottime\":\"1000\"},{\"monotonic\":\"3000\",\"realtime\":\"7200\","
		 "\"boottime\":\"3000\"}],\"lost\":{\"records\":0,\"by_reason\":{}},"
		 "\"disks\":[{\"dev\":8388608,\"name\":\"sda\"}],\"cgroup_mounts\":"
		 "[{\"hierarchy\":3,\"controllers\":\"cpu,cpuacct\",\"path\":\"/c\"}]}",
		 (unsigned long long)start_ns, (unsigned long long)end_ns,
		 complete ? "true" : "false", HAND_CPUS);
	hand_file(h, "host.json", text);
}

#endif
