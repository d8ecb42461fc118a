# SPDX-License-Identifier: MIT
"""One process waits, another computes and then releases it, in each way that Linux has.

`longpole why -- CMD` must charge the wait to the one that computed, say by what it was released,
and for as long as that one's own CPU clock says.
"""

import json
import subprocess
import sys

import pytest
from lab import LONGPOLE

# The command waits for the waiter; the waiter for the worker, who computes 60 ms of CPU time,
# releases it and prints how much it was and its pid.
PROGRAM = """
import ctypes, multiprocessing, os, signal, socket, sys, time
kind = sys.argv[1]

def name(text):
    ctypes.CDLL(None).prctl(15, text.encode(), 0, 0, 0)

def compute():
    name("worker")
    time.sleep(0.02)  # until the waiter waits
    begin = time.process_time_ns()
    while time.process_time_ns() - begin < 60_000_000:
        pass
    os.write(1, f"{os.getpid()} {time.process_time_ns() - begin}\\n".encode())

def listening():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0)); s.listen(1)
        client = socket.create_connection(s.getsockname())
        return client, s.accept()[0]

ends = {"pipe": os.pipe, "unix": socket.socketpair, "tcp": listening,
        "eventfd": lambda: (os.eventfd(0),), "futex": lambda: (multiprocessing.Semaphore(0),),
        }.get(kind, lambda: (None,))()
wait = {"pipe": lambda: os.read(ends[0], 1), "unix": lambda: ends[0].recv(1),
        "tcp": lambda: ends[0].recv(1), "eventfd": lambda: os.eventfd_read(ends[0]),
        "futex": lambda: ends[0].acquire(), "signal": lambda: signal.sigwait({signal.SIGUSR1}),
        "child": os.wait}[kind]
release = {"pipe": lambda: os.write(ends[1], b"x"), "unix": lambda: ends[1].send(b"x"),
           "tcp": lambda: ends[1].send(b"x"), "eventfd": lambda: os.eventfd_write(ends[0], 1),
           "futex": lambda: ends[0].release(),
           "signal": lambda: os.kill(waiter, signal.SIGUSR1), "child": lambda: None}[kind]

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
waiter = os.fork()
if not waiter:
    name("waiter")
    if kind == "child" and not os.fork():
        compute(); os._exit(0)
    wait()
    os._exit(0)
if kind != "child":
    worker = os.fork()
    if not worker:
        compute(); release(); os._exit(0)
os.waitpid(waiter, 0)
"""

VIA = {"pipe": "pipe", "unix": "callee", "tcp": "callee", "eventfd": "queue", "futex": "lock",
       "signal": "signal", "child": "child"}
OTHERS = ("lock", "child", "callee")  # the last of these on the way is the cause


@pytest.mark.parametrize("kind", VIA)
def test_release(lab, kind):
    done = subprocess.run([LONGPOLE, "why", "--json", "--", sys.executable, "-c", PROGRAM, kind],
                          capture_output=True, text=True, timeout=60, check=False, cwd=lab.dir)
    # With --json the command's own output is on stderr, the answer alone on stdout.
    pid, computed_ns = map(int, done.stderr.splitlines()[0].split())
    answer = json.loads(done.stdout)
    path = answer["slowest"][0]["path"]
    # Its CPU clock runs on in interrupts and while the hypervisor runs others.
    worked = [s for s in path if s["tid"] == pid and s["state"] == "running"]
    ns = sum(s["end_ns"] - s["start_ns"] for s in worked)
    # Before it computes and after it the worker runs a little too.
    assert computed_ns * 0.97 - 1_000_000 <= ns <= computed_ns * 1.03 + 5_000_000, path
    longest = max(worked, key=lambda s: s["end_ns"] - s["start_ns"])
    assert longest["via"][-1] == VIA[kind], longest
    assert longest["cause"] == [w for w in longest["via"] if w in OTHERS][-1], longest
    assert longest["comm"] == "worker"
