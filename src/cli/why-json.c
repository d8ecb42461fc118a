/* SPDX-License-Identifier: MIT
 *
 * `longpole why --json`: schema longpole.why/1.
 */
#include "base/json.h"
#include "base/scoped.h"
#include "base/str.h"
#include "cli/why.h"

#include <inttypes.h>
#include <sys/wait.h>

static void put_window(struct json *j, const struct why_report *w)
{
	char start[24];

	snprintf(start, sizeof(start), "%" PRId64, w->wall_ns);
	json_object(j, "window");
	json_int(j, "start_ns", w->wall_ns);
	json_str(j, "start", start);
	json_int(j, "duration_ns", w->end_ns - w->start_ns);
	json_end(j);
}

static void put_command(struct json *j, const struct why_report *w)
{
	int status = w->command_status;

	if (!w->command)
		return;
	json_object(j, "command");
	json_str(j, "line", w->command);
	json_int(j, "pid", w->command_pid);
	if (status >= 0 && WIFSIGNALED(status))
		json_int(j, "signal", WTERMSIG(status));
	else if (status >= 0)
		json_int(j, "status", WEXITSTATUS(status));
	json_int(j, "requests_elsewhere", w->elsewhere_count);
	json_end(j);
}

/* One host is its own reference. */
static void put_hosts(struct json *j, const struct why_report *w)
{
	json_array(j, "hosts");
	json_object(j, NULL);
	json_str(j, "name", w->host);
	json_int(j, "offset_ns", 0);
	json_int(j, "drift_ppb", 0);
	json_int(j, "error_ns", 0);
	json_str(j, "clock", "reference");
	json_str(j, "cgroup_key", w->cgroup_key);
	json_end(j);
	json_end(j);
}

static void put_lost(struct json *j, const struct why_report *w)
{
	json_object(j, "lost");
	json_uint(j, "records", w->lost_count);
	json_object(j, "by_reason");
	for (int i = 0; i < w->lost_reasons; i++)
		json_uint(j, w->lost[i].name, w->lost[i].count);
	json_end(j);
	json_end(j);
}

static void put_groups(struct json *j, const struct why_report *w)
{
	const struct profile_group *g;
	int n = profile_groups(w->profile, &g);

	json_array(j, "groups");
	for (int i = 0; i < n; i++) {
		json_object(j, NULL);
		json_str(j, "name", g[i].name);
		json_int(j, "count", g[i].count);
		json_int(j, "cut_count", g[i].cut_count);
		json_int(j, "slow_count", g[i].slow_count);
		json_int(j, "slow_over_ns", g[i].slow_over_ns);
		json_int(j, "p50_ns", g[i].p50_ns);
		json_int(j, "p95_ns", g[i].p95_ns);
		json_int(j, "p99_ns", g[i].p99_ns);
		json_int(j, "mean_ns", g[i].mean_ns);
		json_int(j, "mean_slow_ns", g[i].mean_slow_ns);
		json_int(j, "mean_typical_ns", g[i].mean_typical_ns);
		json_num(j, "unknown_share", g[i].unknown_share, 6);
		json_str(j, "basis", g[i].basis_all ? "all" : "slow-vs-typical");
		json_bool(j, "streaming", g[i].streaming);
		json_end(j);
	}
	json_end(j);
}

static void put_via(struct json *j, via v)
{
	json_array(j, "via");
	for (int i = 0; via_at(v, i) != VIA_END; i++)
		json_str(j, NULL, via_word(via_at(v, i)));
	json_end(j);
}

static void put_sentences(struct json *j, const struct why_report *w, const struct finding *f)
{
	scoped(str_fini) struct str s = {0};

	why_sentence(w, f, &s);
	json_str(j, "text", str_get(&s));
	json_array(j, "evidence");
	for (int i = 0; why_evidence(w, f, i, &s); i++)
		json_str(j, NULL, str_get(&s));
	json_end(j);
	str_clear(&s);
	why_advice(f, &s);
	json_str(j, "advice", str_get(&s));
}

static void put_finding(struct json *j, const struct why_report *w, const struct finding *f)
{
	json_object(j, NULL);
	json_int(j, "rank", f->rank);
	json_str(j, "group", f->group->name);
	json_str(j, "basis", f->basis_all ? "all" : "slow-vs-typical");
	json_str(j, "state", state_word(f->state));
	json_str(j, "cause", cause_word(f->cause));
	put_via(j, f->via);
	json_int(j, "extra_ns", f->extra_ns);
	json_num(j, "share", f->share, 6);
	json_num(j, "presence", f->presence, 6);
	json_int(j, "count", f->count);
	json_int(j, "certain_ns", f->certain_ns);
	json_int(j, "mean_slow_ns", f->mean_slow_ns);
	json_int(j, "mean_typical_ns", f->mean_typical_ns);
	culprit_json(j, "culprit", &f->culprit);
	put_sentences(j, w, f);
	json_end(j);
}

static void put_findings(struct json *j, const struct why_report *w)
{
	const struct finding *f;
	int n = profile_finding_list(w->profile, &f);

	json_array(j, "findings");
	for (int i = 0; i < n; i++)
		put_finding(j, w, &f[i]);
	json_end(j);
}

static void put_slowest(struct json *j, const struct why_report *w)
{
	const struct budget *b;
	const struct path *p;
	int n = profile_slowest(w->profile, &p, &b);

	json_array(j, "slowest");
	for (int i = 0; i < n; i++) {
		json_object(j, NULL);
		json_str(j, "name", p[i].name);
		json_int(j, "start_ns", p[i].start_ns - w->start_ns);
		json_int(j, "duration_ns", p[i].end_ns - p[i].start_ns);
		json_str(j, "host", p[i].host);
		json_int(j, "tid", p[i].tid);
		json_bool(j, "cut", p[i].cut);
		budget_json(j, "budget", &b[i]);
		if (p[i].whole_count)
			json_int(j, "path_segments", p[i].whole_count);
		path_json(j, "path", &p[i], w->start_ns);
		json_end(j);
	}
	json_end(j);
}

static void put_cost(struct json *j, const struct why_report *w)
{
	json_object(j, "cost");
	if (w->recorder_cpu_pct < 0)
		json_null(j, "recorder_cpu_pct");
	else
		json_num(j, "recorder_cpu_pct", w->recorder_cpu_pct, 3);
	json_uint(j, "records", w->records);
	json_uint(j, "bytes", w->bytes);
	json_end(j);
}

int why_json(const struct why_report *w, FILE *out)
{
	static const char *const subject[] = {"requests", "command", "process"};
	struct json j;

	json_init(&j, out, 1);
	json_object(&j, NULL);
	json_str(&j, "schema", "longpole.why/1");
	json_str(&j, "subject", subject[w->subject]);
	put_window(&j, w);
	put_command(&j, w);
	put_hosts(&j, w);
	put_lost(&j, w);
	put_groups(&j, w);
	put_findings(&j, w);
	put_slowest(&j, w);
	put_cost(&j, w);
	json_end(&j);
	return json_fini(&j);
}
