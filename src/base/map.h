/* SPDX-License-Identifier: MIT
 *
 * map.h - a hash map from uint64_t to uint64_t (pointers and indices travel in the value), and
 * a table of interned strings.
 *
 * Open addressing, power-of-two size, load at most 0.7; memory aborts when it runs out.  A
 * zeroed struct is a valid empty map.  Names are interned once and carried as ids; id 0 is
 * the empty string.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot;
struct map {
	struct map_slot *slots;
	size_t n, cap;
};

void map_fini(struct map *m);
/* True and *ret set if key is there.  ret may be NULL. */
bool map_get(const struct map *m, uint64_t key, uint64_t *ret);
void map_put(struct map *m, uint64_t key, uint64_t value);
/* True if it was there; *ret (may be NULL) gets the old value. */
bool map_del(struct map *m, uint64_t key, uint64_t *ret);
/* The address of key's value, made with 0 if it was absent; lent until the next put or del. */
uint64_t *map_at(struct map *m, uint64_t key);
/* Iterates: size_t i = 0; while (map_next(m, &i, &key, &value)) ... */
bool map_next(const struct map *m, size_t *i, uint64_t *key, uint64_t *value);

struct strtab {
	char *text; /* all strings, one after the other, each with its NUL */
	size_t text_len, text_cap;
	uint32_t *offset; /* by id */
	size_t n, cap;
	struct map by_hash;
};

void strtab_fini(struct strtab *t);
/* The id of s; the same string always gets the same id. */
uint32_t strtab_id(struct strtab *t, const char *s);
uint32_t strtab_id_len(struct strtab *t, const char *s, size_t len);
/* Lent until the next strtab_id.  An unknown id gives "". */
const char *strtab_get(const struct strtab *t, uint32_t id);

#endif
