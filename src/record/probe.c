/* SPDX-License-Identifier: MIT */
#include "record/record.h"

int record_probe(struct record_check *ret, int max)
{
	(void)ret;
	(void)max;
	return 0;
}
