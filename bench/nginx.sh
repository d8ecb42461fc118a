#!/bin/bash
# SPDX-License-Identifier: MIT
# What recording costs a web server at full load: nginx on one CPU, wrk on the other, alone, under
# longpole, under perf record of the same facts.  Interleaved runs, medians.
#   bench/nginx.sh [RUNS [SECONDS]]
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
	server { listen 127.0.0.1:$port; root $work; }
}
CONF
head -c 600 /dev/zero | tr '\0' x >"$work/page"
taskset -c 1 nginx -c "$work/nginx.conf" &
nginx=$!
sleep 0.5

rate()
{
	taskset -c 0 wrk -t1 -c16 -d"${seconds}s" "http://127.0.0.1:$port/page" |
		awk '/Requests\/sec/ { print $2 }'
}

for _ in $(seq "$runs"); do
	alone=$(rate)
	rm -rf "$work/r.lp"
	"$longpole" record -o "$work/r.lp" 2>"$work/said" &
	tracer=$!
	sleep 0.7
	ours=$(rate)
	kill -INT "$tracer"
	wait "$tracer" || true
	lost=$(sed -n 's/.* \([0-9]*\) lost.*/\1/p' "$work/said")
	perf record -q -o "$work/perf.data" -a -e "$events" 2>/dev/null &
	tracer=$!
	sleep 0.7
	perf=$(rate)
	kill -INT "$tracer"
	wait "$tracer" || true
	tracer=
	echo "$alone $ours $perf $lost"
done >"$work/table"

median()
{
	awk -v c="$1" '{ print $c }' "$work/table" | sort -n | sed -n "$(((runs + 1) / 2))p"
}

awk -v a="$(median 1)" -v o="$(median 2)" -v p="$(median 3)" -v runs="$runs" '
	{ lost += $4 }
	END {
		printf "nginx, median of %d runs: alone %.0f requests/s, longpole %.0f, perf %.0f\n",
			runs, a, o, p
		printf "throughput lost: longpole %.1f %%, perf %.1f %%, ratio %.3f; lost %d\n",
			100 * (1 - o / a), 100 * (1 - p / a), (a - o) / (a - p), lost
	}' "$work/table"
