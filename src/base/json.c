/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "base/plain.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void json_init(struct json *j, FILE *out, int indent)
{
	*j = (struct json){.out = out, .indent = indent, .first = true};
}

int json_fini(struct json *j)
{
	assert(j->depth == 0);
	fputc('\n', j->out);
	errno = 0;
	if (fflush(j->out) || ferror(j->out))
		return errno ? -errno : -EIO;
	return 0;
}

/* One character below 0x80. */
static void put_ascii(FILE *out, unsigned char c)
{
	static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
	const char *at = memchr(from, c, sizeof(from) - 1);

	if (at)
		fprintf(out, "\\%c", to[at - from]);
	else if (c < 0x20 || c == 0x7f)
		fprintf(out, "\\u%04x", c);
	else
		fputc(c, out);
}

/* U+0080 to U+009F as they are would be obeyed by a terminal. */
static void put_sequence(FILE *out, const char *s, int len)
{
	if (len == 2 && (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0)
		fprintf(out, "\\u%04x", (unsigned char)s[1]);
	else
		fwrite(s, 1, (size_t)len, out);
}

static void put_string(FILE *out, const char *s)
{
	fputc('"', out);
	while (*s) {
		int len = utf8_len(s);

		if (len == 1)
			put_ascii(out, (unsigned char)*s);
		else if (len > 1)
			put_sequence(out, s, len);
		else
			fputs("\xef\xbf\xbd", out);
		s += len ? len : 1;
	}
	fputc('"', out);
}

static void newline(struct json *j)
{
	if (j->indent)
		fprintf(j->out, "\n%*s", j->indent * j->depth, "");
}

/* What stands before every value: comma, new line, key. */
static void before(struct json *j, const char *key)
{
	bool in_object = j->depth && !j->array[j->depth - 1];

	assert(in_object == (key != NULL));
	assert(j->depth || j->first); /* one value at the top */
	if (!j->first)
		fputc(',', j->out);
	if (j->depth)
		newline(j);
	j->first = false;
	if (!key)
		return;
	put_string(j->out, key);
	fputs(j->indent ? ": " : ":", j->out);
}

static void begin(struct json *j, const char *key, bool array)
{
	before(j, key);
	assert(j->depth < JSON_DEPTH);
	j->array[j->depth++] = array;
	fputc(array ? '[' : '{', j->out);
	j->first = true;
}

void json_object(struct json *j, const char *key)
{
	begin(j, key, false);
}

void json_array(struct json *j, const char *key)
{
	begin(j, key, true);
}

void json_end(struct json *j)
{
	bool empty = j->first;

	assert(j->depth > 0);
	j->depth--;
	if (!empty)
		newline(j);
	fputc(j->array[j->depth] ? ']' : '}', j->out);
	j->first = false;
}

void json_str(struct json *j, const char *key, const char *value)
{
	before(j, key);
	if (value)
		put_string(j->out, value);
	else
		fputs("null", j->out);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	before(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	before(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_num(struct json *j, const char *key, double value, int digits)
{
	char text[400]; /* DBL_MAX has 309 digits before the point */
	size_t len;

	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	before(j, key);
	assert(digits >= 0 && digits <= 20);
	len = (size_t)snprintf(text, sizeof(text), "%.*f", digits, value);
	if (memchr(text, '.', len)) {
		while (text[len - 1] == '0')
			len--;
		if (text[len - 1] == '.')
			len--;
	}
	if (len == 2 && text[0] == '-' && text[1] == '0')
		fputc('0', j->out);
	else
		fwrite(text, 1, len, j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	before(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	before(j, key);
	fputs("null", j->out);
}
