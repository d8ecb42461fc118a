/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include "base/vec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for extra more bytes and the NUL. */
static void reserve(struct str *s, size_t extra)
{
	size_t need = s->len + extra + 1;

	if (s->cap < need)
		s->buf = vec_grow(s->buf, &s->cap, need, 1);
}

void str_fini(struct str *s)
{
	free(s->buf);
	*s = (struct str){0};
}

void str_clear(struct str *s)
{
	s->len = 0;
	if (s->buf)
		s->buf[0] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_add_bytes(s, text, strlen(text));
}

void str_add_bytes(struct str *s, const void *data, size_t len)
{
	reserve(s, len);
	if (len)
		memcpy(s->buf + s->len, data, len);
	s->len += len;
	s->buf[s->len] = '\0';
}

void str_addf(struct str *s, const char *fmt, ...)
{
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len > 0) {
		reserve(s, (size_t)len);
		vsnprintf(s->buf + s->len, (size_t)len + 1, fmt, again);
		s->len += (size_t)len;
	}
	va_end(again);
}

char *str_take(struct str *s)
{
	char *buf;

	reserve(s, 0);
	s->buf[s->len] = '\0';
	buf = s->buf;
	*s = (struct str){0};
	return buf;
}
