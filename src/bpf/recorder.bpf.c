/* SPDX-License-Identifier: MIT
 *
 * The recorder: it writes down what ended, not what happened.
 *
 * A thread's absence is one record when it comes back, a block request one when it completes, a
 * receive one that also says when the data came.  What led there is kept as stamps in the
 * storage of the thread, the socket, the request.  Records go into a ring per CPU; user space
 * looks at the rings every few milliseconds and is never woken.
 *
 * What can be missing is counted (struct recorder_count) and, where it leaves a hole in time,
 * written down as REC_LOST.  The programs are attached one by one by the loader, which leaves
 * out those whose tracepoint the kernel lacks.
 */
#include "bpf/recorder-block.bpf.h"
#include "bpf/recorder-life.bpf.h"
#include "bpf/recorder-sched.bpf.h"
#include "bpf/recorder-sockops.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
