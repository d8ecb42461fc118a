/* SPDX-License-Identifier: MIT
 *
 * duration.h - the one place that reads and prints times: 250us, 10ms, 2s, 1m30s is not one;
 * a bare number is seconds.
 */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H
#include <stdint.h>

struct err;
enum { DURATION_TEXT = 24 };

/* Nanoseconds, never negative.  Units ns us ms s m h; decimals allowed. */
int duration_parse(const char *text, int64_t *ret_ns, struct err *err);
/* Three significant digits with a unit: "83.1 us", "4.20 ms", "12.0 s".  Returns buf. */
const char *duration_print(int64_t ns, char buf[DURATION_TEXT]);

#endif
