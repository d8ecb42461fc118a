/* SPDX-License-Identifier: MIT
 *
 * Which cgroups are containers, which are units: a table of path shapes.
 *
 * A path is looked at one component at a time.  A line of the table matches a component by what
 * it begins and ends with, what lies between them, and, where the component alone says too
 * little, by the beginning of its parent.  The container that lies deepest owns what is below it,
 * also the units of an init system inside it; without a container the deepest unit does.
 */
#include "model/shapes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum middle {
	MIDDLE_ID,   /* 12 or more hex digits; the first 12 are the name */
	MIDDLE_NAME, /* anything, with systemd's \xNN undone */
	MIDDLE_UNIT, /* a unit of the host, no container */
};

static const struct shape {
	const char *parent; /* see is_parent; NULL: any */
	const char *prefix, *suffix;
	enum middle middle;
} shapes[] = {
	{NULL, "docker-", ".scope", MIDDLE_ID},
	{"docker", "", "", MIDDLE_ID},
	{NULL, "cri-containerd-", ".scope", MIDDLE_ID},
	{NULL, "crio-", ".scope", MIDDLE_ID},
	{NULL, "crio-", "", MIDDLE_ID},
	{"pod", "", "", MIDDLE_ID}, /* kubepods/burstable/podUID/ID */
	{NULL, "libpod-", ".scope", MIDDLE_ID},
	{NULL, "libpod-payload-", "", MIDDLE_ID},
	{NULL, "libpod-", "", MIDDLE_ID},
	{NULL, "nerdctl-", ".scope", MIDDLE_ID},
	{"buildkit", "", "", MIDDLE_ID},
	{"ecs", "", "", MIDDLE_ID},
	{NULL, "lxc.payload.", "", MIDDLE_NAME},
	{"lxc", "", "", MIDDLE_NAME},
	{NULL, "systemd-nspawn@", ".service", MIDDLE_NAME},
	{NULL, "machine-", ".scope", MIDDLE_NAME},
	{NULL, "", ".service", MIDDLE_UNIT},
	{NULL, "", ".scope", MIDDLE_UNIT},
};

struct part { /* a component, not NUL-terminated */
	const char *at;
	size_t len;
};

static bool begins(struct part p, const char *s)
{
	size_t n = strlen(s);

	return p.len >= n && !memcmp(p.at, s, n);
}

static bool ends(struct part p, const char *s)
{
	size_t n = strlen(s);

	return p.len >= n && !memcmp(p.at + p.len - n, s, n);
}

static bool is_id(struct part p)
{
	for (size_t i = 0; i < p.len; i++)
		if (!isxdigit((unsigned char)p.at[i]))
			return false;
	return p.len >= 12;
}

/* "docker" is a parent in full; a pod is podUID or kubepods-...-podUID.slice. */
static bool is_parent(struct part parent, const char *want)
{
	if (!strcmp(want, "pod"))
		return begins(parent, want) || begins(parent, "kubepods-");
	return begins(parent, want) && parent.len == strlen(want);
}

/* What lies between prefix and suffix; false if the shape does not fit. */
static bool fits(const struct shape *s, struct part parent, struct part p, struct part *ret)
{
	size_t around = strlen(s->prefix) + strlen(s->suffix);

	if (p.len <= around || !begins(p, s->prefix) || !ends(p, s->suffix))
		return false;
	*ret = (struct part){p.at + strlen(s->prefix), p.len - around};
	return (!s->parent || is_parent(parent, s->parent)) &&
	       (s->middle != MIDDLE_ID || is_id(*ret));
}

static const struct shape *find(struct part parent, struct part p, struct part *ret_middle)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (fits(&shapes[i], parent, p, ret_middle))
			return &shapes[i];
	return NULL;
}

static void name_id(struct part id, char ret[SHAPE_NAME])
{
	snprintf(ret, SHAPE_NAME, "%.12s", id.at);
}

/* systemd writes '-' in a name as "\x2d". */
static void name_text(struct part p, char ret[SHAPE_NAME])
{
	size_t n = 0;
	unsigned byte;

	for (size_t i = 0; i < p.len && n < SHAPE_NAME - 1; i++) {
		if (p.len - i >= 4 && p.at[i] == '\\' && p.at[i + 1] == 'x' &&
		    sscanf(p.at + i + 2, "%2x", &byte) == 1 && isprint((int)byte)) {
			ret[n++] = (char)byte;
			i += 3;
		} else {
			ret[n++] = p.at[i];
		}
	}
	ret[n] = '\0';
}

size_t shape_owner(const char *path, char ret_name[SHAPE_NAME])
{
	struct part parent = {"", 0}, middle;
	size_t container = 0, unit = 0, at = 0;

	ret_name[0] = '\0';
	while (path[at]) {
		struct part p = {path + at, strcspn(path + at, "/")};
		const struct shape *s = find(parent, p, &middle);

		at += p.len;
		if (s && s->middle == MIDDLE_UNIT)
			unit = at;
		else if (s) {
			container = at;
			(s->middle == MIDDLE_ID ? name_id : name_text)(middle, ret_name);
		}
		if (p.len)
			parent = p;
		at += path[at] == '/';
	}
	return container ? container : unit ? unit : strlen(path);
}

bool shape_is_system(const char *path)
{
	return !strcmp(path, "/") || !strcmp(path, "/init.scope");
}
