/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "path/path.h"

#define WORD_STATE(n, s)   [STATE_##n] = s,
#define WORD_CAUSE(n, s)   [CAUSE_##n] = s,
#define WORD_VIA(n, s)	   [VIA_##n] = s,
#define WORD_CULPRIT(n, s) [CULPRIT_##n] = s,
static const char *const state_words[] = {STATES(WORD_STATE)};
static const char *const cause_words[] = {CAUSES(WORD_CAUSE)};
static const char *const via_words[] = {[VIA_END] = "", VIAS(WORD_VIA)};
static const char *const culprit_words[] = {CULPRITS(WORD_CULPRIT)};

const char *state_word(enum state s)
{
	return (unsigned)s < STATE_COUNT ? state_words[s] : "";
}

const char *cause_word(enum cause c)
{
	return (unsigned)c < CAUSE_COUNT ? cause_words[c] : "";
}

const char *via_word(enum via_word v)
{
	return (unsigned)v < VIA_COUNT ? via_words[v] : "";
}

const char *culprit_word(enum culprit_kind k)
{
	return (unsigned)k < CULPRIT_COUNT ? culprit_words[k] : "";
}

/* The innermost word is in the lowest four bits, so that adding is a shift. */
via via_add(via v, enum via_word word)
{
	if (word == VIA_END || via_last(v) == word || v >> 28)
		return v;
	return v << 4 | (via)word;
}

enum via_word via_last(via v)
{
	return (enum via_word)(v & 15);
}

enum via_word via_at(via v, int i)
{
	int n = 0;

	while (n < 8 && v >> (4 * n))
		n++;
	return i >= 0 && i < n ? (enum via_word)(v >> (4 * (n - 1 - i)) & 15) : VIA_END;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || !strcmp(a ? a : "", b ? b : "");
}

bool culprit_same(const struct culprit *a, const struct culprit *b)
{
	if (a->kind != b->kind || !same_text(a->host, b->host))
		return false;
	switch (a->kind) {
	case CULPRIT_SELF:
		return true;
	case CULPRIT_THREAD:
		if (a->kernel || b->kernel)
			return a->kernel == b->kernel && same_text(a->name, b->name);
		return a->pid == b->pid && a->tid == b->tid && same_text(a->comm, b->comm);
	case CULPRIT_PROCESS:
		return same_text(a->comm, b->comm) && same_text(a->cgroup, b->cgroup) &&
		       same_text(a->container, b->container);
	case CULPRIT_CGROUP:
		return same_text(a->cgroup, b->cgroup) && same_text(a->container, b->container);
	default:
		return same_text(a->name, b->name);
	}
}

/* FNV-1a, with a NUL after each text so that ("ab", "c") is not ("a", "bc"). */
static uint64_t hash_text(uint64_t h, const char *s)
{
	for (s = s ? s : ""; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3u;
	return h * 0x100000001b3u;
}

static uint64_t hash_number(uint64_t h, uint64_t n)
{
	return (h ^ n) * 0x9e3779b97f4a7c15u;
}

uint64_t culprit_hash(const struct culprit *c)
{
	uint64_t h = hash_text(hash_number(0xcbf29ce484222325u, c->kind), c->host);

	switch (c->kind) {
	case CULPRIT_SELF:
		return h;
	case CULPRIT_THREAD:
		if (c->kernel)
			return hash_text(h, c->name);
		return hash_text(hash_number(hash_number(h, c->pid), c->tid), c->comm);
	case CULPRIT_PROCESS:
		h = hash_text(h, c->comm);
		/* fall through */
	case CULPRIT_CGROUP:
		return hash_text(hash_text(h, c->cgroup), c->container);
	default:
		return hash_text(h, c->name);
	}
}
