/* SPDX-License-Identifier: MIT
 *
 * cost.h - what the recorder itself uses: its own CPU time, always; that of its programs, from
 * one short sample, for measuring it costs more than it is worth all the time.
 */
#ifndef RECORD_COST_H
#define RECORD_COST_H
#include <stdbool.h>
#include <stdint.h>

struct loaded;

struct cost {
	int64_t self_ns; /* CPU time at the beginning */
	int stats_fd;	 /* while sampling; -1 */
	bool sampled;
	int64_t from_ns, run_from_ns, sample_ns, run_ns;
};

void cost_begin(struct cost *c);
/* Both may be called again and again; end is true once, when the sample is there. */
void cost_sample_begin(struct cost *c, struct loaded *l);
bool cost_sample_end(struct cost *c, struct loaded *l);
/* Percent of one CPU. */
double cost_pct(const struct cost *c, int64_t elapsed_ns);

/* privilege.c: gives up all capabilities but those still needed. */
void privilege_drop(void);
#endif
