#!/bin/bash
# SPDX-License-Identifier: MIT
# What recording costs a context switch: perf bench sched pipe on one CPU, alone, under longpole,
# under perf record of the same facts.  Interleaved runs, medians.
#   bench/sched-pipe.sh [RUNS [LOOPS]]
set -eu
runs=${1:-7} loops=${2:-200000}
longpole=$(cd "$(dirname "$0")/.." && pwd)/build/longpole
work=$(mktemp -d /var/tmp/lp-bench-XXXXXX)
trap 'rm -rf "$work"' EXIT
load=(taskset -c 1 perf bench sched pipe -l "$loops")
events=sched:sched_switch,sched:sched_waking,raw_syscalls:sys_enter,raw_syscalls:sys_exit

usecs()
{
	awk '/usecs\/op/ { print $1 }'
}

for _ in $(seq "$runs"); do
	alone=$("${load[@]}" | usecs)
	rm -rf "$work/r.lp"
	ours=$("$longpole" record -o "$work/r.lp" -- "${load[@]}" 2>"$work/said" | usecs)
	lost=$(sed -n 's/.* \([0-9]*\) lost.*/\1/p' "$work/said")
	perf=$(perf record -q -o "$work/perf.data" -a -e "$events" "${load[@]}" 2>/dev/null | usecs)
	echo "$alone $ours $perf $lost"
done >"$work/table"

median()
{
	awk -v c="$1" '{ print $c }' "$work/table" | sort -n | sed -n "$(((runs + 1) / 2))p"
}

awk -v a="$(median 1)" -v o="$(median 2)" -v p="$(median 3)" -v runs="$runs" '
	{ lost += $4 }
	END {
		printf "sched pipe, median of %d runs: alone %.2f us, longpole %.2f, perf %.2f\n",
			runs, a, o, p
		printf "added: longpole %.2f us, perf %.2f us, ratio %.3f; lost %d\n",
			o - a, p - a, (o - a) / (p - a), lost
	}' "$work/table"
