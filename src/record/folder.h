/* SPDX-License-Identifier: MIT
 *
 * folder.h - the folder NAME.lp of a recording, being made.
 */
#ifndef RECORD_FOLDER_H
#define RECORD_FOLDER_H
#include <stdbool.h>

struct err;

struct folder {
	char *path, *kernel, *host_json;
};

/* Makes path (mode 0700) and path/kernel.  Something that is there is refused, unless replace
 * is given and it is a recording: then its files are removed first. */
int folder_make(struct folder *f, const char *path, bool replace, struct err *err);
/* remove_empty: the recording did not even begin, so nothing is left behind. */
void folder_fini(struct folder *f, bool remove_empty);

#endif
