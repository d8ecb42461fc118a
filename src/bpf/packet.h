/* SPDX-License-Identifier: MIT
 *
 * packet.h - what stands before the records of a packet in kernel/stream_N: CTF's packet header
 * and packet context, as the writer writes and the reader reads them.
 *
 * A stream is packets without anything between them; a packet is this header, records in order
 * of time, and padding.  Sizes are in bits, of the whole packet, multiples of 64.
 */
#ifndef BPF_PACKET_H
#define BPF_PACKET_H
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PACKET_MAGIC = 0xC1FC1FC1u,
	PACKET_MAX_BYTES = 4 << 20, /* a reader need not take larger ones */
};

struct packet_header {
	uint32_t magic;
	uint8_t uuid[16]; /* the one in the metadata */
	uint32_t stream_id;
	/* context */
	uint64_t timestamp_begin, timestamp_end; /* of its records */
	uint64_t content_size, packet_size;
	uint64_t packet_seq_num;
	uint64_t events_discarded; /* in this stream since the start */
	uint32_t cpu_id;
	uint32_t zero; /* the first record is aligned to 8 */
};
static_assert(sizeof(struct packet_header) == 80, "packet header");
static_assert(offsetof(struct packet_header, timestamp_begin) == 24, "packet header");
static_assert(offsetof(struct packet_header, cpu_id) == 72, "packet header");

#endif
