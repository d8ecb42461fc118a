#!/bin/bash
# SPDX-License-Identifier: MIT
# What recording costs a web server at full load: nginx on one CPU, wrk on the other, alone, under
# longpole, under perf record of the same facts; for a page of 600 bytes, which is near the worst
# case, and for one that takes 2 ms of CPU or more to compress.  Interleaved runs; medians, and the
# least and most of each.
#   bench/nginx.sh [RUNS [SECONDS]]
# LONGPOLE_WITHOUT=sock-tracepoints measures what older kernels would have.
set -eu
runs=${1:-5} seconds=${2:-3} port=18099
longpole=$(cd "$(dirname "$0")/.." && pwd)/build/longpole
work=$(mktemp -d /var/tmp/lp-bench-XXXXXX)
chmod 755 "$work"
events=sched:sched_switch,sched:sched_waking,raw_syscalls:sys_enter,raw_syscalls:sys_exit
nginx=
tracer=

finish()
{
	[ -z "$tracer" ] || kill -INT "$tracer" 2>/dev/null || true
	[ -z "$nginx" ] || { kill "$nginx" && wait "$nginx"; } || true
	rm -rf "$work"
}
trap finish EXIT

cat >"$work/nginx.conf" <<CONF
worker_processes 1;
daemon off;
pid $work/pid;
error_log $work/error;
events { }
http {
	access_log off;
	keepalive_requests 100000000;
	gzip_comp_level 9;
	gzip_types *;
	server { listen 127.0.0.1:$port; root $work; location /large { gzip on; } }
}
CONF
head -c 600 /dev/zero | tr '\0' x >"$work/page"
seq 1 7 200000 | head -c 90000 >"$work/large"
taskset -c 1 nginx -c "$work/nginx.conf" &
nginx=$!
sleep 0.5

# rate PAGE
rate()
{
	taskset -c 0 wrk -t1 -c16 -d"${seconds}s" -H 'Accept-Encoding: gzip' \
		"http://127.0.0.1:$port/$1" | awk '/Requests\/sec/ { print $2 }'
}

# One run in each way: three rates, and what longpole lost.
run()
{
	local alone ours lost perf

	alone=$(rate "$1")
	rm -rf "$work/r.lp"
	"$longpole" record -o "$work/r.lp" 2>"$work/said" &
	tracer=$!
	sleep 0.7
	ours=$(rate "$1")
	kill -INT "$tracer"
	wait "$tracer" || true
	lost=$(sed -n 's/.* \([0-9]*\) lost.*/\1/p' "$work/said")
	perf record -q -o "$work/perf.data" -a -e "$events" 2>/dev/null &
	tracer=$!
	sleep 0.7
	perf=$(rate "$1")
	kill -INT "$tracer"
	wait "$tracer" || true
	tracer=
	echo "$alone $ours $perf $lost"
}

# spread COLUMN: "median (least to most)"
spread()
{
	awk -v c="$1" '{ print $c }' "$work/table" | sort -n | awk '
		{ a[NR] = $1 }
		END { printf "%.0f (%.0f to %.0f)", a[int((NR + 1) / 2)], a[1], a[NR] }'
}

report()
{
	local alone ours perf

	alone=$(spread 1) ours=$(spread 2) perf=$(spread 3)
	echo "nginx, $1, requests/s, median of $runs runs (least to most):"
	echo "  alone $alone, longpole $ours, perf $perf"
	awk -v a="${alone%% *}" -v o="${ours%% *}" -v p="${perf%% *}" '
		{ lost += $4 }
		END {
			printf "  %.2f ms a request; throughput lost: longpole %.1f %%, perf %.1f %%, ",
				1000 / a, 100 * (1 - o / a), 100 * (1 - p / a)
			printf "ratio %.3f; lost %d\n", (a > p ? (a - o) / (a - p) : 0), lost
		}' "$work/table"
}

for page in page large; do
	for _ in $(seq "$runs"); do
		run "$page"
	done >"$work/table"
	report "$([ "$page" = page ] && echo 'page of 600 bytes' || echo 'page compressed on the way')"
done
