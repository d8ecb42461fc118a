/* SPDX-License-Identifier: MIT
 *
 * The two drawings of `longpole why`, in plain ASCII: the window with its slow requests, and one
 * request's path.
 *
 *	  ....1......3#2.....    a column is a span of time; a digit counts the slow requests that
 *	  |         |         |  began in it, # is ten or more, . is requests but none slow
 *
 *	     +0 ns   1.20 ms  #---------------  running self
 *	  +1.20 ms   58.1 ms  -##############-  runqueue neighbour: stress (cgroup /b), in futex
 *
 * Segments that are short against the whole are put together until the path fits in MAX_ROWS
 * lines; every line's bar covers its place in the request, at least one character.  Such a line
 * tells what most of its time went to.
 */
#include "base/arena.h"
#include "base/duration.h"
#include "base/plain.h"
#include "base/scoped.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/why.h"

#include <inttypes.h>
#include <string.h>

enum { LINE_WIDTH = 76, BAR_WIDTH = 16, TEXT_COLUMN = 41, MAX_ROWS = 14, LABELS = 4 };

/* --- the window */

struct columns {
	int64_t from_ns, length_ns;
	uint32_t all[LINE_WIDTH], slow[LINE_WIDTH];
};

static void count_request(int64_t start_ns, int64_t duration_ns, bool slow, void *arg)
{
	struct columns *c = arg;
	int64_t at = (int64_t)((__int128)(start_ns - c->from_ns) * LINE_WIDTH / c->length_ns);

	(void)duration_ns;
	/* A cut request may have begun before the window. */
	at = at < 0 ? 0 : at >= LINE_WIDTH ? LINE_WIDTH - 1 : at;
	c->all[at]++;
	c->slow[at] += slow;
}

static char column_mark(const struct columns *c, int i)
{
	if (!c->slow[i])
		return c->all[i] ? '.' : ' ';
	return c->slow[i] > 9 ? '#' : (char)('0' + c->slow[i]);
}

static void put_trimmed(struct str *line, FILE *out)
{
	while (line->len && line->buf[line->len - 1] == ' ')
		line->buf[--line->len] = '\0';
	fprintf(out, "  %s\n", str_get(line));
	str_clear(line);
}

/* Marks, under them offsets from the start, under those the time of day. */
static void put_scale(const struct why_report *w, int64_t length_ns, FILE *out)
{
	enum { STEP = LINE_WIDTH / LABELS };
	scoped(str_fini) struct str marks = {0}, offsets = {0}, clocks = {0}, clock = {0};

	for (int i = 0; i < LABELS; i++) {
		int64_t at_ns = length_ns / LABELS * i;
		char ns[DURATION_TEXT];

		str_addf(&marks, "%-*s", STEP, "|");
		str_addf(&offsets, "+%-*s", STEP - 1, duration_print(at_ns, ns));
		str_clear(&clock);
		why_clock(w, w->start_ns + at_ns, &clock);
		str_addf(&clocks, "%-*s", STEP, str_get(&clock));
	}
	put_trimmed(&marks, out);
	put_trimmed(&offsets, out);
	put_trimmed(&clocks, out);
}

void why_window_line(const struct why_report *w, FILE *out)
{
	struct columns c = {.from_ns = w->start_ns, .length_ns = w->end_ns - w->start_ns};
	scoped(str_fini) struct str line = {0};

	if (c.length_ns <= 0)
		return;
	profile_each(w->profile, count_request, &c);
	for (int i = 0; i < LINE_WIDTH; i++)
		str_addf(&line, "%c", column_mark(&c, i));
	put_trimmed(&line, out);
	put_scale(w, c.length_ns, out);
}

/* --- a path */

struct row { /* segments first .. last */
	int first, last;
	int64_t start_ns, end_ns;
};
struct rows VEC(struct row);

/* Short segments that follow each other share a row, until the row has a length of its own. */
static void make_rows(const struct path *p, int64_t short_ns, struct rows *ret)
{
	int64_t full_ns = 4 * short_ns;
	bool open = false; /* the last row takes more short ones */

	ret->n = 0;
	for (int i = 0; i < p->n; i++) {
		const struct segment *s = &p->segments[i];
		bool is_short = s->end_ns - s->start_ns < short_ns;

		if (is_short && open && s->start_ns - ret->at[ret->n - 1].start_ns < full_ns) {
			ret->at[ret->n - 1].last = i;
			ret->at[ret->n - 1].end_ns = s->end_ns;
		} else {
			vec_push(ret, (struct row){i, i, s->start_ns, s->end_ns});
		}
		open = is_short;
	}
}

/* What most of the row's time went to; lives in a. */
static struct budget_line row_top(struct arena *a, const struct path *p, const struct row *r,
				  double *ret_share)
{
	struct path part = *p;
	struct budget b;

	part.segments += r->first;
	part.n = r->last - r->first + 1;
	part.start_ns = r->start_ns;
	part.end_ns = r->end_ns;
	budget_of(a, &part, &b);
	*ret_share = (double)b.lines[0].ns / (double)b.total_ns;
	return b.lines[0];
}

static bool same_key(const struct budget_line *a, const struct budget_line *b)
{
	return a->state == b->state && a->cause == b->cause &&
	       culprit_same(&a->culprit, &b->culprit);
}

static void absorb(struct row *r, const struct row *next)
{
	r->last = next->last;
	r->end_ns = next->end_ns;
}

/* What is too short to see goes to the row before it, the first one to the row after it. */
static void absorb_tiny(struct rows *rows, int64_t tiny_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->n; i++) {
		struct row r = rows->at[i], *before = kept ? &rows->at[kept - 1] : NULL;
		bool tiny = r.end_ns - r.start_ns < tiny_ns;

		if (before && (tiny || before->end_ns - before->start_ns < tiny_ns))
			absorb(before, &r);
		else
			rows->at[kept++] = r;
	}
	rows->n = kept;
}

/* Rows that tell the same are one. */
static void join_rows(const struct path *p, struct rows *rows)
{
	struct budget_line top, last = {0};
	struct arena scratch;
	size_t kept = 0;
	double share;

	arena_init(&scratch);
	for (size_t i = 0; i < rows->n; i++) {
		struct row r = rows->at[i];

		top = row_top(&scratch, p, &r, &share);
		if (kept && same_key(&top, &last))
			absorb(&rows->at[kept - 1], &r);
		else
			rows->at[kept++] = r;
		last = top;
	}
	rows->n = kept;
	arena_fini(&scratch);
}

static void put_bar(const struct path *p, const struct row *r, FILE *out)
{
	int64_t all = p->end_ns - p->start_ns;
	int from = (int)((__int128)(r->start_ns - p->start_ns) * BAR_WIDTH / all);
	int to = (int)(((__int128)(r->end_ns - p->start_ns) * BAR_WIDTH + all - 1) / all);
	char bar[BAR_WIDTH + 1] = "";

	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i] = i >= from && i < to ? '#' : '-';
	fputs(bar, out);
}

/* "runqueue neighbour: stress (cgroup /b)". */
static void say_key(enum state state, enum cause cause, const struct culprit *c, struct str *ret)
{
	scoped(str_fini) struct str who = {0};

	str_add(ret, state_word(state));
	if (cause != CAUSE_NONE)
		str_addf(ret, " %s", cause_word(cause));
	why_who(c, &who);
	if (who.len)
		str_addf(ret, ": %s", str_get(&who));
}

void why_key(const struct budget_line *l, struct str *ret)
{
	say_key(l->state, l->cause, &l->culprit, ret);
	for (int i = 0; via_at(l->via, i) != VIA_END; i++)
		str_addf(ret, "%s%s", i ? ", " : ", through ", via_word(via_at(l->via, i)));
}

static void say_segment(const struct path *p, const struct segment *s, struct str *ret)
{
	const char *syscall = syscall_name(s->syscall);

	say_key(s->state, s->cause, &s->culprit, ret);
	if (s->n_shares > 1)
		str_addf(ret, " and %d more", s->n_shares - 1);
	if (syscall && s->state != STATE_RUNNING)
		str_addf(ret, ", in %s", syscall);
	if (s->tid != p->tid && s->comm && *s->comm && s->state != STATE_RUNNING)
		str_addf(ret, " (of %s, tid %" PRIu32 ")", s->comm, s->tid);
}

static void say_many(const struct path *p, const struct row *r, struct str *ret)
{
	struct budget_line top;
	struct arena scratch;
	double share;
	int parts = 0;

	for (int i = r->first; i <= r->last; i++)
		parts += p->segments[i].merged ? p->segments[i].merged : 1;
	arena_init(&scratch);
	top = row_top(&scratch, p, r, &share);
	str_addf(ret, "%d parts, %.0f %% ", parts, 100 * share);
	say_key(top.state, top.cause, &top.culprit, ret);
	arena_fini(&scratch);
}

/* A word too long for its column, a path for instance, keeps its end. */
static void put_words(const char *words, FILE *out)
{
	enum { ROOM = 80 - TEXT_COLUMN };
	scoped(str_fini) struct str plain = {0}, s = {0};
	const char *text;

	plain_add(&plain, words);
	for (text = str_get(&plain); *text; text += *text == ' ') {
		size_t len = strcspn(text, " "), columns = plain_columns(text, len), cut = 0;

		if (columns > ROOM) {
			cut = plain_bytes(text, columns - (ROOM - 3));
			str_add(&s, "...");
		}
		str_add_bytes(&s, text + cut, len - cut);
		text += len;
		str_add(&s, *text ? " " : "");
	}
	why_wrap(out, str_get(&s), TEXT_COLUMN, TEXT_COLUMN);
}

static void put_row(const struct path *p, const struct row *r, FILE *out)
{
	char at[DURATION_TEXT + 1] = "+", ns[DURATION_TEXT];
	scoped(str_fini) struct str text = {0};

	duration_print(r->start_ns - p->start_ns, at + 1);
	fprintf(out, "  %9s %9s  ", at, duration_print(r->end_ns - r->start_ns, ns));
	put_bar(p, r, out);
	fputs("  ", out);
	if (r->last > r->first || p->segments[r->first].merged)
		say_many(p, r, &text);
	else
		say_segment(p, &p->segments[r->first], &text);
	put_words(str_get(&text), out);
}

void why_path_lines(const struct why_report *w, const struct path *p, FILE *out)
{
	struct rows rows = {0};
	int64_t all = p->end_ns - p->start_ns, short_ns = all / 50;

	(void)w;
	if (all <= 0)
		return;
	for (make_rows(p, short_ns, &rows); rows.n > MAX_ROWS && short_ns <= all; short_ns *= 2)
		make_rows(p, short_ns, &rows);
	absorb_tiny(&rows, all / 100);
	join_rows(p, &rows);
	for (size_t i = 0; i < rows.n; i++)
		put_row(p, &rows.at[i], out);
	vec_fini(&rows);
}
