/* SPDX-License-Identifier: MIT
 *
 * The parts of a man page that the command table knows: name, synopsis, options, examples, in
 * roff.  tools/make-man puts each where the page asks for it.
 */
#include "base/err.h"
#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* roff takes a dash for a hyphen, a backslash for itself, a leading dot or quote for an order. */
static void put_roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++)
		fputs(*text == '-' ? "\\-" : *text == '\\' ? "\\e" : (char[2]){*text}, stdout);
}

static void put_name(const struct cmd *cmd)
{
	printf("longpole\\-");
	put_roff(cmd->name);
	printf(" \\- ");
	put_roff(cmd->summary);
	putchar('\n');
}

/* One usage line: words in capitals are what the user replaces. */
static void put_usage(const char *text)
{
	while (*text) {
		size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		bool name = len > 0 && !islower((unsigned char)text[len]);

		if (!len)
			len = 1;
		if (name)
			printf("\\fI%.*s\\fR", (int)len, text);
		else
			put_roff((char[2]){*text});
		text += name ? len : 1;
	}
}

static void put_synopsis(const struct cmd *cmd)
{
	for (const char *const *u = cmd->usage; u && *u; u++) {
		printf("%s\\fBlongpole %s\\fR ", u == cmd->usage ? "" : ".br\n", cmd->name);
		put_usage(*u);
		putchar('\n');
	}
}

static void put_opt(const struct opt *o)
{
	printf(".TP\n");
	if (o->letter)
		printf("\\fB\\-%c\\fR, ", o->letter);
	printf("\\fB\\-\\-");
	put_roff(o->name);
	printf("\\fR");
	if (o->arg)
		printf(" \\fI%s\\fR", o->arg);
	putchar('\n');
	put_roff(o->help);
	printf("%s.\n", o->many ? "; may be given more than once" : "");
}

static void put_options(const struct cmd *cmd)
{
	for (const struct opt *o = cmd->opts; o && o->name; o++)
		put_opt(o);
	for (const struct opt *o = common_opts; o->name; o++)
		put_opt(o);
}

static void put_examples(const struct cmd *cmd)
{
	for (const struct example *e = cmd->examples; e && e->line; e++) {
		printf(".TP\n\\fB");
		put_roff(e->line);
		printf("\\fR\n");
		put_roff(e->what);
		printf(".\n");
	}
}

/* For the page of longpole itself: every command with its page. */
static void put_commands(void)
{
	for (size_t i = 0; cmd_list[i]; i++) {
		if (cmd_list[i]->hidden)
			continue;
		printf(".TP\n\\fBlongpole\\-%s\\fR(1)\n", cmd_list[i]->name);
		put_roff(cmd_list[i]->summary);
		printf(".\n");
	}
}

static int run(const struct cmd_args *args, struct err *err)
{
	static const struct part {
		const char *name;
		void (*put)(const struct cmd *cmd);
	} parts[] = {{"name", put_name},
		     {"synopsis", put_synopsis},
		     {"options", put_options},
		     {"examples", put_examples}};
	const struct cmd *cmd = cmd_find(args->operands[0]);

	if (!strcmp(args->operands[0], "longpole") && !strcmp(args->operands[1], "commands")) {
		put_commands();
		return CMD_FINE;
	}
	if (!cmd)
		return args_wrong(err, "unknown command '%s'", args->operands[0]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].name, args->operands[1])) {
			parts[i].put(cmd);
			return CMD_FINE;
		}
	return args_wrong(err, "no part '%s': name, synopsis, options or examples",
			  args->operands[1]);
}

const struct cmd cmd_man_options = {
	.name = "man-options",
	.summary = "print a generated part of a command's man page",
	.usage = (const char *const[]){"CMD PART", NULL},
	.operands_min = 2,
	.operands_max = 2,
	.hidden = true,
	.run = run,
};
