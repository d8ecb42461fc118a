/* SPDX-License-Identifier: MIT
 *
 * vec.h - growing arrays of any type, as a macro over one function.
 *
 *	struct VEC(int) v = {0};  vec_push(&v, 7);  v.at[0];  v.n;  vec_fini(&v);
 * Growth doubles; out of memory aborts with a message.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                  \
	{                                                                                          \
		type *at;                                                                          \
		size_t n, cap;                                                                     \
	}

void *vec_grow(void *at, size_t *cap, size_t need, size_t item_bytes);

#define vec_reserve(v, need)                                                                       \
	(!(v)->at || (v)->cap < (need)                                                             \
		 ? (void)((v)->at = vec_grow((v)->at, &(v)->cap, (need), sizeof(*(v)->at)))        \
		 : (void)0)
/* Appends value. */
#define vec_push(v, ...)                                                                           \
	do {                                                                                       \
		vec_reserve((v), (v)->n + 1);                                                      \
		(v)->at[(v)->n++] = (__VA_ARGS__);                                                 \
	} while (0)
/* Appends a zeroed item and gives its address. */
#define vec_add(v)                                                                                 \
	(vec_reserve((v), (v)->n + 1), memset(&(v)->at[(v)->n], 0, sizeof(*(v)->at)),              \
	 &(v)->at[(v)->n++])
#define vec_fini(v) (free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

#endif
