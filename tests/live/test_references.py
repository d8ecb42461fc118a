# SPDX-License-Identifier: MIT
"""What the recorder says against what the kernel and other tools say of the same seconds."""

import collections
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import pytest

from lab import LONGPOLE, SERVICE_CPU, SYSTEM_CPU, TOOLS, need

RUNQUEUE_LIMIT = 0.02
SWITCH_LIMIT = 0.01


class Recording:
    """`with Recording(lab) as r: ...`, then r.records("switch") are dictionaries with a ts."""

    def __init__(self, lab):
        self.lab, self.path = lab, lab.dir / "reference.lp"

    def __enter__(self):
        self.process = self.lab.start([LONGPOLE, "record", "-o", self.path])
        end = time.monotonic() + 5
        while not list(self.path.glob("kernel/*")) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(20) == 0, self.lab.tail("longpole")

    def records(self, kind):
        tool = need("babeltrace2", "babeltrace2")
        done = subprocess.run([tool, "--clock-cycles", self.path / "kernel"], capture_output=True,
                              encoding="utf-8", errors="replace", check=True)
        assert not done.stderr, done.stderr[:1000]
        said = done.stdout
        last = 0
        for line in said.rstrip("\n").split("\n"):  # names may hold other line ends
            ts = int(re.match(r"\[(\d+)\]", line).group(1))
            assert ts >= last, "time goes back"
            last = ts
            if f" {kind}: " in line:
                yield {"ts": ts, **{k: int(v, 0) for k, v in
                                    re.findall(r"(\w+) = (-?(?:0x[0-9A-Fa-f]+|\d+))\b", line)}}


def schedstat(pid):
    """(ns on a CPU, ns in a run queue, times on a CPU) of a program's first thread."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as f:
        return tuple(map(int, f.read().split()))


def context_switches():
    with open("/proc/stat", encoding="ascii") as f:
        return int(re.search(r"^ctxt (\d+)", f.read(), re.M).group(1))


def run_queue_waits(recording, tid):
    """(waits of which the end was seen, time around ends that were not).  Where no tracepoint
    fires while a thread of pid 1 runs, its switch to another thread is not seen."""
    waits, unseen, left_ns = [], [], None
    for r in recording.records("switch"):
        if r["next_tid"] == tid:
            waits.append(r["ts"] - (r["next_runnable"] or r["next_left"]))
            left_ns = None
        elif r["prev_tid"] == tid:
            if left_ns:
                unseen.append(r["ts"] - left_ns)
            left_ns = r["ts"]
    return waits, unseen


def test_runqueue_against_schedstat(lab):
    """Two that compute, in two cgroups on one CPU, the second half of the time: the first waits
    in between.  It is stopped outside the measurement, so both count the same seconds."""
    victim = lab.start([TOOLS / "hog", 100000, 100000, "/dev/null", "victim"], cgroup="a",
                       cpu=SERVICE_CPU)
    lab.start([TOOLS / "hog", 60, 100], cgroup="b", cpu=SERVICE_CPU)
    time.sleep(0.1)
    victim.send_signal(signal.SIGSTOP)
    with Recording(lab) as recording:
        time.sleep(0.2)
        before = schedstat(victim.pid)
        victim.send_signal(signal.SIGCONT)
        time.sleep(2)
        victim.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        after = schedstat(victim.pid)
    waits, unseen = run_queue_waits(recording, victim.pid)
    waited_ns = after[1] - before[1]
    assert waited_ns > 300e6, "the neighbour did not disturb; nothing was measured"
    assert abs(sum(waits) - waited_ns) < RUNQUEUE_LIMIT * waited_ns + sum(unseen)
    assert abs(len(waits) + len(unseen) - (after[2] - before[2])) <= 2


def test_switches_against_ctxt(lab):
    """/proc/stat counts what it counts a little before or after our clock is read: some slack."""
    lab.start([TOOLS / "hog", 2, 4], cgroup="a", cpu=SERVICE_CPU)
    lab.start([TOOLS / "hog", 3, 5], cgroup="b", cpu=SYSTEM_CPU)
    with Recording(lab) as recording:
        start_ns, before = time.monotonic_ns(), context_switches()
        time.sleep(2)
        after, end_ns = context_switches(), time.monotonic_ns()
    seen = sum(start_ns <= r["ts"] < end_ns for r in recording.records("switch"))
    assert abs(seen - (after - before)) < SWITCH_LIMIT * (after - before) + 30


def stolen_ns():
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) * (1000000000 // os.sysconf("SC_CLK_TCK"))


def test_steal_against_proc_stat(lab):
    """What the hypervisor took of two busy CPUs, as the kernel counts it in ticks."""
    for cpu in (SERVICE_CPU, SYSTEM_CPU):
        lab.start([TOOLS / "hog", 50, 51], cgroup=f"cpu{cpu}", cpu=cpu)
    with Recording(lab) as recording:
        before = stolen_ns()
        time.sleep(3)
        after = stolen_ns()
    told = sum(r["ns"] for r in recording.records("steal"))
    if not told and after == before:
        pytest.skip("the hypervisor took nothing, or does not tell")
    # A tick for each CPU at each end, and what was taken between the ends of both.
    assert abs(told - (after - before)) < 40e6 + 0.2 * told


@pytest.fixture
def disk(lab):
    where = tempfile.mkdtemp(prefix="lp-culprits-", dir="/var/tmp")
    lab.stack.callback(shutil.rmtree, where, ignore_errors=True)
    return where


def sectors(path):
    """[first, end) on its disk of each extent of a file, by FIEMAP."""
    most, device = 256, os.stat(path).st_dev
    start = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/start")
    first = int(start.read_text()) if start.exists() else 0
    answer = bytearray(struct.pack("=QQLLLL", 0, 2**64 - 1, 1, 0, most, 0) + bytes(56 * most))
    with open(path, "rb") as file:
        fcntl.ioctl(file, 0xC020660B, answer)
    count = struct.unpack_from("=L", answer, 20)[0]
    assert 0 < count < most
    extents = [struct.unpack_from("=QQQ", answer, 32 + 56 * i) for i in range(count)]
    return [(first + at // 512, first + (at + length) // 512) for _, at, length in extents]


def holds(extents, sector):
    return any(begin <= sector < end for begin, end in extents)


def test_block_latency_against_fio(lab, disk):
    """fio's latency holds the block request's: never shorter, and longer only by its own part."""
    fio = need("fio", "fio")
    size = f"--size={32 << 20}"
    common = [fio, "--name=reads", f"--filename={disk}/data", size, "--bs=4k", "--direct=1",
              "--ioengine=psync", "--thread"]
    assert lab.start([*common, "--rw=write", "--bs=1M", "--end_fsync=1"]).wait(60) == 0
    where = sectors(f"{disk}/data")
    with Recording(lab) as recording:
        reads = lab.start([*common, "--rw=randread", "--number_ios=2000", "--output-format=json",
                           f"--output={lab.dir}/fio.json"], cgroup="fio", cpu=SERVICE_CPU)
        assert reads.wait(60) == 0, lab.tail("fio")
    text = (lab.dir / "fio.json").read_text()
    told = json.loads(text[text.index("{"):])["jobs"][0]["read"]
    # Pages of fio itself that were in no memory yet are reads of 4 KiB, too: of other sectors.
    reads_of_file = [r for r in recording.records("block") if r["op"] == 0 and r["completed"] and
                     r["bytes"] == 4096 and holds(where, r["sector"])]
    took_ns = sum(r["completed"] - r["submitted"] for r in reads_of_file) / \
        max(1, len(reads_of_file))
    assert abs(len(reads_of_file) - told["total_ios"]) <= 2
    assert 0 <= told["lat_ns"]["mean"] - took_ns < max(30000, 0.3 * told["lat_ns"]["mean"])


# --- programs without requests, against perf trace -s

def perf_trace_waits(lab, *command):
    """{system call: ms spent in it}, over all threads."""
    perf = need("perf", "linux-perf")
    out = lab.dir / "trace.txt"
    done = lab.start([perf, "trace", "-s", "-o", out, "--", *command], cgroup="command")
    if done.wait(120):
        pytest.skip("perf trace does not work here: " + lab.tail("perf", 1))
    spent = collections.Counter()
    for line in out.read_text().splitlines():
        row = re.match(r" +(\w+) +(\d+) +(\d+) +([\d.]+) +", line)
        if row:
            spent[row.group(1)] += float(row.group(4))
    return spent


def longpole_command(lab, *command):
    with open(lab.dir / "command.json", "wb") as out:
        args = [LONGPOLE, "why", "--json", "--top", "20", "--", *command]
        process = subprocess.Popen([str(a) for a in args], cwd=lab.dir, stdout=out,
                                   stderr=subprocess.PIPE, preexec_fn=lab.cgroup("command").join)
    lab.stack.callback(lab.stop, process)
    said = process.communicate(timeout=120)[1].decode()
    assert process.returncode in (0, 3), said
    text = (lab.dir / "command.json").read_text()
    return json.loads(text[text.index("{"):])["slowest"][0]


def largest_waits(path):
    """[(system call, ns)] of the three in which the path was blocked longest."""
    waits = collections.Counter()
    for s in path:
        if s["state"] not in ("running", "runqueue", "unknown", "lost"):
            waits[s["syscall"]] += s["end_ns"] - s["start_ns"]
    return waits.most_common(3)


def check_waits(slowest, spent_ms):
    """Nobody can be blocked in a call for longer than perf saw it last; perf slows it down."""
    assert sum(s["end_ns"] - s["start_ns"] for s in slowest["path"]) == slowest["duration_ns"]
    for call, ns in largest_waits(slowest["path"]):
        if ns > 0.02 * slowest["duration_ns"]:
            assert ns / 1e6 < 1.3 * spent_ms[call], f"{call}: {ns} ns, perf {spent_ms[call]} ms"


def test_tar_against_perf_trace(lab, disk):
    """tar of files that are not in the page cache waits for reads, and for little else."""
    for i in range(60):
        with open(f"{disk}/file-{i}", "wb") as f:
            f.write(os.urandom(1 << 19))
            f.flush()
            os.fsync(f.fileno())
    command = ["tar", "-cf", f"{lab.dir}/out.tar", "-C", disk, "."]

    def forget():
        for i in range(60):
            fd = os.open(f"{disk}/file-{i}", os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

    forget()
    reference = perf_trace_waits(lab, *command)
    forget()
    slowest = longpole_command(lab, *command)
    check_waits(slowest, reference)
    assert reference.most_common(1)[0][0] == "read"
    assert largest_waits(slowest["path"])[0][0] == "read"
    assert {s["state"] for s in slowest["path"] if s["syscall"] == "read"} >= {"disk"}


def test_make_against_perf_trace(lab):
    """make waits for its children, and they for theirs: the path goes down to who sleeps."""
    work = lab.dir / "work.sh"
    work.write_text("i=0\nwhile [ $i -lt 60000 ]; do i=$((i+1)); done\nsleep 0.05\n")
    targets = " ".join(f"t{i}" for i in range(6))
    (lab.dir / "Makefile").write_text(f"all: {targets}\n{targets}:\n\t@sh {work}\n")
    command = ["make", "-s", "-j2", "-C", lab.dir]
    reference = perf_trace_waits(lab, *command)
    slowest = longpole_command(lab, *command)
    check_waits(slowest, reference)
    # perf says that make and sh wait for children; below them is only the sleep.
    assert reference["wait4"] + reference["pselect6"] > reference["clock_nanosleep"] > 300
    call, ns = largest_waits(slowest["path"])[0]
    # Three rounds of two at a time, or parts of four where they are not in step.
    assert call == "clock_nanosleep" and 140e6 < ns < 310e6
    in_children = sum(b["ns"] for b in slowest["budget"] if "child" in b["via"])
    assert in_children > 0.7 * slowest["duration_ns"]
