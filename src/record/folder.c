/* SPDX-License-Identifier: MIT */
#include "record/folder.h"

#include "base/err.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *join(const char *path, const char *name)
{
	struct str s = {0};

	str_addf(&s, "%s/%s", path, name);
	return str_take(&s);
}

static bool is_ours(const char *name)
{
	return !strcmp(name, "metadata") || !strncmp(name, "stream_", 7);
}

/* Only files that a recorder writes: whatever else lies there keeps the folder from going. */
static void clear(const struct folder *f)
{
	DIR *dir = opendir(f->kernel);
	struct dirent *e;
	char *history = join(f->path, "history");

	while (dir && (e = readdir(dir)))
		if (is_ours(e->d_name))
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	unlink(f->host_json);
	unlink(history);
	free(history);
	rmdir(f->kernel);
	rmdir(f->path);
}

static int make(const char *path, struct err *err)
{
	if (!mkdir(path, 0700))
		return 0;
	if (errno == EEXIST)
		return err_set(err, -EEXIST, "%s is there already", path);
	return err_set(err, -errno, "cannot create %s: %s", path, strerror(errno));
}

int folder_make(struct folder *f, const char *path, bool replace, struct err *err)
{
	int rc;

	f->path = strdup(path);
	f->kernel = join(path, "kernel");
	f->host_json = join(path, "host.json");
	if (replace && !access(f->host_json, F_OK))
		clear(f);
	rc = make(path, err);
	if (rc >= 0)
		rc = make(f->kernel, err);
	if (rc < 0) /* not ours to remove */
		free(f->kernel), f->kernel = NULL;
	return rc;
}

void folder_fini(struct folder *f, bool remove_empty)
{
	if (remove_empty && f->kernel)
		clear(f);
	free(f->path);
	free(f->kernel);
	free(f->host_json);
	*f = (struct folder){0};
}
