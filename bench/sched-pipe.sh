#!/bin/bash
# SPDX-License-Identifier: MIT
# What recording costs a context switch: perf bench sched pipe on one CPU, alone, under longpole,
# under perf record of the same facts.  Interleaved runs; medians, and the least and most of each.
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

# spread COLUMN: "median (least to most)"
spread()
{
	awk -v c="$1" '{ print $c }' "$work/table" | sort -n | awk '
		{ a[NR] = $1 }
		END { printf "%.2f (%.2f to %.2f)", a[int((NR + 1) / 2)], a[1], a[NR] }'
}

alone=$(spread 1) ours=$(spread 2) perf=$(spread 3)
echo "sched pipe, us an operation, median of $runs runs (least to most):"
echo "  alone $alone, longpole $ours, perf $perf"
awk -v a="${alone%% *}" -v o="${ours%% *}" -v p="${perf%% *}" '
	{ lost += $4 }
	END {
		printf "  added: longpole %.2f us, perf %.2f us, ratio %.3f; lost %d\n",
			o - a, p - a, (o - a) / (p - a), lost
	}' "$work/table"
