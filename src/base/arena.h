/* SPDX-License-Identifier: MIT
 *
 * arena.h - memory that is freed all at once: one arena per query.
 *
 * Allocations are zeroed and aligned to 16 bytes.  Out of memory aborts with a message: no
 * caller could do better.  One thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *head;
	size_t used_bytes; /* over all blocks */
};

void arena_init(struct arena *a);
/* Frees everything; the arena may be used again. */
void arena_fini(struct arena *a);
/* Forgets everything but keeps the first block for reuse. */
void arena_reset(struct arena *a);
/* Lent until fini or reset; zeroed. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_dup(struct arena *a, const void *data, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define arena_new(a, type)	((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (n)))

#endif
