# SPDX-License-Identifier: MIT
"""Runs `longpole why --json` in the background of a lab."""

import json
import os
import subprocess
import time

from lab import LONGPOLE, Failed

FOLDER = "recording.lp"


def start_longpole(lab, seconds, program=LONGPOLE, options=()):
    """Returns once it records: the requests of the load must all be inside the window.  Only the
    lab's own servers are reported; others on this machine may serve requests too."""
    recording = lab.dir / FOLDER
    if not os.access(program, os.X_OK):
        raise Failed(f"{program} is not built")
    with open(lab.dir / "why.json", "wb") as out, open(lab.dir / "why.err", "wb") as err:
        process = subprocess.Popen(
            [str(program), "why", "--json", "-d", str(seconds), "-o", str(recording), "--top", "20",
             "--cgroup", lab.root.path, *options], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, range(os.cpu_count())))
    lab.stack.callback(lab.stop, process)
    end = time.monotonic() + 5
    while not list(recording.glob("kernel/*")) and process.poll() is None:
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    time.sleep(0.3)
    return process


def read_why(lab, process):
    """Waits for the answer.  Exit status 3 (something lost or partial) has one too."""
    try:
        status = process.wait(90)
    except subprocess.TimeoutExpired as e:
        raise Failed("longpole did not end") from e
    said = (lab.dir / "why.err").read_text(errors="replace").strip().splitlines()
    try:
        return json.loads((lab.dir / "why.json").read_text())
    except ValueError as e:
        tail = said[-1] if said else ""
        raise Failed(f"longpole: exit status {status}, no JSON: {tail}") from e
