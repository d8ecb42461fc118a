/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, OPT_COLUMN = 24 };

/* What stays on one line: a word, or all from [ to ]. */
static int piece_bytes(const char *text)
{
	size_t end = strcspn(text, "]");

	return (int)(*text == '[' && text[end] ? end + 1 : strcspn(text, " "));
}

/* Pieces of text from column on, broken before WIDTH, further lines indented to column. */
static void put_wrapped(const char *text, int column)
{
	int at = column;

	while (*text) {
		int len = piece_bytes(text);

		if (at > column && at + 1 + len > WIDTH) {
			printf("\n%*s", column, "");
			at = column;
		} else if (at > column) {
			putchar(' ');
			at++;
		}
		printf("%.*s", len, text);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void put_opt(const struct opt *o)
{
	char left[80];
	int len;

	len = snprintf(left, sizeof(left), "  %c%c%s --%s%s%s", o->letter ? '-' : ' ',
		       o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
		       o->arg ? " " : "", o->arg ? o->arg : "");
	printf("%-*s", OPT_COLUMN, left);
	if (len >= OPT_COLUMN)
		printf("\n%*s", OPT_COLUMN, "");
	put_wrapped(o->help, OPT_COLUMN);
}

static void put_examples(const struct example *e)
{
	if (e && e->line)
		printf("\nExamples:\n");
	for (; e && e->line; e++)
		printf("  %s\n      %s\n", e->line, e->what);
}

void help_command(const struct cmd *cmd)
{
	const char *lead = "Usage:";

	for (const char *const *u = cmd->usage; u && *u; u++, lead = "      ") {
		printf("%s longpole %s ", lead, cmd->name);
		put_wrapped(*u, 8 + 9 + (int)strlen(cmd->name));
	}
	printf("\n%s.\n\nOptions:\n", cmd->summary);
	for (const struct opt *o = cmd->opts; o && o->name; o++)
		put_opt(o);
	for (const struct opt *o = common_opts; o->name; o++)
		put_opt(o);
	put_examples(cmd->examples);
}

void help_program(void)
{
	printf("Usage: longpole COMMAND [OPTIONS]\n"
	       "\nWhy was this request slow, and who made it so?\n\nCommands:\n");
	for (size_t i = 0; cmd_list[i]; i++)
		if (!cmd_list[i]->hidden)
			printf("  %-12s%s\n", cmd_list[i]->name, cmd_list[i]->summary);
	printf("  %-12s%s\n", "help", "what a command does and takes");
	printf("\n'longpole help COMMAND' or 'longpole COMMAND --help' tells more.\n"
	       "'longpole --version' prints the version.\n"
	       "\nExit status: 0 fine, 1 failed, 2 wrong usage, 3 finished, but data were\n"
	       "lost or nothing matched.\n");
}
