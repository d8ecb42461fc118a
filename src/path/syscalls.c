/* SPDX-License-Identifier: MIT
 *
 * Names of system calls.  Numbers come from the headers of the machine longpole is built on; a
 * call newer than they are has no name.
 */
#include <string.h>
#include <sys/syscall.h>

#include "path/path.h"

/* clang-format off */
/* On every architecture with the generic table. */
#define CALLS_COMMON(S)										   \
	S(accept) S(accept4) S(acct) S(add_key) S(adjtimex) S(bind) S(bpf) S(brk)		   \
	S(capget) S(capset) S(chdir) S(chroot) S(clock_adjtime) S(clock_getres)			   \
	S(clock_gettime) S(clock_nanosleep) S(clock_settime) S(clone) S(close)			   \
	S(close_range) S(connect) S(copy_file_range) S(delete_module) S(dup) S(dup3)		   \
	S(epoll_create1) S(epoll_ctl) S(epoll_pwait) S(epoll_pwait2) S(eventfd2)		   \
	S(execve) S(execveat) S(exit) S(exit_group) S(faccessat) S(faccessat2)			   \
	S(fadvise64) S(fallocate) S(fanotify_init) S(fanotify_mark) S(fchdir) S(fchmod)		   \
	S(fchmodat) S(fchown) S(fchownat) S(fcntl) S(fdatasync) S(fgetxattr)			   \
	S(finit_module) S(flistxattr) S(flock) S(fremovexattr) S(fsconfig) S(fsetxattr)		   \
	S(fsmount) S(fsopen) S(fspick) S(fstatfs) S(fsync) S(ftruncate) S(futex)		   \
	S(futex_waitv) S(get_mempolicy) S(get_robust_list) S(getcpu) S(getcwd)			   \
	S(getdents64) S(getegid) S(geteuid) S(getgid) S(getgroups) S(getitimer)			   \
	S(getpeername) S(getpgid) S(getpid) S(getppid) S(getpriority) S(getrandom)		   \
	S(getresgid) S(getresuid) S(getrusage) S(getsid) S(getsockname) S(getsockopt)		   \
	S(gettid) S(gettimeofday) S(getuid) S(getxattr) S(init_module)				   \
	S(inotify_add_watch) S(inotify_init1) S(inotify_rm_watch) S(io_cancel)			   \
	S(io_destroy) S(io_getevents) S(io_pgetevents) S(io_setup) S(io_submit)			   \
	S(io_uring_enter) S(io_uring_register) S(io_uring_setup) S(ioctl) S(ioprio_get)		   \
	S(ioprio_set) S(kcmp) S(kexec_file_load) S(kexec_load) S(keyctl) S(kill)		   \
	S(landlock_add_rule) S(landlock_create_ruleset) S(landlock_restrict_self)		   \
	S(lgetxattr) S(linkat) S(listen) S(listxattr) S(llistxattr) S(lookup_dcookie)		   \
	S(lremovexattr) S(lseek) S(lsetxattr) S(madvise) S(mbind) S(membarrier)			   \
	S(memfd_create) S(migrate_pages) S(mincore) S(mkdirat) S(mknodat) S(mlock)		   \
	S(mlock2) S(mlockall) S(mmap) S(mount) S(mount_setattr) S(move_mount)			   \
	S(move_pages) S(mprotect) S(mq_getsetattr) S(mq_notify) S(mq_open)			   \
	S(mq_timedreceive) S(mq_timedsend) S(mq_unlink) S(mremap) S(msgctl) S(msgget)		   \
	S(msgrcv) S(msgsnd) S(msync) S(munlock) S(munlockall) S(munmap)				   \
	S(name_to_handle_at) S(nanosleep) S(nfsservctl) S(open_by_handle_at) S(open_tree)	   \
	S(openat) S(openat2) S(perf_event_open) S(personality) S(pidfd_getfd)			   \
	S(pidfd_open) S(pidfd_send_signal) S(pipe2) S(pivot_root) S(pkey_alloc)			   \
	S(pkey_free) S(pkey_mprotect) S(ppoll) S(prctl) S(pread64) S(preadv) S(preadv2)		   \
	S(prlimit64) S(process_madvise) S(process_mrelease) S(process_vm_readv)			   \
	S(process_vm_writev) S(pselect6) S(ptrace) S(pwrite64) S(pwritev) S(pwritev2)		   \
	S(quotactl) S(quotactl_fd) S(read) S(readahead) S(readlinkat) S(readv) S(reboot)	   \
	S(recvfrom) S(recvmmsg) S(recvmsg) S(remap_file_pages) S(removexattr)			   \
	S(renameat2) S(request_key) S(restart_syscall) S(rseq) S(rt_sigaction)			   \
	S(rt_sigpending) S(rt_sigprocmask) S(rt_sigqueueinfo) S(rt_sigreturn)			   \
	S(rt_sigsuspend) S(rt_sigtimedwait) S(rt_tgsigqueueinfo)				   \
	S(sched_get_priority_max) S(sched_get_priority_min) S(sched_getaffinity)		   \
	S(sched_getattr) S(sched_getparam) S(sched_getscheduler) S(sched_rr_get_interval)	   \
	S(sched_setaffinity) S(sched_setattr) S(sched_setparam) S(sched_setscheduler)		   \
	S(sched_yield) S(seccomp) S(semctl) S(semget) S(semop) S(semtimedop) S(sendfile)	   \
	S(sendmmsg) S(sendmsg) S(sendto) S(set_mempolicy) S(set_mempolicy_home_node)		   \
	S(set_robust_list) S(set_tid_address) S(setdomainname) S(setfsgid) S(setfsuid)		   \
	S(setgid) S(setgroups) S(sethostname) S(setitimer) S(setns) S(setpgid)			   \
	S(setpriority) S(setregid) S(setresgid) S(setresuid) S(setreuid) S(setsid)		   \
	S(setsockopt) S(settimeofday) S(setuid) S(setxattr) S(shmat) S(shmctl) S(shmdt)		   \
	S(shmget) S(shutdown) S(sigaltstack) S(signalfd4) S(socket) S(socketpair)		   \
	S(splice) S(statfs) S(statx) S(swapoff) S(swapon) S(symlinkat) S(sync)			   \
	S(sync_file_range) S(syncfs) S(sysinfo) S(syslog) S(tee) S(tgkill)			   \
	S(timer_create) S(timer_delete) S(timer_getoverrun) S(timer_gettime)			   \
	S(timer_settime) S(timerfd_create) S(timerfd_gettime) S(timerfd_settime) S(times)	   \
	S(tkill) S(truncate) S(umask) S(umount2) S(uname) S(unlinkat) S(unshare)		   \
	S(userfaultfd) S(utimensat) S(vhangup) S(vmsplice) S(wait4) S(waitid) S(write)		   \
	S(writev)

#ifdef __x86_64__ /* older ones, that newer architectures left out */
#define CALLS_OLDER(S)										   \
	S(_sysctl) S(access) S(afs_syscall) S(alarm) S(arch_prctl) S(chmod) S(chown)		   \
	S(clone3) S(creat) S(create_module) S(dup2) S(epoll_create) S(epoll_ctl_old)		   \
	S(epoll_wait) S(epoll_wait_old) S(eventfd) S(fork) S(fstat) S(futimesat)		   \
	S(get_kernel_syms) S(get_thread_area) S(getdents) S(getpgrp) S(getpmsg)			   \
	S(getrlimit) S(inotify_init) S(ioperm) S(iopl) S(lchown) S(link) S(lstat)		   \
	S(memfd_secret) S(mkdir) S(mknod) S(modify_ldt) S(newfstatat) S(open) S(pause)		   \
	S(pipe) S(poll) S(putpmsg) S(query_module) S(readlink) S(rename) S(renameat)		   \
	S(rmdir) S(security) S(select) S(set_thread_area) S(setrlimit) S(signalfd)		   \
	S(stat) S(symlink) S(sysfs) S(time) S(tuxcall) S(unlink) S(uselib) S(ustat)		   \
	S(utime) S(utimes) S(vfork) S(vserver)
#else
#define CALLS_OLDER(S)
#endif
/* clang-format on */

#define CALL_NAME(name) [SYS_##name] = #name,
static const char *const names[] = {CALLS_COMMON(CALL_NAME) CALLS_OLDER(CALL_NAME)};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

const char *syscall_name(int nr)
{
	return nr >= 0 && nr < NAMES ? names[nr] : NULL;
}

int syscall_nr(const char *name)
{
	for (int i = 0; i < NAMES; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return -1;
}
