/* SPDX-License-Identifier: MIT
 *
 * The trace's description in TSDL, from the same tables that make the C structs.
 */
#include "base/str.h"
#include "bpf/record.h"
#include "record/ctf.h"

#include <string.h>

/* docs/format/recording.md */
_Static_assert(sizeof(struct rec_head) == 16, "head");
_Static_assert(sizeof(struct rec_switch) == 112 && sizeof(struct rec_migrate) == 32 &&
		       sizeof(struct rec_thread) == 112 && sizeof(struct rec_cgroup) == 288,
	       "records of threads");
_Static_assert(sizeof(struct rec_socket) == 144 && sizeof(struct rec_recv) == 56 &&
		       sizeof(struct rec_request) == 184 && sizeof(struct rec_send) == 48 &&
		       sizeof(struct rec_close) == 32,
	       "records of sockets");
_Static_assert(sizeof(struct rec_block) == 96 && sizeof(struct rec_lost) == 40 &&
		       sizeof(struct rec_steal) == 32,
	       "the others");

struct field_enum {
	const char *name; /* in TSDL */
	const char *type;
	const char *labels[12]; /* by value */
};

static const struct field_enum enums[] = {
	{"why",
	 "u8",
	 {"unknown", "blocked", "preempted", "yielded", "throttled", "exited", "idle"}},
	{"state",
	 "u8",
	 {"unknown", "runnable", "sleep", "disk", "iowait", "idle", "stopped", "dead"}},
	{"obj",
	 "u8",
	 {"none", "futex", "socket", "pipe", "eventfd", "epoll", "file", "child", "other"}},
	{"by", "u8", {"unknown", "thread", "block", "net", "timer", "irq", "softirq", "new"}},
	{"life", "u16", {"snapshot", "fork", "exec", "name", "cgroup", "exit", "open"}},
	{"cgroup_what", "u16", {"there", "made", "removed"}},
	{"role", "u16", {"unknown", "listen", "served", "client", "pair"}},
	{"reason", "u32", REC_LOST_NAMES},
};

/* Fields that are one of them, by record and field. */
static const struct {
	const char *record, *field, *type;
} enum_fields[] = {
	{"switch", "prev_why", "why"},	    {"switch", "prev_state", "state"},
	{"switch", "prev_obj_kind", "obj"}, {"switch", "next_waker_by", "by"},
	{"thread", "what", "life"},	    {"thread", "state", "state"},
	{"thread", "obj_kind", "obj"},	    {"thread", "why", "why"},
	{"cgroup", "what", "cgroup_what"},  {"socket", "role", "role"},
	{"lost", "reason", "reason"},
};

static void add_uuid(struct str *s, const unsigned char u[16])
{
	for (int i = 0; i < 16; i++)
		str_addf(s, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static void add_enums(struct str *s)
{
	for (size_t i = 0; i < sizeof(enums) / sizeof(enums[0]); i++) {
		const struct field_enum *e = &enums[i];

		str_addf(s, "enum %s : %s {", e->name, e->type);
		for (int v = 0; v < 12 && e->labels[v]; v++)
			str_addf(s, "%s \"%s\" = %d", v ? "," : "", e->labels[v], v);
		str_add(s, " };\n");
	}
}

static void add_field(struct str *s, const char *record, const char *type, const char *name)
{
	for (size_t i = 0; i < sizeof(enum_fields) / sizeof(enum_fields[0]); i++)
		if (!strcmp(enum_fields[i].record, record) && !strcmp(enum_fields[i].field, name)) {
			str_addf(s, "\t\tenum %s %s;\n", enum_fields[i].type, name);
			return;
		}
	str_addf(s, "\t\t%s %s;\n", type, name);
}

static void add_array(struct str *s, const char *type, const char *name, int size)
{
	str_addf(s, "\t\t%s %s[%d];\n", type, name, size);
}

static void add_event(struct str *s, int id, const char *name)
{
	str_addf(s,
		 "event {\n\tid = %d;\n\tname = \"%s\";\n\tstream_id = 0;\n\tfields := struct {\n",
		 id, name);
}

/* One function per record, made from its table. */
#define FIELD_N(type, name)    add_field(s, record, #type, #name);
#define FIELD_H(type, name)    add_field(s, record, #type "x", #name);
#define FIELD_TEXT(name, size) add_array(s, "utf8", #name, size);
#define FIELD_B(name, size)    add_array(s, "u8x", #name, size);
#define DESCRIBE(id, NAME, name)                                                                   \
	static void describe_##name(struct str *s)                                                 \
	{                                                                                          \
		static const char record[] = #name;                                                \
                                                                                                   \
		(void)record;                                                                      \
		add_event(s, id, #name);                                                           \
		REC_##NAME(FIELD_N, FIELD_H, FIELD_TEXT, FIELD_B) str_add(s, "\t};\n};\n");        \
	}
REC_KINDS(DESCRIBE)

static void add_integers(struct str *s)
{
	for (int bits = 8; bits <= 64; bits *= 2) {
		str_addf(s,
			 "typealias integer { size = %d; align = %d; signed = false; } := u%d;\n",
			 bits, bits, bits);
		str_addf(s, "typealias integer { size = %d; align = %d; signed = true; } := s%d;\n",
			 bits, bits, bits);
		str_addf(s,
			 "typealias integer { size = %d; align = %d; signed = false; base = 16; } "
			 ":= u%dx;\n",
			 bits, bits, bits);
	}
	/* the head's size, which would otherwise move what stands before it */
	str_add(s, "typealias integer { size = 32; align = 16; signed = false; } := u32_2;\n");
	str_add(s, "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } "
		   ":= utf8;\n");
}

static void add_trace(struct str *s, const struct ctf_options *opt)
{
	uint16_t one = 1;

	str_add(s, "trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"");
	add_uuid(s, opt->uuid);
	str_addf(s, "\";\n\tbyte_order = %s;\n", *(unsigned char *)&one ? "le" : "be");
	str_add(s, "\tpacket.header := struct {\n\t\tu32 magic;\n\t\tu8 uuid[16];\n"
		   "\t\tu32 stream_id;\n\t};\n};\n");
}

/* Values of env stand in quotes: nothing that ends them may come through. */
static void add_env(struct str *s, const char *key, const char *value)
{
	str_addf(s, "\t%s = \"", key);
	for (; *value; value++)
		if (*value >= ' ' && *value < 127 && *value != '"' && *value != '\\')
			str_add_bytes(s, value, 1);
	str_add(s, "\";\n");
}

static void add_clock(struct str *s, const struct ctf_options *opt)
{
	str_add(s, "env {\n\tdomain = \"kernel\";\n\ttracer_name = \"longpole\";\n");
	str_addf(s, "\ttracer_major = %d;\n", REC_VERSION);
	add_env(s, "hostname", opt->host);
	add_env(s, "kernel_release", opt->kernel);
	str_add(s, "};\nclock {\n\tname = monotonic;\n\tuuid = \"");
	add_uuid(s, opt->clock_uuid);
	str_addf(s,
		 "\";\n\tdescription = \"CLOCK_MONOTONIC\";\n\tfreq = 1000000000;\n"
		 "\toffset_s = %lld;\n\toffset = %lld;\n};\n",
		 (long long)(opt->clock_offset_ns / 1000000000),
		 (long long)(opt->clock_offset_ns % 1000000000));
	str_add(s, "typealias integer { size = 64; align = 64; signed = false; "
		   "map = clock.monotonic.value; } := instant;\n");
}

static void add_stream(struct str *s)
{
	str_add(s, "stream {\n\tid = 0;\n\tpacket.context := struct {\n"
		   "\t\tinstant timestamp_begin;\n\t\tinstant timestamp_end;\n"
		   "\t\tu64 content_size;\n\t\tu64 packet_size;\n\t\tu64 packet_seq_num;\n"
		   "\t\tu64 events_discarded;\n\t\tu32 cpu_id;\n\t\tu32 pad;\n\t};\n"
		   "\tevent.header := struct {\n\t\tinstant timestamp;\n\t\tu16 id;\n\t};\n"
		   "\tevent.context := struct {\n\t\tu16 cpu;\n\t\tu32_2 size;\n\t};\n};\n");
}

char *ctf_metadata(const struct ctf_options *opt)
{
	struct str s = {0};

	str_add(&s, "/* CTF 1.8 */\n");
	add_integers(&s);
	add_trace(&s, opt);
	add_clock(&s, opt);
	add_stream(&s);
	add_enums(&s);
#define ADD(id, NAME, name) describe_##name(&s);
	REC_KINDS(ADD)
	return str_take(&s);
}
