/* SPDX-License-Identifier: MIT
 *
 * A recording, from the empty folder to the last packet.
 *
 *	start CMD (held) → load → attach → snapshot → let CMD go → drain ... → detach → what is
 *	still open → drain → write the last packets → host.json complete
 *
 * Programs are attached before the snapshot, so that nothing falls between the two.  The rings
 * are looked at every few milliseconds; nobody wakes the recorder, for a wake per record costs
 * more than all the rest.
 */
#include "record/record.h"

#include "base/err.h"
#include "base/log.h"
#include "bpf/recorder.h"
#include "record/command.h"
#include "record/cost.h"
#include "record/ctf.h"
#include "record/folder.h"
#include "record/host.h"
#include "record/load.h"
#include "record/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MS	      INT64_C(1000000)
#define SECOND	      INT64_C(1000000000)
#define DRAIN_MAX_NS  (20 * MS)
#define DRAIN_MIN_NS  (1 * MS)
#define HOST_EVERY_NS (60 * SECOND)
#define COST_FROM_NS  (300 * MS) /* the programs' run time is sampled once, for a while */
#define COST_FOR_NS   (100 * MS)
#define NICE	      (-15)
#define BYTES_PER_MS  (200 * 1024) /* what a busy CPU records */

struct session {
	const struct record_options *opt;
	struct err *err;
	struct folder folder;
	struct host host;
	struct command command;
	struct loaded loaded;
	struct ctf *ctf;
	struct cost cost;
	struct progress progress;
	int64_t interval_ns, host_written_ns;
	int nice;     /* as it was */
	bool begun;   /* there is something to keep */
	bool failed;  /* the trace cannot grow any more */
	bool dropped; /* rights that are needed no more */
};

/* --- records into the trace */

static int add_record(const struct rec_head *r, void *arg)
{
	struct session *s = arg;
	int rc = ctf_add(s->ctf, r, s->err);

	s->failed |= rc < 0;
	return rc;
}

static int add_listed(const void *record, size_t bytes, void *arg)
{
	(void)bytes;
	return add_record(record, arg);
}

static int add_cgroup(const struct rec_cgroup *r, void *arg)
{
	return add_record(&r->head, arg);
}

/* Returns how full the fullest ring was, in percent; negative: the trace cannot grow. */
static int64_t drain(struct session *s)
{
	int64_t fullest = 0;

	for (int cpu = 0; cpu < s->loaded.cpus; cpu++) {
		int64_t n;

		if (!s->loaded.rings[cpu])
			continue;
		n = ring_drain(s->loaded.rings[cpu], add_record, s);
		if (n < 0)
			return n;
		if (n * 100 / (int64_t)s->loaded.buffer_bytes > fullest)
			fullest = n * 100 / (int64_t)s->loaded.buffer_bytes;
	}
	return fullest;
}

/* --- beginning */

static int snapshot(struct session *s)
{
	int rc = cgroups_each(&s->host, add_cgroup, s);

	if (rc >= 0)
		rc = loaded_iterate(&s->loaded, ITER_THREADS, add_listed, s, s->err);
	if (rc >= 0)
		rc = loaded_iterate(&s->loaded, ITER_SOCKETS, add_listed, s, s->err);
	return rc;
}

static int open_trace(struct session *s)
{
	const struct clock_reading *c = &s->host.clocks.at[0];
	struct ctf_options o = {
		.dir = s->folder.kernel,
		.cpus = s->loaded.cpus,
		.host = s->host.uts.nodename,
		.kernel = s->host.uts.release,
		.clock_offset_ns = c->realtime_ns - c->monotonic_ns,
		.raw_text = s->opt->raw_text,
	};

	if (getrandom(o.uuid, sizeof(o.uuid), 0) != sizeof(o.uuid))
		return err_set(s->err, -EIO, "no random bytes");
	/* a random uuid says so: version 4, variant 1 */
	o.uuid[6] = (o.uuid[6] & 0x0f) | 0x40;
	o.uuid[8] = (o.uuid[8] & 0x3f) | 0x80;
	memcpy(o.clock_uuid, s->host.boot_uuid, sizeof(o.clock_uuid));
	return ctf_open(&o, &s->ctf, s->err);
}

static int write_host(struct session *s)
{
	struct recorder_count n;

	if (!loaded_count(&s->loaded, &n)) {
		s->host.lost = 0;
		for (int i = 0; i < REC_LOST_REASONS; i++) {
			s->host.lost_by[i] = n.lost[i];
			s->host.lost += n.lost[i];
		}
	}
	s->host.end_ns = now_ns();
	s->host_written_ns = s->host.end_ns;
	return host_write(&s->host, s->folder.host_json, s->err);
}

static int64_t first_interval(size_t buffer_bytes)
{
	int64_t ns = (int64_t)buffer_bytes / 2 * MS / BYTES_PER_MS;

	return ns < DRAIN_MIN_NS ? DRAIN_MIN_NS : ns > DRAIN_MAX_NS ? DRAIN_MAX_NS : ns;
}

static void say_limits(const struct session *s)
{
	const struct loaded *l = &s->loaded;

	if (l->no_requests)
		log_warn("this kernel does not show what sockets receive and send: "
			 "requests cannot be seen");
	else if (l->by_calls)
		log_debug("requests are seen where system calls end");
	if (!host_pids_are_ours())
		log_warn("this is a pid namespace: the recording has the host's pids, %s",
			 s->opt->command ? "and the command is not found among them"
					 : "which --pid then takes");
	if (l->no_blocks)
		log_warn("this kernel does not show block requests");
	if (s->opt->buffer_bytes > l->buffer_bytes)
		log_warn("the ring buffers have %zu MiB, which is the most", l->buffer_bytes >> 20);
	log_debug("memory: %d CPUs, each %zu KiB of ring and %d KiB of packet", l->cpus,
		  l->buffer_bytes / 1024, CTF_PACKET_BYTES / 1024);
}

static int begin(struct session *s)
{
	const struct record_options *opt = s->opt;
	int rc = loaded_open(&s->loaded, opt->buffer_bytes, s->err);

	if (rc < 0)
		return rc;
	rc = folder_make(&s->folder, opt->dir, opt->replace, s->err);
	if (rc < 0)
		return rc;
	s->host.command = opt->command;
	s->host.report_cgroups = opt->report_cgroups;
	s->host.report_pids = opt->report_pids;
	s->host.command_pid = host_pids_are_ours() ? s->command.pid : 0;
	s->host.buffer_bytes = s->loaded.buffer_bytes;
	s->host.requests_seen = !s->loaded.no_requests;
	s->host.by_calls = s->loaded.by_calls;
	s->interval_ns = first_interval(s->loaded.buffer_bytes);
	rc = open_trace(s);
	if (rc < 0)
		return rc;
	say_limits(s);
	/* on CPUs that are all busy the rings still must be emptied */
	setpriority(PRIO_PROCESS, 0, NICE);
	rc = loaded_attach(&s->loaded, s->err);
	if (rc < 0)
		return rc;
	s->host.start_ns = now_ns();
	rc = write_host(s);
	if (rc >= 0)
		rc = snapshot(s);
	if (rc >= 0 && s->command.pid && opt->stop && *opt->stop)
		return err_set(s->err, -EINTR, "stopped before '%s' was started", opt->command[0]);
	if (rc >= 0)
		rc = command_go(&s->command, opt->command, s->err);
	return rc;
}

/* --- the time between */

static void pause_ns(int64_t ns)
{
	struct timespec t = {ns / SECOND, ns % SECOND};

	nanosleep(&t, NULL);
}

static void adapt(struct session *s, int64_t fullest)
{
	if (fullest > 25 && s->interval_ns > DRAIN_MIN_NS)
		s->interval_ns /= 2;
	else if (fullest < 5 && s->interval_ns < first_interval(s->loaded.buffer_bytes))
		s->interval_ns += MS;
}

static void show(struct session *s, int64_t elapsed_ns)
{
	if (s->opt->quiet)
		return;
	progress_show(&s->progress, "%.0f s, %llu records, %.1f MB", (double)elapsed_ns / SECOND,
		      (unsigned long long)ctf_records(s->ctf), (double)ctf_bytes(s->ctf) / 1e6);
}

static bool is_over(struct session *s, int64_t now)
{
	const struct record_options *o = s->opt;

	return (o->stop && *o->stop) || command_ended(&s->command) ||
	       (o->duration_ns && now - s->host.start_ns >= o->duration_ns);
}

static int64_t until_next(const struct session *s, int64_t now)
{
	int64_t left =
		s->opt->duration_ns ? s->opt->duration_ns - (now - s->host.start_ns) : SECOND;

	return left < s->interval_ns ? (left > 0 ? left : 0) : s->interval_ns;
}

static void measure_cost(struct session *s, int64_t elapsed_ns)
{
	if (elapsed_ns < COST_FROM_NS)
		return;
	if (elapsed_ns < COST_FROM_NS + COST_FOR_NS) {
		cost_sample_begin(&s->cost, &s->loaded);
	} else if (!s->dropped) {
		cost_sample_end(&s->cost, &s->loaded);
		privilege_drop();
		s->dropped = true;
	}
}

static int run(struct session *s)
{
	int64_t now = now_ns();

	while (!is_over(s, now)) {
		int64_t fullest;
		int rc;

		pause_ns(until_next(s, now));
		fullest = drain(s);
		now = now_ns();
		rc = fullest < 0 ? (int)fullest : ctf_tick(s->ctf, now, s->err);
		if (rc < 0)
			return rc;
		adapt(s, fullest);
		measure_cost(s, now - s->host.start_ns);
		show(s, now - s->host.start_ns);
		if (now - s->host_written_ns >= HOST_EVERY_NS) {
			host_read_clocks(&s->host);
			rc = write_host(s);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* --- the end */

static void add_block(const struct recorder_block *b, void *arg)
{
	struct session *s = arg;
	struct rec_block r = {
		.head = {(uint64_t)now_ns(), REC_ID_BLOCK, 0, sizeof(r)},
		.request = b->id,
		.sector = b->sector,
		.submitted = b->submitted,
		.inserted = b->inserted,
		.issued = b->issued,
		.owner_cgroup = b->owner_cgroup,
		.tid = b->tid,
		.pid = b->pid,
		.bytes = b->bytes,
		.dev = b->dev,
		.op = b->op,
		.flags = b->flags,
	};

	add_record(&r.head, s);
}

static int end(struct session *s)
{
	int64_t rc;

	progress_done(&s->progress);
	loaded_detach(&s->loaded);
	cost_sample_end(&s->cost, &s->loaded);
	rc = drain(s);
	if (rc >= 0)
		rc = loaded_iterate(&s->loaded, ITER_OPEN, add_listed, s, s->err);
	if (rc >= 0)
		rc = loaded_each_block(&s->loaded, add_block, s);
	/* what a program was still writing the first time */
	if (rc >= 0)
		rc = drain(s);
	if (rc >= 0)
		rc = loaded_each_lost(&s->loaded, add_record, s);
	return rc < 0 ? (int)rc : 0;
}

/* After a failure what there is still is closed in order; the first sentence stays. */
static int finish(struct session *s, int rc)
{
	struct err *first = s->err, later = {0};
	int end_rc;

	if (rc < 0)
		s->err = &later;
	end_rc = rc < 0 ? (loaded_detach(&s->loaded), 0) : end(s);
	if (end_rc >= 0 && !s->failed)
		end_rc = ctf_finish(s->ctf, s->err);
	s->host.cpu_pct = cost_pct(&s->cost, now_ns() - s->host.start_ns);
	command_ended(&s->command); /* by the Ctrl-C that ended this, often */
	s->host.command_status = s->command.status;
	s->host.complete = rc >= 0 && end_rc >= 0;
	s->host.whole = s->ctf;
	host_read_clocks(&s->host);
	if (end_rc < 0)
		s->err = &later;
	if (write_host(s) < 0 && rc >= 0 && end_rc >= 0)
		end_rc = err_set(first, later.code, "%s", later.text);
	s->err = first;
	return rc < 0 ? rc : end_rc;
}

static void report(const struct session *s, struct record_result *ret)
{
	*ret = (struct record_result){
		.records = s->ctf ? ctf_records(s->ctf) : 0,
		.bytes = s->ctf ? ctf_bytes(s->ctf) : 0,
		.lost = s->host.lost,
		.duration_ns = s->host.start_ns ? s->host.end_ns - s->host.start_ns : 0,
		.cpu_pct = s->host.cpu_pct,
		.command_status = s->command.status,
		.command_pid = s->command.pid,
	};
}

int record_run(const struct record_options *opt, struct record_result *ret, struct err *err)
{
	struct session s = {.opt = opt, .err = err, .progress = {.what = "recording"}};
	int rc;

	host_init(&s.host);
	s.nice = getpriority(PRIO_PROCESS, 0);
	/* before it gets faster and loses its rights: the command inherits neither */
	rc = command_start(&s.command, opt->command, opt->command_to_stderr, err);
	if (rc >= 0)
		rc = begin(&s);
	if (rc >= 0) {
		s.begun = true;
		cost_begin(&s.cost);
		rc = run(&s);
	}
	if (s.host.start_ns)
		rc = finish(&s, rc);
	report(&s, ret);
	ctf_close(s.ctf);
	loaded_close(&s.loaded);
	setpriority(PRIO_PROCESS, 0, s.nice);
	command_fini(&s.command);
	folder_fini(&s.folder, rc < 0 && !s.begun);
	host_fini(&s.host);
	return rc;
}
