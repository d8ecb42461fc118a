/* SPDX-License-Identifier: MIT
 *
 * cli.h - what a command is: one file cmd-NAME.c, one `const struct cmd cmd_NAME`, one line in
 * commands.h.  Help, completion and the option part of the man page come from this table.
 *
 *	static const struct opt opts[] = {
 *		{'d', "duration", "TIME", OPT_DURATION, "stop after TIME"},
 *		{0, "pid", "PID", OPT_COUNT, "report only this process", .many = true},
 *		{0, "json", NULL, OPT_FLAG, "print JSON"},
 *		{0},
 *	};
 *	static int run(const struct cmd_args *args, struct err *err)
 *	{
 *		int64_t for_ns = args_int(args, "duration", 0);
 *		...
 *		return lost ? CMD_PARTIAL : CMD_FINE;
 *	}
 *	const struct cmd cmd_record = {
 *		.name = "record", .summary = "record this host",
 *		.usage = (const char *const[]){"[-o DIR] [-d TIME] [-- CMD...]", NULL},
 *		.opts = opts, .takes_command = true, .run = run,
 *		.examples = (const struct example[]){
 *			{"longpole record -d 10", "record ten seconds"}, {0}},
 *	};
 * --help and -v/--verbose are every command's and stand in no table.
 */
#ifndef CLI_H
#define CLI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LONGPOLE_VERSION "0.1.0"

struct err;

/* The exit status of longpole. */
enum cmd_status {
	CMD_FINE = 0,
	CMD_FAILED = 1,
	CMD_USAGE = 2,	 /* a word of the command line was wrong */
	CMD_PARTIAL = 3, /* finished, but data were lost or nothing matched */
};

enum opt_type {
	OPT_FLAG,
	OPT_STRING,
	OPT_PATH,     /* a string that completes to file names */
	OPT_COUNT,    /* a whole number, at least 1 */
	OPT_DURATION, /* 250us, 2s; ns */
	OPT_SIZE,     /* 4096, 512K, 8M, 1G (powers of 1024), at least 1; bytes */
	OPT_PERCENT,  /* 95, 99.9, 95%; from 0 to 100 */
};

struct opt {
	char letter;	  /* 0: has none */
	const char *name; /* without dashes; NULL ends the table */
	const char *arg;  /* how help calls its value; NULL for a flag */
	enum opt_type type;
	const char *help; /* a phrase, no capital, no full stop */
	bool many;	  /* all values count; otherwise the last one does */
};

struct example {
	const char *line; /* NULL ends the table */
	const char *what;
};

struct cmd_args;

struct cmd {
	const char *name;
	const char *summary;	  /* a phrase, as in opt.help */
	const char *const *usage; /* what follows the name, one line per form; NULL ends */
	const struct opt *opts;	  /* NULL: none */
	const struct example *examples;
	int operands_min, operands_max; /* OPERANDS_ANY: no limit */
	bool takes_command;		/* `-- CMD...` is allowed */
	bool hidden;			/* not listed in help or completion */
	/*
	 * The exit status; or a negative errno with the sentence in err: main prints it and
	 * exits 1.  For a word found wrong late, return args_wrong(err, ...).
	 */
	int (*run)(const struct cmd_args *args, struct err *err);
};

enum { OPERANDS_ANY = 1 << 20 };

struct arg_value {
	const struct opt *opt;
	const char *text; /* as given */
	int64_t number;	  /* COUNT, DURATION, SIZE */
	double percent;
};

struct cmd_args {
	const struct cmd *cmd;
	bool help, verbose;
	int operand_count;
	char **operands;
	char **command; /* the words after --, NULL-terminated as for execvp; NULL: none given */
	size_t value_count;
	struct arg_value *values;
};

/* Options by their long name; a name that the command's table lacks asserts. */
bool args_has(const struct cmd_args *args, const char *name);
size_t args_count(const struct cmd_args *args, const char *name);
/* The last value given, or the fallback. */
/* --duration, 0 if it was not given: then there is no end.  CMD_USAGE if it is no time at all. */
int args_duration(const struct cmd_args *args, int64_t *ret_ns, struct err *err);
int64_t args_int(const struct cmd_args *args, const char *name, int64_t fallback);
double args_percent(const struct cmd_args *args, const char *name, double fallback);
const char *args_str(const struct cmd_args *args, const char *name, const char *fallback);
/* Value number i < args_count of an option with .many. */
int64_t args_int_at(const struct cmd_args *args, const char *name, size_t i);
const char *args_str_at(const struct cmd_args *args, const char *name, size_t i);
/* Sets err and returns CMD_USAGE; the sentence names the word that was wrong. */
int args_wrong(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * For main: the words after the command's name.  CMD_FINE or CMD_USAGE with err set.
 * words is reordered and lent to ret; args_fini frees the rest.
 */
int args_parse(const struct cmd *cmd, char **words, struct cmd_args *ret, struct err *err);
void args_fini(struct cmd_args *args);
/* The options that every command has, as a table. */
extern const struct opt common_opts[];

/* Every command of commands.h; NULL ends.  cmd_find gives NULL for an unknown name. */
extern const struct cmd *const cmd_list[];
const struct cmd *cmd_find(const char *name);
/* On stdout. */
void help_program(void);
void help_command(const struct cmd *cmd);

#endif
