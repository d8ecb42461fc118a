/* SPDX-License-Identifier: MIT
 *
 * command.h - the program of `-- CMD`: started, but held before exec until it is let go.
 */
#ifndef RECORD_COMMAND_H
#define RECORD_COMMAND_H
#include <stdbool.h>

struct err;

struct command {
	int pid;     /* 0: none */
	int go_fd;   /* a byte lets it go */
	int fail_fd; /* its errno if exec failed */
	int status;  /* wait status; -1: runs */
};

int command_start(struct command *c, char *const *argv, bool to_stderr, struct err *err);
int command_go(struct command *c, char *const *argv, struct err *err);
/* True once it has ended; status is then set.  Never waits. */
bool command_ended(struct command *c);
/* Ends it if it was never let go; one that runs is left alone. */
void command_fini(struct command *c);

#endif
