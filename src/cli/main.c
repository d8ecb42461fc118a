/* SPDX-License-Identifier: MIT
 *
 * Finds the command, reads its words, runs it, and tells how it ended.  Nothing else.
 */
#include "base/err.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DECLARE(name) extern const struct cmd cmd_##name;
COMMANDS(DECLARE)

#define ADDRESS(name) &cmd_##name,
const struct cmd *const cmd_list[] = {COMMANDS(ADDRESS) NULL};

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; cmd_list[i]; i++)
		if (!strcmp(cmd_list[i]->name, name))
			return cmd_list[i];
	return NULL;
}

static bool explained; /* why the command failed was said */

static int unknown_command(const char *word)
{
	log_error("unknown %s '%s'; 'longpole help' lists the commands",
		  word[0] == '-' ? "option" : "command", word);
	return CMD_USAGE;
}

static int run_help(char **words)
{
	const struct cmd *cmd;

	if (!words[0]) {
		help_program();
		return CMD_FINE;
	}
	cmd = cmd_find(words[0]);
	if (!cmd)
		return unknown_command(words[0]);
	help_command(cmd);
	return CMD_FINE;
}

static int run_command(const struct cmd *cmd, char **words)
{
	struct cmd_args args;
	struct err err = {0};
	int rc = args_parse(cmd, words, &args, &err);

	log_verbose(args.verbose);
	if (!rc && args.help)
		help_command(cmd);
	else if (!rc)
		rc = cmd->run(&args, &err);
	explained = err.code && rc;
	if (explained)
		log_error("%s: %s", cmd->name, err.text);
	if (rc == CMD_USAGE)
		log_error("'longpole %s --help' tells what it takes", cmd->name);
	args_fini(&args);
	return rc < 0 ? CMD_FAILED : rc;
}

static int dispatch(char **words)
{
	const struct cmd *cmd;

	if (!words[0]) {
		log_error("which command?  'longpole help' lists them");
		return CMD_USAGE;
	}
	if (!strcmp(words[0], "--version")) {
		printf("longpole " LONGPOLE_VERSION "\n");
		return CMD_FINE;
	}
	if (!strcmp(words[0], "help") || !strcmp(words[0], "--help") || !strcmp(words[0], "-h"))
		return run_help(words + 1);
	cmd = cmd_find(words[0]);
	return cmd ? run_command(cmd, words + 1) : unknown_command(words[0]);
}

/* An answer that did not reach the reader is a failure, except that the reader went away. */
static int close_stdout(int status)
{
	bool failed = ferror(stdout);

	errno = 0;
	if (fclose(stdout) == 0 && !failed)
		return status;
	if (errno != EPIPE && !explained)
		log_error("cannot write to standard output: %s", strerror(errno ? errno : EIO));
	return CMD_FAILED;
}

/* Else the next file that is opened takes the number of one that is closed, and messages go into
 * the recording.  Writing to such a stdout still fails. */
static void hold_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return;
}

static void on_file_limit(int number)
{
	(void)number;
}

/* A write beyond ulimit -f then fails and is told of.  Not ignored: programs that are started
 * would inherit that. */
static void survive_file_limit(void)
{
	struct sigaction action = {.sa_handler = on_file_limit, .sa_flags = SA_RESTART};

	sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv)
{
	hold_standard_files();
	survive_file_limit();
	return close_stdout(argc ? dispatch(argv + 1) : CMD_USAGE);
}
