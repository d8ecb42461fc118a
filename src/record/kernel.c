/* SPDX-License-Identifier: MIT
 *
 * What this kernel offers, read from its type information.
 */
#include "base/err.h"
#include "base/log.h"
#include "record/load.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libbpf's own words are for developers: shown with -v. */
static int __attribute__((format(printf, 2, 0)))
say(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[1024];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = 0;
	log_debug("%s", text);
	return 0;
}

int kernel_btf(struct btf **ret, struct err *err)
{
	const char *path = getenv("LONGPOLE_BTF");
	struct btf *btf;

	libbpf_set_print(say);
	btf = path ? btf__parse(path, NULL) : btf__load_vmlinux_btf();
	if (!btf)
		return err_set(err, -ENOTSUP,
			       "no type information of this kernel (%s): it must be built with "
			       "CONFIG_DEBUG_INFO_BTF",
			       path ? path : "/sys/kernel/btf/vmlinux");
	*ret = btf;
	return 0;
}

bool kernel_is_without(const char *thing)
{
	const char *list = getenv("LONGPOLE_WITHOUT");
	size_t len = strlen(thing);

	for (; list && *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == len && !strncmp(list, thing, len))
			return true;
	return false;
}

/* typedef void (*btf_trace_NAME)(void *, ...); */
int kernel_tracepoint_params(const struct btf *btf, const char *name)
{
	char type_name[128];
	const struct btf_type *t;
	int id;

	snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return -1;
	t = btf__type_by_id(btf, btf__type_by_id(btf, (unsigned)id)->type);
	if (!t || !btf_is_ptr(t))
		return -1;
	t = btf__type_by_id(btf, t->type);
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : -1;
}

bool kernel_has_tracepoint(const struct btf *btf, const char *name)
{
	return kernel_tracepoint_params(btf, name) >= 0;
}

static int64_t section_offset(const struct btf *btf, const struct btf_type *section,
			      const char *name)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(section);

	for (int i = 0; i < btf_vlen(section); i++, v++) {
		const struct btf_type *var = btf__type_by_id(btf, v->type);

		if (!strcmp(btf__name_by_offset(btf, var->name_off), name))
			return v->offset;
	}
	return -1;
}

int64_t kernel_percpu_distance(const struct btf *btf, const char *a, const char *b)
{
	const struct btf_type *section;
	int64_t at_a, at_b;
	int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);

	if (id < 0)
		return 0;
	section = btf__type_by_id(btf, (unsigned)id);
	at_a = section_offset(btf, section, a);
	at_b = section_offset(btf, section, b);
	return at_a < 0 || at_b < 0 ? 0 : at_a - at_b;
}

bool kernel_has_field(const struct btf *btf, const char *type, const char *field)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (unsigned)id);

	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), field))
			return true;
	return false;
}
