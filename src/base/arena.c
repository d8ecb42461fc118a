/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 16, BLOCK_BYTES = 64 * 1024 };

/* Blocks form a list, the one being filled first. */
struct arena_block {
	struct arena_block *next;
	size_t cap, used;
	_Alignas(ALIGN_BYTES) char data[];
};

static struct arena_block *block_new(size_t cap, struct arena_block *next)
{
	struct arena_block *b = NULL;

	if (cap <= SIZE_MAX - sizeof(*b))
		b = malloc(sizeof(*b) + cap);
	if (!b) {
		fprintf(stderr, "longpole: out of memory (%zu bytes)\n", cap);
		abort();
	}
	b->next = next;
	b->cap = cap;
	b->used = 0;
	return b;
}

static void blocks_free(struct arena_block *b)
{
	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
}

void arena_init(struct arena *a)
{
	*a = (struct arena){0};
}

void arena_fini(struct arena *a)
{
	blocks_free(a->head);
	*a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
	struct arena_block *b = a->head;

	a->used_bytes = 0;
	if (!b)
		return;
	blocks_free(b->next);
	b->next = NULL;
	b->used = 0;
}

/*
 * Something large gets a block to itself behind the head, so that the room left in the head
 * is not given up for it.
 */
static void *alloc_large(struct arena *a, size_t size)
{
	struct arena_block *b = block_new(size, a->head ? a->head->next : NULL);

	if (a->head)
		a->head->next = b;
	else
		a->head = b;
	b->used = size;
	return b->data;
}

void *arena_alloc(struct arena *a, size_t size)
{
	size_t rounded = (size + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
	void *p;

	if (rounded < size)
		rounded = SIZE_MAX; /* cannot be had: block_new says so */
	if (rounded > BLOCK_BYTES / 4) {
		p = alloc_large(a, rounded);
	} else {
		if (!a->head || a->head->cap - a->head->used < rounded)
			a->head = block_new(BLOCK_BYTES, a->head);
		p = a->head->data + a->head->used;
		a->head->used += rounded;
	}
	a->used_bytes += rounded;
	return memset(p, 0, rounded);
}

void *arena_dup(struct arena *a, const void *data, size_t size)
{
	void *p = arena_alloc(a, size);

	return size ? memcpy(p, data, size) : p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_dup(a, s, strlen(s) + 1);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	char *text;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	text = arena_alloc(a, len < 0 ? 1 : (size_t)len + 1);
	if (len >= 0)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text;
}
