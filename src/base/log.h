/* SPDX-License-Identifier: MIT
 *
 * log.h - messages for people, all on stderr: "longpole: text".  Colours and progress only on
 * a terminal, never with NO_COLOR.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* With -v only. */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(bool on);

/* True if f is a terminal and NO_COLOR is not set. */
bool log_colour(FILE *f);

/* One line on a terminal, rewritten at most ten times a second; nothing elsewhere. */
struct progress {
	const char *what;
	int64_t last_ns;
	bool shown;
};
void progress_show(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Removes the line. */
void progress_done(struct progress *p);

#endif
