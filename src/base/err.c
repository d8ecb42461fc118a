/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	struct err next = {.code = code};
	va_list ap;

	if (!err)
		return code;
	/* Into a copy first: the arguments may point into err->text. */
	va_start(ap, fmt);
	vsnprintf(next.text, sizeof(next.text), fmt, ap);
	va_end(ap);
	*err = next;
	return code;
}

int err_add(struct err *err, const char *fmt, ...)
{
	char context[sizeof(err->text)], whole[2 * sizeof(context) + 2];
	va_list ap;

	if (!err)
		return -EIO;
	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof(whole), "%s: %s", context, err->text);
	memcpy(err->text, whole, sizeof(err->text));
	err->text[sizeof(err->text) - 1] = '\0';
	return err->code;
}
