/* SPDX-License-Identifier: MIT
 *
 * Is what the program believes about interrupts true here?  A child sleeps in read() and is
 * woken by us: that wake came from a thread.  Then it sleeps in nanosleep(): that one came from
 * a timer.  The stamps are read from the child's task storage, where they stay because the
 * switch program, which would clear them, is not attached yet.
 */
#include "bpf/recorder.h"
#include "record/load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/recorder.skel.h"

enum { SETTLE_MS = 2, LOOKS = 20, TRIES = 8 };

struct child {
	int pid, pidfd;
	int write_fd;
};

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* The child: read wakes it once, then it naps until it is killed. */
static void child_main(int fd)
{
	char byte;

	if (read(fd, &byte, 1) == 1)
		pause_ms(3 * SETTLE_MS);
	for (;;)
		pause_ms(10000);
}

static int child_start(struct child *c)
{
	int fds[2], parent = getpid();

	if (pipe(fds) < 0)
		return -1;
	c->write_fd = fds[1];
	c->pid = fork();
	if (c->pid == 0) {
		/* it holds the programs too: with the recorder gone it must not keep them */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		close(fds[1]);
		child_main(fds[0]);
	}
	close(fds[0]);
	c->pidfd = c->pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pidfd;
}

static void child_stop(struct child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	if (c->pidfd >= 0)
		close(c->pidfd);
	close(c->write_fd);
}

static int woken_by(struct recorder_bpf *skel, const struct child *c, struct recorder_thread *t)
{
	return bpf_map_lookup_elem(bpf_map__fd(skel->maps.threads), &c->pidfd, t);
}

/* Waits until the child was woken again after since. */
static bool next_wake(struct recorder_bpf *skel, const struct child *c, uint64_t since,
		      struct recorder_thread *t)
{
	for (int i = 0; i < LOOKS; i++) {
		if (!woken_by(skel, c, t) && t->waking > since)
			return true;
		pause_ms(SETTLE_MS);
	}
	return false;
}

static bool wakes_are_known_once(struct recorder_bpf *skel, long settle_ms)
{
	struct recorder_thread t = {0};
	struct child c = {.pidfd = -1};
	bool ok = false;

	if (child_start(&c) >= 0) {
		uint64_t since;

		pause_ms(settle_ms);
		since = woken_by(skel, &c, &t) ? 0 : t.waking;
		ok = write(c.write_fd, "x", 1) == 1 && next_wake(skel, &c, since, &t) &&
		     t.waker_by == REC_BY_THREAD && t.waker_tid == (uint32_t)getpid();
		ok = ok && next_wake(skel, &c, t.waking, &t) && t.waker_by == REC_BY_TIMER;
	}
	child_stop(&c);
	return ok;
}

/* On a busy machine the child may not sleep yet when it is written to: then nothing wakes it. */
static bool wakes_are_known(struct recorder_bpf *skel)
{
	for (long i = 0; i < TRIES; i++)
		if (wakes_are_known_once(skel, SETTLE_MS << i / 2))
			return true;
	return false;
}

int irq_mode_choose(struct recorder_bpf *skel)
{
	static const unsigned modes[] = {IRQ_BY_PREEMPT, IRQ_BY_THREAD_INFO};

	for (unsigned i = 0; i < 2; i++) {
		skel->bss->irq_mode = modes[i];
		if (modes[i] == IRQ_BY_PREEMPT && !skel->rodata->cfg_preempt_offset)
			continue;
		if (wakes_are_known(skel))
			return (int)modes[i];
	}
	skel->bss->irq_mode = IRQ_BY_COUNT;
	return IRQ_BY_COUNT;
}
