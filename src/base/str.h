/* SPDX-License-Identifier: MIT
 *
 * str.h - a growing string.  `struct str s = {0}` is empty and valid; s.buf is always
 * NUL-terminated once anything was added (use str_get for a pointer that is never NULL).
 */
#ifndef BASE_STR_H
#define BASE_STR_H
#include <stddef.h>

struct str {
	char *buf;
	size_t len, cap;
};

void str_fini(struct str *s);
static inline void scoped_str_fini(struct str *s)
{
	str_fini(s);
}
void str_clear(struct str *s);
void str_add(struct str *s, const char *text);
void str_add_bytes(struct str *s, const void *data, size_t len);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline const char *str_get(const struct str *s)
{
	return s->buf ? s->buf : "";
}
/* Moves the text to the caller, who frees it; s is empty after. */
char *str_take(struct str *s);

#endif
