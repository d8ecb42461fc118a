/* SPDX-License-Identifier: MIT */
#include "record/load.h"

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/scoped.h"
#include "bpf/recorder.h"
#include "record/host.h"
#include "record/ring.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/recorder.skel.h"

enum { SOCKETS_BY_ADDRESS = 65536 };
enum { BUFFER_DEFAULT = 8 << 20, BUFFER_DEFAULT_MIN = 1 << 20, BUFFERS_DEFAULT_MAX = 512 << 20 };

/* In the order of attaching: what only leaves stamps comes before what uses them. */
static const struct part {
	const char *program;
	const char *tracepoint;
	enum { NEEDED, WANTED, BLOCKS, BY_SOCKETS, BY_CALLS } need; /* loaded.by_calls */
} parts[] = {
	{"on_irq", "irq_handler_entry", WANTED},
	{"on_irq_exit", "irq_handler_exit", WANTED},
	{"on_local_timer", "local_timer_entry", WANTED},
	{"on_local_timer_exit", "local_timer_exit", WANTED},
	{"on_hrtimer", "hrtimer_expire_entry", WANTED},
	{"on_hrtimer_exit", "hrtimer_expire_exit", WANTED},
	{"on_softirq", "softirq_entry", WANTED},
	{"on_softirq_exit", "softirq_exit", WANTED},
	{"on_waking", "sched_waking", NEEDED},
	{"on_wakeup", "sched_wakeup", NEEDED},
	{"on_wakeup_new", "sched_wakeup_new", NEEDED},
	{"on_migrate", "sched_migrate_task", NEEDED},
	{"on_fork", "sched_process_fork", NEEDED},
	{"on_exec", "sched_process_exec", NEEDED},
	{"on_exit", "sched_process_exit", NEEDED},
	{"on_rename", "task_rename", WANTED},
	{"on_cgroup_attach", "cgroup_attach_task", WANTED},
	{"on_cgroup_mkdir", "cgroup_mkdir", WANTED},
	{"on_cgroup_rmdir", "cgroup_rmdir", WANTED},
	{"on_data_ready", "sk_data_ready", BY_SOCKETS},
	{"on_tcp_probe", "tcp_probe", BY_CALLS},
	{"on_tcp_destroy", "tcp_destroy_sock", BY_CALLS},
	{"on_sock_state", "inet_sock_set_state", WANTED},
	{"on_sock_recv", "sock_recv_length", BY_SOCKETS},
	{"on_sock_send", "sock_send_length", BY_SOCKETS},
	{"on_sys_exit", "sys_exit", BY_CALLS},
	{"on_block_start", "block_io_start", WANTED},
	{"on_block_insert", "block_rq_insert", WANTED},
	{"on_block_issue", "block_rq_issue", BLOCKS},
	{"on_block_complete", "block_rq_complete", BLOCKS},
	{"on_switch", "sched_switch", NEEDED},
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]), PARTS_WAKING = 9 };
_Static_assert((int)PARTS <= (int)LOADED_LINKS, "a link for each program");

static struct bpf_program *program(const struct loaded *l, const char *name)
{
	return bpf_object__find_program_by_name(l->skel->obj, name);
}

static bool wanted(const struct loaded *l, const struct part *p, const struct btf *btf)
{
	if (p->need == (l->by_calls ? BY_SOCKETS : BY_CALLS))
		return false;
	if (!strncmp(p->program, "on_local_timer", 14) && kernel_is_without("local-timer"))
		return false;
	/* It walks the threads of a process with bpf_loop. */
	if (!strcmp(p->program, "on_cgroup_attach") &&
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) == 0)
		return false;
	return kernel_has_tracepoint(btf, p->tracepoint);
}

static int choose_programs(struct loaded *l, const struct btf *btf, struct err *err)
{
	l->by_calls = kernel_is_without("sock-tracepoints") ||
		      !kernel_has_tracepoint(btf, "sock_recv_length") ||
		      !kernel_has_tracepoint(btf, "sock_send_length");
	l->no_requests = l->by_calls && !kernel_has_tracepoint(btf, "sys_exit");
	for (int i = 0; i < PARTS; i++) {
		const struct part *p = &parts[i];
		bool has = wanted(l, p, btf);
		struct bpf_program *prog = program(l, p->program);

		if (!has && p->need == NEEDED)
			return err_set(err, -ENOTSUP, "this kernel has no tracepoint %s",
				       p->tracepoint);
		l->no_blocks |= !has && p->need == BLOCKS;
		if (prog)
			bpf_program__set_autoload(prog, has);
	}
	return 0;
}

static void set_knobs(struct loaded *l, const struct btf *btf)
{
	/* const only for the program: it is written until it is loaded */
	calls_fill((unsigned char *)(uintptr_t)l->skel->rodata->cfg_call);
	l->skel->rodata->cfg_preempt_offset =
		kernel_percpu_distance(btf, "__preempt_count", "runqueues");
	if (kernel_has_field(btf, "kvm_steal_time", "steal") && !kernel_is_without("steal"))
		l->skel->rodata->cfg_steal_offset =
			kernel_percpu_distance(btf, "steal_time", "runqueues");
	l->skel->rodata->cfg_switch_has_state = kernel_tracepoint_params(btf, "sched_switch") >= 4;
	l->skel->rodata->cfg_by_calls = l->by_calls;
	l->by_hrtimer = !kernel_has_tracepoint(btf, "local_timer_entry");
	if (l->by_calls)
		bpf_map__set_max_entries(l->skel->maps.by_address, SOCKETS_BY_ADDRESS);
	l->skel->rodata->cfg_has_cast =
		!kernel_is_without("cast") &&
		btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	bpf_map__set_max_entries(l->skel->maps.rings, (unsigned)l->cpus);
}

static int make_ring(struct loaded *l, int cpu, struct err *err)
{
	scoped(close) int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "lp_ring", 0, 0,
					      (unsigned)l->buffer_bytes, NULL);
	int rc;

	if (fd < 0)
		return err_set(err, -errno, "no ring buffer of %zu bytes for CPU %d: %s",
			       l->buffer_bytes, cpu, strerror(errno));
	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.rings), &cpu, &fd, BPF_ANY) < 0)
		return err_set(err, -errno, "cannot place the ring buffer of CPU %d: %s", cpu,
			       strerror(errno));
	rc = ring_open(fd, l->buffer_bytes, &l->rings[cpu]);
	return rc < 0 ? err_set(err, rc, "cannot map the ring buffer of CPU %d: %s", cpu,
				strerror(-rc))
		      : 0;
}

static int make_rings(struct loaded *l, struct err *err)
{
	int rc = 0;

	for (int cpu = 0; cpu < l->cpus && !rc; cpu++)
		rc = make_ring(l, cpu, err);
	return rc;
}

/* Many CPUs get smaller ones. */
static size_t default_buffer(int cpus)
{
	size_t bytes = BUFFER_DEFAULT;

	while (bytes > BUFFER_DEFAULT_MIN && bytes * (size_t)cpus > BUFFERS_DEFAULT_MAX)
		bytes /= 2;
	return bytes;
}

static size_t round_buffer(size_t bytes, int cpus)
{
	size_t r = (size_t)sysconf(_SC_PAGESIZE);

	if (!bytes)
		bytes = default_buffer(cpus);
	while (r < bytes && r < (size_t)1 << 30)
		r *= 2;
	return r;
}

static int explain(int rc, struct err *err)
{
	/* the verifier's no is EACCES as well */
	if (rc == -EPERM || (rc == -EACCES && geteuid()))
		return err_set(err, rc,
			       "not permitted to load BPF programs: run it as root, or with the "
			       "capabilities bpf, perfmon, sys_resource and dac_read_search");
	return err_set(err, rc, "the kernel refused the BPF programs: %s (-v tells more)",
		       strerror(-rc));
}

static int load(struct loaded *l, const struct btf *btf, struct err *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = getenv("LONGPOLE_BTF"));
	int rc;

	l->skel = recorder_bpf__open_opts(&opts);
	if (!l->skel)
		return err_set(err, -errno, "cannot open the BPF programs: %s", strerror(errno));
	rc = choose_programs(l, btf, err);
	if (rc < 0)
		return rc;
	set_knobs(l, btf);
	rc = recorder_bpf__load(l->skel);
	return rc < 0 ? explain(rc, err) : make_rings(l, err);
}

int loaded_open(struct loaded *l, size_t buffer_bytes, struct err *err)
{
	struct btf *btf;
	int rc;

	*l = (struct loaded){0};
	io_many_files(); /* rings and maps: more than the usual 1024 on many CPUs */
	rc = kernel_btf(&btf, err);
	if (rc < 0)
		return rc;
	l->cpus = libbpf_num_possible_cpus();
	l->buffer_bytes = round_buffer(buffer_bytes, l->cpus);
	l->rings = calloc((size_t)l->cpus, sizeof(*l->rings));
	rc = l->rings ? load(l, btf, err) : err_set(err, -ENOMEM, "out of memory");
	btf__free(btf);
	if (rc < 0)
		loaded_close(l);
	return rc;
}

static int attach(struct loaded *l, int from, int to, struct err *err)
{
	for (int i = from; i < to; i++) {
		struct bpf_program *prog = program(l, parts[i].program);
		struct bpf_link **link;

		if (!prog || !bpf_program__autoload(prog))
			continue;
		if (!strcmp(parts[i].program, "on_softirq_exit") && l->irq_mode != IRQ_BY_COUNT)
			continue;
		if (!strncmp(parts[i].program, "on_hrtimer", 10) && !l->by_hrtimer)
			continue;
		link = &l->links[i];
		if (*link)
			continue;
		*link = bpf_program__attach(prog);
		if (!*link)
			return err_set(err, -errno, "cannot attach to %s: %s", parts[i].tracepoint,
				       strerror(errno));
	}
	return 0;
}

static int attach_waking(struct loaded *l, struct err *err)
{
	int rc;

	l->irq_mode = IRQ_BY_PREEMPT;
	rc = attach(l, 0, PARTS_WAKING, err);
	if (rc >= 0)
		l->irq_mode = irq_mode_choose(l->skel);
	return rc;
}

static int ignore(const void *record, size_t bytes, void *arg)
{
	(void)record, (void)bytes, (void)arg;
	return 0;
}

/* The iterator makes the threads' storage: later it would be in the middle of the scheduler, where
 * older kernels had better not allocate.  On some machines (Hyper-V) the timer has an interrupt
 * without a hook; then it is told by what expires. */
int loaded_attach(struct loaded *l, struct err *err)
{
	int rc = loaded_iterate(l, ITER_THREADS, ignore, NULL, err);

	if (rc >= 0)
		rc = attach_waking(l, err);
	if (rc >= 0 && l->irq_mode == IRQ_BY_COUNT && !l->by_hrtimer) {
		l->by_hrtimer = true;
		rc = attach_waking(l, err);
	}
	if (rc >= 0)
		rc = attach(l, 0, PARTS, err);
	l->skel->bss->attached_ns = (uint64_t)now_ns();
	return rc;
}

void loaded_detach(struct loaded *l)
{
	for (int i = PARTS - 1; i >= 0; i--) {
		bpf_link__destroy(l->links[i]);
		l->links[i] = NULL;
	}
}

void loaded_close(struct loaded *l)
{
	loaded_detach(l);
	for (int cpu = 0; cpu < l->cpus && l->rings; cpu++)
		ring_close(l->rings[cpu]);
	free(l->rings);
	recorder_bpf__destroy(l->skel);
	*l = (struct loaded){0};
}

/* --- iterators */

static struct bpf_program *iterator(const struct loaded *l, enum loaded_iter which)
{
	switch (which) {
	case ITER_THREADS:
		return l->skel->progs.on_each_thread;
	case ITER_SOCKETS:
		return l->skel->progs.on_each_socket;
	case ITER_OPEN:
		return l->skel->progs.on_each_open;
	}
	return NULL;
}

/* Records that are whole go to fn; the beginning of one stays in buf.  Returns what stays. */
static int64_t give(const unsigned char *buf, size_t have, record_fn *fn, void *arg)
{
	size_t at = 0;

	while (have - at >= sizeof(struct rec_head)) {
		const struct rec_head *head = (const void *)(buf + at);
		int rc;

		if (head->size < sizeof(*head) || head->size > REC_MAX_BYTES)
			return -EBADMSG;
		if (head->size > have - at)
			break;
		rc = fn(head, head->size, arg);
		if (rc < 0)
			return rc;
		at += head->size;
	}
	return (int64_t)at;
}

static int read_records(int fd, record_fn *fn, void *arg)
{
	_Alignas(8) unsigned char buf[16 * 1024];
	size_t have = 0;

	for (;;) {
		ssize_t n = read(fd, buf + have, sizeof(buf) - have);
		int64_t used;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += (size_t)n;
		used = give(buf, have, fn, arg);
		if (used < 0)
			return (int)used;
		have -= (size_t)used;
		memmove(buf, buf + used, have);
	}
}

int loaded_iterate(struct loaded *l, enum loaded_iter which, record_fn *fn, void *arg,
		   struct err *err)
{
	struct bpf_program *prog = iterator(l, which);
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	int fd, rc;

	if (!link)
		return err_set(err, -errno, "cannot list %s: %s", bpf_program__name(prog),
			       strerror(errno));
	fd = bpf_iter_create(bpf_link__fd(link));
	rc = fd < 0 ? -errno : read_records(fd, fn, arg);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return rc < 0 ? err_set(err, rc, "listing with %s: %s", bpf_program__name(prog),
				strerror(-rc))
		      : 0;
}

int loaded_each_block(struct loaded *l, void (*fn)(const struct recorder_block *b, void *arg),
		      void *arg)
{
	int map = bpf_map__fd(l->skel->maps.blocks);
	uint64_t key, *last = NULL;
	struct recorder_block b;

	while (!bpf_map_get_next_key(map, last, &key)) {
		if (!bpf_map_lookup_elem(map, &key, &b) && b.id)
			fn(&b, arg);
		last = &key;
	}
	return 0;
}

/* --- counters */

typedef int cpu_fn(const struct recorder_cpu *cs, int cpu, void *arg);

static int each_cpu(struct loaded *l, cpu_fn *fn, void *arg)
{
	size_t size = (bpf_map__value_size(l->skel->maps.cpus) + 7) / 8 * 8;
	scoped(free) char *values = calloc((size_t)l->cpus, size);
	uint32_t zero = 0;
	int rc = 0;

	if (!values)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(l->skel->maps.cpus), &zero, values))
		return -errno;
	for (int cpu = 0; cpu < l->cpus && rc >= 0; cpu++)
		rc = fn((const void *)(values + size * (size_t)cpu), cpu, arg);
	return rc;
}

struct lost_to {
	int (*fn)(const struct rec_head *r, void *arg);
	void *arg;
};

static int give_lost(const struct recorder_cpu *cs, int cpu, void *arg)
{
	struct lost_to *to = arg;
	struct rec_lost r = {
		.head = {(uint64_t)now_ns(), REC_ID_LOST, (uint16_t)cpu, sizeof(r)},
		.since = cs->lost_since,
		.count = cs->lost_count,
		.reason = REC_LOST_RING_FULL,
	};

	return cs->lost_count ? to->fn(&r.head, to->arg) : 0;
}

int loaded_each_lost(struct loaded *l, int (*fn)(const struct rec_head *r, void *arg), void *arg)
{
	struct lost_to to = {fn, arg};

	return each_cpu(l, give_lost, &to);
}

static int add_count(const struct recorder_cpu *cs, int cpu, void *arg)
{
	struct recorder_count *sum = arg;

	(void)cpu;
	sum->records += cs->count.records;
	for (int i = 0; i < REC_LOST_REASONS; i++)
		sum->lost[i] += cs->count.lost[i];
	return 0;
}

static bool program_info(const struct loaded *l, int i, struct bpf_prog_info *ret)
{
	struct bpf_program *prog = program(l, parts[i].program);
	unsigned len = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return prog && bpf_program__fd(prog) >= 0 &&
	       !bpf_obj_get_info_by_fd(bpf_program__fd(prog), ret, &len);
}

int loaded_count(struct loaded *l, struct recorder_count *ret)
{
	struct bpf_prog_info info;
	int rc;

	*ret = (struct recorder_count){0};
	rc = each_cpu(l, add_count, ret);
	for (int i = 0; i < PARTS; i++)
		if (program_info(l, i, &info))
			ret->lost[REC_LOST_OTHER] += info.recursion_misses;
	return rc;
}

int64_t loaded_run_ns(struct loaded *l)
{
	struct bpf_prog_info info;
	int64_t sum = 0;

	for (int i = 0; i < PARTS; i++)
		if (program_info(l, i, &info))
			sum += (int64_t)info.run_time_ns;
	return sum;
}

void loaded_log_runs(struct loaded *l)
{
	struct bpf_prog_info info;

	for (int i = 0; i < PARTS; i++)
		if (program_info(l, i, &info) && info.run_cnt)
			log_debug("%-20s %9llu runs, %5.0f ns each", parts[i].program,
				  (unsigned long long)info.run_cnt,
				  (double)info.run_time_ns / (double)info.run_cnt);
}
