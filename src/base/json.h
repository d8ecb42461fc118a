/* SPDX-License-Identifier: MIT
 *
 * json.h - writes JSON to a stream or a string, with commas, indentation and escapes right by
 * construction.  Strings that are not UTF-8 are written with each bad byte as U+FFFD.
 *
 *	struct json j; json_init(&j, stdout, 0);
 *	json_object(&j, NULL); json_int(&j, "n", 3); json_end(&j); json_fini(&j);
 * The key is NULL inside arrays and at the top.  Misuse (a key in an array, an end too many)
 * asserts.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 32 };
struct json {
	FILE *out;
	int indent; /* spaces per level, 0: all on one line */
	int depth;
	bool first, array[JSON_DEPTH];
};

void json_init(struct json *j, FILE *out, int indent);
/* Ends with a newline.  0 or a negative errno if the stream failed. */
int json_fini(struct json *j);
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j);
void json_str(struct json *j, const char *key, const char *value);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
/* At most digits decimals; NaN and infinities become null. */
void json_num(struct json *j, const char *key, double value, int digits);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
