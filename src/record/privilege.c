/* SPDX-License-Identifier: MIT
 *
 * Once everything is loaded and attached, what is left to do is reading maps and running an
 * iterator (bpf, perfmon), and writing below a folder that another user may own (dac_*).
 */
#include "base/log.h"
#include "record/cost.h"

#include <errno.h>
#include <string.h>
#include <sys/capability.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF	    39
#endif

void privilege_drop(void)
{
	static const cap_value_t keep[] = {CAP_BPF, CAP_PERFMON, CAP_DAC_OVERRIDE,
					   CAP_DAC_READ_SEARCH};
	cap_t now = cap_get_proc(), then = cap_init();

	for (unsigned i = 0; now && then && i < sizeof(keep) / sizeof(keep[0]); i++) {
		cap_flag_value_t has = CAP_CLEAR;

		if (cap_get_flag(now, keep[i], CAP_PERMITTED, &has) || has != CAP_SET)
			continue;
		cap_set_flag(then, CAP_PERMITTED, 1, &keep[i], CAP_SET);
		cap_set_flag(then, CAP_EFFECTIVE, 1, &keep[i], CAP_SET);
	}
	if (!now || !then || cap_set_proc(then) < 0)
		log_debug("capabilities were not given up: %s", strerror(errno));
	cap_free(now);
	cap_free(then);
}
