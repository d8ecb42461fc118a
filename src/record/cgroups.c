/* SPDX-License-Identifier: MIT
 *
 * The cgroups there are: a cgroup's id in the kernel is the inode number of its directory.
 */
#include "record/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 };

/* "5:cpu,cpuacct:/some/path" in /proc/self/cgroup: the number of a v1 hierarchy. */
static bool hierarchy_of(const char *options, struct cgroup_mount *m)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096], names[256];
	unsigned id;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		size_t len;

		if (sscanf(line, "%u:%255[^:]:", &id, names) != 2)
			continue;
		/* super options are "rw,cpu,cpuacct": the controllers come last */
		len = strlen(names);
		found = strlen(options) >= len && !strcmp(options + strlen(options) - len, names);
		if (found) {
			m->hierarchy = id;
			snprintf(m->controllers, sizeof(m->controllers), "%.127s", names);
		}
	}
	if (f)
		fclose(f);
	return found;
}

static bool is_known(const struct host *h, uint32_t hierarchy)
{
	for (size_t i = 0; i < h->mounts.n; i++)
		if (h->mounts.at[i].hierarchy == hierarchy)
			return true;
	return false;
}

/* mountinfo: ID PARENT DEV ROOT POINT OPTIONS [TAGS] - TYPE SOURCE SUPER_OPTIONS */
static void add_mount(struct host *h, char *line)
{
	char root[256], point[256], type[32], source[128], options[512];
	char *rest = strstr(line, " - ");
	struct cgroup_mount m = {0};

	if (!rest || sscanf(line, "%*s %*s %*s %255s %255s", root, point) != 2 ||
	    sscanf(rest + 3, "%31s %127s %511s", type, source, options) != 3)
		return;
	if (strcmp(type, "cgroup2") && (strcmp(type, "cgroup") || !hierarchy_of(options, &m)))
		return;
	if (is_known(h, m.hierarchy))
		return;
	snprintf(m.path, sizeof(m.path), "%s", point);
	snprintf(m.root, sizeof(m.root), "%s", root);
	vec_push(&h->mounts, m);
}

void cgroups_find(struct host *h)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		add_mount(h, line);
	if (f)
		fclose(f);
}

/* --- walking a hierarchy */

struct visit {
	struct rec_cgroup record;
	int (*fn)(const struct rec_cgroup *r, void *arg);
	void *arg;
};

static int visit(struct visit *v, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	v->record.cgroup = st.st_ino;
	v->record.head.ts = (uint64_t)now_ns();
	return v->fn(&v->record, v->arg);
}

static int walk(struct visit *v, int fd, size_t path_len, int depth);

static int walk_child(struct visit *v, int dir, const char *name, size_t path_len, int depth)
{
	char *path = v->record.path;
	size_t room = sizeof(v->record.path) - path_len;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), n, rc;

	if (fd < 0) /* gone again */
		return 0;
	/* below the root the path so far is "/", which is not repeated */
	n = snprintf(path + path_len, room, "%s%s", path_len == 1 ? "" : "/", name);
	rc = walk(v, fd, path_len + ((size_t)n < room ? (size_t)n : room - 1), depth + 1);
	memset(path + path_len, 0, room);
	return rc;
}

/* Takes fd over. */
static int walk(struct visit *v, int fd, size_t path_len, int depth)
{
	int rc = visit(v, fd);
	DIR *dir = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!dir) {
		close(fd);
		return rc;
	}
	while (!rc && (e = readdir(dir)))
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			rc = walk_child(v, dirfd(dir), e->d_name, path_len, depth);
	closedir(dir);
	return rc;
}

bool cgroup_has_controller(const struct cgroup_mount *m, const char *name)
{
	const char *at = strstr(m->controllers, name);
	size_t len = strlen(name);

	return at && (at == m->controllers || at[-1] == ',') && (!at[len] || at[len] == ',');
}

static int walk_mount(const struct cgroup_mount *m, struct visit *v)
{
	int fd = open(m->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	memset(&v->record, 0, sizeof(v->record));
	v->record.head.id = REC_ID_CGROUP;
	v->record.head.size = sizeof(v->record);
	v->record.hierarchy = m->hierarchy;
	snprintf(v->record.path, sizeof(v->record.path), "%s", m->root);
	return walk(v, fd, strlen(v->record.path), 0);
}

int cgroups_each(const struct host *h, int (*fn)(const struct rec_cgroup *r, void *arg), void *arg)
{
	struct visit v = {.fn = fn, .arg = arg};
	int rc = 0;

	for (size_t i = 0; i < h->mounts.n && !rc; i++) {
		const struct cgroup_mount *m = &h->mounts.at[i];

		if (!m->hierarchy || cgroup_has_controller(m, "cpu") ||
		    cgroup_has_controller(m, "blkio"))
			rc = walk_mount(m, &v);
	}
	return rc;
}
