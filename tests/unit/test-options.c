/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "cli/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct opt opts[] = {
	{'o', "output", "DIR", OPT_PATH, "where", false},
	{'d', "duration", "TIME", OPT_DURATION, "how long", false},
	{0, "pid", "PID", OPT_COUNT, "which", true},
	{0, "cgroup", "PATH", OPT_STRING, "which", true},
	{0, "buffer", "SIZE", OPT_SIZE, "how much", false},
	{0, "percentile", "P", OPT_PERCENT, "from where", false},
	{'j', "json", NULL, OPT_FLAG, "print JSON", false},
	{0},
};
static const struct cmd cmd = {
	.name = "try", .opts = opts, .operands_max = 2, .takes_command = true};

enum { WORDS = 16 };
static char *words[WORDS + 1];
static struct err err;

/* Splits text at blanks and parses it. */
static int parse(const struct cmd *c, const char *text, struct cmd_args *ret)
{
	static char copy[256];
	int n = 0;

	strncpy(copy, text, sizeof(copy) - 1);
	for (char *w = strtok(copy, " "); w && n < WORDS; w = strtok(NULL, " "))
		words[n++] = w;
	words[n] = NULL;
	err = (struct err){0};
	return args_parse(c, words, ret, &err);
}

static void every_form_of_an_option(void **state)
{
	static const char *const forms[] = {
		"-d 2s -o x -j",
		"-d2s -ox -j",
		"--duration 2s --output x --json",
		"--duration=2s --output=x --json",
		"-jd 2s -o x",
		"-jox -d2",
		"-d 1s --duration=2s -o y -o x -j -v",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct cmd_args a;

		assert_int_equal(parse(&cmd, forms[i], &a), CMD_FINE);
		assert_int_equal(args_int(&a, "duration", 0), 2000000000);
		assert_string_equal(args_str(&a, "output", ""), "x");
		assert_true(args_has(&a, "json"));
		assert_false(args_has(&a, "buffer"));
		assert_int_equal(args_int(&a, "buffer", 7), 7);
		args_fini(&a);
	}
}

static void values_have_types(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} sizes[] = {{"--buffer 1", 1},
		     {"--buffer 512K", 512 << 10},
		     {"--buffer 8M", 8 << 20},
		     {"--buffer 8MB", 8 << 20},
		     {"--buffer 8MiB", 8 << 20},
		     {"--buffer 3g", (int64_t)3 << 30},
		     {"--buffer 1T", (int64_t)1 << 40},
		     {"--buffer 7B", 7}};
	struct cmd_args a;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(parse(&cmd, sizes[i].text, &a), CMD_FINE);
		assert_int_equal(args_int(&a, "buffer", 0), sizes[i].bytes);
		args_fini(&a);
	}
	assert_int_equal(parse(&cmd, "--percentile 99.9% --pid 1 --pid 22 --cgroup /a", &a), 0);
	assert_float_equal(args_percent(&a, "percentile", 0), 99.9, 1e-9);
	assert_int_equal(args_count(&a, "pid"), 2);
	assert_int_equal(args_int_at(&a, "pid", 0), 1);
	assert_int_equal(args_int_at(&a, "pid", 1), 22);
	assert_string_equal(args_str_at(&a, "cgroup", 0), "/a");
	args_fini(&a);
}

static void operands_and_command(void **state)
{
	struct cmd_args a;

	(void)state;
	assert_int_equal(parse(&cmd, "one -j - -d 1 -- make -j2 --json", &a), CMD_FINE);
	assert_int_equal(a.operand_count, 2);
	assert_string_equal(a.operands[0], "one");
	assert_string_equal(a.operands[1], "-");
	assert_string_equal(a.command[0], "make");
	assert_string_equal(a.command[1], "-j2");
	assert_string_equal(a.command[2], "--json");
	assert_null(a.command[3]);
	assert_int_equal(args_count(&a, "json"), 1);
	args_fini(&a);
}

static void wrong_words_are_named(void **state)
{
	static const struct {
		const char *text, *named;
	} wrong[] = {
		{"--frob", "'--frob'"},
		{"--frob=3", "'--frob'"},
		{"--jso", "'--jso'"},
		{"-x", "'-x'"},
		{"-jx", "'-x'"},
		{"a b c", "'c'"},
		{"-d", "-d needs"},
		{"--duration", "--duration needs"},
		{"--json=1", "'1'"},
		{"-d never", "'never'"},
		{"--pid 0", "'0'"},
		{"--pid -1", "'-1'"},
		{"--pid 1x", "'1x'"},
		{"--pid 99999999999999999999", "'99999999999999999999'"},
		{"--buffer 8Q", "'8Q'"},
		{"--buffer 0", "'0'"},
		{"--buffer 9999999T", "'9999999T'"},
		{"--percentile 101", "'101'"},
		{"--percentile x", "'x'"},
		{"--output=", "''"},
		{"--", "'--'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct cmd_args a;

		assert_int_equal(parse(&cmd, wrong[i].text, &a), CMD_USAGE);
		if (!strstr(err.text, wrong[i].named))
			fail_msg("%s: %s", wrong[i].text, err.text);
		args_fini(&a);
	}
}

static void missing_operand_unless_help(void **state)
{
	static const struct cmd needs = {.name = "try", .operands_min = 1, .operands_max = 1};
	struct cmd_args a;

	(void)state;
	assert_int_equal(parse(&needs, "", &a), CMD_USAGE);
	args_fini(&a);
	assert_int_equal(parse(&needs, "--help", &a), CMD_FINE);
	assert_true(a.help);
	args_fini(&a);
	assert_int_equal(parse(&needs, "x -- y", &a), CMD_USAGE);
	args_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_an_option),
		cmocka_unit_test(values_have_types),
		cmocka_unit_test(operands_and_command),
		cmocka_unit_test(wrong_words_are_named),
		cmocka_unit_test(missing_operand_unless_help),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
