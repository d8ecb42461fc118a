/* SPDX-License-Identifier: MIT
 *
 * A recording: opening it, and all its records in order of time.
 *
 * Each stream is in order; the streams are merged by a heap of their current records.  Ties:
 * stream, then record number.  The record on top is given for as long as it is still the first
 * of all, so that a busy stream costs one comparison a record.
 */
#include "read/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "read/files.h"

int recording_open(const char *path, struct recording **ret, struct err *err)
{
	struct recording *r = calloc(1, sizeof(*r));
	struct str why = {0};
	struct stat st;
	int rc;

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	r->path = strdup(path);
	r->files = calloc(1, sizeof(*r->files));
	str_addf(&why, "%s/host.json", path);
	if (!r->path || !r->files)
		rc = err_set(err, -ENOMEM, "out of memory");
	else if (stat(path, &st))
		rc = err_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode) || (stat(why.buf, &st) && errno == ENOENT))
		rc = err_set(err, -EINVAL, "%s is not a recording", path);
	else
		rc = host_read(r, err);
	if (!rc)
		rc = streams_open(r, err);
	str_fini(&why);
	if (rc)
		recording_close(r);
	else
		*ret = r;
	return rc;
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	if (r->files) {
		streams_close(r);
		for (size_t i = 0; i < r->files->mounts.n; i++)
			free(r->files->mounts.at[i].controllers);
		for (size_t i = 0; i < r->files->disks.n; i++)
			free(r->files->disks.at[i].name);
		vec_fini(&r->files->mounts);
		vec_fini(&r->files->disks);
		vec_fini(&r->files->listed);
	}
	free(r->files);
	free(r->path);
	free(r->host);
	free(r->boot_id);
	free(r->kernel);
	free(r->clocks);
	free(r->command);
	free(r->report_pids);
	for (int i = 0; i < r->n_report_cgroups; i++)
		free(r->report_cgroups[i]);
	free(r->report_cgroups);
	free(r);
}

/* ---- merging ---- */

struct heap {
	struct stream **at; /* at[0] is first; a child is never before its parent */
	size_t n;
};

/* Streams lie in an array, so the address is the stream's number. */
static bool before(const struct stream *a, const struct stream *b)
{
	if (a->now->ts != b->now->ts)
		return a->now->ts < b->now->ts;
	return a < b;
}

static void sift_down(struct heap *h, size_t i)
{
	for (;;) {
		size_t first = i;
		struct stream *s;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < h->n; child++)
			if (before(h->at[child], h->at[first]))
				first = child;
		if (first == i)
			return;
		s = h->at[i];
		h->at[i] = h->at[first];
		h->at[first] = s;
		i = first;
	}
}

static int heap_init(struct heap *h, struct recording *r, struct err *err)
{
	h->n = 0;
	h->at = calloc(r->files->streams.n + 1, sizeof(*h->at));
	if (!h->at)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < r->files->streams.n; i++)
		if (r->files->streams.at[i].now)
			h->at[h->n++] = &r->files->streams.at[i];
	for (size_t i = h->n; i-- > 0;)
		sift_down(h, i);
	return 0;
}

typedef int record_fn(const struct rec_head *rec, void *arg, struct err *err);

static int each_record(struct recording *r, record_fn *fn, void *arg, struct err *err)
{
	struct heap h = {0};
	int rc = streams_rewind(r, err);

	if (!rc)
		rc = heap_init(&h, r, err);
	while (!rc && h.n) {
		rc = fn(h.at[0]->now, arg, err);
		if (!rc)
			rc = stream_next(r, h.at[0], err);
		if (!rc && !h.at[0]->now)
			h.at[0] = h.at[--h.n];
		if (!rc)
			sift_down(&h, 0);
	}
	free(h.at);
	lost_join(r);
	if (!rc && r->files->damage.code)
		return err_set(err, r->files->damage.code, "%s", r->files->damage.text);
	return rc;
}

struct each {
	struct recording *r;
	event_fn *fn;
	void *arg;
	struct event event;
	char text[129];
};

static void count_lost(struct recording *r, const struct rec_lost *lost)
{
	r->files->lost_seen[lost->reason < REC_LOST_OTHER ? lost->reason : REC_LOST_OTHER] +=
		lost->count;
}

void lost_join(struct recording *r)
{
	uint64_t all = 0;

	for (int i = 0; i < 16; i++) {
		if (r->lost.by_reason[i] < r->files->lost_seen[i])
			r->lost.by_reason[i] = r->files->lost_seen[i];
		all += r->lost.by_reason[i];
	}
	if (r->lost.records < all)
		r->lost.records = all;
}

static void count(struct recording *r, const struct rec_head *rec)
{
	if (rec->id == REC_ID_LOST)
		count_lost(r, (const struct rec_lost *)rec);
	if (!rec->size)
		return;
	if (rec->id && rec->id <= REC_ID_MAX)
		r->records[rec->id]++;
	else
		r->files->unknown++;
	r->n_records++;
}

static void count_begin(struct recording *r)
{
	memset(r->records, 0, sizeof(r->records));
	memset(r->files->lost_seen, 0, sizeof(r->files->lost_seen));
	r->n_records = 0;
}

static int give_event(const struct rec_head *rec, void *arg, struct err *err)
{
	struct each *each = arg;

	count(each->r, rec);
	if (!event_from(rec, &each->event, each->text))
		return 0;
	return each->fn(&each->event, each->arg, err);
}

int recording_each(struct recording *r, event_fn *fn, void *arg, struct err *err)
{
	struct each each = {.r = r, .fn = fn, .arg = arg};

	count_begin(r);
	return each_record(r, give_event, &each, err);
}

static int give_count(const struct rec_head *rec, void *arg, struct err *err)
{
	(void)err;
	count(arg, rec);
	return 0;
}

int recording_scan(struct recording *r, struct err *err)
{
	count_begin(r);
	return each_record(r, give_count, r, err);
}

/* ---- clocks ---- */

int64_t recording_wall_ns(const struct recording *r, int64_t monotonic_ns)
{
	const struct host_clock *a, *b;
	int i = 0;
	__int128 steps;

	if (!r->n_clocks)
		return monotonic_ns;
	while (i + 2 < r->n_clocks && r->clocks[i + 1].monotonic_ns <= monotonic_ns)
		i++;
	a = &r->clocks[i];
	b = i + 1 < r->n_clocks ? &r->clocks[i + 1] : a;
	if (b->monotonic_ns <= a->monotonic_ns || monotonic_ns < a->monotonic_ns ||
	    monotonic_ns > b->monotonic_ns)
		return (monotonic_ns < a->monotonic_ns ? a : b)->realtime_ns + monotonic_ns -
		       (monotonic_ns < a->monotonic_ns ? a : b)->monotonic_ns;
	steps = (__int128)(b->realtime_ns - a->realtime_ns) * (monotonic_ns - a->monotonic_ns);
	return a->realtime_ns + (int64_t)(steps / (b->monotonic_ns - a->monotonic_ns));
}
