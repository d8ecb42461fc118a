/* SPDX-License-Identifier: MIT
 *
 * The layout is the kernel's: a page with the consumer's position, a page with the producer's,
 * then the data twice in a row, so that a record that wraps can be read in one piece.  Each
 * record has 8 bytes before it: its length, with two bits for "being written" and "given up".
 * Room is handed back every 64 KiB, not per record, to leave the producer's cache line alone.
 */
#include "record/ring.h"

#include "bpf/record.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HAND_BACK_BYTES = 64 * 1024 };

struct ring {
	uint64_t *consumer;
	const uint64_t *producer;
	const unsigned char *data;
	size_t bytes, page;
};

int ring_open(int fd, size_t bytes, struct ring **ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ring *r = calloc(1, sizeof(*r));
	void *at;

	if (!r)
		return -ENOMEM;
	*r = (struct ring){.bytes = bytes, .page = page};
	at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		free(r);
		return -errno;
	}
	r->consumer = at;
	at = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (at == MAP_FAILED) {
		int rc = -errno;

		munmap(r->consumer, page);
		free(r);
		return rc;
	}
	r->producer = at;
	r->data = (const unsigned char *)at + page;
	*ret = r;
	return 0;
}

void ring_close(struct ring *r)
{
	if (!r)
		return;
	munmap(r->consumer, r->page);
	munmap((void *)r->producer, r->page + 2 * r->bytes);
	free(r);
}

size_t ring_fill(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) - *r->consumer;
}

int64_t ring_drain(struct ring *r, ring_fn *fn, void *arg)
{
	uint64_t from = *r->consumer, at = from,
		 end = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
	uint64_t handed = from;
	int rc = 0;

	while (at < end && !rc) {
		const unsigned char *p = r->data + (at & (r->bytes - 1));
		uint32_t len = __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			rc = fn((const struct rec_head *)(p + BPF_RINGBUF_HDR_SZ), arg);
		len &= ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		at += (len + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
		if (at - handed >= HAND_BACK_BYTES) {
			__atomic_store_n(r->consumer, at, __ATOMIC_RELEASE);
			handed = at;
		}
	}
	__atomic_store_n(r->consumer, at, __ATOMIC_RELEASE);
	return rc < 0 ? rc : (int64_t)(at - from);
}
