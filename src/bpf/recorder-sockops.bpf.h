/* SPDX-License-Identifier: MIT
 *
 * recorder-sockops.bpf.h - the hooks on sockets; see recorder-sock.bpf.h for the idea.
 */
#ifndef BPF_RECORDER_SOCKOPS_BPF_H
#define BPF_RECORDER_SOCKOPS_BPF_H

#include "bpf/recorder-sock.bpf.h"

enum { TEXT_BYTES = 128, STATUS_BYTES = 12 };

struct user_vec {
	u64 base, len;
};

/* struct msghdr as user space has it, up to the vectors. */
struct user_msg {
	u64 name;
	u32 name_len, pad;
	u64 vec;
};

/* Where the first bytes of the current socket call are, 0 if that cannot be told; *room: how many
 * may lie there. */
inlined u64 user_buffer(u8 class, struct pt_regs *regs, u64 *room)
{
	u64 at = REGS_ARG2(regs);
	struct user_vec vec;
	struct user_msg msg;

	*room = REGS_ARG3(regs);
	if (class & CALL_BUF)
		return at;
	if (class & CALL_MSG) {
		if (bpf_probe_read_user(&msg, sizeof(msg), (void *)at))
			return 0;
		at = msg.vec;
	} else if (!(class & CALL_IOV)) {
		return 0;
	}
	if (bpf_probe_read_user(&vec, sizeof(vec), (void *)at))
		return 0;
	*room = vec.len;
	return vec.len ? vec.base : 0;
}

inlined u64 current_buffer(bool sending, u64 *room)
{
	struct pt_regs *regs = NULL;
	u8 class = call_class(call_of(bpf_get_current_task_btf(), &regs));

	if (!regs || !!(class & CALL_SEND) != sending)
		return 0;
	return user_buffer(class, regs, room);
}

/* --- HTTP/1 */

inlined bool is_request(const char t[8])
{
	return BEGINS(t, "GET ") || BEGINS(t, "POST ") || BEGINS(t, "HEAD ") || BEGINS(t, "PUT ") ||
	       BEGINS(t, "DELETE ") || BEGINS(t, "PATCH ") || BEGINS(t, "OPTIONS ") ||
	       BEGINS(t, "CONNECT ") || BEGINS(t, "TRACE ");
}

inlined bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

inlined u16 http_status(const char t[STATUS_BYTES])
{
	if (!BEGINS(t, "HTTP/1.") || !is_digit(t[9]) || !is_digit(t[10]) || !is_digit(t[11]))
		return 0;
	return (t[9] - '0') * 100 + (t[10] - '0') * 10 + (t[11] - '0');
}

/* --- receive */

/* Tells of the socket before its first operation, and again once the peer is known. */
inlined void introduce(struct recorder_cpu *cs, struct sock *sk, struct sock_state *s, u64 now,
		       u32 tid)
{
	if (!s->said)
		say_socket(cs, sk, s, now, tid);
}

inlined u64 position(struct sock *sk, struct sock_state *s, bool sending)
{
	struct tcp_sock *tcp;

	if (cfg_by_calls) {
		if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
			return sending ? s->tx : s->rx;
		tcp = (void *)sk;
		return sending ? BPF_CORE_READ(tcp, write_seq) : BPF_CORE_READ(tcp, copied_seq);
	}
	if (sk->__sk_common.skc_family != AF_UNIX) {
		tcp = (void *)bpf_skc_to_tcp_sock(sk);
		if (tcp)
			return sending ? tcp->write_seq : tcp->copied_seq;
	}
	return sending ? s->tx : s->rx;
}

/* The fields that rec_recv and rec_request share. */
#define PUT_RECV(r, sk, s, me, n)                                                                  \
	do {                                                                                       \
		(r)->cookie = (s)->cookie;                                                         \
		(r)->tid = (me);                                                                   \
		(r)->pid = (me) >> 32;                                                             \
		(r)->arrived = (s)->arrived;                                                       \
		(r)->seq = position((sk), (s), false);                                             \
		(r)->bytes = (n);                                                                  \
		(r)->arrived_tid = (s)->arrived_tid;                                               \
	} while (0)

inlined int emit_request(struct recorder_cpu *cs, struct sock *sk, struct sock_state *s, u64 now,
			 u64 me, u64 buffer, u64 room, u32 bytes)
{
	struct rec_request *r = RESERVE(cs, now, REQUEST, request);
	u32 len = bytes < room ? bytes : room;

	if (!r)
		return 0;
	/* The verifier must see the comparison on the register that is passed. */
	asm volatile("" : "+r"(len));
	if (len > TEXT_BYTES)
		len = TEXT_BYTES;
	__builtin_memset(r->text, 0, sizeof(r->text));
	PUT_RECV(r, sk, s, me, bytes);
	bpf_probe_read_user(r->text, len, (void *)buffer);
	submit(r);
	return 0;
}

inlined void emit_recv(struct recorder_cpu *cs, struct sock *sk, struct sock_state *s, u64 now,
		       u64 me, u32 bytes)
{
	struct rec_recv *r = RESERVE(cs, now, RECV, recv);

	if (!r)
		return;
	PUT_RECV(r, sk, s, me, bytes);
	submit(r);
}

/* The buffer of a message that may be a request, 0: it is none. */
inlined u64 request_buffer(struct sock_state *s, int bytes, u64 *room)
{
	char first[8] = {};
	u64 buffer;

	if (s->last == DIR_RECV || s->role == REC_ROLE_CLIENT || bytes < 16)
		return 0;
	buffer = current_buffer(false, room);
	if (!buffer || *room < sizeof(first) ||
	    bpf_probe_read_user(first, sizeof(first), (void *)buffer))
		return 0;
	return is_request(first) ? buffer : 0;
}

inlined int received(struct recorder_cpu *cs, struct sock *sk, struct sock_state *s, int bytes)
{
	u64 now, me, buffer, room = 0;

	now = bpf_ktime_get_ns();
	me = bpf_get_current_pid_tgid();
	introduce(cs, sk, s, now, me);
	s->rx += bytes;
	buffer = request_buffer(s, bytes, &room);
	if (buffer)
		emit_request(cs, sk, s, now, me, buffer, room, bytes);
	else
		emit_recv(cs, sk, s, now, me, bytes);
	s->arrived = 0;
	s->arrived_tid = 0;
	s->last = DIR_RECV;
	s->interim = 0;
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_sock_recv, struct sock *sk, int bytes, int flags)
{
	struct recorder_cpu *cs = this_cpu();
	struct sock_state *s;

	if (!cs || bytes < 0 || flags & MSG_PEEK || !is_stream(sk))
		return 0;
	s = sock_state(cs, sk);
	return s ? received(cs, sk, s, bytes) : 0;
}

/* --- send */

/* Both ports of a connection, in the order of one end; 0 for UNIX sockets. */

inlined u32 ports_of(struct sock *sk)
{
	return (u32)SOCK(sk, __sk_common.skc_num) << 16 |
	       __builtin_bswap16(SOCK(sk, __sk_common.skc_dport));
}

inlined u32 ports_of_peer(struct sock *sk)
{
	return (u32)__builtin_bswap16(SOCK(sk, __sk_common.skc_dport)) << 16 |
	       SOCK(sk, __sk_common.skc_num);
}

inlined u16 answer_status(struct sock_state *s, int bytes)
{
	char first[STATUS_BYTES];
	u64 buffer, room = 0;

	if ((s->last != DIR_RECV && !s->interim) || s->role == REC_ROLE_CLIENT ||
	    bytes < STATUS_BYTES)
		return 0;
	buffer = current_buffer(true, &room);
	if (!buffer || room < sizeof(first) ||
	    bpf_probe_read_user(first, sizeof(first), (void *)buffer))
		return 0;
	return http_status(first);
}

/* A send that the other end could read before the call returned is as old as that: the hook
 * comes too late to be before what the reader does.  What came for another connection, in an
 * interrupt of some call, has other ports. */
inlined u64 sent_at(struct recorder_cpu *cs, struct sock *sk)
{
	u64 at = cs->delivered;

	cs->delivered = 0;
	return at && cs->delivered_to == ports_of(sk) ? at : bpf_ktime_get_ns();
}

/* No hook tells of arrival on a UNIX socket where this one does not either.  What the other end
 * has read already is no arrival. */
inlined void arrives_at_peer(struct sock *sk, struct sock_state *s, u64 now, u32 tid)
{
	u64 key = (u64)BPF_CORE_READ((struct unix_sock *)sk, peer);
	struct sock_state *peer = key ? bpf_map_lookup_elem(&by_address, &key) : NULL;

	if (!peer || peer->arrived || peer->rx >= s->tx)
		return;
	peer->arrived = now;
	peer->arrived_tid = tid;
}

inlined int sent(struct recorder_cpu *cs, struct sock *sk, struct sock_state *s, u64 now, int bytes,
		 int flags)
{
	struct rec_send *r;
	u64 me;

	me = bpf_get_current_pid_tgid();
	introduce(cs, sk, s, now, me);
	s->tx += bytes;
	if (cfg_by_calls && BPF_CORE_READ(sk, __sk_common.skc_family) == AF_UNIX)
		arrives_at_peer(sk, s, now, me);
	r = RESERVE(cs, now, SEND, send);
	if (!r)
		return 0;
	r->cookie = s->cookie;
	r->tid = me;
	r->pid = me >> 32;
	r->seq = position(sk, s, true);
	r->bytes = bytes;
	r->status = answer_status(s, bytes);
	r->flags = flags & MSG_MORE ? REC_SEND_MORE : 0;
	s->interim = r->status >= 100 && r->status < 200;
	s->last = DIR_SEND;
	submit(r);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_sock_send, struct sock *sk, int bytes, int flags)
{
	struct recorder_cpu *cs = this_cpu();
	struct sock_state *s;

	if (!cs)
		return 0;
	if (bytes > 0 && is_stream(sk)) {
		s = sock_state(cs, sk);
		return s ? sent(cs, sk, s, sent_at(cs, sk), bytes, flags) : 0;
	}
	cs->delivered = 0;
	return 0;
}

/* --- both, where only the end of a system call tells (cfg_by_calls) */

inlined u32 call_flags(u8 class, struct pt_regs *regs)
{
	if (class & CALL_MSG)
		return REGS_ARG3(regs);
	return (class & CALL_ARG) == CALL_FD_FLAGS ? REGS_ARG4(regs) : 0;
}

/* The stream socket of a descriptor, its state in *ret. */
inlined struct sock *sock_of_fd(struct recorder_cpu *cs, u32 fd, struct sock_state **ret)
{
	struct file *file = file_of(bpf_get_current_task_btf(), fd);
	struct sock *sk;

	if (!file || !is_socket(file))
		return NULL;
	sk = sock_of_file(file);
	if (!sk || !is_stream(sk))
		return NULL;
	*ret = address_state(cs, sk);
	if (!*ret)
		return NULL;
	check_inode(cs, *ret, BPF_CORE_READ(file, f_inode, i_ino));
	return sk;
}

inlined int call_sent(struct recorder_cpu *cs, struct pt_regs *regs, u8 class, int bytes)
{
	struct sock_state *s = NULL;
	struct sock *sk;

	sk = sock_of_fd(cs, REGS_ARG1(regs), &s);
	if (sk && s && (class & CALL_ARG) == CALL_SPLICE)
		return received(cs, sk, s, bytes);
	if (!sk && (class & CALL_ARG) == CALL_SPLICE)
		sk = sock_of_fd(cs, REGS_ARG3(regs), &s);
	if (sk && s)
		return sent(cs, sk, s, sent_at(cs, sk), bytes, call_flags(class, regs));
	cs->delivered = 0;
	return 0;
}

inlined int call_received(struct recorder_cpu *cs, struct pt_regs *regs, u8 class, int bytes)
{
	struct sock_state *s = NULL;
	struct sock *sk;

	if (call_flags(class, regs) & MSG_PEEK)
		return 0;
	sk = sock_of_fd(cs, REGS_ARG1(regs), &s);
	return sk && s ? received(cs, sk, s, bytes) : 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	u8 class = call_class(REGS_SYSCALL(regs));
	bool sends = delivers(class);
	struct recorder_cpu *cs;

	if (!sends && (class & CALL_SEND || !(class & (CALL_BUF | CALL_IOV | CALL_MSG))))
		return 0;
	cs = this_cpu();
	if (!cs)
		return 0;
	if (!sends)
		return result < 0 ? 0 : call_received(cs, regs, class, result);
	if (result > 0)
		return call_sent(cs, regs, class, result);
	cs->delivered = 0;
	return 0;
}

/* --- arrival */

/* On loopback the sender's own call brings the data: then the current thread is the sender.  In
 * a real network interrupt it is anybody, so only a thread that is in a sending call counts.
 * The hook at the end of the send takes the instant over. */
inlined u32 sender(struct recorder_cpu *cs, struct sock *sk, u64 now)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct pt_regs *regs;
	u8 class = call_class(call_of(me, &regs));

	if (!(class & CALL_SEND))
		return 0;
	if (delivers(class)) {
		cs->delivered = now;
		cs->delivered_to = ports_of_peer(sk);
	}
	return me->pid;
}

inlined int arrives(struct sock *sk)
{
	struct recorder_cpu *cs = this_cpu();
	struct sock_state *s;

	if (!cs || !is_stream(sk))
		return 0;
	s = sock_state(cs, sk);
	if (!s)
		return 0;
	cs->ready_cookie = s->cookie;
	if (s->arrived)
		return 0;
	s->arrived = bpf_ktime_get_ns();
	s->arrived_tid = sender(cs, sk, s->arrived);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_data_ready, struct sock *sk)
{
	return arrives(sk);
}

enum { TCP_DATA_OFFSET = 12 }; /* of the byte whose upper half is the header's length in words */

/* Where there is no sk_data_ready: each segment of an established connection. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(on_tcp_probe, struct sock *sk, struct sk_buff *segment)
{
	u8 words = 0;

	bpf_probe_read_kernel(&words, 1, segment->data + TCP_DATA_OFFSET);
	return segment->len > (words >> 4) * 4u ? arrives(sk) : 0;
}

/* --- life of a TCP connection */

inlined bool is_closing(int from, int to)
{
	if (from == TCP_LISTEN)
		return to == TCP_CLOSE;
	return (from == TCP_ESTABLISHED || from == TCP_CLOSE_WAIT) &&
	       (to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK || to == TCP_CLOSE);
}

inlined void emit_close(struct recorder_cpu *cs, struct sock_state *s, u32 context)
{
	u64 me = context ? 0 : bpf_get_current_pid_tgid();
	struct rec_close *r = RESERVE(cs, bpf_ktime_get_ns(), CLOSE, close);

	if (!r)
		return;
	r->cookie = s->cookie;
	r->tid = me;
	r->pid = me >> 32;
	submit(r);
}

inlined u8 role_of_change(int from, int to)
{
	if (to == TCP_LISTEN)
		return REC_ROLE_LISTEN;
	if (to != TCP_ESTABLISHED)
		return REC_ROLE_UNKNOWN;
	return from == TCP_SYN_SENT   ? REC_ROLE_CLIENT
	       : from == TCP_SYN_RECV ? REC_ROLE_SERVED
				      : REC_ROLE_UNKNOWN;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_sock_state, struct sock *sk, int from, int to)
{
	struct recorder_cpu *cs = this_cpu();
	u8 role = role_of_change(from, to);
	struct sock_state *s;

	if (!cs || !is_stream(sk) || (!role && !is_closing(from, to)))
		return 0;
	s = sock_state(cs, sk);
	if (!s)
		return 0;
	if (role) {
		s->role = role;
		s->said = 0; /* it may have been another connection's */
	}
	if (role == REC_ROLE_LISTEN)
		say_socket(cs, sk, s, bpf_ktime_get_ns(), bpf_get_current_pid_tgid());
	else if (!role && s->said)
		emit_close(cs, s, irq_context(cs));
	return 0;
}

/* The address will be another socket's. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(on_tcp_destroy, struct sock *sk)
{
	u64 key = (u64)sk;

	bpf_map_delete_elem(&by_address, &key);
	return 0;
}

/* --- the sockets there were at the start */

SEC("iter/task_file")
int on_each_socket(struct bpf_iter__task_file *ctx)
{
	struct rec_socket r = {};
	struct recorder_cpu *cs = this_cpu();
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *socket;
	struct sock_state *s;
	struct sock *sk;

	if (!cs || !file || !task)
		return 0;
	socket = (void *)bpf_sock_from_file(file);
	sk = socket ? socket->sk : NULL;
	if (!sk || !is_stream(sk))
		return 0;
	s = sock_state(cs, sk);
	if (!s || s->said)
		return 0;
	if (cfg_by_calls)
		s->inode = BPF_CORE_READ(file, f_inode, i_ino);
	r.head = (struct rec_head){bpf_ktime_get_ns(), REC_ID_SOCKET, 0, sizeof(r)};
	put_socket(cs, &r, sk, s, task->tgid);
	s->said = 1;
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

#endif
