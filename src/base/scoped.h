/* SPDX-License-Identifier: MIT
 *
 * scoped.h - owned locals released at the end of their block.
 *
 *	scoped(free) char *name = strdup(x);
 *	scoped(close) int fd = open(...);
 *	scoped(str_fini) struct str s = {0};
 * Each word needs a function scoped_WORD(T *); this header has free, close (ignores fd < 0)
 * and fclose, modules add theirs.  Never mixed with goto.
 */
#ifndef BASE_SCOPED_H
#define BASE_SCOPED_H
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define scoped(word) __attribute__((cleanup(scoped_##word)))

static inline void scoped_free(void *p)
{
	free(*(void **)p);
}

static inline void scoped_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void scoped_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

#endif
