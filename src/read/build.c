/* SPDX-License-Identifier: MIT
 *
 * The history of a recording: built on first use, kept beside the streams, built again when it is
 * not of these streams, of this version, or damaged.
 *
 *	NAME.lp/kernel/stream_* -> events -> model -> history.tmp.PID -> (rename) history
 *
 * It is written under a name of its own and renamed when it is whole, so two processes that
 * build at once do each other no harm and a killed one leaves no half history.  Where the folder
 * cannot be written the history is a temporary file without a name.
 *
 * Attached to it: "names"; "source", what it was built from; "counts" and "damage", what was
 * found in the streams on the way.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/scoped.h"
#include "base/str.h"
#include "history/history.h"
#include "read/files.h"

enum {
	SHOW_EVERY = 1 << 16,
	SOURCE_VERSION = 5, /* goes up when the model finds other intervals, or words mean others */
};

/* What a history is of.  Compared as bytes. */
struct source {
	uint32_t version, record_version;
	int64_t start_ns, end_ns;
	uint64_t complete, streams, bytes;
	uint8_t uuid[16];
};

struct counts {
	uint64_t records[16], n_records, unknown, lost_seen[16];
};

static struct source source_of(const struct recording *r)
{
	struct source s = {.version = SOURCE_VERSION,
			   .record_version = REC_VERSION,
			   .start_ns = r->start_ns,
			   .end_ns = r->end_ns,
			   .complete = r->complete,
			   .streams = r->files->streams.n,
			   .bytes = r->bytes};

	memcpy(s.uuid, r->files->uuid, sizeof(s.uuid));
	return s;
}

/* ---- building ---- */

struct build {
	struct recording *r;
	struct history_writer *writer;
	struct model *model;
	struct progress progress;
	uint64_t events;
};

static int add(const struct interval *iv, void *arg, struct err *err)
{
	struct build *b = arg;

	return history_add(b->writer, iv, err);
}

static void show(struct build *b, int64_t now_ns)
{
	int64_t all_ns = b->r->end_ns - b->r->start_ns, done_ns = now_ns - b->r->start_ns;

	if (all_ns > 0 && done_ns >= 0 && done_ns <= all_ns)
		progress_show(&b->progress, "%d %%", (int)(100 * (double)done_ns / (double)all_ns));
}

static int feed(const struct event *e, void *arg, struct err *err)
{
	struct build *b = arg;

	if (b->events++ % SHOW_EVERY == 0)
		show(b, e->ts_ns);
	if (b->r->stop && *b->r->stop)
		return err_set(err, -EINTR, "interrupted");
	return model_feed(b->model, e, err);
}

static void name_things(const struct recording *r, struct names *names)
{
	for (size_t i = 0; i < r->files->mounts.n; i++)
		names_set_hierarchy(names, r->files->mounts.at[i].hierarchy,
				    r->files->mounts.at[i].controllers);
	for (size_t i = 0; i < r->files->disks.n; i++)
		names_set_disk_name(names, r->files->disks.at[i].dev, r->files->disks.at[i].name);
}

/* All events through the model.  Damage is noted, and what was read before it stays. */
static int run(struct build *b, struct names *names, struct err *damage, struct err *err)
{
	int rc = model_new(names, b->r->start_ns, add, b, &b->model, err);

	if (rc)
		return rc;
	name_things(b->r, names);
	rc = recording_each(b->r, feed, b, err);
	if (rc == -EBADMSG && b->r->files->damage.code) {
		*damage = b->r->files->damage;
		rc = 0;
		if (err)
			*err = (struct err){0};
	}
	if (rc)
		model_abort(b->model);
	else
		rc = model_finish(b->model, b->r->end_ns, err);
	progress_done(&b->progress);
	return rc;
}

static int attach(struct build *b, const struct names *names, const struct err *damage,
		  struct err *err)
{
	struct source source = source_of(b->r);
	struct counts counts = {.n_records = b->r->n_records, .unknown = b->r->files->unknown};
	scoped(free) void *bytes = NULL;
	size_t len;
	int rc = names_save(names, &bytes, &len);

	memcpy(counts.records, b->r->records, sizeof(counts.records));
	memcpy(counts.lost_seen, b->r->files->lost_seen, sizeof(counts.lost_seen));
	if (!rc)
		rc = history_attach(b->writer, "names", bytes, len, err);
	if (!rc)
		rc = history_attach(b->writer, "source", &source, sizeof(source), err);
	if (!rc)
		rc = history_attach(b->writer, "counts", &counts, sizeof(counts), err);
	if (!rc)
		rc = history_attach(b->writer, "damage", damage->text, strlen(damage->text) + 1,
				    err);
	return rc;
}

static int build_at(struct recording *r, const char *path, struct err *err)
{
	struct build b = {.r = r, .progress = {.what = "reading the recording"}};
	struct names *names = names_new();
	struct err damage = {0};
	int rc = history_create(path, NULL, &b.writer, err);

	if (!rc) {
		rc = run(&b, names, &damage, err);
		if (!rc)
			rc = attach(&b, names, &damage, err);
		if (rc)
			history_abort(b.writer);
		else
			rc = history_finish(b.writer, err);
	}
	names_free(names);
	return rc;
}

/* ---- opening ---- */

static int get_names(struct history *h, struct names **ret, struct err *err)
{
	const void *data;
	size_t len;

	if (history_attachment(h, "names", &data, &len))
		return err_set(err, -EBADMSG, "the history has no names");
	return names_load(data, len, ret, err);
}

static void get_counts(struct recording *r, struct history *h, char *damage, size_t damage_len)
{
	struct counts counts;
	const void *data;
	size_t len;

	if (!history_attachment(h, "counts", &data, &len) && len == sizeof(counts)) {
		memcpy(&counts, data, sizeof(counts));
		memcpy(r->records, counts.records, sizeof(r->records));
		r->n_records = counts.n_records;
		r->files->unknown = counts.unknown;
		memcpy(r->files->lost_seen, counts.lost_seen, sizeof(counts.lost_seen));
		lost_join(r);
	}
	if (!damage || !damage_len)
		return;
	damage[0] = '\0';
	if (!history_attachment(h, "damage", &data, &len) && len)
		snprintf(damage, damage_len, "%.*s", (int)(len < 512 ? len : 512),
			 (const char *)data);
}

static bool is_of(const struct recording *r, struct history *h)
{
	struct source source = source_of(r);
	const void *data;
	size_t len;

	if (history_attachment(h, "source", &data, &len) || len != sizeof(source) ||
	    memcmp(data, &source, sizeof(source)) != 0)
		return false;
	/* Without the counts it would be a recording of no records, in which nothing was lost. */
	return !history_attachment(h, "counts", &data, &len) && len == sizeof(struct counts);
}

/* -ESTALE: it has to be built.  An old one is read through: damage that a question meets later
 * would look like a thread that ran. */
static int open_at(struct recording *r, const char *path, bool is_old, struct history **ret_history,
		   struct names **ret_names, struct err *err)
{
	struct history *h;
	int rc = history_open(path, NULL, &h, err);

	if (rc)
		return rc == -ENOENT || rc == -EBADMSG ? -ESTALE : rc;
	if (!is_of(r, h) || (is_old && history_verify(h, err)) || get_names(h, ret_names, err)) {
		history_close(h);
		return -ESTALE;
	}
	*ret_history = h;
	return 0;
}

/* Half histories whose builder was killed. */
static void remove_leftovers(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		scoped(str_fini) struct str path = {0};
		const char *pid = entry->d_name + strlen("history.tmp.");

		if (strncmp(entry->d_name, "history.tmp.", strlen("history.tmp.")) != 0 ||
		    !isdigit((unsigned char)*pid))
			continue;
		str_addf(&path, "%s/%s", dir, entry->d_name);
		if (kill(atoi(pid), 0) && errno == ESRCH)
			unlink(path.buf);
	}
	if (d)
		closedir(d);
}

static int build_kept(struct recording *r, const char *path, struct history **ret_history,
		      struct names **ret_names, struct err *err)
{
	scoped(str_fini) struct str tmp = {0};
	int rc;

	remove_leftovers(r->path);
	str_addf(&tmp, "%s.tmp.%d", path, (int)getpid());
	rc = build_at(r, tmp.buf, err);
	if (rc)
		return rc;
	if (rename(tmp.buf, path)) {
		rc = err_set(err, -errno, "%s: %s", path, strerror(errno));
		unlink(tmp.buf);
		return rc;
	}
	return open_at(r, path, false, ret_history, ret_names, err);
}

/* Nobody else sees it, and nothing is left of it. */
static int build_temporary(struct recording *r, struct history **ret_history,
			   struct names **ret_names, struct err *err)
{
	const char *folder = getenv("TMPDIR");
	scoped(str_fini) struct str dir = {0}, path = {0};
	int rc;

	str_addf(&dir, "%s/longpole.XXXXXX", folder && *folder ? folder : "/tmp");
	if (!mkdtemp(dir.buf))
		return err_set(err, -errno, "%s: %s", dir.buf, strerror(errno));
	str_addf(&path, "%s/history", dir.buf);
	rc = build_at(r, path.buf, err);
	if (!rc)
		rc = open_at(r, path.buf, false, ret_history, ret_names, err);
	unlink(path.buf);
	rmdir(dir.buf);
	return rc;
}

/* No place for it beside the streams; anything else is a failure. */
static bool is_unwritable(int rc)
{
	return rc == -EROFS || rc == -EACCES || rc == -EPERM || rc == -ENOSPC || rc == -EDQUOT;
}

int recording_history(struct recording *r, struct history **ret_history, struct names **ret_names,
		      char *ret_damage, size_t damage_len, struct err *err)
{
	scoped(str_fini) struct str path = {0};
	struct err ignored = {0};
	int rc;

	str_addf(&path, "%s/history", r->path);
	rc = open_at(r, path.buf, true, ret_history, ret_names, &ignored);
	if (rc)
		rc = build_kept(r, path.buf, ret_history, ret_names, err);
	if (is_unwritable(rc))
		rc = build_temporary(r, ret_history, ret_names, err);
	if (rc)
		return rc;
	get_counts(r, *ret_history, ret_damage, damage_len);
	return 0;
}
