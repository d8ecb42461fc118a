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

/* "GET /a?q=secret HTTP/1.1" to "GET /a HTTP/1.1"; a line cut short ends at the query. */
static size_t cut_query(char *text, size_t n)
{
	char *query = memchr(text, '?', n);
	char *end;

	if (!query)
		return n;
	end = memchr(query, ' ', n - (size_t)(query - text));
	if (!end)
		return (size_t)(query - text);
	memmove(query, end, n - (size_t)(end - text));
	return n - (size_t)(end - query);
}

void request_text_cut(char *text, size_t len, bool raw)
{
	size_t n = line_length(text, len);

	if (!raw)
		n = cut_query(text, n);
	memset(text + n, 0, len - n);
}
