/* SPDX-License-Identifier: MIT */
#include "base/vec.h"

#include <stdint.h>
#include <stdio.h>

static void die_of_memory(size_t items, size_t item_bytes)
{
	fprintf(stderr, "longpole: out of memory (%zu items of %zu bytes)\n", items, item_bytes);
	abort();
}

void *vec_grow(void *at, size_t *cap, size_t need, size_t item_bytes)
{
	size_t next = *cap ? *cap : 8, bytes = 0;

	while (next < need && next <= SIZE_MAX / 2)
		next *= 2;
	if (next < need || __builtin_mul_overflow(next, item_bytes, &bytes))
		die_of_memory(need, item_bytes);
	at = realloc(at, bytes);
	if (!at)
		die_of_memory(need, item_bytes);
	*cap = next;
	return at;
}
