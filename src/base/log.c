/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* vasprintf */
#include "base/log.h"

#include "base/plain.h"
#include "base/scoped.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_EVERY_NS = 100000000 };

static bool verbose;
static bool line_open; /* a progress line stands on the terminal */

void log_verbose(bool on)
{
	verbose = on;
}

bool log_colour(FILE *f)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(f)) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
}

static void erase_line(void)
{
	if (line_open)
		fputs("\r\033[K", stderr);
	line_open = false;
}

/* One line, whatever the file that it is about is called. */
__attribute__((format(printf, 2, 0))) static void emit(const char *level, const char *fmt,
						       va_list ap)
{
	scoped(str_fini) struct str line = {0};
	scoped(free) char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	plain_add(&line, text ? text : fmt);
	flockfile(stderr);
	erase_line();
	fprintf(stderr, "longpole: %s%s\n", level, str_get(&line));
	funlockfile(stderr);
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("", fmt, ap);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("warning: ", fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("", fmt, ap);
	va_end(ap);
}

void log_debug(const char *fmt, ...)
{
	va_list ap;

	if (!verbose)
		return;
	va_start(ap, fmt);
	emit("debug: ", fmt, ap);
	va_end(ap);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void progress_show(struct progress *p, const char *fmt, ...)
{
	int64_t at_ns = now_ns();
	va_list ap;

	if (!log_colour(stderr) || (p->shown && at_ns - p->last_ns < PROGRESS_EVERY_NS))
		return;
	p->last_ns = at_ns;
	p->shown = true;
	flockfile(stderr);
	erase_line();
	fprintf(stderr, "%s ", p->what ? p->what : "");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	line_open = true;
	fflush(stderr);
	funlockfile(stderr);
}

void progress_done(struct progress *p)
{
	if (!p->shown)
		return;
	flockfile(stderr);
	erase_line();
	fflush(stderr);
	funlockfile(stderr);
	p->shown = false;
}
