#!/bin/bash
# SPDX-License-Identifier: MIT
# How long `longpole why` takes on a large recording, and in how much memory: a web server at full
# load is recorded until at least RECORDS records are there (default 5 million), then explained
# RUNS times from nothing (the history is built each time) and once more with the history there.
#   bench/why.sh [RECORDS [RUNS]]
set -eu
want=${1:-5000000} runs=${2:-3} port=18097
longpole=$(cd "$(dirname "$0")/.." && pwd)/build/longpole
work=$(mktemp -d /var/tmp/lp-bench-XXXXXX)
chmod 755 "$work"
nginx=
load=

finish()
{
	[ -z "$load" ] || kill "$load" 2>/dev/null || true
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
nginx -c "$work/nginx.conf" &
nginx=$!
sleep 0.5
kill -0 "$nginx" || exit 1

# One second tells how many records a second there are; the rest follows from it.
records()
{
	"$longpole" info --json "$1" | python3 -c 'import json, sys
print(sum(json.load(sys.stdin)["records"].values()))'
}

record()
{
	rm -rf "$work/r.lp"
	wrk -t1 -c16 -d"$(($1 + 1))s" "http://127.0.0.1:$port/page" >/dev/null &
	load=$!
	"$longpole" record -o "$work/r.lp" -d "$1" 2>/dev/null || true
	wait "$load"
	load=
}

record 2
rate=$(($(records "$work/r.lp") / 2))
record $((want / rate + 2))
echo "$(records "$work/r.lp") records, $(du -sm "$work/r.lp/kernel" | cut -f1) MB"

# /usr/bin/time may be missing; the shell's own children tell as much.
measure()
{
	python3 - "$longpole" why --json "$work/r.lp" <<'PYTHON'
import resource, subprocess, sys, time
begin = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(f"{time.monotonic() - begin:.2f}",
      resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
PYTHON
}

for _ in $(seq "$runs"); do
	rm -f "$work/r.lp/history"
	measure
done >"$work/table"
sort -n "$work/table" | awk -v runs="$runs" '
	{ time[NR] = $1; if ($2 > rss) rss = $2 }
	END {
		printf "why, history built: %.2f s (%.2f to %.2f, %d runs), at most %d MB resident\n",
			time[int((NR + 1) / 2)], time[1], time[NR], runs, rss
	}'
measure | awk '{ printf "why, history there: %.2f s, %d MB resident\n", $1, $2 }'
