/* SPDX-License-Identifier: MIT
 *
 * commands.h - every command, one line each, in the order in which help lists them.
 * A line X(NAME) stands for `const struct cmd cmd_NAME` in cmd-NAME.c.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#define COMMANDS(X)                                                                                \
	X(record)                                                                                  \
	X(why)                                                                                     \
	X(info)                                                                                    \
	X(doctor)                                                                                  \
	X(completion)                                                                              \
	X(man_options)

#endif
