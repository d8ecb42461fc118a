/* SPDX-License-Identifier: MIT
 *
 * ctf.h - writes records as a CTF 1.8 trace: `metadata`, and stream_N for each CPU that has any.
 *
 * 1. Within a stream the times of records never go back, nor does a packet begin before the one
 *    before it ended.  Records come nearly sorted (an interrupt can take its room between
 *    another's clock read and its room), so the last HOLD_NS of a packet stay for the next one.
 * 2. A packet is written whole, in one call; after a failure the file is cut back to its end.
 * Memory: one packet per CPU, allocated at open.  Format: docs/format/recording.md.
 */
#ifndef RECORD_CTF_H
#define RECORD_CTF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctf;
struct err;
struct io;
struct rec_head;

enum { CTF_PACKET_BYTES = 256 * 1024 };
struct ctf_options {
	const char *dir; /* exists, empty */
	int cpus;
	const char *host, *kernel;
	unsigned char uuid[16], clock_uuid[16]; /* of the trace; of the boot */
	int64_t clock_offset_ns;		/* CLOCK_REALTIME - CLOCK_MONOTONIC */
	bool raw_text;				/* keep query strings */
	size_t packet_bytes;			/* 0: CTF_PACKET_BYTES */
	const struct io *io;			/* NULL: the kernel's */
};

/* Writes the metadata.  The caller closes *ret. */
int ctf_open(const struct ctf_options *opt, struct ctf **ret, struct err *err);
/* The record goes into the stream of its CPU; copied.  Anything but 0 means that the trace
 * cannot grow any more; what was written is whole. */
int ctf_add(struct ctf *c, const struct rec_head *record, struct err *err);
/* Writes packets that began more than a second before now_ns. */
int ctf_tick(struct ctf *c, int64_t now_ns, struct err *err);
/* Writes all that is left. */
int ctf_finish(struct ctf *c, struct err *err);
/* Frees; what was not written is gone.  NULL is fine. */
void ctf_close(struct ctf *c);
/* Written so far; records clamped to the end of the packet before. */
uint64_t ctf_bytes(const struct ctf *c);
int ctf_cpus(const struct ctf *c);
uint64_t ctf_stream_bytes(const struct ctf *c, int cpu);
uint64_t ctf_records(const struct ctf *c);
uint64_t ctf_late(const struct ctf *c);

/* metadata.c: the text of `metadata`; the caller frees it. */
char *ctf_metadata(const struct ctf_options *opt);
/* text.c: cuts a first line at its end, and, unless raw, the query out of its target.  The rest
 * of the text becomes zero. */
void request_text_cut(char *text, size_t len, bool raw);

#endif
