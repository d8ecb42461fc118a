/* SPDX-License-Identifier: MIT
 *
 * Which system calls wait on what, and where their buffer is: only what a thread can wait in,
 * and what sends or receives.
 */
#include "bpf/recorder.h"
#include "record/load.h"

#include <stddef.h>
#include <sys/syscall.h>

static const struct {
	short number;
	unsigned char class;
} calls[] = {
	{SYS_read, CALL_FD | CALL_BUF},
	{SYS_write, CALL_FD | CALL_BUF | CALL_SEND},
	{SYS_readv, CALL_FD | CALL_IOV},
	{SYS_writev, CALL_FD | CALL_IOV | CALL_SEND},
	{SYS_recvfrom, CALL_FD_FLAGS | CALL_BUF},
	{SYS_sendto, CALL_FD_FLAGS | CALL_BUF | CALL_SEND},
	{SYS_recvmsg, CALL_FD | CALL_MSG},
	{SYS_sendmsg, CALL_FD | CALL_MSG | CALL_SEND},
	{SYS_recvmmsg, CALL_FD},
	{SYS_sendmmsg, CALL_FD | CALL_SEND},
	/* no buffer to look into */
	{SYS_sendfile, CALL_SENDFILE | CALL_SEND},
	{SYS_splice, CALL_SPLICE | CALL_SEND},
	{SYS_pread64, CALL_FD},
	{SYS_pwrite64, CALL_FD},
	{SYS_preadv, CALL_FD},
	{SYS_pwritev, CALL_FD},
	{SYS_preadv2, CALL_FD},
	{SYS_pwritev2, CALL_FD},
	{SYS_connect, CALL_FD | CALL_SEND},
	{SYS_shutdown, CALL_FD | CALL_SEND},
	{SYS_close, CALL_FD | CALL_SEND},
	{SYS_accept, CALL_FD},
	{SYS_accept4, CALL_FD},
	{SYS_fsync, CALL_FD},
	{SYS_fdatasync, CALL_FD},
	{SYS_sync_file_range, CALL_FD},
	{SYS_ftruncate, CALL_FD},
	{SYS_fallocate, CALL_FD},
	{SYS_flock, CALL_FD},
	{SYS_fcntl, CALL_FD},
	{SYS_ioctl, CALL_FD},
	{SYS_getdents64, CALL_FD},
	{SYS_epoll_pwait, CALL_FD},
	{SYS_io_uring_enter, CALL_FD},
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, CALL_FD},
#endif
#ifdef SYS_epoll_pwait2
	{SYS_epoll_pwait2, CALL_FD},
#endif
	{SYS_futex, CALL_FUTEX},
	{SYS_wait4, CALL_CHILD},
	{SYS_waitid, CALL_CHILD2},
	{SYS_sched_yield, CALL_YIELD},
};

void calls_fill(unsigned char *table)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number < CALL_SLOTS)
			table[calls[i].number] = calls[i].class;
}
