/* SPDX-License-Identifier: MIT
 *
 * The sentences of `longpole why`: what happened, the numbers behind it, what to try next.
 *
 * One table holds a phrase and an advice per (state, cause).  In both, {who} is the culprit,
 * {time} the time ("41.2 ms more"), {their} "their" or "its", {cgroup}, {pid} and {name} facts
 * about the culprit.  Sentences are in the past tense, so that they fit one and many.
 */
#include "base/duration.h"
#include "base/scoped.h"
#include "base/str.h"
#include "cli/why.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

static const int64_t SECOND_NS = 1000000000;

static const struct wording {
	enum state state;
	enum cause cause;
	const char *phrase, *advice;
} wordings[] = {
	{STATE_RUNNING, CAUSE_SELF, "spent {time} computing{in who}",
	 "See which code it is: perf record -g -p {pid} -- sleep 5, then perf report."},
	{STATE_RUNNING, CAUSE_LOCK,
	 "waited {time} for a lock while its holder, {who}, was computing",
	 "Hold the lock for less time or split it; perf record -g -t {tid} -- sleep 5 shows what "
	 "its holder computes."},
	{STATE_RUNNING, CAUSE_CALLEE, "waited {time} for an answer that {who} was computing",
	 "Look at {name} next: perf record -g -p {pid} -- sleep 5, then perf report."},
	{STATE_RUNNING, CAUSE_CHILD,
	 "waited {time} for a process started on the way, {who}, "
	 "which was computing",
	 "Look at {name} next: can it do less, or be kept running instead of started each time?  "
	 "perf record -g -a -- sleep 5, then perf report --comm {name}."},
	{STATE_RUNNING, CAUSE_INTERRUPT, "lost {time} to interrupts while computing",
	 "Compare /proc/interrupts and /proc/softirqs twice, a second apart; move the busy ones to "
	 "other CPUs with /proc/irq/N/smp_affinity_list."},
	{STATE_RUNNING, CAUSE_STEAL, "lost {time} to other virtual machines (steal)",
	 "The hypervisor gave this machine less CPU than it wanted: see 'st' in vmstat 1; ask for "
	 "dedicated CPUs or move to another host."},
	{STATE_RUNQUEUE, CAUSE_OWN,
	 "waited {time} in the run queue, behind {who} of the same cgroup",
	 "More threads want to run than there are CPUs: allow more CPUs, or fewer busy threads at "
	 "once; pidstat -t -p {pid} 1 shows which threads compete."},
	{STATE_RUNQUEUE, CAUSE_NEIGHBOUR, "waited {time} in the run queue, behind {who}",
	 "Give {cgroup} less: lower its cpu.weight (cgroup v1: cpu.shares), cap it with cpu.max "
	 "(cpu.cfs_quota_us), or keep it on other CPUs with cpuset.cpus.  For a systemd unit: "
	 "systemctl set-property --runtime UNIT CPUWeight=20."},
	{STATE_RUNQUEUE, CAUSE_SYSTEM, "waited {time} in the run queue, behind {who}{, system}",
	 "If {name} is an ordinary program, start it in a cgroup of its own with a low weight "
	 "(systemd-run --scope -p CPUWeight=20 ...) or with nice; if it is a kernel thread, perf "
	 "record -a -g -- sleep 5 shows its work."},
	{STATE_RUNQUEUE, CAUSE_INTERRUPT,
	 "waited {time} in the run queue while interrupts "
	 "had the CPU",
	 "Compare /proc/interrupts and /proc/softirqs twice, a second apart; move the busy ones to "
	 "other CPUs with /proc/irq/N/smp_affinity_list."},
	{STATE_RUNQUEUE, CAUSE_QUOTA, "waited {time} because the CPU quota of {who} was used up",
	 "Raise the quota (cpu.max; cgroup v1: cpu.cfs_quota_us) or run fewer threads at once; "
	 "nr_throttled in the cgroup's cpu.stat counts how often it struck."},
	{STATE_RUNQUEUE, CAUSE_IDLE, "waited {time} for an idle CPU to wake up",
	 "The CPU slept deeply: forbid deep idle states (cpupower idle-set -D 50); in a virtual "
	 "machine the host decides."},
	{STATE_DISK, CAUSE_SERVICE,
	 "waited {time} while the disk{, device,} did {their} own reads and writes",
	 "The disk itself is slow for this work: read or write less, cache more, or use a faster "
	 "one; iostat -x 1 shows its times."},
	{STATE_DISK, CAUSE_OWN,
	 "waited {time} for the disk while it served {who} of the same cgroup",
	 "The service disturbs itself: spread its background reads and writes out, or give them "
	 "ionice -c 3."},
	{STATE_DISK, CAUSE_NEIGHBOUR, "waited {time} for the disk while it served {who}",
	 "Limit {cgroup}: io.max or a lower io.weight (cgroup v1: blkio.throttle.*), ionice -c 3, "
	 "or another disk.  For a systemd unit: systemctl set-property --runtime UNIT "
	 "IOWeight=20."},
	{STATE_DISK, CAUSE_SYSTEM, "waited {time} for the disk while it served {who}{, system}",
	 "iotop -o names who reads and writes; writeback is bounded by vm.dirty_background_bytes, "
	 "scrubs and backups can be given ionice -c 3."},
	{STATE_DISK, CAUSE_THROTTLED, "waited {time} because writing was throttled",
	 "Too many dirty pages or a limit: see vm.dirty_bytes, the cgroup's io.max and memory.high, "
	 "and memory.events for how often it struck."},
	{STATE_SLEEP, CAUSE_SELF, "slept {time} on a timer of {their} own",
	 "The program chose to sleep: look for a retry, a poll interval or a rate limit; perf trace "
	 "-p {pid} -e '*sleep*,poll,select,epoll_wait' shows the calls."},
	{STATE_SLEEP, CAUSE_TIMEOUT, "waited {time} until a time limit ran out",
	 "Something expected did not come: look for errors and retries in the log at that time."},
	{STATE_SLEEP, CAUSE_CALLEE, "waited {time} for an answer while {who} slept on a timer",
	 "Look at {name} next: it sleeps while it has work; perf trace -p {pid} -e "
	 "'*sleep*,poll,select,epoll_wait' shows where."},
	{STATE_NETWORK, CAUSE_FLIGHT, "waited {time} for data on its way through the network",
	 "Check the way there: ss -ti shows round-trip times and retransmissions, ip -s link shows "
	 "drops."},
	{STATE_NETWORK, CAUSE_REMOTE, "waited {time} for the client, {who}",
	 "The client sends late or reads its answer slowly: ss -ti shows round-trip times and "
	 "what waits to be sent."},
	{STATE_NETWORK, CAUSE_PEER, "waited {time} for {who}, which was not recorded",
	 "Record the host of {name} at the same time to see why it took so long; ss -ti shows "
	 "whether the network is to blame."},
	{STATE_BACKLOG, CAUSE_REQUEST,
	 "waited {time} because {their} worker was busy with another request, {who}",
	 "Add workers, or take the long requests ({name}) to workers of their own."},
	{STATE_LOCK, CAUSE_UNRESOLVED,
	 "waited {time} for a lock whose holder could not be followed",
	 "Record again with a larger --buffer, and let the recording begin earlier."},
	{STATE_CHILD, CAUSE_UNRESOLVED,
	 "waited {time} for a child process that could not be followed",
	 "Record again and let the recording begin earlier."},
	{STATE_LOST, CAUSE_NONE, "spent {time} in moments of which records were lost",
	 "Record again with a larger --buffer, for instance --buffer 32M."},
};

/* A timer of somebody else: the request waited for who slept. */
static const struct wording holder_slept = {
	STATE_SLEEP, CAUSE_SELF,
	"waited {time} for a lock while its holder, {who}, slept on a timer",
	"Do not sleep with the lock held: perf trace -t {tid} -e '*sleep*,poll,select,epoll_wait' "
	"shows its holder's calls."};
static const struct wording child_slept = {
	STATE_SLEEP, CAUSE_SELF,
	"waited {time} for a process started on the way, {who}, which slept on a timer",
	"Look at {name} next: what does it wait for?  perf trace -a -e "
	"'*sleep*,poll,select,epoll_wait' shows its calls."};
static const struct wording other_slept = {
	STATE_SLEEP, CAUSE_SELF, "waited {time} for {who} to end its sleep on a timer",
	"Look at {name} next: it sleeps while others wait for it; perf trace -p {pid} -e "
	"'*sleep*,poll,select,epoll_wait' shows where."};

static const struct wording *find_wording(const struct finding *f)
{
	static const struct wording unknown = {
		STATE_UNKNOWN, CAUSE_NONE, "spent {time} on something that could not be explained",
		"'longpole doctor' tells what this machine cannot record."};
	bool others_sleep = f->state == STATE_SLEEP && f->cause == CAUSE_SELF &&
			    f->culprit.kind != CULPRIT_SELF;

	if (others_sleep)
		return via_last(f->via) == VIA_LOCK    ? &holder_slept
		       : via_last(f->via) == VIA_CHILD ? &child_slept
						       : &other_slept;
	for (size_t i = 0; i < sizeof(wordings) / sizeof(wordings[0]); i++)
		if (wordings[i].state == f->state &&
		    (wordings[i].cause == f->cause || wordings[i].cause == CAUSE_NONE))
			return &wordings[i];
	return &unknown;
}

static bool given(const char *s)
{
	return s && *s;
}

/* --- who */

void why_who(const struct culprit *c, struct str *ret)
{
	if (c->kind == CULPRIT_SELF || (c->kind == CULPRIT_UNKNOWN && !given(c->name)))
		return;
	if (c->kind == CULPRIT_CGROUP && given(c->container))
		str_addf(ret, "%s%scontainer %s", given(c->comm) ? c->comm : "",
			 given(c->comm) ? " in " : "", c->container);
	else if (c->kind == CULPRIT_CGROUP && given(c->cgroup) && given(c->comm))
		str_addf(ret, "%s (cgroup %s)", c->comm, c->cgroup);
	else if (c->kind == CULPRIT_CGROUP && given(c->cgroup))
		str_addf(ret, "cgroup %s", c->cgroup);
	else if (c->kernel && given(c->name))
		str_addf(ret, "kernel thread %s", c->name);
	else if (c->kind == CULPRIT_PROCESS && given(c->comm) && c->pid)
		str_addf(ret, "%s (pid %" PRIu32 ")", c->comm, c->pid);
	else if (c->kind == CULPRIT_THREAD && given(c->comm) && c->tid)
		str_addf(ret, "%s (tid %" PRIu32 ")", c->comm, c->tid);
	else
		str_add(ret, given(c->name)   ? c->name
			     : given(c->comm) ? c->comm
					      : "somebody unknown");
}

struct filling { /* what the words in braces stand for */
	const struct culprit *culprit;
	const char *time, *their;
};

static void add_cgroup(const struct culprit *c, struct str *ret)
{
	if (given(c->container))
		str_addf(ret, "container %s", c->container);
	else if (given(c->cgroup))
		str_addf(ret, "cgroup %s", c->cgroup);
	else
		why_who(c, ret);
}

static void add_id(uint32_t id, const char *otherwise, struct str *ret)
{
	if (id)
		str_addf(ret, "%" PRIu32, id);
	else
		str_add(ret, otherwise);
}

static void add_name(const struct culprit *c, struct str *ret)
{
	if (c->kind == CULPRIT_REQUEST || !given(c->comm))
		why_who(c, ret);
	else
		str_add(ret, c->comm);
}

static void add_word(const struct filling *f, const char *word, size_t len, struct str *ret)
{
	scoped(str_fini) struct str who = {0};

	if (!strncmp(word, "who", len)) {
		why_who(f->culprit, &who);
		str_add(ret, who.len ? str_get(&who) : "somebody unknown");
	} else if (!strncmp(word, "in who", len)) {
		why_who(f->culprit, &who);
		if (who.len)
			str_addf(ret, " in %s", str_get(&who));
	} else if (!strncmp(word, ", system", len)) {
		str_add(ret, f->culprit->kernel ? ", a kernel thread"
						: ", outside every container and unit");
	} else if (!strncmp(word, ", device,", len)) {
		why_who(f->culprit, &who);
		if (who.len && f->culprit->kind == CULPRIT_DEVICE)
			str_addf(ret, " (%s)", str_get(&who));
	} else if (!strncmp(word, "time", len))
		str_add(ret, f->time);
	else if (!strncmp(word, "their", len))
		str_add(ret, f->their);
	else if (!strncmp(word, "cgroup", len))
		add_cgroup(f->culprit, ret);
	else if (!strncmp(word, "pid", len))
		add_id(f->culprit->pid, "PID", ret);
	else if (!strncmp(word, "tid", len))
		add_id(f->culprit->tid ? f->culprit->tid : f->culprit->pid, "TID", ret);
	else
		add_name(f->culprit, ret);
}

static void fill(const struct filling *f, const char *text, struct str *ret)
{
	while (*text) {
		size_t plain = strcspn(text, "{"), len;

		str_add_bytes(ret, text, plain);
		text += plain;
		if (!*text)
			return;
		len = strcspn(++text, "}");
		add_word(f, text, len, ret);
		text += len + 1;
	}
}

/* --- the sentence */

/* Whoever is spoken of: of one's own doing, the process that did it. */
static struct culprit spoken_of(const struct finding *f)
{
	if (f->culprit.kind != CULPRIT_SELF || !given(f->victim_comm))
		return f->culprit;
	return (struct culprit){.kind = CULPRIT_PROCESS,
				.pid = f->victim_pid,
				.comm = f->victim_comm,
				.name = f->victim_comm,
				.request = -1};
}

static int64_t in_count(const struct finding *f)
{
	return (int64_t)llround(f->presence * (double)f->count);
}

/* Others may have become shorter, so one key can have more than all of the difference. */
static int share_pct(const struct finding *f)
{
	return f->share > 1 ? 100 : (int)lround(f->share * 100);
}

static void add_measure(const struct why_report *w, const struct finding *f, struct str *ret)
{
	if (w->subject != SUBJECT_REQUESTS)
		str_addf(ret, ": %d %% of the time.", share_pct(f));
	else if (f->basis_all)
		str_addf(ret, ": %d %% of the time, in %" PRId64 " of %" PRId64 " requests.",
			 share_pct(f), in_count(f), f->count);
	else
		str_addf(ret,
			 ": %d %% of the extra time, in %" PRId64 " of %" PRId64 " slow requests.",
			 share_pct(f), in_count(f), f->count);
}

/* The words tell of the lock, the child or the other service already. */
static bool is_said(const struct finding *f)
{
	const struct wording *w = find_wording(f);
	enum via_word way = f->cause == CAUSE_LOCK || w == &holder_slept   ? VIA_LOCK
			    : f->cause == CAUSE_CHILD || w == &child_slept ? VIA_CHILD
			    : f->cause == CAUSE_CALLEE			   ? VIA_CALLEE
									   : VIA_END;

	return via_at(f->via, 0) == way && via_at(f->via, 1) == VIA_END;
}

/* Part of the sentence: two findings may differ in this only. */
static void add_way(const struct finding *f, struct str *ret)
{
	static const char *const way[VIA_COUNT] = {[VIA_LOCK] = "a lock",
						   [VIA_CHILD] = "a child process",
						   [VIA_PIPE] = "a pipe",
						   [VIA_SOCKET] = "a local socket",
						   [VIA_SIGNAL] = "a signal",
						   [VIA_TIMER] = "a timer",
						   [VIA_QUEUE] = "work handed over",
						   [VIA_CALLEE] = "a call to another service"};

	if (via_at(f->via, 0) == VIA_END || is_said(f))
		return;
	str_add(ret, ", reached through ");
	for (int i = 0; via_at(f->via, i) != VIA_END; i++)
		str_addf(ret, "%s%s", i ? ", then " : "", way[via_at(f->via, i)]);
}

void why_sentence(const struct why_report *w, const struct finding *f, struct str *ret)
{
	char ns[DURATION_TEXT], time[DURATION_TEXT + 16];
	const struct culprit who = spoken_of(f);
	const struct filling words = {.culprit = &who,
				      .time = time,
				      .their = w->subject == SUBJECT_REQUESTS ? "their" : "its"};

	snprintf(time, sizeof(time), "%s%s", duration_print(f->extra_ns, ns),
		 f->basis_all ? "" : " more");
	if (w->subject != SUBJECT_REQUESTS)
		str_addf(ret, "%s ", f->group->name);
	else
		str_addf(ret, "%s: %s ", f->group->name,
			 f->basis_all ? "a request on average" : "slow requests");
	fill(&words, find_wording(f)->phrase, ret);
	add_way(f, ret);
	add_measure(w, f, ret);
}

void why_advice(const struct finding *f, struct str *ret)
{
	const struct culprit who = spoken_of(f);
	const struct filling words = {.culprit = &who, .time = "", .their = "their"};

	fill(&words, find_wording(f)->advice, ret);
}

/* --- evidence */

void why_clock(const struct why_report *w, int64_t at_ns, struct str *ret)
{
	int64_t unix_ns = w->wall_ns + (at_ns - w->start_ns);
	time_t seconds = (time_t)(unix_ns / SECOND_NS);
	struct tm tm;

	if (!localtime_r(&seconds, &tm))
		return;
	str_addf(ret, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec,
		 (int)(unix_ns % SECOND_NS / 1000000));
}

static bool say_means(const struct why_report *w, const struct finding *f, struct str *ret)
{
	char a[DURATION_TEXT], b[DURATION_TEXT], c[DURATION_TEXT], d[DURATION_TEXT];

	if (w->subject != SUBJECT_REQUESTS)
		str_addf(ret, "%s of %s", duration_print(f->mean_slow_ns, a),
			 duration_print(f->group->mean_ns, b));
	else if (f->basis_all)
		str_addf(ret, "mean: %s of %s a request", duration_print(f->mean_slow_ns, a),
			 duration_print(f->group->mean_ns, b));
	else
		str_addf(ret, "mean: %s of %s in a slow request, %s of %s in a typical one",
			 duration_print(f->mean_slow_ns, a),
			 duration_print(f->group->mean_slow_ns, b),
			 duration_print(f->mean_typical_ns, c),
			 duration_print(f->group->mean_typical_ns, d));
	return true;
}

static bool say_example(const struct why_report *w, const struct finding *f, struct str *ret)
{
	const char *syscall = syscall_name(f->example_syscall);
	char ns[DURATION_TEXT], at[DURATION_TEXT];

	if (!f->example_ns)
		return false;
	if (w->subject != SUBJECT_REQUESTS) {
		if (syscall)
			str_addf(ret, "the longest piece in the system call %s", syscall);
		return syscall != NULL;
	}
	str_addf(ret, "most: %s in the request at +%s (", duration_print(f->example_ns, ns),
		 duration_print(f->example_start_ns - w->start_ns, at));
	why_clock(w, f->example_start_ns, ret);
	str_add(ret, ")");
	if (syscall && f->state != STATE_RUNNING)
		str_addf(ret, ", in the system call %s", syscall);
	if (f->example_tid && f->culprit.kind != CULPRIT_SELF)
		str_addf(ret, "; %s was tid %" PRIu32,
			 given(f->culprit.comm) ? f->culprit.comm : "the culprit", f->example_tid);
	return true;
}

static bool say_basis(const struct why_report *w, const struct finding *f, struct str *ret)
{
	if (w->subject != SUBJECT_REQUESTS || !f->basis_all)
		return false;
	if (f->group->count < 20)
		str_add(ret, "too few requests to tell slow from typical (20 are needed): all are "
			     "counted");
	else
		str_add(ret, "slow and typical requests hardly differ: all are counted");
	return true;
}

static bool say_guess(const struct why_report *w, const struct finding *f, struct str *ret)
{
	char ns[DURATION_TEXT];

	(void)w;
	if (f->state == STATE_UNKNOWN || f->state == STATE_LOST ||
	    (double)f->certain_ns >= 0.9 * (double)f->extra_ns)
		return false;
	str_addf(ret, "only %s of it is certain; the rest is the likeliest explanation",
		 duration_print(f->certain_ns, ns));
	return true;
}

bool why_evidence(const struct why_report *w, const struct finding *f, int i, struct str *ret)
{
	static bool (*const say[])(const struct why_report *, const struct finding *,
				   struct str *) = {say_means, say_example, say_basis, say_guess};
	int said = 0;

	for (size_t k = 0; k < sizeof(say) / sizeof(say[0]); k++) {
		str_clear(ret);
		if (say[k](w, f, ret) && said++ == i)
			return true;
	}
	return false;
}
