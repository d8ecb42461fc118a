/* SPDX-License-Identifier: MIT
 *
 * The walk against critical paths that another project's tests assert: small execution graphs with
 * their bounded critical path (a wait is explained only from its own beginning, as here).  They are
 * read from $LONGPOLE_TRACES (../shared/data), not kept in this tree; where absent, skipped.
 *
 * A worker becomes a thread, born where its first vertex is; BLOCKED becomes an absence, released
 * by whom the vertical edge into its end comes from.  One unit of their time is ten microseconds.
 */
#include "walk-lab.h"

#include <cjson/cJSON.h>

enum { UNIT_US = 10, WORKERS = 8, UNITS = 32 };

struct graph {
	const cJSON *json;
	const char *name[WORKERS];
	int thread[WORKERS], n;
};

static int number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	assert_non_null(v);
	return v->valueint;
}

static const char *word(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	return v && v->valuestring ? v->valuestring : "";
}

static int worker_index(const struct graph *g, const char *name)
{
	for (int i = 0; i < g->n; i++)
		if (!strcmp(g->name[i], name))
			return i;
	fail_msg("no worker %s", name);
	return -1;
}

/* The vertical edge into (worker, t), or NULL. */
static const cJSON *edge_into(const struct graph *g, const char *worker, int t)
{
	const cJSON *edge, *to;

	cJSON_ArrayForEach(edge, cJSON_GetObjectItem(g->json, "vertical_edges"))
	{
		to = cJSON_GetObjectItem(edge, "to");
		if (!strcmp(word(to, "worker"), worker) && number(to, "t") == t)
			return edge;
	}
	return NULL;
}

static void add_threads(struct lab *l, struct graph *g)
{
	const cJSON *worker;

	cJSON_ArrayForEach(worker, cJSON_GetObjectItem(g->json, "workers")) g->name[g->n++] =
		worker->string;
	for (int i = 0; i < g->n; i++) {
		worker = cJSON_GetObjectItem(cJSON_GetObjectItem(g->json, "workers"), g->name[i]);
		int born = cJSON_GetArrayItem(cJSON_GetObjectItem(worker, "vertices"), 0)->valueint;
		const cJSON *maker = edge_into(g, g->name[i], born);
		uint32_t parent = 0;

		if (maker && born)
			parent = 100 +
				 (uint32_t)worker_index(
					 g, word(cJSON_GetObjectItem(maker, "from"), "worker"));
		g->thread[i] = lab_born(l, g->name[i], 100 + (uint32_t)i, 100 + (uint32_t)i, 0,
					parent ? born * UNIT_US : -1, parent);
	}
}

static void add_absences(struct lab *l, const struct graph *g)
{
	const cJSON *edge, *release, *from;

	for (int i = 0; i < g->n; i++) {
		const cJSON *worker =
			cJSON_GetObjectItem(cJSON_GetObjectItem(g->json, "workers"), g->name[i]);

		cJSON_ArrayForEach(edge, cJSON_GetObjectItem(worker, "horizontal_edges"))
		{
			int start = number(edge, "from") * UNIT_US;
			int end = number(edge, "to") * UNIT_US;

			if (strcmp(word(edge, "state"), "BLOCKED") != 0)
				continue;
			release = edge_into(g, g->name[i], number(edge, "to"));
			assert_non_null(release);
			from = cJSON_GetObjectItem(release, "from");
			if (!strcmp(word(release, "state"), "TIMER"))
				lab_away(l, g->thread[i], start, end, end, end,
					 AWAY(.by = BY_TIMER, .syscall = syscall_nr("nanosleep")));
			else
				lab_blocked(l, g->thread[i], start, end, OBJ_PIPE, "read",
					    g->thread[worker_index(g, word(from, "worker"))]);
		}
	}
}

/* What is expected, by unit of time: "WORKER STATE". */
static void expected_units(const cJSON *path, char unit[UNITS][64])
{
	const cJSON *worker, *edge;

	cJSON_ArrayForEach(worker, cJSON_GetObjectItem(path, "workers"))
	{
		cJSON_ArrayForEach(edge, cJSON_GetObjectItem(worker, "horizontal_edges"))
		{
			for (int t = number(edge, "from"); t < number(edge, "to"); t++)
				snprintf(unit[t], sizeof(unit[t]), "%.30s %.30s", worker->string,
					 word(edge, "state"));
		}
	}
}

static void walked_units(const struct path *p, char unit[UNITS][64])
{
	for (int i = 0; i < p->n; i++) {
		const struct segment *s = &p->segments[i];

		for (int64_t t = s->start_ns / US(UNIT_US); t < s->end_ns / US(UNIT_US); t++)
			snprintf(unit[t], sizeof(unit[t]), "%.30s %s", s->comm,
				 s->state == STATE_RUNNING ? "RUNNING"
				 : s->state == STATE_SLEEP ? "TIMER"
							   : state_word(s->state));
	}
}

static void check_graph(const cJSON *test)
{
	const cJSON *want = cJSON_GetObjectItem(test, "critical_path_bounded");
	struct graph g = {.json = cJSON_GetObjectItem(test, "graph")};
	char expected[UNITS][64] = {0}, walked[UNITS][64] = {0};
	struct err err = {0};
	const cJSON *vertices;
	struct path p;
	struct lab l;
	int start;

	if (cJSON_GetObjectItem(want, "same_as"))
		want = g.json;
	lab_init(&l);
	add_threads(&l, &g);
	lab_begin(&l);
	add_absences(&l, &g);
	lab_end(&l);
	start = worker_index(&g, word(test, "start_worker"));
	vertices = cJSON_GetObjectItem(
		cJSON_GetObjectItem(cJSON_GetObjectItem(g.json, "workers"), g.name[start]),
		"vertices");
	assert_int_equal(
		walk_thread(l.walk, g.thread[start],
			    US(UNIT_US) * cJSON_GetArrayItem(vertices, 0)->valueint,
			    US(UNIT_US) *
				    cJSON_GetArrayItem(vertices, cJSON_GetArraySize(vertices) - 1)
					    ->valueint,
			    &l.a, &p, &err),
		0);
	lab_check(&l, &p);
	expected_units(want, expected);
	walked_units(&p, walked);
	for (int t = 0; t < UNITS; t++)
		if (strcmp(expected[t], walked[t]) != 0)
			fail_msg("%s at %d: '%s', expected '%s'", test->string, t, walked[t],
				 expected[t]);
	lab_fini(&l);
}

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = f ? calloc(1, 1 << 20) : NULL;

	if (text && !fread(text, 1, (1 << 20) - 1, f)) {
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

static void graphs(void **state)
{
	const char *traces = getenv("LONGPOLE_TRACES");
	char path[512];
	const cJSON *test;
	cJSON *doc;
	char *text;
	int n = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/tracecompass-unit-tests/expected/execution-graphs.json",
		 traces ? traces : "../shared/data");
	text = read_all(path);
	if (!text) {
		print_message("SKIP: %s is not there (LONGPOLE_TRACES)\n", path);
		skip();
	}
	doc = cJSON_Parse(text);
	assert_non_null(doc);
	cJSON_ArrayForEach(test, cJSON_GetObjectItem(doc, "graphs"))
	{
		if (!cJSON_IsObject(cJSON_GetObjectItem(test, "critical_path_bounded")))
			continue;
		check_graph(test);
		n++;
	}
	print_message("%d graphs\n", n);
	assert_true(n > 0);
	cJSON_Delete(doc);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(graphs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
