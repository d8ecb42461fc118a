/* SPDX-License-Identifier: MIT */
#include "record/ctf.h"

#include <string.h>

static size_t line_length(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] && text[n] != '\r' && text[n] != '\n')
		n++;
	return n;
}

/* "GET /a?q=secret HTTP/1.1" to "GET /a HTTP/1.1".  Only a version ends a query: it may have blanks
 * in it, and a line cut short ends with it. */
static size_t cut_query(char *text, size_t n)
{
	static const char version[] = " HTTP/1.";
	size_t len = sizeof(version); /* with one digit for the NUL */
	char *query = memchr(text, '?', n);
	size_t at = query ? (size_t)(query - text) : n;

	if (!query || n - at < len || memcmp(text + n - len, version, len - 1) != 0)
		return at;
	memmove(query, text + n - len, len);
	return at + len;
}

/* "GET http://user:secret@host/" to "GET http://host/". */
static size_t cut_user(char *text, size_t n)
{
	char *host = memmem(text, n, "://", 3);
	char *slash, *at;

	if (!host)
		return n;
	host += 3;
	slash = memchr(host, '/', n - (size_t)(host - text));
	at = memrchr(host, '@', slash ? (size_t)(slash - host) : n - (size_t)(host - text));
	if (!at)
		return n;
	memmove(host, at + 1, n - (size_t)(at + 1 - text));
	return n - (size_t)(at + 1 - host);
}

void request_text_cut(char *text, size_t len, bool raw)
{
	size_t n = line_length(text, len);

	if (!raw)
		n = cut_user(text, cut_query(text, n));
	memset(text + n, 0, len - n);
}
