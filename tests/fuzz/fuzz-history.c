/* SPDX-License-Identifier: MIT
 *
 * fuzz-history.c - any bytes as a history: opened, verified, asked everything.
 *
 * Checksums would stop nearly every change, so they are put right first, and a node's header is
 * made to agree with its parent; an odd last byte leaves the bytes as they came.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "history/history.h"
#include "history/node.h"

enum { NODES_MENDED = 100, INTERVALS_ASKED = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend_node(uint8_t *file, size_t size, const struct node_ref *ref, unsigned *budget)
{
	struct node_header head;

	if (!*budget || ref->bytes < sizeof(head) || ref->bytes > size ||
	    ref->pos > size - ref->bytes || ref->pos < sizeof(struct file_header))
		return;
	--*budget;
	uint8_t *node = file + ref->pos;

	memcpy(&head, node, sizeof(head));
	head.self = *ref;
	memcpy(node, &head, sizeof(head));
	for (uint32_t i = 0; ref->level && i < head.parts && i < NODE_FAN; i++) {
		struct node_ref child;
		size_t at = sizeof(head) + i * sizeof(child);

		if (at + sizeof(child) > ref->bytes)
			break;
		memcpy(&child, node + at, sizeof(child));
		if (child.level < ref->level)
			mend_node(file, size, &child, budget);
	}
	head.crc = crc32c(0, node + sizeof(head.crc), ref->bytes - sizeof(head.crc));
	memcpy(node, &head.crc, sizeof(head.crc));
}

static void mend(uint8_t *file, size_t size)
{
	unsigned budget = NODES_MENDED;
	struct file_header f;

	if (size < sizeof(f))
		return;
	memcpy(&f, file, sizeof(f));
	f.file_bytes = size;
	if (f.attach_pos <= size)
		f.attach_crc = crc32c(0, file + f.attach_pos, size - f.attach_pos);
	f.crc = crc32c(0, &f, offsetof(struct file_header, crc));
	memcpy(file, &f, sizeof(f));
	struct node_ref root = {f.root_pos, f.start_ns, f.end_ns,     f.count,
				f.track_lo, f.track_hi, f.root_bytes, f.root_level};

	mend_node(file, size, &root, &budget);
}

struct asked {
	struct history *h;
	unsigned n;
};

static int ask(const struct interval *iv, void *arg)
{
	struct asked *a = arg;
	struct interval r;

	if (iv->start_ns >= iv->end_ns || iv->n > INTERVAL_WORDS)
		abort();
	history_at(a->h, iv->track, iv->start_ns, &r);
	history_before(a->h, iv->track, iv->start_ns, &r);
	history_after(a->h, iv->track, iv->end_ns, &r);
	return ++a->n == INTERVALS_ASKED;
}

static void ask_all(const char *path)
{
	struct history_options opt = {.cache_nodes = 3};
	struct err err = {0};
	const void *data;
	struct history *h;
	int64_t start, end;
	size_t len;

	if (history_open(path, &opt, &h, &err) < 0)
		return;
	struct asked a = {.h = h};
	uint32_t track = track_id(TRACK_CPU, 1);

	history_bounds(h, &start, &end);
	history_verify(h, &err);
	history_attachment(h, "names", &data, &len);
	history_range(h, 0, UINT32_MAX, INT64_MIN, INT64_MAX, 0, ask, &a);
	a.n = 0;
	history_range(h, track, track, INT64_MIN, INT64_MAX, 0, ask, &a);
	a.n = 0;
	history_range(h, 0, UINT32_MAX, start, end, 1000, ask, &a);
	history_close(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("history", 0);
	uint8_t *file = malloc(size + 1);
	char path[32];

	if (fd < 0 || !file)
		abort();
	memcpy(file, data, size);
	if (size && !(file[size - 1] & 1))
		mend(file, size);
	if (write(fd, file, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ask_all(path);
	free(file);
	close(fd);
	return 0;
}
