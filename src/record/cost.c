/* SPDX-License-Identifier: MIT */
#include "record/cost.h"

#include "record/host.h"
#include "record/load.h"

#include <bpf/bpf.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t timeval_ns(struct timeval t)
{
	return t.tv_sec * INT64_C(1000000000) + t.tv_usec * INT64_C(1000);
}

static int64_t self_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return timeval_ns(u.ru_utime) + timeval_ns(u.ru_stime);
}

void cost_begin(struct cost *c)
{
	*c = (struct cost){.self_ns = self_ns(), .stats_fd = -1};
}

void cost_sample_begin(struct cost *c, struct loaded *l)
{
	if (c->stats_fd >= 0 || c->sampled)
		return;
	c->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	c->run_from_ns = loaded_run_ns(l);
	c->from_ns = now_ns();
	c->sampled = c->stats_fd < 0;
}

bool cost_sample_end(struct cost *c, struct loaded *l)
{
	if (c->stats_fd < 0)
		return false;
	c->sample_ns = now_ns() - c->from_ns;
	c->run_ns = loaded_run_ns(l) - c->run_from_ns;
	loaded_log_runs(l);
	close(c->stats_fd);
	c->stats_fd = -1;
	c->sampled = true;
	return true;
}

double cost_pct(const struct cost *c, int64_t elapsed_ns)
{
	double pct;

	if (elapsed_ns <= 0)
		return -1;
	pct = 100.0 * (double)(self_ns() - c->self_ns) / (double)elapsed_ns;
	if (c->sample_ns > 0)
		pct += 100.0 * (double)c->run_ns / (double)c->sample_ns;
	return pct;
}
