/* SPDX-License-Identifier: MIT
 *
 * What works here.  Nothing is guessed from version numbers: the program is loaded and attached
 * as for a recording, and the kernel's type information is asked for the rest.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/scoped.h"
#include "bpf/recorder.h"
#include "record/host.h"
#include "record/load.h"
#include "record/record.h"

#include <bpf/btf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>

enum { WORKS, LIMITED, MISSING };

struct probe {
	struct record_check *checks;
	int n, max;
	struct btf *btf;
};

/* One line; format and arguments make its detail. */
static void __attribute__((format(printf, 5, 6)))
add(struct probe *p, const char *name, int state, const char *advice, const char *fmt, ...)
{
	struct record_check *c;
	va_list ap;

	if (p->n == p->max)
		return;
	c = &p->checks[p->n++];
	*c = (struct record_check){.name = name, .state = state};
	snprintf(c->advice, sizeof(c->advice), "%s", state == WORKS ? "" : advice);
	va_start(ap, fmt);
	vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
}

static bool has_right(cap_value_t right)
{
	cap_flag_value_t has = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	if (caps)
		cap_get_flag(caps, right, CAP_EFFECTIVE, &has);
	cap_free(caps);
	return has == CAP_SET;
}

static void probe_rights(struct probe *p)
{
	/* before Linux 5.8 the first was the only way */
	bool all = has_right(CAP_SYS_ADMIN) || (has_right(CAP_BPF) && has_right(CAP_PERFMON));

	add(p, "permission", all ? WORKS : MISSING,
	    "run it as root, or with the capabilities bpf, perfmon, sys_resource, dac_read_search",
	    all ? "may load BPF programs" : "may not load BPF programs");
}

static void probe_btf(struct probe *p)
{
	struct err err = {0};

	if (kernel_btf(&p->btf, &err) < 0)
		add(p, "type information", MISSING,
		    "a kernel built with CONFIG_DEBUG_INFO_BTF (all current distributions)", "%s",
		    "/sys/kernel/btf/vmlinux cannot be read");
	else
		add(p, "type information", WORKS, "", "/sys/kernel/btf/vmlinux");
}

/* --- the program itself */

static void probe_interrupts(struct probe *p, int mode)
{
	static const char *const how[] = {
		"counted: some wakeups may be blamed on the thread they interrupted",
		"by preempt_count (per CPU), tried on known wakes",
		"by preempt_count (thread_info), tried on known wakes",
	};

	add(p, "interrupts", mode == IRQ_BY_COUNT ? LIMITED : WORKS,
	    "nothing: releases by timers and devices are then less certain", "%s", how[mode]);
}

static void probe_program(struct probe *p)
{
	struct loaded l;
	struct err err = {0};

	if (loaded_open(&l, 64 * 1024, &err) < 0) {
		add(p, "recorder", MISSING, "longpole doctor -v shows what the kernel said", "%s",
		    err.text);
		return;
	}
	if (loaded_attach(&l, &err) < 0) {
		add(p, "recorder", MISSING, "", "%s", err.text);
	} else {
		add(p, "recorder", WORKS, "", "its programs load and attach");
		probe_interrupts(p, l.irq_mode);
	}
	loaded_close(&l);
}

/* --- what can be seen */

static void probe_tracepoints(struct probe *p, const char *name, int missing_is,
			      const char *without, const char *const *tracepoints)
{
	for (; *tracepoints; tracepoints++)
		if (!kernel_has_tracepoint(p->btf, *tracepoints)) {
			add(p, name, missing_is, "a newer kernel", "no tracepoint %s: %s",
			    *tracepoints, without);
			return;
		}
	add(p, name, WORKS, "", "seen");
}

static bool sockets_are_hooked(const struct btf *btf)
{
	return !kernel_is_without("sock-tracepoints") &&
	       kernel_has_tracepoint(btf, "sock_recv_length") &&
	       kernel_has_tracepoint(btf, "sock_send_length");
}

static void probe_requests(struct probe *p)
{
	bool hooked = sockets_are_hooked(p->btf);
	const char *arrival = hooked ? "sk_data_ready" : "tcp_probe";

	if (hooked)
		add(p, "requests", WORKS, "", "seen");
	else if (kernel_has_tracepoint(p->btf, "sys_exit"))
		add(p, "requests", LIMITED, "Linux 6.3 or newer has hooks on sockets alone",
		    "seen where system calls end (dearer)");
	else
		add(p, "requests", LIMITED, "a newer kernel",
		    "no tracepoint sys_exit: requests cannot be seen");
	if (kernel_has_tracepoint(p->btf, arrival))
		add(p, "arrival of data", WORKS, "", "seen%s", hooked ? "" : " for TCP");
	else
		add(p, "arrival of data", LIMITED, "a newer kernel",
		    "no tracepoint %s: a request begins when it is read, not when it arrives",
		    arrival);
}

static void probe_sight(struct probe *p)
{
	probe_tracepoints(p, "scheduling", MISSING, "nothing can be recorded",
			  (const char *const[]){"sched_switch", "sched_waking", "sched_wakeup",
						"sched_migrate_task", NULL});
	probe_requests(p);
	probe_tracepoints(p, "connections", LIMITED, "client and server are told by ports",
			  (const char *const[]){"inet_sock_set_state", NULL});
	probe_tracepoints(p, "disk", LIMITED, "block requests cannot be seen",
			  (const char *const[]){"block_rq_issue", "block_rq_complete", NULL});
	probe_tracepoints(p, "disk submission", LIMITED,
			  "a request begins when it is inserted or issued",
			  (const char *const[]){"block_io_start", NULL});
	probe_tracepoints(p, "cgroup moves", LIMITED,
			  "a thread moved during the recording keeps its old cgroup",
			  (const char *const[]){"cgroup_attach_task", "cgroup_mkdir", NULL});
}

static void probe_quota(struct probe *p)
{
	bool flag = kernel_has_field(p->btf, "task_struct", "throttled");
	bool clock = kernel_has_field(p->btf, "cfs_rq", "throttled_clock_self_time");

	if (flag && clock)
		add(p, "CPU quota", WORKS, "", "seen per thread");
	else if (clock)
		add(p, "CPU quota", WORKS, "", "seen per run queue");
	else
		add(p, "CPU quota", LIMITED, "a newer kernel, or compare with cpu.stat",
		    "this kernel does not say how long a run queue was throttled");
}

/* --- the machine */

static void probe_cgroups(struct probe *p)
{
	bool v2 = false, v1_cpu = false;
	struct host h;

	host_init(&h);
	for (size_t i = 0; i < h.mounts.n; i++) {
		v2 |= !h.mounts.at[i].hierarchy;
		v1_cpu |= cgroup_has_controller(&h.mounts.at[i], "cpu");
	}
	if (!v2 && !v1_cpu)
		add(p, "cgroups", LIMITED, "mount the cgroup file system where longpole runs",
		    "none mounted here: cgroups have numbers instead of names");
	else
		add(p, "cgroups", WORKS, "", "%s",
		    v2 && v1_cpu ? "v2, and v1 for the cpu controller"
		    : v2	 ? "v2"
				 : "v1");
	host_fini(&h);
}

/* The first word of a small file, "" if there is none. */
static void first_word(const char *path, char *buf, size_t len)
{
	scoped(free) char *text = NULL;

	buf[0] = 0;
	if (io_read_file(path, 4096, &text, NULL, NULL) < 0)
		return;
	text[strcspn(text, " \n")] = 0;
	snprintf(buf, len, "%s", text);
}

static void probe_clock(struct probe *p)
{
	char name[32];
	bool fast;

	first_word("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
		   sizeof(name));
	fast = strcmp(name, "hpet") && strcmp(name, "acpi_pm") && strcmp(name, "refined-jiffies");
	add(p, "clock", fast ? WORKS : LIMITED,
	    "each record reads the clock: choose another clock source, if there is one", "%s%s",
	    name[0] ? name : "unknown", fast ? "" : " is slow to read: recording costs more");
}

static void probe_jit(struct probe *p)
{
	char word[8];

	first_word("/proc/sys/net/core/bpf_jit_enable", word, sizeof(word));
	add(p, "BPF compiler", strcmp(word, "0") ? WORKS : LIMITED,
	    "sysctl net.core.bpf_jit_enable=1",
	    strcmp(word, "0") ? "programs run as machine code"
			      : "programs are interpreted: recording costs more");
}

static void probe_lockdown(struct probe *p)
{
	scoped(free) char *text = NULL;

	if (io_read_file("/sys/kernel/security/lockdown", 256, &text, NULL, NULL) < 0)
		return;
	if (strstr(text, "[confidentiality]"))
		add(p, "lockdown", MISSING, "boot without lockdown=confidentiality",
		    "the kernel lets no BPF program read its memory");
}

int record_probe(struct record_check *ret, int max)
{
	struct probe p = {.checks = ret, .max = max};

	probe_rights(&p);
	probe_btf(&p);
	probe_lockdown(&p);
	if (p.btf) {
		probe_program(&p);
		probe_sight(&p);
		probe_quota(&p);
	}
	probe_cgroups(&p);
	probe_clock(&p);
	probe_jit(&p);
	btf__free(p.btf);
	return p.n;
}
