/* SPDX-License-Identifier: MIT */
#include "record/command.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void child_main(int go, int fail, char *const *argv, bool to_stderr)
{
	char byte;
	int code;

	if (read(go, &byte, 1) != 1)
		_exit(127);
	if (to_stderr)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(argv[0], argv);
	code = errno;
	if (write(fail, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

int command_start(struct command *c, char *const *argv, bool to_stderr, struct err *err)
{
	int go[2], fail[2];

	*c = (struct command){.status = -1, .go_fd = -1, .fail_fd = -1};
	if (!argv)
		return 0;
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_set(err, -errno, "no pipe: %s", strerror(errno));
	if (pipe2(fail, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return err_set(err, -errno, "no pipe: %s", strerror(errno));
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(go[1]);
		close(fail[0]);
		child_main(go[0], fail[1], argv, to_stderr);
	}
	close(go[0]);
	close(fail[1]);
	c->go_fd = go[1];
	c->fail_fd = fail[0];
	if (c->pid > 0)
		return 0;
	c->pid = 0;
	return err_set(err, -errno, "cannot start a process: %s", strerror(errno));
}

/* A signal may have ended it already: that is no reason to end as well. */
static bool let_go(int fd)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
	bool done;

	sigaction(SIGPIPE, &ignore, &old);
	done = write(fd, "g", 1) == 1;
	sigaction(SIGPIPE, &old, NULL);
	return done;
}

int command_go(struct command *c, char *const *argv, struct err *err)
{
	int code = 0;

	if (!c->pid)
		return 0;
	if (!let_go(c->go_fd))
		return err_set(err, -EPIPE, "%s: it ended before it was started", argv[0]);
	close(c->go_fd);
	c->go_fd = -1;
	/* closed by a successful exec */
	if (read(c->fail_fd, &code, sizeof(code)) != sizeof(code))
		return 0;
	waitpid(c->pid, &c->status, 0);
	return err_set(err, -code, "cannot run '%s': %s", argv[0], strerror(code));
}

bool command_ended(struct command *c)
{
	if (!c->pid)
		return false;
	if (c->status < 0 && waitpid(c->pid, &c->status, WNOHANG) != c->pid)
		c->status = -1;
	return c->status >= 0;
}

void command_fini(struct command *c)
{
	/* held before exec it reads the end of the pipe and exits */
	if (c->go_fd >= 0) {
		close(c->go_fd);
		if (c->pid && c->status < 0)
			waitpid(c->pid, NULL, 0);
	}
	if (c->fail_fd >= 0)
		close(c->fail_fd);
}
