/* SPDX-License-Identifier: MIT
 *
 * The map: open addressing with linear probing.
 *
 *	slots	[ k v ][ - ][ k v ][ k v ][ - ] ...	cap is a power of two
 *
 * I1  A key is found by walking from its home slot; no free slot lies between the two.
 * I2  n <= 0.7 * cap, so that every walk ends.
 * Deletion moves later entries of the run back (no tombstones), so a map that is filled and
 * emptied for hours stays as fast as a new one.
 *
 * The string table keeps every text in one block with offsets by id, so that it is saved and
 * loaded as two plain arrays.  Its index maps a hash to an id; two
 * strings with the same 64-bit hash step to the next number until a free one is found.
 */
#include "base/map.h"

#include "base/vec.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct map_slot {
	uint64_t key, value;
	bool used;
};

/* Finalizer of a 64-bit mixer: keys are ids and addresses whose low bits say little. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static size_t home(const struct map *m, uint64_t key)
{
	return mix(key) & (m->cap - 1);
}

/* The slot of key, or the free one where it belongs.  cap must not be 0. */
static struct map_slot *find(const struct map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

static void grow(struct map *m)
{
	struct map next = {.cap = m->cap ? m->cap * 2 : 16, .n = m->n};

	next.slots = calloc(next.cap, sizeof(*next.slots));
	if (!next.slots) {
		fprintf(stderr, "longpole: out of memory (map of %zu entries)\n", m->n);
		abort();
	}
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			*find(&next, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = next;
}

void map_fini(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret)
{
	const struct map_slot *s = m->cap ? find(m, key) : NULL;

	if (!s || !s->used)
		return false;
	if (ret)
		*ret = s->value;
	return true;
}

void map_put(struct map *m, uint64_t key, uint64_t value)
{
	*map_at(m, key) = value;
}

uint64_t *map_at(struct map *m, uint64_t key)
{
	struct map_slot *s = m->cap ? find(m, key) : NULL;

	if (s && s->used)
		return &s->value;
	if (!s || (m->n + 1) * 10 > m->cap * 7) {
		grow(m);
		s = find(m, key);
	}
	*s = (struct map_slot){.key = key, .used = true};
	m->n++;
	return &s->value;
}

/* Keeps I1 after hole became free: entries whose home is not after the hole move into it. */
static void close_gap(struct map *m, size_t hole)
{
	size_t mask = m->cap - 1;

	for (size_t i = (hole + 1) & mask; m->slots[i].used; i = (i + 1) & mask) {
		size_t from_home = (i - home(m, m->slots[i].key)) & mask;

		if (from_home < ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].used = false;
}

bool map_del(struct map *m, uint64_t key, uint64_t *ret)
{
	struct map_slot *s = m->cap ? find(m, key) : NULL;

	if (!s || !s->used)
		return false;
	if (ret)
		*ret = s->value;
	close_gap(m, (size_t)(s - m->slots));
	m->n--;
	return true;
}

bool map_next(const struct map *m, size_t *i, uint64_t *key, uint64_t *value)
{
	while (*i < m->cap && !m->slots[*i].used)
		(*i)++;
	if (*i >= m->cap)
		return false;
	if (key)
		*key = m->slots[*i].key;
	if (value)
		*value = m->slots[*i].value;
	(*i)++;
	return true;
}

/* FNV-1a: the names are short, and map_at mixes again. */
static uint64_t hash_text(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return h;
}

static uint32_t append(struct strtab *t, const char *s, size_t len)
{
	assert(t->text_len + len + 1 <= UINT32_MAX);
	if (t->text_cap < t->text_len + len + 1)
		t->text = vec_grow(t->text, &t->text_cap, t->text_len + len + 1, 1);
	if (t->cap < t->n + 1)
		t->offset = vec_grow(t->offset, &t->cap, t->n + 1, sizeof(*t->offset));
	t->offset[t->n] = (uint32_t)t->text_len;
	memcpy(t->text + t->text_len, s, len);
	t->text[t->text_len + len] = '\0';
	t->text_len += len + 1;
	return (uint32_t)t->n++;
}

void strtab_fini(struct strtab *t)
{
	free(t->text);
	free(t->offset);
	map_fini(&t->by_hash);
	*t = (struct strtab){0};
}

uint32_t strtab_id(struct strtab *t, const char *s)
{
	return strtab_id_len(t, s, strlen(s));
}

uint32_t strtab_id_len(struct strtab *t, const char *s, size_t len)
{
	uint64_t id;

	len = strnlen(s, len); /* a NUL inside would come back as another string */
	if (!t->n)
		append(t, "", 0);
	if (!len)
		return 0;
	for (uint64_t h = hash_text(s, len);; h++) {
		if (!map_get(&t->by_hash, h, &id)) {
			id = append(t, s, len);
			map_put(&t->by_hash, h, id);
			return (uint32_t)id;
		}
		if (!strncmp(t->text + t->offset[id], s, len) && !t->text[t->offset[id] + len])
			return (uint32_t)id;
	}
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return id < t->n ? t->text + t->offset[id] : "";
}
