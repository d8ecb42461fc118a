/* SPDX-License-Identifier: MIT */
#include "base/plain.h"

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * No overlong forms, no surrogates, nothing above U+10FFFF.  The NUL that ends the text also ends
 * a sequence cut short.
 */
int utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t c, least;
	int len;

	if (s[0] < 0x80)
		return 1;
	len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	c = s[0] & (0x7f >> len);
	for (int i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	least = len == 4 ? 0x10000 : len == 3 ? 0x800 : 0x80;
	if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return len;
}

size_t plain_bytes(const char *text, size_t columns)
{
	size_t n = 0;

	for (; text[n] && columns; columns--) {
		int len = utf8_len(text + n);

		n += (size_t)(len ? len : 1);
	}
	return n;
}

size_t plain_columns(const char *text, size_t len)
{
	size_t columns = 0;

	for (size_t n = 0; n < len; columns++)
		n += plain_bytes(text + n, 1);
	return columns;
}

/* Controls of ASCII and of Latin-1, line separators, and what changes the direction of writing. */
static bool is_plain(const unsigned char *s, int len)
{
	if (len == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (len == 2)
		return !(s[0] == 0xc2 && s[1] < 0xa0) && !(s[0] == 0xd8 && s[1] == 0x9c);
	if (len == 3 && s[0] == 0xe2 && s[1] == 0x80)
		return s[2] < 0x8b || (s[2] > 0x8f && s[2] < 0xa8) || s[2] > 0xae;
	if (len == 3 && s[0] == 0xe2 && s[1] == 0x81)
		return s[2] < 0xa6 || s[2] > 0xa9;
	return len > 0;
}

void plain_add(struct str *s, const char *text)
{
	while (*text) {
		int len = utf8_len(text);
		bool plain = is_plain((const unsigned char *)text, len);

		for (int i = 0; !plain && i < (len ? len : 1); i++)
			str_addf(s, "\\x%02x", (unsigned char)text[i]);
		if (plain)
			str_add_bytes(s, text, (size_t)len);
		text += len ? len : 1;
	}
}
