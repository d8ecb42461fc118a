/* SPDX-License-Identifier: MIT
 *
 * plain.h - text from outside (names of programs, cgroups, files, requests) for a terminal.
 *
 * A terminal obeys what is in it: a program may call itself "\033[2J".  What moves the cursor,
 * colours, rings, breaks lines or turns the direction of writing is shown as \xNN instead, and so
 * is every byte that is not UTF-8.  Plain text stays as it is, so doing it twice does no harm.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H
#include <stddef.h>

struct str;

/* Length of the UTF-8 sequence that text begins with, 1 to 4; 0 if it is none. */
int utf8_len(const char *text);
/* Columns that len bytes of plain text take: a character is one wide. */
size_t plain_columns(const char *text, size_t len);
/* Bytes of the first columns characters, at most all of text. */
size_t plain_bytes(const char *text, size_t columns);
/* As str_add, made plain. */
void plain_add(struct str *s, const char *text);

#endif
