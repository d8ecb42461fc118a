/* SPDX-License-Identifier: MIT
 *
 * recorder-sock.bpf.h - stream sockets: what was received and sent, when data arrived, where a
 * request begins.
 *
 *	arrives ──► (thread busy or asleep) ──► recv: one record tells both instants
 *	recv after a send (or first): a message begins; is it a request? its first bytes tell
 *	send after a recv: an answer begins; is it HTTP? its first bytes tell the status
 *
 * The hooks are where a socket call returned its length, so that the other system calls cost
 * nothing; buffers are found through the system call's saved registers.
 * State is in socket storage: it goes with the socket, and no other socket can read it.
 *
 * Kernels before 6.3 lack those hooks (cfg_by_calls).  There every system call's end is looked
 * at; the socket is an address found through the descriptor, read with probes, and its state is
 * in a map by that address.  A TCP socket takes its state with it when it is destroyed; another
 * is known to be a new one by the inode of its file.  We number these sockets ourselves.
 */
#ifndef BPF_RECORDER_SOCK_BPF_H
#define BPF_RECORDER_SOCK_BPF_H

#include "bpf/recorder-state.bpf.h"

enum { DIR_NONE, DIR_RECV, DIR_SEND };
enum { UNIX_NAME_AT = 3 }; /* of an abstract name in its address: family, NUL */

struct sock_state {
	u64 cookie;
	u64 arrived; /* first data since the last receive; 0 none */
	u64 rx, tx;  /* bytes; where TCP does not count them */
	u64 peer;    /* UNIX */
	u64 inode;   /* by_address: of its file; 0 has none yet */
	u32 arrived_tid;
	u8 role;    /* enum rec_role */
	u8 said;    /* a record has told of it, with this role */
	u8 last;    /* DIR_* */
	u8 interim; /* the answer so far was 1xx: the real one is to come */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sock_state);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64); /* the loader makes it larger where it is used */
	__type(key, u64);
	__type(value, struct sock_state);
} by_address SEC(".maps");

/* A field of a socket that is an address only, or that the verifier knows. */
#define SOCK(sk, field) (cfg_by_calls ? BPF_CORE_READ((sk), field) : (sk)->field)

inlined bool is_stream(const struct sock *sk)
{
	u16 family = SOCK(sk, __sk_common.skc_family);

	return SOCK(sk, sk_type) == SOCK_STREAM &&
	       (family == AF_INET || family == AF_INET6 || family == AF_UNIX);
}

inlined u64 new_cookie(struct recorder_cpu *cs)
{
	return (u64)(bpf_get_smp_processor_id() + 1) << 40 | ++cs->last_socket;
}

inlined struct sock_state *address_state(struct recorder_cpu *cs, struct sock *sk)
{
	u64 key = (u64)sk;
	struct sock_state *s = bpf_map_lookup_elem(&by_address, &key), fresh = {};

	if (s)
		return s;
	fresh.cookie = new_cookie(cs);
	bpf_map_update_elem(&by_address, &key, &fresh, BPF_NOEXIST);
	s = bpf_map_lookup_elem(&by_address, &key);
	if (!s)
		count_lost(cs, REC_LOST_SOCK_STORAGE);
	return s;
}

inlined struct sock_state *sock_state(struct recorder_cpu *cs, struct sock *sk)
{
	struct sock_state *s;

	if (cfg_by_calls)
		return address_state(cs, sk);
	s = bpf_sk_storage_get(&sockets, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s)
		count_lost(cs, REC_LOST_SOCK_STORAGE);
	else if (!s->cookie)
		s->cookie = bpf_get_socket_cookie(sk);
	return s;
}

/* --- from a file to its socket, where that is an address */

inlined struct sock *sock_of_file(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);

	return BPF_CORE_READ(socket, sk);
}

inlined u64 known_cookie(struct sock *sk)
{
	u64 key = (u64)sk;
	struct sock_state *s = bpf_map_lookup_elem(&by_address, &key);

	return s ? s->cookie : 0;
}

inlined bool is_socket(struct file *file)
{
	u64 fop = (u64)BPF_CORE_READ(file, f_op);

	if (socket_fop)
		return fop == socket_fop;
	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return false;
	socket_fop = fop;
	return true;
}

/* The socket at this address may be another one than before. */
inlined void check_inode(struct recorder_cpu *cs, struct sock_state *s, u64 inode)
{
	if (s->inode && s->inode != inode) {
		__builtin_memset(s, 0, sizeof(*s));
		s->cookie = new_cookie(cs);
	}
	s->inode = inode;
}

/* A call that ends where its bytes are counted, so that the instant of arrival can wait there. */
inlined bool delivers(u8 class)
{
	u8 arg = class & CALL_ARG;

	return class & CALL_SEND && (class & (CALL_BUF | CALL_IOV | CALL_MSG) ||
				     arg == CALL_SENDFILE || arg == CALL_SPLICE);
}

/* --- telling of a socket */

inlined void put_unix_path(struct rec_socket *r, struct unix_address *addr)
{
	u32 len = BPF_CORE_READ(addr, len);
	char first = 0;

	bpf_probe_read_kernel(&first, 1, &addr->name[0].sun_path);
	if (first) {
		bpf_probe_read_kernel_str(r->path, sizeof(r->path), &addr->name[0].sun_path);
		return;
	}
	/* an abstract name has no NUL at its end */
	len = len > UNIX_NAME_AT ? len - UNIX_NAME_AT : 0;
	asm volatile("" : "+r"(len));
	if (len > sizeof(r->path) - 1)
		len = sizeof(r->path) - 1;
	r->path[0] = '@';
	bpf_probe_read_kernel(r->path + 1, len, &addr->name[0].sun_path[1]);
}

/* An accepted socket shares its listener's address; a bound client owns its own. */
inlined u8 unix_role(struct unix_address *own, struct unix_address *other, u8 state)
{
	if (state == TCP_LISTEN)
		return REC_ROLE_LISTEN;
	if (own && BPF_CORE_READ(own, refcnt.refs.counter) > 1)
		return REC_ROLE_SERVED;
	if (other)
		return REC_ROLE_CLIENT;
	return own ? REC_ROLE_UNKNOWN : REC_ROLE_PAIR;
}

inlined u64 peer_cookie(struct recorder_cpu *cs, struct sock *peer)
{
	struct sock_state *s;

	if (!cfg_by_calls)
		return BPF_CORE_READ(peer, __sk_common.skc_cookie.counter);
	s = address_state(cs, peer);
	return s ? s->cookie : 0;
}

inlined void put_unix(struct recorder_cpu *cs, struct rec_socket *r, struct sock *sk,
		      struct sock_state *s)
{
	struct unix_sock *u = (void *)sk;
	struct unix_address *own, *other = NULL;
	struct sock *peer;

	own = BPF_CORE_READ(u, addr);
	peer = BPF_CORE_READ(u, peer);
	if (peer) {
		other = BPF_CORE_READ((struct unix_sock *)peer, addr);
		s->peer = peer_cookie(cs, peer);
	}
	s->role = unix_role(own, other, SOCK(sk, __sk_common.skc_state));
	r->peer = s->peer;
	if (own || other)
		put_unix_path(r, own ? own : other);
}

inlined bool is_mapped(const struct in6_addr *a)
{
	const u32 *w = (const u32 *)a;

	return !w[0] && !w[1] && w[2] == __builtin_bswap32(0xffff);
}

/* IPv4 over an IPv6 socket is told as IPv4, so that both ends look alike. */
inlined void put_inet(struct rec_socket *r, struct sock *sk)
{
	struct in6_addr local = {}, remote = {};
	bool four = r->family == AF_INET;

	r->local_port = SOCK(sk, __sk_common.skc_num);
	r->remote_port = __builtin_bswap16(SOCK(sk, __sk_common.skc_dport));
	if (!four && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&remote, sk, __sk_common.skc_v6_daddr);
		four = is_mapped(&remote) || is_mapped(&local);
	}
	if (four) {
		u32 a = SOCK(sk, __sk_common.skc_rcv_saddr);
		u32 b = SOCK(sk, __sk_common.skc_daddr);

		r->family = AF_INET;
		__builtin_memcpy(r->local_addr, &a, 4);
		__builtin_memcpy(r->remote_addr, &b, 4);
	} else {
		__builtin_memcpy(r->local_addr, &local, 16);
		__builtin_memcpy(r->remote_addr, &remote, 16);
	}
}

inlined void put_socket(struct recorder_cpu *cs, struct rec_socket *r, struct sock *sk,
			struct sock_state *s, u32 tid)
{
	r->cookie = s->cookie;
	r->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	r->family = SOCK(sk, __sk_common.skc_family);
	r->tid = tid;
	if (r->family == AF_UNIX)
		put_unix(cs, r, sk, s);
	else
		put_inet(r, sk);
	if (r->family != AF_UNIX && SOCK(sk, __sk_common.skc_state) == TCP_LISTEN)
		s->role = REC_ROLE_LISTEN;
	r->role = s->role;
}

static __noinline int say_socket(struct recorder_cpu *cs, struct sock *sk, struct sock_state *s,
				 u64 now, u32 tid)
{
	struct rec_socket *r;

	r = RESERVE(cs, now, SOCKET, socket);
	if (!r)
		return 0;
	CLEAR_BODY(r);
	put_socket(cs, r, sk, s, tid);
	s->said = 1;
	submit(r);
	return 0;
}

#endif
