/* SPDX-License-Identifier: MIT
 *
 * load.h - the recorder's BPF programs, from loading to the counters at the end.
 *
 * The order is load, attach, (iterate, drain the rings)*, detach, drain, count, close.  Programs
 * whose tracepoint this kernel lacks are left out; `missing` says what cannot be seen then.
 */
#ifndef RECORD_LOAD_H
#define RECORD_LOAD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_link;
struct err;
struct ring;
struct recorder_bpf;
struct recorder_block;
struct recorder_count;
struct rec_head;

enum { LOADED_LINKS = 32 };
struct loaded {
	struct recorder_bpf *skel;
	struct bpf_link *links[LOADED_LINKS];
	struct ring **rings; /* by CPU; NULL where it is offline for good */
	int cpus;
	size_t buffer_bytes; /* per CPU, as made */
	bool by_calls;	     /* sockets are seen where system calls end: Linux before 6.3 */
	bool no_requests;    /* not even there */
	bool no_blocks;
	bool by_hrtimer; /* timer interrupts are told by what expires in them */
	int irq_mode;
};

/* buffer_bytes is rounded up to a power of two of pages; 0: 8 MiB. */
int loaded_open(struct loaded *l, size_t buffer_bytes, struct err *err);
int loaded_attach(struct loaded *l, struct err *err);
void loaded_detach(struct loaded *l);
/* NULL programs and half-made ones are fine. */
void loaded_close(struct loaded *l);

enum loaded_iter { ITER_THREADS, ITER_SOCKETS, ITER_OPEN };
/* Runs an iterator; fn gets each record (bpf/record.h). */
typedef int record_fn(const void *record, size_t bytes, void *arg);
int loaded_iterate(struct loaded *l, enum loaded_iter which, record_fn *fn, void *arg,
		   struct err *err);
/* Block requests that are in flight. */
int loaded_each_block(struct loaded *l, void (*fn)(const struct recorder_block *b, void *arg),
		      void *arg);
/* A REC_LOST for each CPU after whose last loss there was no record. */
int loaded_each_lost(struct loaded *l, int (*fn)(const struct rec_head *r, void *arg), void *arg);
/* Sums over all CPUs; runs that the kernel left out, for one was interrupted by its like, are lost
 * as well. */
int loaded_count(struct loaded *l, struct recorder_count *ret);
/* CPU time of the programs while statistics were on. */
int64_t loaded_run_ns(struct loaded *l);
/* The same by program, with -v. */
void loaded_log_runs(struct loaded *l);

/* calls.c: CALL_SLOTS classes (bpf/recorder.h) by number. */
void calls_fill(unsigned char *table);
/* selfcheck.c: finds out how wakers in interrupts are told apart, by a known pipe wake and a
 * known timer wake.  Only on_waking and the interrupt programs may be attached. */
int irq_mode_choose(struct recorder_bpf *skel);
/* kernel.c: whether the BTF of the kernel has a tracepoint, a per-CPU variable's place. */
struct btf;
bool kernel_has_tracepoint(const struct btf *btf, const char *name);
/* Parameters of a tracepoint's prototype without the first (void *); -1 if it is missing. */
int kernel_tracepoint_params(const struct btf *btf, const char *name);
/* The distance of per-CPU variable a from b; 0 if it cannot be known. */
int64_t kernel_percpu_distance(const struct btf *btf, const char *a, const char *b);
bool kernel_has_field(const struct btf *btf, const char *type, const char *field);
/* Whether the tests want to do without something: $LONGPOLE_WITHOUT, docs/format/recording.md. */
bool kernel_is_without(const char *thing);
/* To be called before anything else of libbpf, whose words it keeps.  The kernel's BTF, or that of $LONGPOLE_BTF; the caller frees it (btf__free). */
int kernel_btf(struct btf **ret, struct err *err);

#endif
