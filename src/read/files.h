/* SPDX-License-Identifier: MIT
 *
 * files.h - the files of a recording: streams, packets, records.  Private to read/.
 *
 * A stream is read one packet at a time into a buffer of its own; all sizes are checked before
 * they are used.  Damage ends a packet, not the stream, if the packet's own size can be believed:
 * what is missing becomes a loss.
 */
#ifndef READ_FILES_H
#define READ_FILES_H
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "bpf/record.h"
#include "read/read.h"

struct stream {
	char *path;
	const char *fault; /* of the file as a whole, or NULL; said where it ends */
	bool fault_said;
	int fd;
	off_t size, packet_at; /* of the file; of the packet in buf */
	off_t next_at;	       /* of the packet after it */
	uint8_t *buf;
	size_t cap, pos, end; /* in buf: the current record, the end of the records */
	struct rec_packet head;
	int64_t last_ns;	    /* of the last record given */
	uint64_t count;		    /* records given */
	uint64_t next_seq;	    /* the number that the next packet should have */
	const struct rec_head *now; /* the current record; NULL: at the end */
	int64_t missing_since_ns;   /* damage was skipped since then, NO_TIME: none */
	bool has_missing;	    /* the record to give is the loss in `missing` */
	struct rec_lost missing;
};

struct mount { /* a cgroup hierarchy */
	uint32_t hierarchy;
	char *controllers;
};

struct listed { /* a stream as the recorder left it */
	int64_t cpu, bytes;
};

struct named_disk {
	uint32_t dev;
	char *name;
};

struct recording_files {
	struct VEC(struct stream) streams;
	struct VEC(struct mount) mounts;
	struct VEC(struct named_disk) disks;
	struct VEC(struct listed) listed; /* empty: not known */
	int64_t latest_ns;		  /* no packet can be of later */
	uint8_t uuid[16];
	struct err damage;	/* the first that was found */
	uint64_t unknown;	/* records of an unknown kind */
	uint64_t lost_seen[16]; /* by reason, in the streams; host.json may know of more */
};

/* No instant is beyond: sums of two are still numbers.  146 years. */
#define INSTANT_MAX_NS (INT64_MAX / 2)

/* host.json into r. */
int host_read(struct recording *r, struct err *err);

/* Opens kernel/stream_*, checks metadata and packet headers; sets r's end and bytes. */
int streams_open(struct recording *r, struct err *err);
void streams_close(struct recording *r);
/* From the first record again. */
int streams_rewind(struct recording *r, struct err *err);
/* Steps to the next record: s->now, NULL at the end.  A negative errno only if reading fails. */
int stream_next(struct recording *r, struct stream *s, struct err *err);

/* What the streams say was lost, into r->lost: the larger number of the two. */
void lost_join(struct recording *r);

/* A record as an event; false if its kind means nothing to the model.  text needs 129 bytes and
 * holds what ret->io.text points to. */
bool event_from(const struct rec_head *rec, struct event *ret, char *text);

#endif
