/* SPDX-License-Identifier: MIT
 *
 * The words of a command line against a command's table.
 *
 * Not getopt_long: it takes its table in another shape, prints by itself, knows no types, and
 * accepts abbreviations, which would make every new option a risk for old scripts.
 */
#include "cli/cli.h"

#include "base/duration.h"
#include "base/err.h"
#include "base/vec.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct opt common_opts[] = {
	{'v', "verbose", NULL, OPT_FLAG, "say more about what is being done", false},
	{'h', "help", NULL, OPT_FLAG, "show this help", false},
	{0},
};

struct parser {
	struct VEC(struct arg_value) values;
	struct cmd_args *args;
	struct err *err;
	char **next; /* the words not looked at yet */
};

int args_wrong(struct err *err, const char *fmt, ...)
{
	char text[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(err, -EINVAL, "%s", text);
	return CMD_USAGE;
}

/* --- values */

static int parse_count(const char *text, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || *ret < 1)
		return -EINVAL;
	return 0;
}

/* Shift of K, M, G, T, also as KB and KiB; -1 for anything else. */
static int size_shift(const char *unit)
{
	static const char letters[] = "KMGT";
	const char *at;

	if (!*unit || !strcasecmp(unit, "B"))
		return 0;
	at = strchr(letters, toupper((unsigned char)*unit));
	if (!at || (unit[1] && strcasecmp(unit + 1, "B") && strcasecmp(unit + 1, "iB")))
		return -1;
	return (int)(at - letters + 1) * 10;
}

static int parse_size(const char *text, int64_t *ret)
{
	int64_t n;
	int shift;
	char *end;

	errno = 0;
	n = strtoll(text, &end, 10);
	shift = size_shift(end);
	if (!isdigit((unsigned char)*text) || errno || shift < 0 || n < 1 || n > INT64_MAX >> shift)
		return -EINVAL;
	*ret = n << shift;
	return 0;
}

/* Digits and one point only: strtod would take hex, "inf" and the locale's comma. */
static int parse_percent(const char *text, double *ret)
{
	double value = 0, scale = 1;
	const char *s = text;
	bool digits = false;

	for (; isdigit((unsigned char)*s); s++, digits = true)
		value = value * 10 + (*s - '0');
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++, digits = true)
			value += (*s - '0') * (scale /= 10);
	if (*s == '%')
		s++;
	if (!digits || *s || value > 100)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int parse_value(struct arg_value *v)
{
	switch (v->opt->type) {
	case OPT_FLAG:
		return 0;
	case OPT_STRING:
	case OPT_PATH:
		return *v->text ? 0 : -EINVAL;
	case OPT_COUNT:
		return parse_count(v->text, &v->number);
	case OPT_DURATION:
		return duration_parse(v->text, &v->number, NULL);
	case OPT_SIZE:
		return parse_size(v->text, &v->number);
	case OPT_PERCENT:
		return parse_percent(v->text, &v->percent);
	}
	return -EINVAL;
}

static const char *wanted(enum opt_type type)
{
	static const char *const text[] = {
		[OPT_FLAG] = "",
		[OPT_STRING] = "something that is not empty",
		[OPT_PATH] = "a path",
		[OPT_COUNT] = "a whole number from 1 up",
		[OPT_DURATION] = "a time like 250us, 10ms or 2s",
		[OPT_SIZE] = "a size like 4096, 512K or 8M",
		[OPT_PERCENT] = "a percentage from 0 to 100",
	};
	return text[type];
}

/* --- words */

static const struct opt *find_in(const struct opt *o, char letter, const char *name, size_t len)
{
	for (; o && o->name; o++)
		if (letter ? o->letter == letter
			   : strlen(o->name) == len && !memcmp(o->name, name, len))
			return o;
	return NULL;
}

static const struct opt *find_opt(const struct cmd *cmd, char letter, const char *name, size_t len)
{
	const struct opt *o = find_in(cmd->opts, letter, name, len);

	return o ? o : find_in(common_opts, letter, name, len);
}

static int add_value(struct parser *p, const struct opt *o, const char *text, const char *word)
{
	struct arg_value v = {.opt = o, .text = text};

	if (parse_value(&v) < 0)
		return args_wrong(p->err, "'%s' is no value for %s: it takes %s", text, word,
				  wanted(o->type));
	if (o == &common_opts[0])
		p->args->verbose = true;
	else if (o == &common_opts[1])
		p->args->help = true;
	else
		vec_push(&p->values, v);
	return CMD_FINE;
}

/* --name, --name VALUE, --name=VALUE */
static int long_word(struct parser *p, const char *word)
{
	size_t len = strcspn(word + 2, "=");
	const struct opt *o = find_opt(p->args->cmd, 0, word + 2, len);
	const char *value = word[2 + len] ? word + 2 + len + 1 : NULL;
	char name[64];

	if (!o)
		return args_wrong(p->err, "unknown option '%.*s'", (int)len + 2, word);
	snprintf(name, sizeof(name), "--%s", o->name);
	if (!o->arg && value)
		return args_wrong(p->err, "%s takes no value, '%s' was given", name, value);
	if (!o->arg)
		return add_value(p, o, "", name);
	if (!value && *p->next)
		value = *p->next++;
	if (!value)
		return args_wrong(p->err, "%s needs a value, %s", name, o->arg);
	return add_value(p, o, value, name);
}

/* -a, -abc, -d VALUE, -dVALUE */
static int short_word(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct opt *o = find_opt(p->args->cmd, *c, NULL, 0);
		char name[3] = {'-', *c};
		int rc;

		if (!o)
			return args_wrong(p->err, "unknown option '%s'",
					  c == word + 1 ? word : name);
		if (o->arg) {
			const char *value = c[1] ? c + 1 : *p->next ? *p->next++ : NULL;

			if (!value)
				return args_wrong(p->err, "%s needs a value, %s", name, o->arg);
			return add_value(p, o, value, name);
		}
		rc = add_value(p, o, "", name);
		if (rc)
			return rc;
	}
	return CMD_FINE;
}

/* Operands move to the front of the words, over options already read. */
static int operand_word(struct parser *p, char *word)
{
	struct cmd_args *a = p->args;

	if (a->operand_count == a->cmd->operands_max)
		return args_wrong(p->err, "'%s' is one word too many", word);
	a->operands[a->operand_count++] = word;
	return CMD_FINE;
}

static int take_command(struct parser *p)
{
	if (!p->args->cmd->takes_command)
		return args_wrong(p->err, "'--' is for commands that start a program");
	if (!*p->next)
		return args_wrong(p->err, "nothing to start after '--'");
	p->args->command = p->next;
	return CMD_FINE;
}

static int parse_words(struct parser *p)
{
	while (*p->next) {
		char *word = *p->next++;
		int rc;

		if (!strcmp(word, "--"))
			return take_command(p);
		if (word[0] == '-' && word[1] == '-')
			rc = long_word(p, word);
		else if (word[0] == '-' && word[1])
			rc = short_word(p, word);
		else
			rc = operand_word(p, word);
		if (rc)
			return rc;
	}
	return CMD_FINE;
}

int args_parse(const struct cmd *cmd, char **words, struct cmd_args *ret, struct err *err)
{
	struct parser p = {.args = ret, .err = err, .next = words};
	int rc;

	*ret = (struct cmd_args){.cmd = cmd, .operands = words};
	rc = parse_words(&p);
	ret->values = p.values.at;
	ret->value_count = p.values.n;
	if (!rc && !ret->help && ret->operand_count < cmd->operands_min)
		rc = args_wrong(err, "something is missing after '%s': it takes %s",
				ret->operand_count ? ret->operands[ret->operand_count - 1]
						   : cmd->name,
				cmd->usage ? cmd->usage[0] : "more");
	return rc;
}

void args_fini(struct cmd_args *args)
{
	free(args->values);
	*args = (struct cmd_args){0};
}

/* --- what the commands ask */

size_t args_count(const struct cmd_args *args, const char *name)
{
	size_t n = 0;

	assert(find_opt(args->cmd, 0, name, strlen(name)));
	for (size_t i = 0; i < args->value_count; i++)
		n += !strcmp(args->values[i].opt->name, name);
	return n;
}

bool args_has(const struct cmd_args *args, const char *name)
{
	return args_count(args, name) > 0;
}

static const struct arg_value *value_at(const struct cmd_args *args, const char *name, size_t n)
{
	for (size_t i = 0; i < args->value_count; i++)
		if (!strcmp(args->values[i].opt->name, name) && !n--)
			return &args->values[i];
	assert(!"args_*_at: no such value");
	return NULL;
}

int64_t args_int_at(const struct cmd_args *args, const char *name, size_t i)
{
	return value_at(args, name, i)->number;
}

const char *args_str_at(const struct cmd_args *args, const char *name, size_t i)
{
	return value_at(args, name, i)->text;
}

int64_t args_int(const struct cmd_args *args, const char *name, int64_t fallback)
{
	size_t n = args_count(args, name);

	return n ? value_at(args, name, n - 1)->number : fallback;
}

double args_percent(const struct cmd_args *args, const char *name, double fallback)
{
	size_t n = args_count(args, name);

	return n ? value_at(args, name, n - 1)->percent : fallback;
}

const char *args_str(const struct cmd_args *args, const char *name, const char *fallback)
{
	size_t n = args_count(args, name);

	return n ? value_at(args, name, n - 1)->text : fallback;
}

int args_duration(const struct cmd_args *args, int64_t *ret_ns, struct err *err)
{
	int64_t ns = args_int(args, "duration", 0);

	if (args_has(args, "duration") && !ns)
		return args_wrong(err, "'%s' is no value for --duration: it takes more than 0",
				  args_str(args, "duration", ""));
	*ret_ns = ns;
	return CMD_FINE;
}
