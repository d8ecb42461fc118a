/* SPDX-License-Identifier: MIT
 *
 * Completion scripts for bash, zsh and fish, written from the command table.  Where a file can
 * stand, the shell completes files; other values are left to the user.
 */
#include "base/err.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* Calls fn for every option of cmd, its own and the common ones. */
static void each_opt(const struct cmd *cmd, void (*fn)(const struct cmd *, const struct opt *))
{
	for (const struct opt *o = cmd->opts; o && o->name; o++)
		fn(cmd, o);
	for (const struct opt *o = common_opts; o->name; o++)
		fn(cmd, o);
}

static void each_cmd(void (*fn)(const struct cmd *))
{
	for (size_t i = 0; cmd_list[i]; i++)
		if (!cmd_list[i]->hidden)
			fn(cmd_list[i]);
}

/* text inside single quotes of a shell. */
static void put_quoted(const char *text)
{
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[2]){*text}, stdout);
}

static void put_name(const struct cmd *cmd)
{
	printf(" %s", cmd->name);
}

/* --- bash */

static void bash_opt(const struct cmd *cmd, const struct opt *o)
{
	(void)cmd;
	printf(" --%s", o->name);
	if (o->letter)
		printf(" -%c", o->letter);
}

/* "-o|--output" of every option with a value, as a case pattern. */
static bool bash_pattern(const struct cmd *cmd, bool path)
{
	bool any = false;

	for (const struct opt *o = cmd->opts; o && o->name; o++) {
		if (!o->arg || (o->type == OPT_PATH) != path)
			continue;
		printf("%s%s:--%s", any ? "|" : "\t", cmd->name, o->name);
		if (o->letter)
			printf("|%s:-%c", cmd->name, o->letter);
		any = true;
	}
	return any;
}

static void bash_values(const struct cmd *cmd)
{
	if (bash_pattern(cmd, true))
		printf(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
	if (bash_pattern(cmd, false))
		printf(") return ;;\n");
}

static void bash_words(const struct cmd *cmd)
{
	printf("\t%s) words='", cmd->name);
	each_opt(cmd, bash_opt);
	printf("' ;;\n");
}

static void bash(void)
{
	printf("# bash completion for longpole\n_longpole()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	       "\tlocal cmd=${COMP_WORDS[1]} words='' i\n\tCOMPREPLY=()\n"
	       "\tif ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $cmd == help ]]; }; then\n"
	       "\t\tCOMPREPLY=($(compgen -W 'help");
	each_cmd(put_name);
	printf(" --version --help' -- \"$cur\"))\n\t\treturn\n\tfi\n"
	       "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	       "\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
	       "\t\t\tCOMPREPLY=($(compgen -c -f -- \"$cur\"))\n\t\t\treturn\n\t\tfi\n\tdone\n"
	       "\tcase $cmd:$prev in\n");
	each_cmd(bash_values);
	printf("\tesac\n\tcase $cmd in\n");
	each_cmd(bash_words);
	printf("\tesac\n\tif [[ $cur == -* ]]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\telse\n"
	       "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\tfi\n}\n"
	       "complete -o filenames -F _longpole longpole\n");
}

/* --- zsh */

/* What _arguments takes inside [...] of a quoted word: brackets and colons are its own. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			putchar('\\');
		put_quoted((char[2]){*text});
	}
}

static void zsh_opt(const struct cmd *cmd, const struct opt *o)
{
	const char *action = o->type == OPT_PATH ? "_files" : " ";

	(void)cmd;
	for (int form = o->letter ? 0 : 1; form < 2; form++) {
		printf(" \\\n\t\t\t'%s", o->many ? "*" : "");
		if (form == 0)
			printf("-%c%s[", o->letter, o->arg ? "+" : "");
		else
			printf("--%s%s[", o->name, o->arg ? "=" : "");
		zsh_text(o->help);
		printf("]");
		if (o->arg)
			printf(":%s:%s", o->arg, action);
		printf("'");
	}
}

static void zsh_cmd(const struct cmd *cmd)
{
	printf("\t\t%s)\n\t\t\t_arguments", cmd->name);
	each_opt(cmd, zsh_opt);
	if (cmd->operands_max)
		printf(" \\\n\t\t\t'*:file:_files'");
	printf(" ;;\n");
}

static void zsh_name(const struct cmd *cmd)
{
	printf("\t\t'%s:", cmd->name);
	put_quoted(cmd->summary);
	printf("'\n");
}

static void zsh(void)
{
	printf("#compdef longpole\n_longpole()\n{\n\tlocal -a commands\n\tcommands=(\n");
	each_cmd(zsh_name);
	printf("\t\t'help:what a command does and takes'\n\t)\n"
	       "\tif ((CURRENT == 2)) || { ((CURRENT == 3)) && [[ $words[2] == help ]] }; then\n"
	       "\t\t_describe command commands\n\t\treturn\n\tfi\n"
	       "\tlocal cmd=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $cmd in\n");
	each_cmd(zsh_cmd);
	printf("\tesac\n}\n_longpole \"$@\"\n");
}

/* --- fish */

static void fish_opt(const struct cmd *cmd, const struct opt *o)
{
	printf("complete -c longpole -n '__fish_seen_subcommand_from %s' -l %s", cmd->name,
	       o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (o->arg)
		printf(o->type == OPT_PATH ? " -r -F" : " -x");
	printf(" -d '");
	/* fish knows \' inside single quotes, not the '\'' of sh. */
	for (const char *c = o->help; *c; c++)
		fputs(*c == '\'' ? "\\'" : (char[2]){*c}, stdout);
	printf("'\n");
}

static void fish_cmd(const struct cmd *cmd)
{
	printf("complete -c longpole -f -n __fish_use_subcommand -a %s -d '%s'\n", cmd->name,
	       cmd->summary);
	each_opt(cmd, fish_opt);
}

static void fish(void)
{
	printf("# fish completion for longpole\n");
	each_cmd(fish_cmd);
	printf("complete -c longpole -f -n __fish_use_subcommand -a help "
	       "-d 'what a command does and takes'\n"
	       "complete -c longpole -f -n '__fish_seen_subcommand_from help' -a '");
	each_cmd(put_name);
	printf("'\n");
}

static int run(const struct cmd_args *args, struct err *err)
{
	const char *shell = args->operands[0];

	if (!strcmp(shell, "bash"))
		bash();
	else if (!strcmp(shell, "zsh"))
		zsh();
	else if (!strcmp(shell, "fish"))
		fish();
	else
		return args_wrong(err, "no completion for '%s': bash, zsh or fish", shell);
	return CMD_FINE;
}

const struct cmd cmd_completion = {
	.name = "completion",
	.summary = "print the completion script of a shell",
	.usage = (const char *const[]){"bash|zsh|fish", NULL},
	.operands_min = 1,
	.operands_max = 1,
	.hidden = true,
	.run = run,
};
