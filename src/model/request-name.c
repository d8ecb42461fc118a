/* SPDX-License-Identifier: MIT
 *
 * The group name of a request: what a first line has in common with its like.
 *
 *	GET http://shop/users/4711/orders?page=2 HTTP/1.1   ->   GET /users/ * /orders
 *
 * (without the blanks).  A path is words with other characters between them; a word of digits, a
 * UUID, and a word of eight or more hex digits with a decimal one among them are replaced.
 * "v1", "img12" and "%20" stay.
 */
#include "model/model.h"

#include <ctype.h>
#include <string.h>

static const char *const methods[] = {"GET",	 "HEAD",      "POST",	 "PUT",	   "DELETE",
				      "OPTIONS", "PATCH",     "CONNECT", "TRACE",  "PROPFIND",
				      "REPORT",	 "MKCOL",     "COPY",	 "MOVE",   "LOCK",
				      "UNLOCK",	 "PROPPATCH", "PURGE",	 "SEARCH", "M-SEARCH"};
enum { LONG_HEX = 8 };

struct out {
	char *at, *end; /* end: where the NUL goes at the latest */
};

static void put(struct out *o, char c)
{
	if (o->at < o->end)
		*o->at++ = c;
}

static size_t method_len(const char *line)
{
	size_t len = strcspn(line, " ");

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (line[len] == ' ' && strlen(methods[i]) == len && !memcmp(methods[i], line, len))
			return len;
	return 0;
}

static bool is_path_end(char c)
{
	return c == '\0' || c == ' ' || c == '?' || c == '#' || c == '\r' || c == '\n';
}

/* 8-4-4-4-12 hex digits: 36, or 0. */
static size_t uuid_len(const char *p)
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	for (size_t i = 0; i < sizeof(shape) - 1; i++)
		if (shape[i] == 'x' ? !isxdigit((unsigned char)p[i]) : p[i] != '-')
			return 0;
	return isalnum((unsigned char)p[sizeof(shape) - 1]) ? 0 : sizeof(shape) - 1;
}

/* Letters and digits; an escape such as %2F is one letter of it. */
static size_t word_len(const char *p)
{
	size_t n = 0;

	while (isalnum((unsigned char)p[n]) || (p[n] == '%' && isxdigit((unsigned char)p[n + 1]) &&
						isxdigit((unsigned char)p[n + 2])))
		n += p[n] == '%' ? 3 : 1;
	return n;
}

static bool is_number(const char *p, size_t n)
{
	size_t digits = 0, hex = 0;

	for (size_t i = 0; i < n; i++) {
		digits += isdigit((unsigned char)p[i]) != 0;
		hex += isxdigit((unsigned char)p[i]) != 0;
	}
	return digits == n || (hex == n && n >= LONG_HEX && digits);
}

static void put_path(struct out *o, const char *p)
{
	while (!is_path_end(*p)) {
		size_t n = uuid_len(p);
		bool star = n != 0;

		if (!n)
			n = word_len(p);
		if (n && (star || is_number(p, n))) {
			put(o, '*');
			p += n;
			continue;
		}
		for (size_t i = 0; i < (n ? n : 1); i++, p++)
			put(o, isgraph((unsigned char)*p) ? *p : '?');
	}
}

/* "http://host/path": what comes after the host. */
static const char *skip_host(const char *target)
{
	const char *p;

	if (strncmp(target, "http://", 7) != 0 && strncmp(target, "https://", 8) != 0)
		return target;
	p = strstr(target, "//") + 2;
	while (!is_path_end(*p) && *p != '/')
		p++;
	return p;
}

const char *request_group(const char *first_line, char *buf, size_t len)
{
	struct out o = {buf, buf + len - 1};
	size_t n = method_len(first_line);
	const char *path = first_line + n + 1;

	if (n) {
		for (size_t i = 0; i <= n; i++)
			put(&o, first_line[i]);
		path = skip_host(path);
		if (is_path_end(*path))
			put(&o, '/');
		put_path(&o, path);
	}
	*o.at = '\0';
	return buf;
}
