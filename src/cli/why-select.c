/* SPDX-License-Identifier: MIT
 *
 * Which requests were asked for: --request, --cgroup, --pid, --begin, --end; the middle two may
 * have been said to `record` already.
 */
#include "base/duration.h"
#include "base/err.h"
#include "cli/why.h"
#include "model/model.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <time.h>

static const int64_t SECOND_NS = 1000000000, DAY_NS = 86400 * INT64_C(1000000000);

/* --- instants */

/* Reads exactly digits digits and moves on; -1 if they are not there. */
static int take_number(const char **s, int digits)
{
	int value = 0;

	for (int i = 0; i < digits; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return -1;
		value = value * 10 + (**s - '0');
	}
	return value;
}

static bool take_char(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

/* HH:MM[:SS[.fraction]] as ns of the day. */
static bool take_clock(const char **s, int64_t *ret_ns)
{
	int64_t unit = SECOND_NS;
	int hour = take_number(s, 2), minute, second = 0;

	if (hour < 0 || hour > 23 || !take_char(s, ':'))
		return false;
	minute = take_number(s, 2);
	if (take_char(s, ':'))
		second = take_number(s, 2);
	if (minute < 0 || minute > 59 || second < 0 || second > 60)
		return false;
	*ret_ns = (hour * 3600 + minute * 60 + second) * SECOND_NS;
	if (take_char(s, '.'))
		for (; isdigit((unsigned char)**s); (*s)++)
			*ret_ns += (**s - '0') * (unit /= 10);
	return true;
}

/* Of a month of the Gregorian calendar, 1 to 12. */
static int days_in(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

/* YYYY-MM-DD, then T or a blank.  Years whose nanoseconds fit. */
static bool take_date(const char **s, struct why_when *ret)
{
	ret->year = take_number(s, 4);
	if (ret->year < 1970 || ret->year > 2200 || !take_char(s, '-'))
		return false;
	ret->month = take_number(s, 2);
	if (ret->month < 1 || ret->month > 12 || !take_char(s, '-'))
		return false;
	ret->day = take_number(s, 2);
	ret->dated = true;
	return ret->day >= 1 && ret->day <= days_in(ret->year, ret->month) &&
	       (take_char(s, 'T') || take_char(s, ' '));
}

/* Z, +HH:MM, -HHMM; nothing is local time. */
static bool take_zone(const char **s, bool *ret_zoned, int64_t *ret_ns)
{
	int sign = **s == '-' ? -1 : 1, hours, minutes;

	*ret_zoned = **s != '\0';
	*ret_ns = 0;
	if (!**s || take_char(s, 'Z'))
		return true;
	if (!take_char(s, '+') && !take_char(s, '-'))
		return false;
	hours = take_number(s, 2);
	take_char(s, ':');
	minutes = take_number(s, 2);
	*ret_ns = sign * (hours * 3600 + minutes * 60) * SECOND_NS;
	return hours >= 0 && minutes >= 0;
}

static int64_t unix_of_day(const struct why_when *w, bool utc)
{
	struct tm tm = {.tm_year = w->year - 1900,
			.tm_mon = w->month - 1,
			.tm_mday = w->day,
			.tm_hour = (int)(w->ns / SECOND_NS / 3600),
			.tm_min = (int)(w->ns / SECOND_NS / 60 % 60),
			.tm_sec = (int)(w->ns / SECOND_NS % 60),
			.tm_isdst = -1};
	time_t t = utc ? timegm(&tm) : mktime(&tm);

	return (int64_t)t * SECOND_NS + w->ns % SECOND_NS;
}

int why_when_parse(const char *text, struct why_when *ret, struct err *err)
{
	struct why_when w = {.given = true, .wall = true};
	const char *s = text;
	int64_t zone_ns = 0;

	if (!strchr(text, ':')) {
		w.wall = false;
		if (duration_parse(text, &w.ns, NULL) < 0)
			goto wrong;
	} else {
		if (text[strcspn(text, "-:")] == '-' && !take_date(&s, &w))
			goto wrong;
		if (!take_clock(&s, &w.ns) || !take_zone(&s, &w.zoned, &zone_ns) || *s ||
		    (w.zoned && !w.dated))
			goto wrong;
		if (w.zoned)
			w.ns = unix_of_day(&w, true) - zone_ns;
	}
	*ret = w;
	return 0;
wrong:
	return err_set(err, -EINVAL,
		       "'%s' is no instant: 2s after the start, 23:32:10 or "
		       "2026-11-29T23:32:10Z",
		       text);
}

int64_t why_when_ns(const struct why_when *when, int64_t wall_ns, int64_t length_ns)
{
	struct why_when w = *when;
	time_t seconds = (time_t)(wall_ns / SECOND_NS);
	struct tm tm;
	int64_t ns;

	if (!w.wall)
		return w.ns;
	if (w.zoned)
		return w.ns - wall_ns;
	if (!w.dated && localtime_r(&seconds, &tm)) {
		w.year = tm.tm_year + 1900;
		w.month = tm.tm_mon + 1;
		w.day = tm.tm_mday;
	}
	ns = unix_of_day(&w, false) - wall_ns;
	/* A recording over midnight: the time may be of the next day. */
	if (!w.dated && ns < 0 && ns + DAY_NS <= length_ns)
		ns += DAY_NS;
	return ns;
}

/* --- names and threads */

bool why_name_matches(const struct why_filter *f, const char *name)
{
	return !f->pattern || strstr(name, f->pattern) || !fnmatch(f->pattern, name, 0);
}

static bool is_or_below(const char *path, const char *top, size_t len)
{
	while (len && top[len - 1] == '/')
		len--;
	return !len || (!strncmp(path, top, len) && (!path[len] || path[len] == '/'));
}

bool why_cgroup_matches(const char *wanted, const char *path)
{
	static const char mount[] = "/sys/fs/cgroup/";
	const char *below;

	if (strncmp(wanted, mount, sizeof(mount) - 1) != 0) {
		while (*wanted == '/')
			wanted++;
		return is_or_below(path + (*path == '/'), wanted, strlen(wanted));
	}
	wanted += sizeof(mount) - 1;
	below = wanted + strcspn(wanted, "/");
	below += *below == '/';
	return is_or_below(path + (*path == '/'), wanted, strlen(wanted)) ||
	       (*below && is_or_below(path + (*path == '/'), below, strlen(below)));
}

static bool in_cgroup(const char *wanted, const struct names *names, int cgroup)
{
	const struct cgroup *c = names_cgroup(names, cgroup);

	return c && why_cgroup_matches(wanted, names_str(names, c->path));
}

static bool is_in(const char *wanted, const struct names *names, int thread, int64_t at_ns)
{
	return in_cgroup(wanted, names, names_cgroup_of(names, thread, at_ns)) ||
	       in_cgroup(wanted, names, names_cpu_cgroup_of(names, thread, at_ns));
}

static bool is_thread_of(const struct thread *t, int64_t pid)
{
	return t->pid == pid || t->tid == pid;
}

static bool is_of_pids(const struct why_filter *f, const struct thread *t)
{
	for (int i = 0; i < f->pid_count; i++)
		if (is_thread_of(t, f->pids[i]))
			return true;
	return false;
}

bool why_is_limited(const struct why_filter *f)
{
	return f->pid || f->cgroup || f->pid_count || f->cgroup_count;
}

bool why_thread_matches(const struct why_filter *f, const struct names *names, int thread,
			int64_t at_ns)
{
	const struct thread *t = names_thread(names, thread);

	if (!t || (f->pid && !is_thread_of(t, f->pid)) || (f->pid_count && !is_of_pids(f, t)))
		return false;
	if (f->cgroup)
		return is_in(f->cgroup, names, thread, at_ns);
	for (int i = 0; i < f->cgroup_count; i++)
		if (is_in(f->cgroups[i], names, thread, at_ns))
			return true;
	return !f->cgroup_count;
}

bool why_descends(const struct names *names, int thread, uint32_t pid)
{
	const struct thread *t;

	/* A reused tid could close a circle; nobody nests this deep. */
	for (int depth = 0; depth < 1000 && (t = names_thread(names, thread)); depth++) {
		if (t->pid == pid)
			return true;
		thread = t->parent;
	}
	return false;
}
