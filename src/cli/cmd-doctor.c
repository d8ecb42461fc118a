/* SPDX-License-Identifier: MIT
 *
 * What works on this machine, and what to do about what does not.
 */
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "record/record.h"

#include <stdio.h>

enum { CHECKS_MAX = 40 };

static const char *const state_words[] = {"ok", "limited", "missing"};

static void print_json(const struct record_check *c, int n)
{
	struct json j;

	json_init(&j, stdout, 1);
	json_object(&j, NULL);
	json_str(&j, "schema", "longpole.doctor/1");
	json_array(&j, "checks");
	for (int i = 0; i < n; i++) {
		json_object(&j, NULL);
		json_str(&j, "name", c[i].name);
		json_str(&j, "state", state_words[c[i].state]);
		json_str(&j, "detail", c[i].detail);
		json_str(&j, "advice", c[i].advice);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_fini(&j);
}

static void print_text(const struct record_check *c, int n)
{
	static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
	bool colour = log_colour(stdout);

	for (int i = 0; i < n; i++) {
		printf("%s%-8s%s %-18s %s\n", colour ? colours[c[i].state] : "",
		       state_words[c[i].state], colour ? "\033[0m" : "", c[i].name, c[i].detail);
		if (c[i].advice[0])
			printf("%27s %s\n", "→", c[i].advice);
	}
}

static int run(const struct cmd_args *args, struct err *err)
{
	struct record_check checks[CHECKS_MAX];
	int n = record_probe(checks, CHECKS_MAX), worst = 0;

	(void)err;
	for (int i = 0; i < n; i++)
		worst = checks[i].state > worst ? checks[i].state : worst;
	if (args_has(args, "json"))
		print_json(checks, n);
	else
		print_text(checks, n);
	return worst ? CMD_PARTIAL : CMD_FINE;
}

static const struct opt opts[] = {
	{0, "json", NULL, OPT_FLAG, "print JSON", false},
	{0},
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "say what works on this machine, and what to do about what does not",
	.usage = (const char *const[]){"[--json]", NULL},
	.opts = opts,
	.examples =
		(const struct example[]){
			{"sudo longpole doctor", "check everything"},
			{0},
		},
	.run = run,
};
