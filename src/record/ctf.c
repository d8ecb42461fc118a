/* SPDX-License-Identifier: MIT
 *
 * A stream's packet is built in memory, sorted as it grows:
 *
 *	buf   [ packet head | record | record | ... | record | ... ]
 *	order [   offset of each record, by time   ]
 *
 * A record that is older than the last one is moved in front of the newer ones, which are few.
 * When the packet is full or a second old, all but the last HOLD_NS of it is written; what is
 * held begins the next packet.  A record older than what was written takes the time of its end.
 */
#include "record/ctf.h"

#include "base/err.h"
#include "base/io.h"
#include "base/scoped.h"
#include "base/vec.h"
#include "bpf/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = sizeof(struct rec_packet) };
#define HOLD_NS	   1000000
#define MAX_AGE_NS 1000000000

struct stream {
	int fd; /* -1: nothing written yet */
	int cpu;
	off_t at;
	unsigned char *buf;
	size_t len; /* with the head's room */
	struct VEC(uint32_t) order;
	uint64_t last_ts; /* of the newest record in buf */
	uint64_t end_ts;  /* of the packet before */
	uint64_t seq, discarded;
};

struct ctf {
	const struct io *io;
	char *dir;
	unsigned char uuid[16];
	bool raw_text;
	size_t packet_bytes;
	int cpus;
	uint64_t bytes, records, late;
	struct stream streams[];
};

uint64_t ctf_bytes(const struct ctf *c)
{
	return c->bytes;
}

int ctf_cpus(const struct ctf *c)
{
	return c->cpus;
}

uint64_t ctf_stream_bytes(const struct ctf *c, int cpu)
{
	return (uint64_t)c->streams[cpu].at;
}

uint64_t ctf_records(const struct ctf *c)
{
	return c->records;
}

uint64_t ctf_late(const struct ctf *c)
{
	return c->late;
}

/* --- opening */

static int write_metadata(const struct ctf_options *opt, struct err *err)
{
	scoped(free) char *text = ctf_metadata(opt);
	char path[4096];

	snprintf(path, sizeof(path), "%s/metadata", opt->dir);
	return io_write_file(path, text, strlen(text), 0600, err);
}

static int init_streams(struct ctf *c)
{
	for (int i = 0; i < c->cpus; i++)
		c->streams[i] = (struct stream){.fd = -1, .cpu = i, .len = HEAD_BYTES};
	for (int i = 0; i < c->cpus; i++) {
		c->streams[i].buf = malloc(c->packet_bytes + REC_MAX_BYTES);
		if (!c->streams[i].buf)
			return -ENOMEM;
	}
	return 0;
}

void ctf_close(struct ctf *c)
{
	if (!c)
		return;
	for (int i = 0; i < c->cpus; i++) {
		free(c->streams[i].buf);
		vec_fini(&c->streams[i].order);
		if (c->streams[i].fd >= 0)
			close(c->streams[i].fd);
	}
	free(c->dir);
	free(c);
}

int ctf_open(const struct ctf_options *opt, struct ctf **ret, struct err *err)
{
	struct ctf *c = calloc(1, sizeof(*c) + sizeof(c->streams[0]) * (size_t)opt->cpus);
	int rc;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory");
	c->io = opt->io ? opt->io : &io_real;
	c->dir = strdup(opt->dir);
	memcpy(c->uuid, opt->uuid, sizeof(c->uuid));
	c->raw_text = opt->raw_text;
	c->packet_bytes = opt->packet_bytes ? opt->packet_bytes : CTF_PACKET_BYTES;
	c->cpus = opt->cpus;
	if (init_streams(c) < 0 || !c->dir)
		rc = err_set(err, -ENOMEM, "no memory for the packets of %d CPUs", opt->cpus);
	else
		rc = write_metadata(opt, err);
	if (rc < 0)
		ctf_close(c);
	else
		*ret = c;
	return rc;
}

/* --- a packet */

static const struct rec_head *record_at(const struct stream *s, size_t i)
{
	return (const struct rec_head *)(s->buf + s->order.at[i]);
}

/* How many records can be written: all that are not newer than upto. */
static size_t count_until(const struct stream *s, uint64_t upto)
{
	size_t n = s->order.n;

	while (n && record_at(s, n - 1)->ts > upto)
		n--;
	return n;
}

static void fill_head(const struct ctf *c, const struct stream *s, size_t n, size_t bytes)
{
	struct rec_packet p = {
		.magic = REC_MAGIC,
		.begin = record_at(s, 0)->ts,
		.end = record_at(s, n - 1)->ts,
		.content_bits = (uint64_t)bytes * 8,
		.packet_bits = (uint64_t)bytes * 8,
		.seq = s->seq,
		.discarded = s->discarded,
		.cpu_id = (uint32_t)s->cpu,
	};

	memcpy(p.uuid, c->uuid, sizeof(p.uuid));
	memcpy(s->buf, &p, sizeof(p));
}

static int open_stream(struct ctf *c, struct stream *s, struct err *err)
{
	char path[4096];

	if (s->fd >= 0)
		return 0;
	snprintf(path, sizeof(path), "%s/stream_%d", c->dir, s->cpu);
	s->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return s->fd < 0 ? err_set(err, -errno, "cannot create %s: %s", path, strerror(errno)) : 0;
}

static int write_whole(struct ctf *c, struct stream *s, size_t bytes, struct err *err)
{
	int rc = open_stream(c, s, err);

	if (rc < 0)
		return rc;
	rc = io_pwrite_all(c->io, s->fd, s->buf, bytes, s->at);
	if (rc == 0) {
		s->at += (off_t)bytes;
		c->bytes += bytes;
		return 0;
	}
	if (ftruncate(s->fd, s->at) < 0)
		return err_set(err, rc,
			       "%s/stream_%d: %s, and its last packet could not be cut off", c->dir,
			       s->cpu, strerror(-rc));
	return err_set(err, rc, "%s: %s; what was recorded until then is kept", c->dir,
		       strerror(-rc));
}

/* What was not written moves to the front. */
static void keep_rest(struct stream *s, size_t n, size_t bytes)
{
	size_t rest = s->order.n - n;

	memmove(s->buf + HEAD_BYTES, s->buf + bytes, s->len - bytes);
	for (size_t i = 0; i < rest; i++)
		s->order.at[i] = s->order.at[n + i] - (uint32_t)(bytes - HEAD_BYTES);
	s->order.n = rest;
	s->len -= bytes - HEAD_BYTES;
}

static int write_packet(struct ctf *c, struct stream *s, size_t n, struct err *err)
{
	size_t bytes;
	int rc;

	if (!n)
		return 0;
	bytes = n < s->order.n ? s->order.at[n] : s->len;
	fill_head(c, s, n, bytes);
	rc = write_whole(c, s, bytes, err);
	if (rc < 0)
		return rc;
	s->end_ts = record_at(s, n - 1)->ts;
	s->seq++;
	keep_rest(s, n, bytes);
	return 0;
}

/* --- adding a record */

/* buf stays sorted: the newer records move up by the size of this one. */
static void insert(struct stream *s, const struct rec_head *record, uint64_t ts)
{
	size_t i = s->order.n, bytes = record->size;
	uint32_t at;

	while (i && record_at(s, i - 1)->ts > ts)
		i--;
	at = i < s->order.n ? s->order.at[i] : (uint32_t)s->len;
	memmove(s->buf + at + bytes, s->buf + at, s->len - at);
	memcpy(s->buf + at, record, bytes);
	((struct rec_head *)(s->buf + at))->ts = ts;
	vec_push(&s->order, 0);
	for (size_t j = s->order.n - 1; j > i; j--)
		s->order.at[j] = s->order.at[j - 1] + (uint32_t)bytes;
	s->order.at[i] = at;
	s->len += bytes;
}

static void append(struct stream *s, const struct rec_head *record)
{
	memcpy(s->buf + s->len, record, record->size);
	vec_push(&s->order, (uint32_t)s->len);
	s->len += record->size;
	s->last_ts = record->ts;
}

static int make_room(struct ctf *c, struct stream *s, size_t bytes, struct err *err)
{
	size_t n;

	if (s->len + bytes <= c->packet_bytes)
		return 0;
	n = count_until(s, s->last_ts - HOLD_NS);
	/* More than half a packet within HOLD_NS: better a late record than none. */
	if (!n || s->order.at[n - 1] < s->len / 2)
		n = s->order.n;
	return write_packet(c, s, n, err);
}

static void cut_text(const struct ctf *c, struct rec_head *copy)
{
	struct rec_request *r = (struct rec_request *)copy;

	request_text_cut(r->text, sizeof(r->text), c->raw_text);
}

int ctf_add(struct ctf *c, const struct rec_head *record, struct err *err)
{
	struct stream *s;
	struct rec_request request;
	int rc;

	if (record->cpu >= c->cpus || record->size > REC_MAX_BYTES || record->size % 8)
		return err_set(err, -EBADMSG,
			       "a record from the kernel makes no sense (CPU %u, %u bytes)",
			       record->cpu, record->size);
	s = &c->streams[record->cpu];
	rc = make_room(c, s, record->size, err);
	if (rc < 0)
		return rc;
	if (record->id == REC_ID_REQUEST) {
		memcpy(&request, record, sizeof(request));
		cut_text(c, &request.head);
		record = &request.head;
	} else if (record->id == REC_ID_LOST) {
		s->discarded += ((const struct rec_lost *)record)->count;
	}
	c->records++;
	c->late += record->ts < s->end_ts;
	if (record->ts >= s->last_ts)
		append(s, record);
	else
		insert(s, record, record->ts < s->end_ts ? s->end_ts : record->ts);
	return 0;
}

int ctf_tick(struct ctf *c, int64_t now_ns, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < c->cpus && !rc; i++) {
		struct stream *s = &c->streams[i];

		if (s->order.n && (int64_t)record_at(s, 0)->ts < now_ns - MAX_AGE_NS)
			rc = write_packet(c, s, count_until(s, (uint64_t)now_ns - HOLD_NS), err);
	}
	return rc;
}

int ctf_finish(struct ctf *c, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < c->cpus && !rc; i++)
		rc = write_packet(c, &c->streams[i], c->streams[i].order.n, err);
	return rc;
}
