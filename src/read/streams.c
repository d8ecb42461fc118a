/* SPDX-License-Identifier: MIT
 *
 * The streams of a recording, packet by packet.
 *
 *	file:    | packet | packet | packet ...
 *	packet:  | header (80 bytes) | record | record | ... | padding |
 *
 * Nothing in a file is believed before it is checked: magic and uuid, sizes against the file and
 * against each other, each record's size against its kind and the packet, its time against the
 * packet's.  The first thing that is wrong becomes the recording's damage, with file and offset.
 */
#define _GNU_SOURCE /* versionsort */
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/scoped.h"
#include "base/str.h"
#include "read/files.h"

enum {
	METADATA_MAX_BYTES = 1 << 20,
	PACKET_MAX_BYTES = 4 << 20, /* the recorder writes 256 KiB */
	STREAMS_MAX = 1 << 16,
};

/* How far packets may reach beyond the window: that of a whole recording; of one whose recorder
 * was killed, which told its end once a minute at most. */
#define EDGE_NS	  INT64_C(10000000000)
#define KILLED_NS (86400 * INT64_C(1000000000))

#define SIZE_OF(id_, NAME, name) [id_] = sizeof(struct rec_##name),
static const uint16_t record_bytes[] = {REC_KINDS(SIZE_OF)};
static_assert(sizeof(record_bytes) / sizeof(*record_bytes) == REC_ID_MAX + 1, "a size per kind");

static const char not_listed[] = "the file is not of this recording";

/* Notes the first damage; always returns 0, so that the caller can go on. */
static int damaged(struct recording *r, const struct stream *s, off_t at, const char *what)
{
	struct err *d = &r->files->damage;

	if (!d->code)
		err_set(d, -EBADMSG, "%s: offset %lld: %s", s->path, (long long)at, what);
	return 0;
}

/* ---- packets ---- */

static const char *header_fault(const struct recording *r, const struct rec_packet *h)
{
	if (h->magic != REC_MAGIC)
		return "no packet begins here";
	if (memcmp(h->uuid, r->files->uuid, sizeof(h->uuid)) != 0)
		return "the packet is of another recording";
	if (h->packet_bits % 64 || h->content_bits % 64 || h->packet_bits > PACKET_MAX_BYTES * 8ull)
		return "impossible packet size";
	if (h->content_bits > h->packet_bits || h->content_bits < sizeof(*h) * 8)
		return "the packet's content does not fit the packet";
	if (h->begin > h->end || h->end > INSTANT_MAX_NS)
		return "impossible packet times";
	if ((int64_t)h->begin < r->start_ns - EDGE_NS || (int64_t)h->end > r->files->latest_ns)
		return "the packet's times are not in the recording's";
	return NULL;
}

/* 1: s->head is the header at next_at; 0: the stream ends here. */
static int read_header(struct recording *r, struct stream *s, struct err *err)
{
	ssize_t n = io_pread_all(&io_real, s->fd, &s->head, sizeof(s->head), s->next_at);
	const char *fault;

	if (n < 0)
		return err_set(err, (int)n, "%s: %s", s->path, strerror((int)-n));
	if (n == 0)
		return 0;
	if (n < (ssize_t)sizeof(s->head))
		return r->complete ? damaged(r, s, s->next_at, "the packet is cut short") : 0;
	fault = header_fault(r, &s->head);
	if (fault)
		return damaged(r, s, s->next_at, fault);
	if ((uint64_t)(s->size - s->next_at) < s->head.packet_bits / 8)
		return r->complete ? damaged(r, s, s->next_at, "the packet is cut short") : 0;
	return 1;
}

/* Packets are numbered; where a number is left out, one is missing. */
static void check_sequence(struct recording *r, struct stream *s)
{
	if (s->head.seq != s->next_seq) {
		damaged(r, s, s->packet_at, "a packet is missing before this one");
		if (s->missing_since_ns == NO_TIME)
			s->missing_since_ns = s->last_ns != NO_TIME ? s->last_ns : r->start_ns;
	}
	s->next_seq = s->head.seq + 1;
}

static int next_packet(struct recording *r, struct stream *s, struct err *err)
{
	int rc = read_header(r, s, err);
	size_t len = s->head.packet_bits / 8;
	ssize_t n;

	if (rc <= 0)
		return rc;
	if (len > s->cap) {
		free(s->buf);
		s->cap = 0;
		s->buf = malloc(len);
		if (!s->buf)
			return err_set(err, -ENOMEM, "out of memory");
		s->cap = len;
	}
	n = io_pread_all(&io_real, s->fd, s->buf, len, s->next_at);
	if (n < 0)
		return err_set(err, (int)n, "%s: %s", s->path, strerror((int)-n));
	if ((size_t)n < len)
		return damaged(r, s, s->next_at, "the file became shorter");
	s->packet_at = s->next_at;
	s->next_at += (off_t)len;
	s->pos = sizeof(s->head);
	s->end = s->head.content_bits / 8;
	check_sequence(r, s);
	return 1;
}

/* ---- records ---- */

static const char *record_fault(const struct stream *s, const struct rec_head *rec)
{
	size_t left = s->end - s->pos;

	if (left < sizeof(*rec))
		return "the packet ends inside a record";
	if (rec->size < sizeof(*rec) || rec->size % 8 || rec->size > REC_MAX_BYTES)
		return "impossible record size";
	if (rec->size > left)
		return "the record is longer than the packet";
	if (rec->id && rec->id <= REC_ID_MAX && rec->size != record_bytes[rec->id])
		return "the record's size is not its kind's";
	if (rec->ts < s->head.begin || rec->ts > s->head.end)
		return "the record's time is not in the packet's";
	if (s->last_ns != NO_TIME && (int64_t)rec->ts < s->last_ns)
		return "time goes back";
	return NULL;
}

/* The loss that stands for what damage took, until until_ns.  Of size 0: it is in no file. */
static void give_missing(struct stream *s, int64_t until_ns)
{
	int64_t since_ns = s->missing_since_ns;

	s->missing_since_ns = NO_TIME;
	s->missing =
		(struct rec_lost){.head = {(u64)(until_ns > since_ns ? until_ns : since_ns + 1),
					   REC_ID_LOST, (u16)s->head.cpu_id, 0},
				  .since = (u64)since_ns,
				  .count = 1,
				  .reason = REC_LOST_OTHER};
	s->has_missing = true;
	s->now = &s->missing.head;
}

/* Of a file that is not as the recorder left it.  Where one is cut, its end is missing. */
static void say_fault(struct recording *r, struct stream *s)
{
	s->fault_said = true;
	damaged(r, s, s->size, s->fault);
	if (s->fault != not_listed && s->missing_since_ns == NO_TIME)
		s->missing_since_ns = s->last_ns != NO_TIME ? s->last_ns : r->start_ns;
}

/* The stream ends; if the last that is known of it is damage, that lasts to the end. */
static int end_stream(struct recording *r, struct stream *s)
{
	s->pos = s->end = 0;
	s->next_at = s->size;
	if (s->fault && !s->fault_said)
		say_fault(r, s);
	if (s->missing_since_ns != NO_TIME)
		give_missing(s, r->end_ns);
	else
		s->now = NULL;
	return 0;
}

static void step(struct stream *s)
{
	if (s->has_missing)
		s->has_missing = false;
	else if (s->now)
		s->pos += s->now->size;
	s->now = NULL;
}

/* The rest of the packet cannot be read. */
static void skip_packet(struct stream *s)
{
	s->pos = s->end;
	if (s->missing_since_ns == NO_TIME)
		s->missing_since_ns = s->last_ns != NO_TIME ? s->last_ns : (int64_t)s->head.begin;
}

int stream_next(struct recording *r, struct stream *s, struct err *err)
{
	const struct rec_head *rec;
	const char *fault;
	bool had_damage;
	int rc;

	step(s);
	for (;;) {
		while (s->pos == s->end) {
			had_damage = r->files->damage.code;
			rc = s->next_at < s->size ? next_packet(r, s, err) : 0;
			if (rc < 0)
				return rc;
			if (rc == 0 && !had_damage && r->files->damage.code)
				skip_packet(s);
			if (rc == 0)
				return end_stream(r, s);
		}
		rec = (const struct rec_head *)(s->buf + s->pos);
		fault = record_fault(s, rec);
		if (!fault)
			break;
		damaged(r, s, s->packet_at + (off_t)s->pos, fault);
		skip_packet(s);
	}
	if (s->missing_since_ns != NO_TIME) {
		give_missing(s, (int64_t)rec->ts);
		return 0;
	}
	s->now = rec;
	s->last_ns = (int64_t)rec->ts;
	s->count++;
	return 0;
}

int streams_rewind(struct recording *r, struct err *err)
{
	int rc = 0;

	r->files->damage = (struct err){0};
	r->files->unknown = 0;
	for (size_t i = 0; i < r->files->streams.n && !rc; i++) {
		struct stream *s = &r->files->streams.at[i];

		s->next_at = 0;
		s->pos = s->end = 0;
		s->count = s->next_seq = 0;
		s->last_ns = s->missing_since_ns = NO_TIME;
		s->has_missing = s->fault_said = false;
		s->now = NULL;
		rc = stream_next(r, s, err);
	}
	return rc;
}

/* ---- opening ---- */

/* uuid = "xxxxxxxx-xxxx-..." of the metadata. */
static bool parse_uuid(const char *text, uint8_t ret[16])
{
	const char *p = strstr(text, "uuid = \"");
	unsigned byte;

	if (!p)
		return false;
	p += strlen("uuid = \"");
	for (int i = 0; i < 16; i++) {
		if (*p == '-')
			p++;
		if (!isxdigit((unsigned char)p[0]) || !isxdigit((unsigned char)p[1]) ||
		    sscanf(p, "%2x", &byte) != 1)
			return false;
		ret[i] = (uint8_t)byte;
		p += 2;
	}
	return true;
}

static int check_metadata(struct recording *r, struct err *err)
{
	scoped(str_fini) struct str path = {0};
	scoped(free) char *text = NULL;
	static const char version_key[] = "tracer_major = ";
	const char *version;
	long number;
	int rc;

	str_addf(&path, "%s/kernel/metadata", r->path);
	rc = io_read_file(path.buf, METADATA_MAX_BYTES, &text, NULL, err);
	if (rc)
		return rc;
	if (strncmp(text, "/* CTF 1.8", 10) != 0)
		return err_set(err, -EBADMSG, "%s: offset 0: not CTF 1.8", path.buf);
	version = strstr(text, version_key);
	if (!version || !strstr(text, "tracer_name = \"longpole\""))
		return err_set(err, -EBADMSG, "%s: not written by longpole", path.buf);
	number = strtol(version + strlen(version_key), NULL, 10);
	if (number != REC_VERSION)
		return err_set(err, -ESTALE,
			       "%s: records of version %ld; this longpole reads version %d",
			       path.buf, number, REC_VERSION);
	if (!parse_uuid(text, r->files->uuid))
		return err_set(err, -EBADMSG, "%s: no uuid", path.buf);
	return 0;
}

/* The headers of all packets: the end, and whether the stream is whole. */
static int scan_headers(struct recording *r, struct stream *s, struct err *err)
{
	int rc;

	while (s->next_at < s->size && (rc = read_header(r, s, err)) != 0) {
		if (rc < 0)
			return rc;
		if (!r->complete || !r->end_ns)
			r->end_ns =
				(int64_t)s->head.end > r->end_ns ? (int64_t)s->head.end : r->end_ns;
		s->next_at += (off_t)(s->head.packet_bits / 8);
	}
	return 0;
}

static bool is_stream_of(const char *name, int64_t cpu)
{
	char wanted[40];

	snprintf(wanted, sizeof(wanted), "stream_%lld", (long long)cpu);
	return !strcmp(name, wanted);
}

/* What host.json says of the file: its size, -1 if it is not listed. */
static int64_t listed_bytes(const struct recording *r, const char *name)
{
	for (size_t i = 0; i < r->files->listed.n; i++)
		if (is_stream_of(name, r->files->listed.at[i].cpu))
			return r->files->listed.at[i].bytes;
	return -1;
}

/* No file: what it held is missing from beginning to end.  Or one that is not read: a copy of
 * another stream, for instance, would count twice. */
static void add_empty(struct recording *r, const char *name, const char *fault)
{
	struct str path = {0};

	str_addf(&path, "%s/kernel/%s", r->path, name);
	*vec_add(&r->files->streams) =
		(struct stream){.path = str_take(&path), .fd = -1, .fault = fault};
}

static void add_missing(struct recording *r, struct dirent **names, int n)
{
	for (size_t i = 0; i < r->files->listed.n; i++) {
		int64_t cpu = r->files->listed.at[i].cpu;
		char name[40];
		int at = 0;

		while (at < n && !is_stream_of(names[at]->d_name, cpu))
			at++;
		if (at < n)
			continue;
		snprintf(name, sizeof(name), "stream_%lld", (long long)cpu);
		add_empty(r, name, "the file is missing");
	}
}

static int open_stream(struct recording *r, const char *name, struct err *err)
{
	struct stream *s = vec_add(&r->files->streams);
	struct str path = {0};
	struct stat st;

	str_addf(&path, "%s/kernel/%s", r->path, name);
	s->path = str_take(&path);
	s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* never waits on a fifo */
	if (s->fd < 0 || fstat(s->fd, &st))
		return err_set(err, -errno, "%s: %s", s->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: not a file", s->path);
	s->size = st.st_size;
	if (r->files->listed.n && s->size != listed_bytes(r, name))
		s->fault = s->size < listed_bytes(r, name)
				   ? "the file ends too early"
				   : "the file is longer than it was written";
	r->bytes += (uint64_t)st.st_size;
	return scan_headers(r, s, err);
}

static int is_stream(const struct dirent *d)
{
	return !strncmp(d->d_name, "stream_", 7) && isdigit((unsigned char)d->d_name[7]);
}

int streams_open(struct recording *r, struct err *err)
{
	scoped(str_fini) struct str path = {0};
	struct dirent **names = NULL;
	int n, rc = check_metadata(r, err);

	if (rc)
		return rc;
	str_addf(&path, "%s/kernel", r->path);
	n = scandir(path.buf, &names, is_stream, versionsort);
	if (n < 0)
		return err_set(err, -errno, "%s: %s", path.buf, strerror(errno));
	r->files->latest_ns = r->complete && r->end_ns
				      ? r->end_ns + EDGE_NS
				      : (r->end_ns ? r->end_ns : r->start_ns) + KILLED_NS;
	io_many_files();
	if (n > STREAMS_MAX)
		rc = err_set(err, -E2BIG, "%s: too many streams", path.buf);
	for (int i = 0; i < n && !rc; i++) {
		if (r->files->listed.n && listed_bytes(r, names[i]->d_name) < 0)
			add_empty(r, names[i]->d_name, not_listed);
		else
			rc = open_stream(r, names[i]->d_name, err);
	}
	if (!rc)
		add_missing(r, names, n);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (r->end_ns < r->start_ns)
		r->end_ns = r->start_ns;
	return rc;
}

void streams_close(struct recording *r)
{
	for (size_t i = 0; i < r->files->streams.n; i++) {
		struct stream *s = &r->files->streams.at[i];

		if (s->fd >= 0)
			close(s->fd);
		free(s->path);
		free(s->buf);
	}
	vec_fini(&r->files->streams);
}
