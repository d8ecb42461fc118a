# SPDX-License-Identifier: MIT
"""`longpole record` itself: what it writes is true and whole, also when things go wrong."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest

from lab import LONGPOLE, need

# A field as babeltrace2 prints it: a number, or an enum's ( "label" : container = N ).
FIELD = re.compile(r'(\w+) = (?:\( "([^"]*)" : container = \d+ \)|"([^"]*)"|(-?(?:0x[0-9A-Fa-f]+|\d+))\b)')

# Two processes on one CPU hand a byte to and fro for ROUNDS; each then tells what the kernel
# counted for it between its own two clock reads.
PING_PONG = r"""
import os, sys, time
def counts():
    status = open("/proc/self/status").read()
    switches = [int(status.split(k + ":")[1].split()[0]) for k in
                ("\nvoluntary_ctxt_switches", "\nnonvoluntary_ctxt_switches")]
    delay = int(open("/proc/self/schedstat").read().split()[1])
    return [os.getpid(), time.monotonic_ns(), *switches, delay]
os.sched_setaffinity(0, [int(sys.argv[1])])
rounds = int(sys.argv[2])
there, back = os.pipe(), os.pipe()
if os.fork():
    mine, out = back[0], there[1]
else:
    mine, out = there[0], back[1]
before = counts()
for i in range(rounds):
    if out == there[1]:
        os.write(out, b"x"); os.read(mine, 1)
    else:
        os.read(mine, 1); os.write(out, b"x")
after = counts()
os.write(1, (" ".join(map(str, before + after)) + "\n").encode())
if out == there[1]:
    os.wait()
"""


def record(lab, *options, command=None, status=0, env=None, program=LONGPOLE, **more):
    """Runs it to its end; what it said on stderr."""
    words = [program, "record", *options, *(["--", *command] if command else [])]
    done = subprocess.run([str(w) for w in words], cwd=lab.dir, capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, **(env or {})}, **more)
    assert done.returncode == status, done.stderr
    return done


def records(path):
    """Every record of a recording through babeltrace2, in order, as a dictionary."""
    tool = need("babeltrace2", "babeltrace2")
    done = subprocess.run([tool, "--clock-cycles", path / "kernel"], capture_output=True,
                          encoding="utf-8", errors="replace", timeout=120, check=True)
    last = collections.defaultdict(int)
    for line in done.stdout.rstrip("\n").split("\n"):  # names may hold other line ends
        head = re.match(r"\[(\d+)\] .*?(\w+): { cpu_id = (\d+)", line)
        ts, kind, cpu = int(head[1]), head[2], int(head[3])
        assert ts >= last[cpu], f"time goes back on CPU {cpu}"
        last[cpu] = ts
        yield {"ts": ts, "kind": kind, "cpu": cpu,
               **{k: label or text.replace("\\?", "?") or (int(number, 0) if number else "")
                  for k, label, text, number in FIELD.findall(line[head.end():])}}


def host(path):
    return json.loads((path / "host.json").read_text())


def of_kind(all_records, kind):
    return [r for r in all_records if r["kind"] == kind]


@pytest.fixture(scope="module")
def ping_pong(tmp_path_factory):
    """One recording of the ping-pong, beside a program that computes on the same CPU."""
    path = tmp_path_factory.mktemp("record") / "pp.lp"
    hog = subprocess.Popen(["taskset", "-c", "1", sys.executable, "-c", "while True: pass"])
    try:
        done = subprocess.run([LONGPOLE, "record", "-o", path, "--", sys.executable, "-c",
                               PING_PONG, "1", "2000"], capture_output=True, text=True,
                              timeout=60, check=True)
    finally:
        hog.kill()
        hog.wait()
    told = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return path, list(records(path)), told


def test_folder(ping_pong):
    path, all_records, _ = ping_pong
    assert path.stat().st_mode & 0o777 == 0o700
    assert {f.name for f in path.iterdir()} == {"kernel", "host.json"}
    h = host(path)
    assert h["format"] == "longpole.recording/1" and h["complete"]
    assert int(h["start_ns"]) < int(h["end_ns"])
    assert h["lost"] == {"records": 0, "by_reason": {}}
    assert len(h["clocks"]) >= 2
    kinds = collections.Counter(r["kind"] for r in all_records)
    assert kinds["switch"] >= 4000 and kinds["thread"] > 20 and kinds["cgroup"] >= 3


def test_switches_against_the_kernel(ping_pong):
    """The kernel's counts of both processes between their two readings, exactly."""
    _, all_records, told = ping_pong
    assert len(told) == 2
    for pid, start, vol0, invol0, _, _, end, vol1, invol1, _ in told:
        left = [r for r in of_kind(all_records, "switch")
                if r["prev_tid"] == pid and start <= r["ts"] < end]
        blocked = sum(r["prev_why"] == "blocked" for r in left)
        # one that the readings themselves cause may fall on either side of the clock read
        assert abs(blocked - (vol1 - vol0)) <= 1
        assert abs(len(left) - blocked - (invol1 - invol0)) <= 1


def test_run_queue_against_the_kernel(ping_pong):
    """These waits last a few microseconds, and the kernel ends them some steps before the switch:
    it may be shorter by that.  Long waits are compared in test_references.py."""
    _, all_records, told = ping_pong
    for pid, start, _, _, delay0, _, end, _, _, delay1 in told:
        waits = [r["ts"] - (r["next_runnable"] or r["next_left"])
                 for r in of_kind(all_records, "switch")
                 if r["next_tid"] == pid and start <= r["ts"] < end]
        kernel = delay1 - delay0
        assert 0.98 * kernel <= sum(waits) <= 1.02 * kernel + 500 * len(waits)


def test_wakers(ping_pong):
    """Nearly every blocked read ends because the other one wrote, and on a pipe."""
    _, all_records, told = ping_pong
    a, b = told[0][0], told[1][0]
    woken = [r for r in of_kind(all_records, "switch") if r["next_tid"] == a and r["next_waking"]
             and told[0][1] < r["ts"] < told[0][6]]
    by_other = [r for r in woken if r["next_waker_tid"] == b and r["next_waker_by"] == "thread"
                and r["next_waker_syscall"] == 1]
    assert len(by_other) >= 0.99 * len(woken)
    left = [r for r in of_kind(all_records, "switch") if r["prev_tid"] == a
            and r["prev_why"] == "blocked" and told[0][1] < r["ts"] < told[0][6]]
    pipes = [r for r in left if r["prev_obj_kind"] == "pipe" and r["prev_syscall"] == 0]
    assert len(pipes) >= 0.99 * len(left)


def test_stamps_are_in_order(ping_pong):
    """left <= waking <= runnable <= now, and nobody has times of the idle task."""
    _, all_records, _ = ping_pong
    for r in of_kind(all_records, "switch"):
        stamps = [t for t in (r["next_left"], r["next_waking"], r["next_runnable"], r["ts"]) if t]
        assert stamps == sorted(stamps), r
        if r["next_tid"] == 0:
            assert stamps == [r["ts"]] and r["next_waker_by"] == "unknown"
        if r["prev_tid"] == 0:
            assert r["prev_why"] == "idle"


@pytest.mark.parametrize("without", ["", "local-timer"])
def test_timer_wakes(lab, without):
    """Not all: where a machine hides what happens while some thread runs, a wake can be unseen."""
    record(lab, "-o", "t.lp", env={"LONGPOLE_WITHOUT": without},
           command=[sys.executable, "-c", "import time\nfor i in range(50): time.sleep(0.003)"])
    pid = host(lab.dir / "t.lp")["command"]["pid"]
    sleeps = [r for r in of_kind(records(lab.dir / "t.lp"), "switch")
              if r["next_tid"] == pid and r["next_waker_by"] == "timer"]
    assert 46 <= len(sleeps) <= 55


# Bytes after a type of each kind: so many, and so many for each of its members.
BTF_EXTRA = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0),
             15: (0, 12), 17: (4, 0), 19: (0, 12)}


def other_kernel(renamed):
    """This kernel's type information with some fields under another name: {(struct, field): name}."""
    btf = bytearray(pathlib.Path("/sys/kernel/btf/vmlinux").read_bytes())
    head, at, type_len, text_at, text_len = struct.unpack_from("<IIIII", btf, 4)
    at, text_at, found = at + head, text_at + head, set()
    end, text = at + type_len, bytes(btf[text_at:text_at + text_len])

    def name(offset):
        return text[offset:text.index(0, offset)].decode()

    while at < end:
        name_at, info = struct.unpack_from("<II", btf, at)
        base, each = BTF_EXTRA.get(info >> 24 & 31, (0, 0))
        body, at = at + 12, at + 12 + base + each * (info & 0xffff)
        if info >> 24 & 31 != 4 or name(name_at) not in {s for s, _ in renamed}:
            continue
        for member in range(body, at, each):
            key = name(name_at), name(struct.unpack_from("<I", btf, member)[0])
            if key in renamed:
                struct.pack_into("<I", btf, member, len(text))
                found.add(key)
                text += renamed[key].encode() + b"\0"
    struct.pack_into("<I", btf, 20, len(text))
    return bytes(btf[:text_at]) + text, found


def test_fields_of_other_kernels(lab):
    """5.15 has the CPU in task_struct; what is configured away is left out."""
    renamed = {("thread_info", "cpu"): "gone", ("task_struct", "wake_cpu"): "cpu",
               ("task_struct", "throttled"): "gone", ("sched_info", "last_arrival"): "gone",
               ("cfs_rq", "throttled_clock_self_time"): "gone", ("bio", "bi_blkg"): "gone",
               ("sock_common", "skc_v6_daddr"): "gone", ("sched_entity", "cfs_rq"): "gone",
               ("kvm_steal_time", "steal"): "gone"}
    btf, found = other_kernel(renamed)
    assert ("thread_info", "cpu") in found and ("task_struct", "wake_cpu") in found
    (lab.dir / "btf").write_bytes(btf)
    record(lab, "-o", "f.lp", command=["sleep", "0.2"], env={"LONGPOLE_BTF": str(lab.dir / "btf")})
    got = of_kind(records(lab.dir / "f.lp"), "switch")
    cpus = os.cpu_count()
    assert got and all(r["next_queue_cpu"] < cpus for r in got)


def test_life(lab):
    """Fork, exec, name, exit of a child; and what blocks at the end is written as open."""
    lab.start(["sleep", "30.25"])
    record(lab, "-o", "life.lp", "-d", "2", command=["sh", "-c", "/bin/true; sleep 0.2"])
    threads = of_kind(records(lab.dir / "life.lp"), "thread")
    true = [r for r in threads if r["what"] == "exec" and r["comm"] == "true"]
    assert len(true) == 1
    tid = true[0]["tid"]
    assert {r["what"] for r in threads if r["tid"] == tid} >= {"fork", "exec", "exit"}
    sleeping = [r for r in threads if r["what"] == "snapshot" and r["comm"] == "sleep"]
    assert sleeping and all(r["start"] for r in threads)
    longpole = [r for r in threads if r["what"] == "open"]
    assert longpole and all(r["left"] <= r["ts"] for r in longpole)


def test_a_moved_process_moves_with_all_its_threads(lab):
    program = ("import threading, time, os, sys\n"
               "for i in range(3): threading.Thread(target=time.sleep, args=(1,)).start()\n"
               "time.sleep(0.2)\n"
               f"open(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid()))\n")
    target = lab.cgroup("moved") if hasattr(lab, "cgroup") else None
    if not isinstance(target, (str, os.PathLike)) or not os.path.exists(f"{target}/cgroup.procs"):
        target = f"/sys/fs/cgroup/cpu/lp-test-record-{os.getpid()}"
        os.mkdir(target)
    try:
        record(lab, "-o", "m.lp", command=[sys.executable, "-c", program, str(target)])
        inode = os.stat(target).st_ino
    finally:
        if "lp-test-record" in str(target):
            os.rmdir(target)
    pid = host(lab.dir / "m.lp")["command"]["pid"]
    moved = [r for r in of_kind(records(lab.dir / "m.lp"), "thread")
             if r["what"] == "cgroup" and r["pid"] == pid]
    assert len({r["tid"] for r in moved}) == 4
    assert inode in {r["cgroup_cpu"] for r in moved} | {r["cgroup_v2"] for r in moved}


def test_quota_against_cpu_stat(lab):
    """A loop that may use a fifth of a CPU: every throttling seen, the time right within 1 %."""
    group = f"/sys/fs/cgroup/cpu/lp-test-quota-{os.getpid()}"
    if not os.path.exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"):
        pytest.skip("no v1 cpu controller here")
    os.mkdir(group)
    try:
        for name, value in (("cfs_period_us", 100000), ("cfs_quota_us", 20000)):
            with open(f"{group}/cpu.{name}", "w", encoding="ascii") as f:
                f.write(str(value))
        loop = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
        record(lab, "-o", "q.lp", command=["sh", "-c", f"echo $$ >{group}/cgroup.procs; exec "
                                           f"taskset -c 1 {sys.executable} -c '{loop}'"])
        with open(f"{group}/cpu.stat", encoding="ascii") as f:
            stat = dict(line.split() for line in f)
    finally:
        os.rmdir(group)
    pid = host(lab.dir / "q.lp")["command"]["pid"]
    switches = of_kind(records(lab.dir / "q.lp"), "switch")
    throttled = sum(r["prev_tid"] == pid and r["prev_why"] == "throttled" for r in switches)
    assert abs(throttled - int(stat["nr_throttled"])) <= 1
    assert sum(r["next_quota"] for r in switches if r["next_tid"] == pid) == \
        pytest.approx(int(stat["throttled_time"]), rel=0.01)


UNIX_EXCHANGE = r"""
import os, socket, sys
path = sys.argv[1]
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(path); listener.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(path)
    server, _ = listener.accept()
    client.sendall(b"GET /a?secret=1 HTTP/1.0\r\n\r\n"); server.recv(100)
    server.sendall(b"HTTP/1.0 404 no\r\n\r\n"); client.recv(100)
"""


@pytest.mark.parametrize("raw", [False, True])
def test_unix_request(lab, raw):
    options = ["--raw-text"] if raw else []
    record(lab, "-o", "u.lp", *options,
           command=[sys.executable, "-c", UNIX_EXCHANGE, f"{lab.dir}/s"])
    got = list(records(lab.dir / "u.lp"))
    request, = [r for r in of_kind(got, "request") if "/a" in r["text"]]
    assert request["text"] == f"GET /a{'?secret=1' if raw else ''} HTTP/1.0"
    answer, = [r for r in of_kind(got, "send") if r["status"] == 404]
    assert answer["cookie"] == request["cookie"]
    role = {r["cookie"]: r for r in of_kind(got, "socket")}
    server = role[request["cookie"]]
    assert server["role"] == "served" and server["path"] == f"{lab.dir}/s"
    assert role[server["peer"]]["role"] == "client" and role[server["peer"]]["peer"] == \
        request["cookie"]
    assert request["arrived"] <= request["ts"] and request["arrived_tid"] == request["tid"]


def test_durable_writes(lab):
    """A write that the disk must flush ends twice; that is no loss."""
    need("losetup", "mount")
    image = lab.dir / "disk.img"
    image.write_bytes(bytes(1 << 20))
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True,
                          check=False)
    if made.returncode:
        pytest.skip("no loop device: " + made.stderr.strip())
    disk = made.stdout.strip()
    try:
        if pathlib.Path(f"/sys/block/{disk[5:]}/queue/write_cache").read_text() != "write back\n":
            pytest.skip("this loop device has nothing to flush")
        record(lab, "-o", "d.lp", command=["dd", "if=/dev/zero", f"of={disk}", "bs=4k", "count=20",
                                           "oflag=direct,dsync"])
    finally:
        subprocess.run(["losetup", "-d", disk], check=True)
    assert host(lab.dir / "d.lp")["lost"]["records"] == 0
    writes = [r for r in of_kind(records(lab.dir / "d.lp"), "block")
              if r["dev"] >> 20 == 7 and r["op"] == 1]
    assert len(writes) == 20 and sum(r["bytes"] for r in writes) == 20 * 4096
    assert all(r["submitted"] <= r["issued"] <= r["completed"] for r in writes)


ABSTRACT = r"""
import socket
for n in range(1, 90):
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(b"\0" + b"n" * n); listener.listen()
        client.connect(b"\0" + b"n" * n)
        server, _ = listener.accept()
        client.sendall(b"hello"); server.recv(9); server.close()
"""


def test_abstract_names_end(lab):
    """They have no NUL: what lies behind them in the kernel is nobody's to see."""
    record(lab, "-o", "a.lp", command=[sys.executable, "-c", ABSTRACT])
    names = {r["path"] for r in of_kind(records(lab.dir / "a.lp"), "socket")
             if r["path"].startswith("@n")}
    assert names == {"@" + "n" * min(n, 63) for n in range(1, 90)}


# --- when things go wrong

def test_command_status(lab):
    said = record(lab, "-o", "s.lp", command=["sh", "-c", "exit 7"]).stderr
    assert "status 7" in said
    assert host(lab.dir / "s.lp")["command"]["status"] == 7 << 8
    said = record(lab, "-o", "k.lp", command=["sh", "-c", "kill -9 $$"]).stderr
    assert "signal 9" in said


def test_command_that_is_not_there(lab):
    said = record(lab, "-o", "x.lp", command=["/no/such/program"], status=1).stderr
    assert len(said.splitlines()) == 1 and "/no/such/program" in said
    assert not (lab.dir / "x.lp").exists()


def test_hangup_that_nohup_ignores(lab):
    process = subprocess.Popen(["sh", "-c", 'trap "" HUP; exec "$0" record -d 1.5 -o "$1"',
                                LONGPOLE, lab.dir / "hup.lp"], stderr=subprocess.DEVNULL)
    time.sleep(0.8)
    process.send_signal(signal.SIGHUP)
    assert process.wait(10) == 0
    h = host(lab.dir / "hup.lp")
    assert int(h["end_ns"]) - int(h["start_ns"]) > 1.4e9


def test_files_may_not_grow(lab):
    """ulimit -f sends a signal that kills who does not expect it."""
    done = subprocess.run(["sh", "-c", 'ulimit -f 8; exec "$0" record -d 1 -o "$1"', LONGPOLE,
                           lab.dir / "small.lp"], check=False, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "File too large" in done.stderr


def test_messages_do_not_go_into_the_recording(lab):
    """With stderr closed the first file that is opened would take its number."""
    subprocess.run(["sh", "-c", 'exec "$0" record -v -d 0.5 -o "$1" <&- >&- 2>&-', LONGPOLE,
                    lab.dir / "closed.lp"], check=True)
    assert of_kind(records(lab.dir / "closed.lp"), "switch")
    assert subprocess.run([LONGPOLE, "info", lab.dir / "closed.lp"], check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


def test_clocks_of_a_time_namespace(lab):
    """Programs in the kernel do not see the shift, and the window is theirs."""
    done = subprocess.run(["unshare", "--time", "--monotonic", "100000", "--boottime", "5000",
                           LONGPOLE, "record", "-d", "0.5", "-o", lab.dir / "time.lp"],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    h = host(lab.dir / "time.lp")
    assert abs(int(h["end_ns"]) - time.monotonic_ns()) < 60e9
    assert subprocess.run([LONGPOLE, "info", lab.dir / "time.lp"], check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


def test_pids_of_a_namespace_are_not_believed(lab):
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", LONGPOLE, "record", "-o",
                           lab.dir / "pid.lp", "--", "true"],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 0 and "pid namespace" in done.stderr
    assert host(lab.dir / "pid.lp")["command"]["pid"] == 0


def test_longest_duration(lab):
    record(lab, "-o", "long.lp", "-d", "2562047h", command=["true"])
    assert host(lab.dir / "long.lp")["complete"] is True


def test_folder_is_there(lab):
    (lab.dir / "there.lp").mkdir()
    said = record(lab, "-o", "there.lp", "-d", "1", status=1).stderr
    assert len(said.splitlines()) == 1 and "there.lp" in said


def test_no_permission(lab):
    os.chmod(lab.dir, 0o777)
    # A copy: the tree may lie where only root may look.
    program = shutil.copy(LONGPOLE, lab.dir)
    said = record(lab, "-o", "p.lp", "-d", "1", status=1, program=program, user=65534,
                  group=65534, extra_groups=[]).stderr
    assert len(said.splitlines()) == 1 and "root" in said
    assert not (lab.dir / "p.lp").exists()


def test_no_btf(lab):
    said = record(lab, "-o", "b.lp", "-d", "1", status=1,
                  env={"LONGPOLE_BTF": "/no/such/file"}).stderr
    assert len(said.splitlines()) == 1 and "BTF" in said
    assert not (lab.dir / "b.lp").exists()


def test_killed(lab):
    """What was written before SIGKILL is whole."""
    process = subprocess.Popen([LONGPOLE, "record", "-o", lab.dir / "killed.lp"])
    time.sleep(3.5)
    process.kill()
    process.wait()
    got = list(records(lab.dir / "killed.lp"))
    assert of_kind(got, "switch") and of_kind(got, "thread")
    assert host(lab.dir / "killed.lp")["complete"] is False


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_killed_at_the_start_leaves_nothing(lab):
    """The child that is woken to try how wakes look holds the programs too."""
    process = subprocess.Popen([LONGPOLE, "record", "-o", lab.dir / "k.lp", "-d", "3"],
                               stderr=subprocess.DEVNULL)
    children, words = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children"), []
    if not children.exists():
        process.wait()
        pytest.skip("this kernel does not list a process's children")
    while process.poll() is None and not words:
        words = children.read_text().split()
    process.kill()
    process.wait()
    assert words, "it had no child"
    end = time.monotonic() + 2
    while lives(words[0]) and time.monotonic() < end:
        time.sleep(0.02)
    assert not lives(words[0])


@pytest.mark.parametrize("seconds", [0.05, 0.1, 0.15, 0.2, 0.3])
def test_interrupted_at_the_start(lab, seconds):
    """Ctrl-C goes to the command that waits to be started as well."""
    process = subprocess.Popen([LONGPOLE, "record", "-o", lab.dir / "i.lp", "--", "sleep", "9"],
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=10)[1]
    assert process.returncode in (0, 1, -signal.SIGINT), said  # not caught yet
    if process.returncode == 0:
        assert host(lab.dir / "i.lp")["complete"] is True
    elif process.returncode == 1:
        assert len(said.splitlines()) == 1 and not (lab.dir / "i.lp").exists()


def test_interrupted(lab):
    process = subprocess.Popen([LONGPOLE, "record", "-o", lab.dir / "int.lp"],
                               stderr=subprocess.DEVNULL)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    assert host(lab.dir / "int.lp")["complete"] is True


def test_interrupted_with_its_command(lab):
    process = subprocess.Popen([LONGPOLE, "record", "-o", lab.dir / "both.lp", "--", "sleep", "9"],
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    said = process.communicate(timeout=10)[1]
    assert process.returncode == 0 and "signal 2" in said
    assert host(lab.dir / "both.lp")["command"]["status"] == 2


def test_small_buffer_counts_what_it_lost(lab):
    said = record(lab, "-o", "small.lp", "--buffer", "4K", status=3,
                  command=[sys.executable, "-c", PING_PONG, "1", "20000"]).stderr
    h = host(lab.dir / "small.lp")
    lost = h["lost"]["by_reason"]["ring-full"]
    assert lost > 0 and str(lost) in said
    told = sum(r["count"] for r in of_kind(records(lab.dir / "small.lp"), "lost"))
    assert 0.99 * lost <= told <= lost


def test_full_disk(lab):
    disk = lab.dir / "tiny"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", disk], check=True)
    try:
        said = record(lab, "-o", "tiny/full.lp", status=1,
                      command=[sys.executable, "-c", PING_PONG, "1", "40000"]).stderr
        assert len(said.splitlines()) == 1 and "No space left" in said
        assert len(of_kind(records(disk / "full.lp"), "switch")) > 1000
        assert host(disk / "full.lp")["complete"] is False
    finally:
        subprocess.run(["umount", disk], check=True)


def test_keeps_few_rights(lab):
    """After loading only what is still needed: no CAP_SYS_ADMIN (21), but CAP_BPF (39)."""
    process = subprocess.Popen([LONGPOLE, "record", "-o", lab.dir / "caps.lp", "-d", "3"],
                               stderr=subprocess.DEVNULL)
    held, end = -1, time.monotonic() + 2.5
    while held >> 21 & 1 and time.monotonic() < end:
        time.sleep(0.1)
        with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
            held = int(re.search(r"CapEff:\s+(\w+)", f.read())[1], 16)
    assert process.wait(10) == 0
    assert not held >> 21 & 1 and held >> 39 & 1


def test_memory(lab):
    """Its own memory is bounded: packets and rings (mapped twice), not records."""
    process = subprocess.Popen([LONGPOLE, "record", "-o", lab.dir / "mem.lp", "-d", "3"],
                               stderr=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-c", PING_PONG, "1", "30000"], check=True,
                   stdout=subprocess.DEVNULL, timeout=30)
    time.sleep(0.2)
    with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
        peak_kb = int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])
    assert process.wait(10) == 0
    assert peak_kb < 2 * 8192 * os.cpu_count() + 40 * 1024
