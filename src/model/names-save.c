/* SPDX-License-Identifier: MIT
 *
 * Names as one block of bytes, and back.
 *
 * A list of numbers, each in groups of seven bits with the lowest first (signed ones with the
 * sign in bit 0), and the texts.  Whatever the bytes are, loading ends, touches nothing outside
 * them and gives a table whose indices all point inside it: a damaged one is refused.
 *
 *	magic | key | texts | threads | changes | cgroups | sockets | disks
 */
#include "base/err.h"
#include "model/names.h"

#include <errno.h>
#include <string.h>

static const char magic[8] = "lpname\x01\n";

struct VEC_bytes VEC(uint8_t);

struct input {
	const uint8_t *at, *end;
	bool bad;
};

static void put(struct VEC_bytes *b, uint64_t x)
{
	for (; x >= 0x80; x >>= 7)
		vec_push(b, (uint8_t)(x | 0x80));
	vec_push(b, (uint8_t)x);
}

static void put_signed(struct VEC_bytes *b, int64_t x)
{
	put(b, (uint64_t)x << 1 ^ (x < 0 ? UINT64_MAX : 0));
}

static void put_bytes(struct VEC_bytes *b, const void *data, size_t len)
{
	vec_reserve(b, b->n + len + 1);
	memcpy(b->at + b->n, data, len);
	b->n += len;
}

static uint64_t get(struct input *in)
{
	uint64_t x = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (in->at == in->end)
			break;
		x |= (uint64_t)(*in->at & 0x7f) << shift;
		if (!(*in->at++ & 0x80))
			return x;
	}
	in->bad = true;
	return 0;
}

static int64_t get_signed(struct input *in)
{
	uint64_t x = get(in);

	return (int64_t)(x >> 1 ^ (x & 1 ? UINT64_MAX : 0));
}

/* A number below limit. */
static uint64_t get_below(struct input *in, uint64_t limit)
{
	uint64_t x = get(in);

	if (x < limit)
		return x;
	in->bad = true;
	return 0;
}

/* How many items follow; each takes at least one byte. */
static size_t get_count(struct input *in)
{
	return get_below(in, (uint64_t)(in->end - in->at) + 1);
}

/* An index below limit, or NO_INDEX: written plus one. */
static int get_index(struct input *in, size_t limit)
{
	return (int)get_below(in, (uint64_t)limit + 1) - 1;
}

static void get_bytes(struct input *in, void *ret, size_t len)
{
	if ((size_t)(in->end - in->at) < len) {
		in->bad = true;
		return;
	}
	memcpy(ret, in->at, len);
	in->at += len;
}

/* ---- texts ---- */

static void save_texts(struct VEC_bytes *b, const struct strtab *t)
{
	put(b, t->n);
	for (size_t i = 0; i < t->n; i++) {
		const char *s = strtab_get(t, (uint32_t)i);

		put(b, strlen(s));
		put_bytes(b, s, strlen(s));
	}
}

static void load_texts(struct input *in, struct strtab *t)
{
	size_t n = get_count(in);

	for (size_t i = 0; i < n && !in->bad; i++) {
		size_t len = get_count(in);

		/* A text that is there already, or holds a NUL, gets another id. */
		if ((size_t)(in->end - in->at) < len ||
		    strtab_id_len(t, (const char *)in->at, len) != i)
			in->bad = true;
		else
			in->at += len;
	}
}

/* ---- threads ---- */

static void save_threads(struct VEC_bytes *b, const struct names *n)
{
	put(b, n->threads.n);
	for (size_t i = 0; i < n->threads.n; i++) {
		const struct thread *t = &n->threads.at[i];

		put(b, t->tid);
		put(b, t->pid);
		put_signed(b, t->birth_ns);
		put_signed(b, t->first_ns);
		put_signed(b, t->end_ns);
		put(b, (uint64_t)(t->parent + 1) << 1 | t->kernel);
		for (int f = 0; f < FACT_COUNT; f++)
			put(b, (uint64_t)(n->links.at[i].newest[f] + 1));
	}
	put(b, n->changes.n);
	for (size_t i = 0; i < n->changes.n; i++) {
		put_signed(b, n->changes.at[i].since_ns);
		put(b, (uint64_t)(n->changes.at[i].value + 1));
		put(b, (uint64_t)(n->changes.at[i].older + 1));
	}
}

static void load_thread(struct input *in, struct names *n, size_t threads)
{
	uint32_t tid = (uint32_t)get_below(in, NAMES_TIDS + 1ull);
	uint32_t pid = (uint32_t)get_below(in, 1ull << 32);
	int64_t birth_ns = get_signed(in), first_ns = get_signed(in);
	int i = names_add_thread(n, tid, pid, birth_ns, first_ns);
	uint64_t parent;

	if (i < 0) {
		in->bad = true;
		return;
	}
	n->threads.at[i].end_ns = get_signed(in);
	parent = get(in);
	n->threads.at[i].kernel = parent & 1;
	n->threads.at[i].parent = (int)(parent >> 1) - 1;
	in->bad |= parent >> 1 > threads;
	for (int f = 0; f < FACT_COUNT; f++)
		n->links.at[i].newest[f] = get_index(in, INT32_MAX);
}

static void load_changes(struct input *in, struct names *n)
{
	size_t count = get_count(in);

	for (size_t i = 0; i < count && !in->bad; i++) {
		struct change c = {.since_ns = get_signed(in)};

		c.value = get_index(in, INT32_MAX);
		c.older = get_index(in, i); /* a smaller index: no cycle */
		vec_push(&n->changes, c);
	}
	for (size_t i = 0; i < n->threads.n; i++)
		for (int f = 0; f < FACT_COUNT; f++)
			in->bad |= n->links.at[i].newest[f] >= (int64_t)n->changes.n;
}

static void load_threads(struct input *in, struct names *n)
{
	size_t count = get_count(in);

	for (size_t i = 0; i < count && !in->bad; i++)
		load_thread(in, n, count);
	in->bad |= !n->threads.n;
	load_changes(in, n);
}

/* ---- cgroups, sockets, disks ---- */

static void save_cgroups(struct VEC_bytes *b, const struct names *n)
{
	put(b, n->cgroups.n);
	for (size_t i = 0; i < n->cgroups.n; i++) {
		const struct cgroup *c = &n->cgroups.at[i];

		put(b, c->id);
		put(b, (uint64_t)c->hierarchy << 1 | c->is_system);
		put(b, c->path);
		put(b, (uint64_t)c->unit);
		put(b, c->container);
	}
}

static void load_cgroups(struct input *in, struct names *n)
{
	size_t count = get_count(in);

	for (size_t i = 0; i < count && !in->bad; i++) {
		struct cgroup c = {.id = get(in)};
		uint64_t hierarchy = get_below(in, 1ull << 33);

		c.hierarchy = (uint32_t)(hierarchy >> 1);
		c.is_system = hierarchy & 1;
		c.path = (uint32_t)get_below(in, n->strings.n);
		c.unit = (int)get_below(in, count);
		c.container = (uint32_t)get_below(in, n->strings.n);
		vec_push(&n->cgroups, c);
		map_put(&n->cgroup_by_path, (uint64_t)c.hierarchy << 32 | c.path, i);
	}
}

static void save_sockets(struct VEC_bytes *b, const struct names *n)
{
	put(b, n->sockets.n);
	for (size_t i = 0; i < n->sockets.n; i++) {
		const struct sockinfo *s = &n->sockets.at[i];

		put(b, s->cookie);
		put(b, (uint64_t)s->family << 3 | s->role);
		put(b, (uint64_t)s->local_port << 16 | s->remote_port);
		put(b, s->netns);
		put(b, s->path);
		put(b, (uint64_t)(s->peer + 1));
		put_bytes(b, s->local_addr, sizeof(s->local_addr));
		put_bytes(b, s->remote_addr, sizeof(s->remote_addr));
	}
}

static void load_socket(struct input *in, struct names *n, size_t count)
{
	struct sockinfo s = {.cookie = get(in)};
	uint64_t family = get_below(in, 1ull << 19);
	uint64_t ports = get_below(in, 1ull << 32);

	s.family = (int)(family >> 3);
	s.role = (family & 7) <= ROLE_PAIR ? (enum role)(family & 7) : ROLE_UNKNOWN;
	s.local_port = (uint16_t)(ports >> 16);
	s.remote_port = (uint16_t)ports;
	s.netns = (uint32_t)get_below(in, 1ull << 32);
	s.path = (uint32_t)get_below(in, n->strings.n);
	s.peer = get_index(in, count);
	get_bytes(in, s.local_addr, sizeof(s.local_addr));
	get_bytes(in, s.remote_addr, sizeof(s.remote_addr));
	vec_push(&n->sockets, s);
}

static void save_disks(struct VEC_bytes *b, const struct names *n)
{
	put(b, n->disks.n);
	for (size_t i = 0; i < n->disks.n; i++) {
		put(b, n->disks.at[i].dev);
		put(b, n->disks.at[i].name);
	}
}

static void load_disks(struct input *in, struct names *n)
{
	size_t count = get_count(in);

	for (size_t i = 0; i < count && !in->bad; i++) {
		struct disk d = {.dev = (uint32_t)get_below(in, 1ull << 32)};

		d.name = (uint32_t)get_below(in, n->strings.n);
		vec_push(&n->disks, d);
	}
}

/* ---- all ---- */

int names_save(const struct names *n, void **ret, size_t *ret_len)
{
	struct VEC_bytes b = {0};

	put_bytes(&b, magic, sizeof(magic));
	put(&b, (uint64_t)n->cpu_hierarchy << 1 | n->key_is_v2);
	save_texts(&b, &n->strings);
	save_threads(&b, n);
	save_cgroups(&b, n);
	save_sockets(&b, n);
	save_disks(&b, n);
	*ret = b.at;
	*ret_len = b.n;
	return 0;
}

static void load(struct input *in, struct names *n)
{
	char found[sizeof(magic)] = {0};
	uint64_t key;

	get_bytes(in, found, sizeof(found));
	key = get_below(in, 1ull << 33);
	n->cpu_hierarchy = (uint32_t)(key >> 1);
	n->key_is_v2 = key & 1;
	n->key_chosen = true;
	in->bad |= memcmp(found, magic, sizeof(magic)) != 0;
	load_texts(in, &n->strings);
	if (!in->bad)
		load_threads(in, n);
	if (!in->bad)
		load_cgroups(in, n);
	for (size_t i = 0, count = get_count(in); i < count && !in->bad; i++)
		load_socket(in, n, count);
	if (!in->bad)
		load_disks(in, n);
	in->bad |= in->at != in->end;
}

int names_load(const void *data, size_t len, struct names **ret, struct err *err)
{
	struct names *n = calloc(1, sizeof(*n));
	struct input in = {data, (const uint8_t *)data + len, false};

	if (!n)
		return err_set(err, -ENOMEM, "out of memory");
	load(&in, n);
	if (in.bad) {
		names_free(n);
		return err_set(err, -EBADMSG, "the table of names is damaged");
	}
	*ret = n;
	return 0;
}
