/* SPDX-License-Identifier: MIT
 *
 * A stream of any bytes as one CPU's, in a recording that is otherwise whole, through reader and
 * model.  Its records are also made whole first (bit 0 of the first byte), so that the model sees
 * more than the reader's refusals: then the rest is a list of record kinds and contents.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/streams.h"
#include "base/err.h"
#include "base/vec.h"
#include "read/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];

static void clean_up(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command))
		perror("rm");
}

static void set_up(void)
{
	struct hand h;
	char name[80];

	snprintf(dir, sizeof(dir), "/tmp/longpole-fuzz.XXXXXX");
	if (!mkdtemp(dir))
		abort();
	atexit(clean_up);
	snprintf(name, sizeof(name), "%s/a.lp", dir);
	hand_open(&h, name);
	hand_close(&h, 1000, 100000, 1);
}

#define SIZE_OF(id_, NAME, name) [id_] = sizeof(struct rec_##name),
static const size_t sizes[] = {REC_KINDS(SIZE_OF)};

struct VEC_bytes VEC(uint8_t);

/* Each record: a byte for its kind, one for the time that passes, then its fields, as many bytes
 * as the next one says and zero beyond. */
static void make_stream(const uint8_t *data, size_t size, struct VEC_bytes *out)
{
	struct rec_packet p = {.magic = REC_MAGIC, .begin = 1000, .end = 1 << 20};
	uint64_t ts = 1000;

	memcpy(p.uuid, hand_uuid, sizeof(p.uuid));
	vec_reserve(out, sizeof(p));
	out->n = sizeof(p);
	while (size >= 3 && out->n < 200000) {
		unsigned id = 1 + data[0] % REC_ID_MAX;
		size_t given = data[2] < size - 3 ? data[2] : size - 3;
		struct rec_head head = {ts += data[1], (u16)id, data[0] >> 6, (u32)sizes[id]};
		uint8_t record[REC_MAX_BYTES] = {0};

		if (given > sizes[id] - sizeof(head))
			given = sizes[id] - sizeof(head);
		memcpy(record, &head, sizeof(head));
		memcpy(record + sizeof(head), data + 3, given);
		data += 3 + given;
		size -= 3 + given;
		for (size_t i = 0; i < sizes[id]; i++)
			vec_push(out, record[i]);
	}
	p.content_bits = p.packet_bits = out->n * 8;
	memcpy(out->at, &p, sizeof(p));
}

static int ignore(const struct interval *iv, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	if (iv->start_ns >= iv->end_ns || iv->n > INTERVAL_WORDS)
		abort();
	return 0;
}

static int feed(const struct event *e, void *arg, struct err *err)
{
	return model_feed(arg, e, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct VEC_bytes made = {0};
	struct recording *r;
	struct names *n = names_new();
	struct model *m;
	char path[128];
	FILE *f;

	if (!dir[0])
		set_up();
	snprintf(path, sizeof(path), "%s/a.lp/kernel/stream_0", dir);
	f = fopen(path, "w");
	if (!f)
		abort();
	if (size && (data[0] & 1)) {
		make_stream(data + 1, size - 1, &made);
		fwrite(made.at, 1, made.n, f);
	} else if (size) {
		fwrite(data + 1, 1, size - 1, f);
	}
	fclose(f);
	snprintf(path, sizeof(path), "%s/a.lp", dir);
	if (!recording_open(path, &r, NULL)) {
		if (model_new(n, r->start_ns, ignore, NULL, &m, NULL))
			abort();
		recording_each(r, feed, m, NULL);
		model_finish(m, r->end_ns, NULL);
		recording_close(r);
	}
	names_free(n);
	vec_fini(&made);
	return 0;
}
