/* SPDX-License-Identifier: MIT
 *
 * Sockets by address: which two are the ends of one connection, and which end serves.
 *
 * The ends of a TCP connection on this host have each other's addresses, whatever their network
 * namespaces; those of a UNIX one know each other's cookie, or one of them does.  A socket that
 * was there before the recording began does not tell who opened it: it serves if its local
 * address is a listener's, else it is a client if its peer serves or its remote port is a
 * listener's.
 */
#include "model/state.h"

#include <string.h>
#include <sys/socket.h>

struct ends { /* hashed as bytes: no padding */
	uint8_t local[16], remote[16];
	uint16_t local_port, remote_port;
	uint32_t netns; /* of loopback addresses, which every namespace has; else 0 */
};

static const uint8_t v4_in_v6[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static void plain_address(int family, const uint8_t from[16], uint8_t ret[16])
{
	memset(ret, 0, 16);
	if (family == AF_INET)
		memcpy(ret, from, 4);
	else if (!memcmp(from, v4_in_v6, sizeof(v4_in_v6)))
		memcpy(ret, from + 12, 4);
	else
		memcpy(ret, from, 16);
}

static bool is_loopback(const uint8_t plain[16])
{
	static const uint8_t v6[16] = {[15] = 1};

	return plain[0] == 127 || !memcmp(plain, v6, sizeof(v6));
}

static uint64_t hash(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static uint64_t hash_ends(const struct sockinfo *s, bool turned)
{
	struct ends e = {.local_port = turned ? s->remote_port : s->local_port,
			 .remote_port = turned ? s->local_port : s->remote_port};

	plain_address(s->family, turned ? s->remote_addr : s->local_addr, e.local);
	plain_address(s->family, turned ? s->local_addr : s->remote_addr, e.remote);
	if (is_loopback(e.local))
		e.netns = s->netns;
	return hash(&e, sizeof(e));
}

static uint64_t hash_listener(int family, const uint8_t addr[16], uint16_t port)
{
	struct ends e = {.local_port = port};

	plain_address(family, addr, e.local);
	return hash(&e, sizeof(e));
}

static bool is_inet(const struct sockinfo *s)
{
	return s->family == AF_INET || s->family == AF_INET6;
}

static void join(struct model *m, int a, uint64_t b)
{
	if ((uint64_t)a == b)
		return;
	names_socket_at(m->names, a)->peer = (int)b;
	names_socket_at(m->names, (int)b)->peer = a;
}

static void find_peer(struct model *m, int socket, uint64_t peer_cookie)
{
	const struct sockinfo *s = names_socket(m->names, socket);
	uint64_t other;

	if (is_inet(s)) {
		map_put(&m->by_ends, hash_ends(s, false), (uint64_t)socket);
		if (map_get(&m->by_ends, hash_ends(s, true), &other))
			join(m, socket, other);
	} else if (peer_cookie && map_get(&m->names->socket_by_cookie, peer_cookie, &other)) {
		join(m, socket, other);
	} else if (peer_cookie) {
		map_put(&m->by_ends, peer_cookie, (uint64_t)socket); /* until it shows up */
	}
	if (s->family == AF_UNIX && map_get(&m->by_ends, s->cookie, &other) && s->peer == NO_INDEX)
		join(m, socket, other);
}

void roles_forget(struct model *m, int socket)
{
	const struct sockinfo *s = names_socket(m->names, socket);
	uint64_t key = is_inet(s) ? hash_ends(s, false) : s->cookie, owner;

	if (map_get(&m->by_ends, key, &owner) && (owner == (uint64_t)socket || !is_inet(s)))
		map_del(&m->by_ends, key, NULL);
}

static void listen_at(struct model *m, const struct event_socket *e)
{
	map_put(&m->listeners, hash_listener(e->family, e->local_addr, e->local_port), 1);
	map_put(&m->listeners, e->local_port, 1);
}

void roles_socket(struct model *m, int socket, const struct event_socket *e)
{
	struct sockinfo *s = names_socket_at(m->names, socket);

	s->family = e->family;
	s->netns = e->netns;
	s->local_port = e->local_port;
	s->remote_port = e->remote_port;
	memcpy(s->local_addr, e->local_addr, sizeof(s->local_addr));
	memcpy(s->remote_addr, e->remote_addr, sizeof(s->remote_addr));
	if (e->path[0])
		s->path = names_intern(m->names, e->path);
	if (e->role != ROLE_UNKNOWN)
		s->role = e->role;
	if (e->role != ROLE_LISTEN)
		find_peer(m, socket, e->peer);
	else if (is_inet(s))
		listen_at(m, e);
}

static bool is_listener(const struct model *m, const struct sockinfo *s)
{
	static const uint8_t any[16];

	return map_get(&m->listeners, hash_listener(s->family, s->local_addr, s->local_port),
		       NULL) ||
	       map_get(&m->listeners, hash_listener(AF_INET6, any, s->local_port), NULL);
}

enum role roles_of(struct model *m, int socket)
{
	struct sockinfo *s = names_socket_at(m->names, socket);
	const struct sockinfo *peer = names_socket(m->names, s->peer);

	if (s->role != ROLE_UNKNOWN)
		return s->role;
	if (is_inet(s) ? is_listener(m, s) : s->path != 0)
		s->role = ROLE_SERVED;
	else if (peer && (peer->role == ROLE_SERVED || peer->role == ROLE_CLIENT))
		s->role = peer->role == ROLE_SERVED ? ROLE_CLIENT : ROLE_SERVED;
	else if (is_inet(s) && map_get(&m->listeners, s->remote_port, NULL))
		s->role = ROLE_CLIENT;
	return s->role;
}
