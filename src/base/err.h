/* SPDX-License-Identifier: MIT
 *
 * err.h - what went wrong, as one sentence for the person who has to act on it.
 *
 * Functions return 0 or a negative errno.  Those that a user can make fail take a last
 * `struct err *err` (NULL is fine) and set code and sentence in one statement:
 *	return err_set(err, -EINVAL, "'%s' is not a recording", path);
 * A caller that knows more puts it in front: err_add(err, "%s", path) makes "path: sentence".
 * Only the mains print and exit.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct err {
	int code; /* negative errno, 0 if nothing happened */
	char text[512];
};

/* Sets code and sentence, replacing what was there.  Returns code. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "CONTEXT: " before the sentence.  Returns err->code (-EIO for NULL). */
int err_add(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
