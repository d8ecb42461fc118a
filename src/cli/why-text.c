/* SPDX-License-Identifier: MIT
 *
 * The report of `longpole why` for a person: what was served, what made it slow, when, the
 * slowest one from inside, and how far all this can be trusted.  80 columns.
 */
#include "base/duration.h"
#include "base/plain.h"
#include "base/scoped.h"
#include "base/str.h"
#include "cli/why.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { WIDTH = 80, NAME_WIDTH = 34, MAX_GROUPS = 12, MEANS_SHOWN = 3, BUDGET_LINES = 8 };

struct page {
	const struct why_report *w;
	FILE *out;
	bool colour;
};

/* --- pieces */

/* Of a word that fits no line every line gets its part.  Returns the column behind it. */
static int put_word(FILE *out, const char *word, size_t len, int at, int column)
{
	for (;;) {
		size_t n = plain_bytes(word, (size_t)(at < WIDTH ? WIDTH - at : 0));

		if (n >= len)
			break;
		fprintf(out, "%.*s\n%*s", (int)n, word, column, "");
		at = column;
		word += n;
		len -= n;
	}
	fprintf(out, "%.*s", (int)len, word);
	return at + (int)plain_columns(word, len);
}

void why_wrap(FILE *out, const char *text, int at, int column)
{
	scoped(str_fini) struct str plain = {0};
	bool first = true;

	plain_add(&plain, text);
	text = str_get(&plain);
	while (*text) {
		size_t len = strcspn(text, " ");

		if (!first && at + 1 + (int)plain_columns(text, len) > WIDTH) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		} else if (!first) {
			fputc(' ', out);
			at++;
		}
		at = put_word(out, text, len, at, column);
		text += len;
		text += strspn(text, " ");
		first = false;
	}
	fputc('\n', out);
}

void why_count(uint64_t n, struct str *ret)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (int i = 0; i < len; i++)
		str_addf(ret, "%s%c", i && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

static void heading(const struct page *g, const char *text)
{
	fprintf(g->out, "\n%s", g->colour ? "\033[1m" : "");
	why_wrap(g->out, text, 0, 2);
	fputs(g->colour ? "\033[0m" : "", g->out);
}

static void put_count(const struct page *g, uint64_t n, int width)
{
	scoped(str_fini) struct str s = {0};

	why_count(n, &s);
	fprintf(g->out, "%*s", width, str_get(&s));
}

static void put_ns(const struct page *g, int64_t ns, int width)
{
	char text[DURATION_TEXT];

	fprintf(g->out, "%*s", width, duration_print(ns, text));
}

/* --- the head: where, when, how much */

static void add_day_and_zone(const struct why_report *w, struct str *ret)
{
	time_t seconds = (time_t)(w->wall_ns / 1000000000);
	char text[64] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm);
	str_add(ret, text);
}

static void add_command(const struct why_report *w, struct str *ret)
{
	int status = w->command_status;

	if (!w->command || status < 0)
		return;
	if (w->subject != SUBJECT_COMMAND)
		str_addf(ret, ".  Meanwhile %s", w->command);
	else
		str_add(ret, ".  It");
	if (WIFSIGNALED(status))
		str_addf(ret, " was killed by signal %d", WTERMSIG(status));
	else
		str_addf(ret, " ended with status %d", WEXITSTATUS(status));
	if (w->elsewhere_count)
		str_addf(ret, "; others served %" PRId64 " requests", w->elsewhere_count);
	str_add(ret, ".");
}

static void put_head(const struct page *g)
{
	const struct why_report *w = g->w;
	scoped(str_fini) struct str s = {0};
	char ns[DURATION_TEXT];

	str_addf(&s, "%s, %s from ", w->host, duration_print(w->end_ns - w->start_ns, ns));
	add_day_and_zone(w, &s);
	if (w->subject == SUBJECT_REQUESTS) {
		str_add(&s, ": ");
		why_count((uint64_t)w->request_count, &s);
		str_add(&s, w->request_count == 1 ? " request" : " requests");
		if (w->cut_count)
			str_addf(&s, ", %" PRId64 " of them cut by the edges of the recording",
				 w->cut_count);
	} else {
		str_addf(&s, ": no requests were served by %s, so this is where its own time went",
			 w->subject_name);
	}
	add_command(w, &s);
	why_wrap(g->out, str_get(&s), 0, 0);
}

/* --- groups */

static void put_group(const struct page *g, const struct profile_group *x)
{
	scoped(str_fini) struct str name = {0};
	int columns;

	plain_add(&name, x->name);
	columns = (int)plain_columns(str_get(&name), name.len);
	if (columns > NAME_WIDTH)
		fprintf(g->out, "  %.*s...", (int)plain_bytes(name.buf, NAME_WIDTH - 3), name.buf);
	else
		fprintf(g->out, "  %s%*s", str_get(&name), NAME_WIDTH - columns, "");
	put_count(g, (uint64_t)x->count, 8);
	if (!x->count) { /* how long they take is not known */
		fprintf(g->out, "  and %" PRId64 " cut\n", x->cut_count);
		return;
	}
	put_ns(g, x->p50_ns, 9);
	put_ns(g, x->p95_ns, 9);
	put_ns(g, x->p99_ns, 9);
	if (x->basis_all)
		fprintf(g->out, "%7s", "-");
	else
		put_count(g, (uint64_t)x->slow_count, 7);
	fputc('\n', g->out);
}

static void put_groups(const struct page *g)
{
	const struct profile_group *x;
	int n = profile_groups(g->w->profile, &x);
	bool even = false;

	fprintf(g->out, "\n  %-*s%8s%9s%9s%9s%7s\n", NAME_WIDTH, "requests by name", "count", "p50",
		"p95", "p99", "slow");
	for (int i = 0; i < n && i < MAX_GROUPS; i++) {
		put_group(g, &x[i]);
		even |= x[i].basis_all && x[i].count;
	}
	if (n > MAX_GROUPS)
		fprintf(g->out, "  and %d more names; --json lists all\n", n - MAX_GROUPS);
	if (even)
		fprintf(g->out, "  (-: too few requests, or the slow ones hardly slower than "
				"the others)\n");
}

/* --- findings */

/* The finding before this one that has the same advice, 0 if there is none. */
static int same_advice(const struct page *g, const struct finding *f, const char *advice)
{
	const struct finding *all;
	int n = profile_finding_list(g->w->profile, &all);

	for (int i = 0; i < n && all[i].rank < f->rank; i++) {
		scoped(str_fini) struct str other = {0};

		why_advice(&all[i], &other);
		if (!strcmp(str_get(&other), advice))
			return all[i].rank;
	}
	return 0;
}

static void put_advice(const struct page *g, const struct finding *f)
{
	scoped(str_fini) struct str advice = {0}, s = {0};
	int same;

	why_advice(f, &advice);
	same = same_advice(g, f, str_get(&advice));
	if (same)
		str_addf(&s, "Try: the same as for %d.", same);
	else
		str_addf(&s, "Try: %s", str_get(&advice));
	fputs("   ", g->out);
	why_wrap(g->out, str_get(&s), 3, 8);
}

static void put_finding(const struct page *g, const struct finding *f, bool brief)
{
	scoped(str_fini) struct str s = {0};
	int at;

	at = fprintf(g->out, "%d. ", f->rank);
	why_sentence(g->w, f, &s);
	fputs(g->colour && f->rank == 1 ? "\033[1m" : "", g->out);
	why_wrap(g->out, str_get(&s), at, 3);
	fputs(g->colour && f->rank == 1 ? "\033[0m" : "", g->out);
	for (int i = 0; !brief && why_evidence(g->w, f, i, &s); i++) {
		fputs("   - ", g->out);
		why_wrap(g->out, str_get(&s), 5, 5);
	}
	if (!brief)
		put_advice(g, f);
}

static int put_some(const struct page *g, const struct finding *f, int n, int most,
		    const char *title, bool brief)
{
	int i;

	if (n)
		heading(g, title);
	for (i = 0; i < n && i < most; i++)
		put_finding(g, &f[i], brief);
	return n - i;
}

static void put_findings(const struct page *g)
{
	const struct finding *f;
	int n = profile_finding_list(g->w->profile, &f), slow = 0, left;
	bool requests = g->w->subject == SUBJECT_REQUESTS;

	while (slow < n && !f[slow].basis_all)
		slow++;
	left = put_some(g, f, slow, g->w->top, "Why the slow ones were slow", false);
	left += put_some(g, f + slow, n - slow, slow ? MEANS_SHOWN : g->w->top,
			 !requests ? "Where the time went"
			 : slow	   ? "Where the time of the others went"
				   : "No request stands out; where the time went",
			 slow > 0);
	if (left)
		fprintf(g->out, "   (%d more, smaller; --top N or --json shows them)\n", left);
	if (!n && requests)
		fputs("\nNothing takes a twentieth of the time in a quarter of the requests.\n",
		      g->out);
}

/* --- when */

static void put_when(const struct page *g)
{
	heading(g, "When (digits: slow requests begun then, # ten or more; dots: others)");
	why_window_line(g->w, g->out);
}

/* --- the slowest, from inside */

static void put_budget(const struct page *g, const struct budget *b)
{
	int i;

	for (i = 0; i < b->n && i < BUDGET_LINES; i++) {
		const struct budget_line *l = &b->lines[i];
		scoped(str_fini) struct str s = {0};

		why_key(l, &s);
		fputs("  ", g->out);
		put_ns(g, l->ns, 9);
		fprintf(g->out, " %5.1f %%  ", 100.0 * (double)l->ns / (double)b->total_ns);
		why_wrap(g->out, str_get(&s), 22, 24);
	}
	if (i < b->n)
		fprintf(g->out, "  and %d more; --json lists all\n", b->n - i);
}

/* The slowest of the first finding's group: the one that the findings talk about. */
static int choose_path(const struct page *g, const struct path *p, int n)
{
	const struct finding *f;

	if (!profile_finding_list(g->w->profile, &f))
		return 0;
	for (int i = 0; i < n; i++)
		if (!strcmp(p[i].name, f->group->name) && !p[i].cut)
			return i;
	return 0;
}

static void say_which(const struct page *g, const struct path *p, struct str *ret)
{
	char at[DURATION_TEXT], ns[DURATION_TEXT];

	str_addf(ret, "%s%s, ", g->w->subject == SUBJECT_REQUESTS ? "The slowest " : "", p->name);
	str_addf(ret, "%s from +%s (", duration_print(p->end_ns - p->start_ns, ns),
		 duration_print(p->start_ns - g->w->start_ns, at));
	why_clock(g->w, p->start_ns, ret);
	str_addf(ret, "), tid %" PRIu32 "%s", p->tid,
		 p->cut ? ", cut by an edge of the recording" : "");
}

static void put_slowest(const struct page *g)
{
	scoped(str_fini) struct str s = {0};
	const struct budget *b;
	const struct path *p;
	int n = profile_slowest(g->w->profile, &p, &b), i;

	if (!n)
		return;
	i = choose_path(g, p, n);
	say_which(g, &p[i], &s);
	heading(g, str_get(&s));
	why_path_lines(g->w, &p[i], g->out);
	fputs("  in all:\n", g->out);
	put_budget(g, &b[i]);
}

/* --- how far it can be trusted */

static double unknown_share(const struct why_report *w)
{
	const struct profile_group *x;
	int n = profile_groups(w->profile, &x);
	double dark = 0, all = 0;

	for (int i = 0; i < n; i++) {
		double ns = x[i].basis_all ? (double)x[i].mean_ns * (double)x[i].count
					   : (double)x[i].mean_slow_ns * (double)x[i].slow_count;

		all += ns;
		dark += ns * x[i].unknown_share;
	}
	return all > 0 ? dark / all : 0;
}

static void add_lost(const struct why_report *w, struct str *ret)
{
	if (!w->lost_count) {
		str_add(ret, "No records were lost");
		return;
	}
	why_count(w->lost_count, ret);
	str_add(ret, w->lost_count == 1 ? " record was lost" : " records were lost");
	for (int i = 0; i < w->lost_reasons; i++) {
		str_addf(ret, "%s%s ", i ? ", " : " (", w->lost[i].name);
		why_count(w->lost[i].count, ret);
	}
	str_add(ret, w->lost_reasons ? ")" : "");
}

static void put_foot(const struct page *g)
{
	const struct why_report *w = g->w;
	scoped(str_fini) struct str s = {0};

	add_lost(w, &s);
	str_addf(&s, "; %.1f %% of the time explained here is unknown or lost.  ",
		 100 * unknown_share(w));
	if (w->recorder_cpu_pct >= 0)
		str_addf(&s, "Recording took %.1f %% of one CPU: ", w->recorder_cpu_pct);
	else
		str_add(&s, "Recorded: ");
	why_count(w->records, &s);
	str_addf(&s, " records, %.1f MB", (double)w->bytes / 1e6);
	if (w->kept)
		str_addf(&s, ", in %s", w->kept);
	str_add(&s, ".");
	fputc('\n', g->out);
	why_wrap(g->out, str_get(&s), 0, 0);
}

void why_text(const struct why_report *w, FILE *out, bool colour)
{
	const struct page g = {.w = w, .out = out, .colour = colour};

	put_head(&g);
	if (w->subject == SUBJECT_REQUESTS)
		put_groups(&g);
	put_findings(&g);
	if (w->subject == SUBJECT_REQUESTS)
		put_when(&g);
	put_slowest(&g);
	put_foot(&g);
}
