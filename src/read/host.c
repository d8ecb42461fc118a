/* SPDX-License-Identifier: MIT
 *
 * host.json: what the recorder knows beside the records.  Numbers that JSON readers round come as
 * decimal strings; both forms are taken.  What is missing is left at "not known".
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/scoped.h"
#include "base/str.h"
#include "read/files.h"

enum { HOST_MAX_BYTES = 16 << 20, CLOCKS_MAX = 1 << 20, REPORT_MAX = 1 << 16 };

static void scoped_cJSON_Delete(cJSON **json)
{
	cJSON_Delete(*json);
}

static int64_t number(const cJSON *object, const char *key, int64_t fallback)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (cJSON_IsString(item) && item->valuestring)
		return strtoll(item->valuestring, NULL, 10);
	if (cJSON_IsNumber(item) && item->valuedouble > -9e18 && item->valuedouble < 9e18)
		return (int64_t)item->valuedouble;
	return fallback;
}

static double real(const cJSON *object, const char *key, double fallback)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

static const char *string(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) && item->valuestring ? item->valuestring : "";
}

static void read_clocks(struct recording *r, const cJSON *list)
{
	int n = cJSON_GetArraySize(list);
	const cJSON *item;

	r->clocks = calloc((size_t)(n > 0 ? n : 1), sizeof(*r->clocks));
	if (!r->clocks || n > CLOCKS_MAX)
		return;
	cJSON_ArrayForEach(item, list)
	{
		r->clocks[r->n_clocks++] = (struct host_clock){number(item, "monotonic", -1),
							       number(item, "realtime", -1),
							       number(item, "boottime", 0)};
	}
}

/* What is wrong with the times, or NULL. */
static const char *times_fault(const struct recording *r)
{
	int64_t last_ns = 0;

	if (r->start_ns <= 0)
		return "no start_ns";
	if (r->start_ns > INSTANT_MAX_NS || r->end_ns > INSTANT_MAX_NS ||
	    (r->end_ns && r->end_ns < r->start_ns))
		return "impossible start_ns and end_ns";
	for (int i = 0; i < r->n_clocks; i++) {
		const struct host_clock *c = &r->clocks[i];

		if (c->monotonic_ns < last_ns || c->monotonic_ns > INSTANT_MAX_NS ||
		    c->realtime_ns < 0 || c->realtime_ns > INSTANT_MAX_NS)
			return "impossible clock readings";
		last_ns = c->monotonic_ns;
	}
	return NULL;
}

static uint32_t reason_of(const char *name)
{
	uint32_t i = 0;

	while (i < REC_LOST_OTHER && strcmp(model_lost_name(i), name) != 0)
		i++;
	return i;
}

static void read_lost(struct recording *r, const cJSON *lost)
{
	int64_t records = number(lost, "records", 0);
	const cJSON *item;

	r->lost.records = records > 0 ? (uint64_t)records : 0;
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(lost, "by_reason"))
	{
		if (item->string && cJSON_IsNumber(item) && item->valuedouble >= 0 &&
		    item->valuedouble < 9e18)
			r->lost.by_reason[reason_of(item->string)] += (uint64_t)item->valuedouble;
	}
}

static void read_command(struct recording *r, const cJSON *command)
{
	scoped(str_fini) struct str text = {0};
	const cJSON *word;

	r->command_status = -1;
	cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(command, "argv"))
	{
		if (cJSON_IsString(word))
			str_addf(&text, "%s%s", text.len ? " " : "", word->valuestring);
	}
	if (!text.len)
		return;
	r->command = str_take(&text);
	r->command_pid = (int)number(command, "pid", 0);
	r->command_status = (int)number(command, "status", -1);
}

static void read_lists(struct recording *r, const cJSON *root)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "disks"))
	{
		vec_push(&r->files->disks, (struct named_disk){(uint32_t)number(item, "dev", 0),
							       strdup(string(item, "name"))});
	}
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "cgroup_mounts"))
	{
		vec_push(&r->files->mounts, (struct mount){(uint32_t)number(item, "hierarchy", 0),
							   strdup(string(item, "controllers"))});
	}
}

static void read_report(struct recording *r, const cJSON *report)
{
	const cJSON *pids = cJSON_GetObjectItemCaseSensitive(report, "pids"), *item;
	const cJSON *cgroups = cJSON_GetObjectItemCaseSensitive(report, "cgroups");
	int n_pids = cJSON_GetArraySize(pids), n_cgroups = cJSON_GetArraySize(cgroups);

	if (n_pids > REPORT_MAX || n_cgroups > REPORT_MAX)
		return;
	r->report_pids = calloc((size_t)n_pids + 1, sizeof(*r->report_pids));
	r->report_cgroups = calloc((size_t)n_cgroups + 1, sizeof(*r->report_cgroups));
	if (!r->report_pids || !r->report_cgroups)
		return;
	cJSON_ArrayForEach(item, pids)
	{
		if (cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble < 4e9)
			r->report_pids[r->n_report_pids++] = (int64_t)item->valuedouble;
	}
	cJSON_ArrayForEach(item, cgroups)
	{
		char *path = cJSON_IsString(item) ? strdup(item->valuestring) : NULL;

		if (path)
			r->report_cgroups[r->n_report_cgroups++] = path;
	}
}

static void read_streams(struct recording *r, const cJSON *list)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		vec_push(&r->files->listed,
			 (struct listed){number(item, "cpu", -1), number(item, "bytes", -1)});
	}
}

static void read_fields(struct recording *r, const cJSON *root)
{
	const cJSON *recorder = cJSON_GetObjectItemCaseSensitive(root, "recorder");
	int64_t cpus;
	double cpu_pct;

	r->host = strdup(string(root, "host"));
	r->boot_id = strdup(string(root, "boot_id"));
	r->kernel = strdup(string(root, "kernel"));
	r->start_ns = number(root, "start_ns", 0);
	r->end_ns = number(root, "end_ns", 0);
	cpus = number(root, "cpus", 0);
	r->n_cpus = cpus > 0 && cpus < INT32_MAX ? (int)cpus : 0;
	r->complete = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "complete"));
	cpu_pct = real(recorder, "cpu_pct", -1);
	r->recorder_cpu_pct = isfinite(cpu_pct) ? cpu_pct : -1;
	read_clocks(r, cJSON_GetObjectItemCaseSensitive(root, "clocks"));
	read_lost(r, cJSON_GetObjectItemCaseSensitive(root, "lost"));
	read_report(r, cJSON_GetObjectItemCaseSensitive(root, "report"));
	read_command(r, cJSON_GetObjectItemCaseSensitive(root, "command"));
	read_lists(r, root);
	read_streams(r, cJSON_GetObjectItemCaseSensitive(root, "streams"));
}

int host_read(struct recording *r, struct err *err)
{
	scoped(str_fini) struct str path = {0};
	scoped(free) char *text = NULL;
	scoped(cJSON_Delete) cJSON *root = NULL;
	const char *stop = NULL, *fault;
	int rc;

	str_addf(&path, "%s/host.json", r->path);
	rc = io_read_file(path.buf, HOST_MAX_BYTES, &text, NULL, err);
	if (rc)
		return rc;
	root = cJSON_ParseWithOpts(text, &stop, true);
	if (!root)
		return err_set(err, -EBADMSG, "%s: offset %td: not JSON", path.buf,
			       stop ? stop - text : 0);
	if (strcmp(string(root, "format"), "longpole.recording/1") != 0)
		return err_set(err, -EBADMSG, "%s: format '%s' is not longpole.recording/1",
			       path.buf, string(root, "format"));
	read_fields(r, root);
	fault = times_fault(r);
	if (fault)
		return err_set(err, -EBADMSG, "%s: %s", path.buf, fault);
	return 0;
}
