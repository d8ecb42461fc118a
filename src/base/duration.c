/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include "base/err.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
	{"ns", 1},	    {"us", 1000},	  {"ms", 1000000},  {"s", 1000000000},
	{"m", 60000000000}, {"h", 3600000000000}, {"", 1000000000}, /* a bare number */
};

static int64_t unit_ns(const char *name)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].name, name))
			return units[i].ns;
	return 0;
}

/*
 * Reads digits[.digits] as value = whole + fraction / scale.  No strtod: it would take the
 * user's locale, hex and "inf", and lose nanoseconds above 2^53.  False if it is no number.
 */
static bool read_number(const char **text, __int128 *whole, __int128 *fraction, int64_t *scale)
{
	const char *s = *text;
	int count = 0;

	*whole = *fraction = 0;
	*scale = 1;
	for (; isdigit((unsigned char)*s); s++, count++)
		if (*whole <= INT64_MAX)
			*whole = *whole * 10 + (*s - '0');
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++, count++)
			if (*scale < 1000000000000000) {
				*fraction = *fraction * 10 + (*s - '0');
				*scale *= 10;
			}
	*text = s;
	return count > 0;
}

int duration_parse(const char *text, int64_t *ret_ns, struct err *err)
{
	const char *s = text;
	__int128 whole, fraction, ns;
	int64_t scale, unit;

	if (!read_number(&s, &whole, &fraction, &scale) || !(unit = unit_ns(s)))
		return err_set(err, -EINVAL, "'%s' is not a time (like 250us, 10ms, 2s)", text);
	ns = whole * unit + (fraction * unit + scale / 2) / scale;
	if (ns > INT64_MAX)
		return err_set(err, -ERANGE, "'%s' is too long a time", text);
	*ret_ns = (int64_t)ns;
	return 0;
}

const char *duration_print(int64_t ns, char buf[DURATION_TEXT])
{
	static const char *const name[] = {"ns", "us", "ms", "s"};
	double value = ns < 0 ? -(double)ns : (double)ns;
	int u = 0, digits;

	/* 999.5 would be printed as 1000, so the next unit takes over there. */
	while (u < 3 && value >= (u ? 999.5 : 1000)) {
		value /= 1000;
		u++;
	}
	digits = !u || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(buf, DURATION_TEXT, "%s%.*f %s", ns < 0 ? "-" : "", digits, value, name[u]);
	return buf;
}
