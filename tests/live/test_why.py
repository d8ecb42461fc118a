# SPDX-License-Identifier: MIT
"""longpole why on one recording of a small load: its text, its JSON, its filters, its leftovers."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
import servers
from lab import LONGPOLE, Lab, need

KEYS = {
    "window": {"start_ns", "start", "duration_ns"},
    "hosts": {"name", "offset_ns", "drift_ppb", "error_ns", "clock", "cgroup_key"},
    "lost": {"records", "by_reason"},
    "groups": {"name", "count", "slow_count", "slow_over_ns", "p50_ns", "p95_ns", "p99_ns",
               "mean_slow_ns", "mean_typical_ns", "unknown_share"},
    "findings": {"rank", "group", "basis", "state", "cause", "via", "extra_ns", "share",
                 "presence", "count", "certain_ns", "culprit", "text", "evidence", "advice"},
    "slowest": {"name", "start_ns", "duration_ns", "host", "tid", "cut", "budget", "path"},
    "cost": {"recorder_cpu_pct", "records", "bytes"},
}


def why(*words, **more):
    return subprocess.run([str(LONGPOLE), "why", *map(str, words)], capture_output=True, text=True,
                          timeout=60, check=False, **more)


def answer(*words):
    done = why("--json", *words)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def recording():
    """60 requests for /a, 5 for /b/NUMBER, of nginx; and the pid of its worker's master."""
    with Lab("why") as lab:
        process, port = servers.nginx(lab)
        servers.write_text(lab.dir / "www" / "a", 2000)
        curl, url = need("curl", "curl"), f"http://127.0.0.1:{port}"
        load = (f"sleep 1; {curl} -s -o /dev/null '{url}/a?secret=[1-60]' "
                f"&& {curl} -s -o /dev/null '{url}/b/[1-5]'")
        path = lab.dir / "host.lp"
        loading = lab.start(["sh", "-c", load], cgroup="load")
        done = why("-d", "3s", "-o", path)
        assert done.returncode == 0, done.stderr
        assert loading.wait(10) == 0
        yield path, done.stdout, process.pid, lab.cgroup("service").path


def test_json_has_every_key(recording):
    got = answer(recording[0])
    assert got["schema"] == "longpole.why/1"
    for name, keys in KEYS.items():
        for item in got[name] if isinstance(got[name], list) else [got[name]]:
            assert keys <= set(item), name
    assert got["window"]["start"] == str(got["window"]["start_ns"])
    for finding in got["findings"]:
        assert finding["text"] and finding["evidence"] and finding["advice"]


def test_paths_and_budgets_sum_up(recording):
    for slow in answer(recording[0], "--top", 20)["slowest"]:
        at = slow["start_ns"]
        for segment in slow["path"]:
            assert segment["start_ns"] == at
            at = segment["end_ns"]
            assert sum(c["ns"] for c in segment["culprits"]) == at - segment["start_ns"]
        assert at == slow["start_ns"] + slow["duration_ns"]
        assert sum(line["ns"] for line in slow["budget"]) == slow["duration_ns"]


def test_findings_are_in_order(recording):
    """Those of one group that differ in the way only rank together, by their sum."""
    for basis in ("slow-vs-typical", "all"):
        sums = {}
        for f in answer(recording[0])["findings"]:
            if f["basis"] == basis:
                family = (f["group"], f["state"], f["cause"], f["culprit"]["kind"],
                          f["culprit"]["name"])
                sums[family] = sums.get(family, 0) + f["extra_ns"] * f["count"]
        assert list(sums.values()) == sorted(sums.values(), reverse=True)


def test_groups_are_counted_and_queries_cut(recording):
    groups = {g["name"]: g["count"] for g in answer(recording[0])["groups"]}
    assert groups["GET /a"] == 60
    assert groups["GET /b/*"] == 5
    assert "secret" not in why("--json", recording[0]).stdout


def test_text_fits_a_terminal(recording):
    for line in recording[1].splitlines():
        # Only a word that cannot be broken may be longer.
        assert len(line) <= 80 or " " not in line.strip(), line
        assert line == line.rstrip()
    for part in ("GET /a", "GET /b/*", "p99", "The slowest", "Recording took", str(recording[0])):
        assert part in recording[1]


def test_filters(recording):
    path, _, pid, cgroup = recording
    assert [g["name"] for g in answer(path, "--request", "/b/")["groups"]] == ["GET /b/*"]
    assert [g["name"] for g in answer(path, "--request", "G*/a")["groups"]] == ["GET /a"]
    assert sum(g["count"] for g in answer(path, "--cgroup", cgroup)["groups"]) == 65
    assert answer(path, "--begin", "0", "--end", "1ms")["groups"] == []
    window = answer(path, "--begin", "1s")["window"]
    assert abs(window["duration_ns"] - 2e9) < 1e8
    # nginx's master serves nothing: it is explained itself.
    assert answer(path, "--pid", pid)["subject"] == "process"


def test_nothing_matched(recording):
    done = why(recording[0], "--request", "nobody asked for this")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no request matched" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_reports_and_leaves_nothing(tmp_path, number):
    process = subprocess.Popen([str(LONGPOLE), "why", "--json"], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(tmp_path)})
    deadline = time.monotonic() + 10
    while not list(tmp_path.glob("*/host.lp/host.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert json.loads(out)["schema"] == "longpole.why/1"
    assert process.returncode in (0, 3)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("script, said", [("exit 3", "ended with status 3"),
                                          ("kill -9 $$", "was killed by signal 9")])
def test_the_commands_status_is_in_the_report(script, said):
    done = why("--", "sh", "-c", f"sleep 0.1; {script}")
    assert done.returncode in (0, 3), done.stderr
    assert said in re.sub(r"\s+", " ", done.stdout)
