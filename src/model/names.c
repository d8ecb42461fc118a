/* SPDX-License-Identifier: MIT
 *
 * Who is who: threads, cgroups, sockets, disks, and what they were called when.
 */
#include "model/names.h"

#include "model/shapes.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static_assert(NAMES_LIMIT == 1 << 28, "an index must fit a track");

struct names *names_new(void)
{
	struct names *n = calloc(1, sizeof(*n));

	assert(n);
	strtab_id(&n->strings, "");
	names_add_thread(n, 0, 0, NO_TIME, NO_TIME);
	names_add_fact(n, THREAD_IDLE, FACT_COMM, NO_TIME, (int32_t)names_intern(n, "idle"));
	n->threads.at[THREAD_IDLE].kernel = true;
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	strtab_fini(&n->strings);
	vec_fini(&n->threads);
	vec_fini(&n->links);
	vec_fini(&n->changes);
	vec_fini(&n->cgroups);
	vec_fini(&n->sockets);
	vec_fini(&n->disks);
	vec_fini(&n->by_tid);
	map_fini(&n->cgroup_by_id);
	map_fini(&n->cgroup_by_path);
	map_fini(&n->socket_by_cookie);
	free(n);
}

uint32_t names_intern(struct names *n, const char *s)
{
	return strtab_id(&n->strings, s);
}

const char *names_str(const struct names *n, uint32_t id)
{
	return strtab_get(&n->strings, id);
}

/* ---- threads ---- */

static void link_tid(struct names *n, uint32_t tid, int thread)
{
	if (tid >= n->by_tid.n) {
		size_t from = n->by_tid.n, need = tid + 1;

		vec_reserve(&n->by_tid, need);
		memset(n->by_tid.at + from, 0, (n->by_tid.cap - from) * sizeof(*n->by_tid.at));
		n->by_tid.n = n->by_tid.cap;
	}
	n->links.at[thread].same_tid = n->by_tid.at[tid] - 1;
	n->by_tid.at[tid] = thread + 1;
}

int names_add_thread(struct names *n, uint32_t tid, uint32_t pid, int64_t birth_ns,
		     int64_t first_ns)
{
	int thread = (int)n->threads.n;

	if (tid > NAMES_TIDS || n->threads.n >= NAMES_LIMIT)
		return NO_INDEX;
	vec_push(&n->threads, (struct thread){.tid = tid,
					      .pid = pid,
					      .birth_ns = birth_ns,
					      .first_ns = first_ns,
					      .end_ns = NO_TIME,
					      .parent = NO_INDEX});
	vec_push(&n->links, (struct thread_links){{NO_INDEX, NO_INDEX, NO_INDEX}, NO_INDEX});
	link_tid(n, tid, thread);
	return thread;
}

void names_add_fact(struct names *n, int thread, enum fact f, int64_t since_ns, int32_t value)
{
	int32_t *newest = &n->links.at[thread].newest[f];
	struct change c = {since_ns, value, *newest};

	if (*newest != NO_INDEX && (since_ns == NO_TIME || n->changes.at[*newest].value == value))
		return;
	if (n->changes.n >= INT32_MAX)
		return;
	*newest = (int32_t)n->changes.n;
	vec_push(&n->changes, c);
}

int names_threads(const struct names *n)
{
	return (int)n->threads.n;
}

const struct thread *names_thread(const struct names *n, int thread)
{
	return thread >= 0 && (size_t)thread < n->threads.n ? &n->threads.at[thread] : NULL;
}

static bool lived(const struct thread *t, int64_t at_ns, bool is_oldest)
{
	int64_t from_ns = t->birth_ns != NO_TIME ? t->birth_ns : is_oldest ? NO_TIME : t->first_ns;

	return from_ns <= at_ns && (t->end_ns == NO_TIME || at_ns < t->end_ns);
}

int names_find(const struct names *n, uint32_t tid, int64_t at_ns)
{
	int i = names_newest(n, tid);

	for (; i >= 0; i = n->links.at[i].same_tid)
		if (lived(&n->threads.at[i], at_ns, n->links.at[i].same_tid < 0))
			return i;
	return NO_INDEX;
}

int names_leader(const struct names *n, int thread, int64_t at_ns)
{
	const struct thread *t = names_thread(n, thread);
	int leader;

	if (!t || t->tid == t->pid)
		return thread;
	leader = names_find(n, t->pid, at_ns);
	return leader == NO_INDEX ? thread : leader;
}

/* The value of a fact at that instant; fallback if it was never known. */
static int32_t fact_at(const struct names *n, int thread, enum fact f, int64_t at_ns,
		       int32_t fallback)
{
	int32_t i = names_thread(n, thread) ? n->links.at[thread].newest[f] : NO_INDEX;

	for (; i != NO_INDEX; i = n->changes.at[i].older) {
		fallback = n->changes.at[i].value;
		if (n->changes.at[i].since_ns <= at_ns)
			break;
	}
	return fallback;
}

const char *names_comm(const struct names *n, int thread, int64_t at_ns)
{
	return names_str(n, (uint32_t)fact_at(n, thread, FACT_COMM, at_ns, 0));
}

/* Checked, for a loaded table may hold any number. */
static int cgroup_at(const struct names *n, int thread, enum fact f, int64_t at_ns)
{
	int cgroup = fact_at(n, thread, f, at_ns, NO_INDEX);

	return names_cgroup(n, cgroup) ? cgroup : NO_INDEX;
}

int names_cgroup_of(const struct names *n, int thread, int64_t at_ns)
{
	return cgroup_at(n, thread, n->key_is_v2 ? FACT_V2 : FACT_CPU, at_ns);
}

int names_cpu_cgroup_of(const struct names *n, int thread, int64_t at_ns)
{
	return cgroup_at(n, thread, FACT_CPU, at_ns);
}

/* ---- cgroups ---- */

/* Ids are unique in a hierarchy only.  Its number is small, an id's upper bits count reuse. */
static uint64_t cgroup_key(uint32_t hierarchy, uint64_t id)
{
	return id ^ (uint64_t)hierarchy << 52;
}

static uint64_t path_key(uint32_t hierarchy, uint32_t path)
{
	return (uint64_t)hierarchy << 32 | path;
}

int names_cgroup_index(struct names *n, uint32_t hierarchy, uint64_t id)
{
	uint64_t i;

	if (!id)
		return NO_INDEX;
	if (map_get(&n->cgroup_by_id, cgroup_key(hierarchy, id), &i))
		return (int)i;
	if (n->cgroups.n >= NAMES_LIMIT)
		return NO_INDEX;
	i = n->cgroups.n;
	vec_push(&n->cgroups, (struct cgroup){.id = id, .hierarchy = hierarchy, .unit = (int)i});
	map_put(&n->cgroup_by_id, cgroup_key(hierarchy, id), i);
	return (int)i;
}

void names_set_cgroup(struct names *n, uint32_t hierarchy, uint64_t id, const char *path)
{
	int i = names_cgroup_index(n, hierarchy, id);
	struct cgroup *c;

	if (i < 0)
		return;
	c = &n->cgroups.at[i];
	c->path = names_intern(n, *path ? path : "/");
	map_put(&n->cgroup_by_path, path_key(hierarchy, c->path), (uint64_t)i);
}

int names_cgroups(const struct names *n)
{
	return (int)n->cgroups.n;
}

const struct cgroup *names_cgroup(const struct names *n, int cgroup)
{
	return cgroup >= 0 && (size_t)cgroup < n->cgroups.n ? &n->cgroups.at[cgroup] : NULL;
}

static uint32_t key_hierarchy(const struct names *n)
{
	return n->key_is_v2 ? 0 : n->cpu_hierarchy;
}

int names_cgroup_same(const struct names *n, int cgroup)
{
	const struct cgroup *c = names_cgroup(n, cgroup);
	uint64_t i;

	if (c && map_get(&n->cgroup_by_path, path_key(key_hierarchy(n), c->path), &i))
		return (int)i;
	return cgroup;
}

const char *names_cgroup_key(const struct names *n)
{
	return n->key_is_v2 ? "v2" : "cpu";
}

void names_set_cgroup_key(struct names *n, const char *key)
{
	n->key_is_v2 = !strcmp(key, "v2");
	n->key_chosen = true;
}

static bool has_word(const char *list, const char *word)
{
	for (size_t len; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len == strlen(word) && !memcmp(list, word, len))
			return true;
	}
	return false;
}

void names_set_hierarchy(struct names *n, uint32_t hierarchy, const char *controllers)
{
	if (has_word(controllers, "cpu"))
		n->cpu_hierarchy = hierarchy;
	if (has_word(controllers, "blkio"))
		n->blkio_hierarchy = hierarchy;
}

/* In how many cgroups the threads are that live at the end. */
static size_t spread(const struct names *n, enum fact f)
{
	struct map seen = {0};
	size_t count;

	for (size_t i = 1; i < n->threads.n; i++)
		if (n->threads.at[i].end_ns == NO_TIME && n->links.at[i].newest[f] != NO_INDEX)
			map_put(&seen, (uint64_t)n->changes.at[n->links.at[i].newest[f]].value, 1);
	count = seen.n;
	map_fini(&seen);
	return count;
}

static void choose_key(struct names *n)
{
	size_t v2 = spread(n, FACT_V2);

	if (!n->key_chosen)
		n->key_is_v2 = !n->cpu_hierarchy || (v2 > 1 && v2 >= spread(n, FACT_CPU));
	n->key_chosen = true;
}

/* The cgroup that owns c: the one whose path is c's down to its container or unit. */
static void find_unit(struct names *n, int index)
{
	char name[SHAPE_NAME];
	struct cgroup *c = &n->cgroups.at[index];
	const char *path = names_str(n, c->path);
	size_t len = shape_owner(path, name);
	uint64_t unit = (uint64_t)index;

	c->is_system = shape_is_system(path);
	if (path[len]) {
		uint32_t owner = strtab_id_len(&n->strings, path, len);

		map_get(&n->cgroup_by_path, path_key(c->hierarchy, owner), &unit);
	}
	c->unit = (int)unit;
	c->container = names_intern(n, name);
}

static void name_unknown(struct names *n, struct cgroup *c)
{
	char text[32];

	if (c->path)
		return;
	snprintf(text, sizeof(text), "cgroup:%llu", (unsigned long long)c->id);
	c->path = names_intern(n, text);
}

void names_finish(struct names *n)
{
	for (size_t i = 0; i < n->cgroups.n; i++)
		name_unknown(n, &n->cgroups.at[i]);
	for (size_t i = 0; i < n->cgroups.n; i++)
		find_unit(n, (int)i);
	choose_key(n);
}

/* ---- sockets ---- */

int names_socket_index(struct names *n, uint64_t cookie)
{
	uint64_t i;

	if (map_get(&n->socket_by_cookie, cookie, &i))
		return (int)i;
	if (n->sockets.n >= NAMES_LIMIT)
		return NO_INDEX;
	i = n->sockets.n;
	vec_push(&n->sockets, (struct sockinfo){.cookie = cookie, .peer = NO_INDEX});
	map_put(&n->socket_by_cookie, cookie, i);
	return (int)i;
}

struct sockinfo *names_socket_at(struct names *n, int socket)
{
	return &n->sockets.at[socket];
}

int names_sockets(const struct names *n)
{
	return (int)n->sockets.n;
}

const struct sockinfo *names_socket(const struct names *n, int socket)
{
	return socket >= 0 && (size_t)socket < n->sockets.n ? &n->sockets.at[socket] : NULL;
}

static void print_address(const struct sockinfo *s, bool remote, char *buf, size_t len)
{
	const uint8_t *addr = remote ? s->remote_addr : s->local_addr;
	unsigned port = remote ? s->remote_port : s->local_port;
	char text[INET6_ADDRSTRLEN];

	if (s->family == AF_INET6 && !memcmp(addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12))
		snprintf(buf, len, "%s:%u", inet_ntop(AF_INET, addr + 12, text, sizeof(text)),
			 port);
	else if (s->family == AF_INET6)
		snprintf(buf, len, "[%s]:%u", inet_ntop(AF_INET6, addr, text, sizeof(text)), port);
	else
		snprintf(buf, len, "%s:%u", inet_ntop(AF_INET, addr, text, sizeof(text)), port);
}

const char *names_address(const struct names *n, int socket, bool remote, char *buf, size_t len)
{
	const struct sockinfo *s = names_socket(n, socket);

	buf[0] = '\0';
	if (!s || !s->family)
		snprintf(buf, len, "unknown");
	else if (s->family == AF_UNIX)
		snprintf(buf, len, "%s", s->path ? names_str(n, s->path) : "unix");
	else
		print_address(s, remote, buf, len);
	return buf;
}

/* ---- disks ---- */

int names_disk(struct names *n, uint32_t dev)
{
	size_t i = 0;

	while (i < n->disks.n && n->disks.at[i].dev != dev)
		i++;
	if (i == NAMES_LIMIT / DISK_SLOTS)
		return NO_INDEX;
	if (i == n->disks.n)
		vec_push(&n->disks, (struct disk){.dev = dev});
	return (int)i;
}

int names_disks(const struct names *n)
{
	return (int)n->disks.n;
}

const char *names_disk_name(const struct names *n, int disk)
{
	return disk >= 0 && (size_t)disk < n->disks.n ? names_str(n, n->disks.at[disk].name) : "";
}

void names_set_disk_name(struct names *n, uint32_t dev, const char *name)
{
	int disk = names_disk(n, dev);

	if (disk >= 0)
		n->disks.at[disk].name = names_intern(n, name);
}
