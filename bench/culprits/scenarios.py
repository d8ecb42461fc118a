# SPDX-License-Identifier: MIT
"""The scenarios: who serves, who disturbs, what the right answer is, and who else knows it.

Each is started in the order start(), then the recording, then inject() and the load.  After the
load the injectors end, so that their logs are whole; the servers live until the recording is over.
`attributed` says what the culprit took from a request, from the parties' own logs.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import servers
from lab import ALL_CPUS, SERVICE_CPU, SYSTEM_CPU, TOOLS, Failed, need
from truth import InFlight, Spans, by_id, read_events


class Scenario:
    name = ""
    state = cause = ""
    group = "GET /item"
    mild = False
    unknown_limit = 0.02  # unknown and lost, of the slow requests' time
    pg = False
    greetings = 0  # exchanges before the first request, which are counted where nothing has a name

    def __init__(self, lab):
        self.lab = lab
        self.port = 0
        self.begin_ns = 0  # of the load
        self.injectors = []

    # What a scenario has to say.
    urls = ()           # (weight, template), see load.c
    load_options = ()   # connections, gaps (ms)

    def start(self):
        raise NotImplementedError

    def inject(self):
        pass

    def stop_injectors(self):
        for process in self.injectors:
            if self.lab.stop(process, wait_s=15) != 0:
                raise Failed(f"an injector failed: {process.args[0]}")

    def culprit_is(self, culprit):
        raise NotImplementedError

    def witness(self):
        """Reads the logs; returns attributed(request) -> ns, or None where there is no culprit."""
        return None

    # Shared.
    def load(self, seconds, log, name="load"):
        args = [TOOLS / "load", "--port", self.port, "--seconds", seconds, *self.load_options]
        for weight, template in self.urls:
            args += ["--url", f"{weight} {template}"]
        if self.pg:
            args += ["--pg", "postgres"]
        return self.lab.start([*args, "--log", log], cgroup="load", cpu=SYSTEM_CPU, output=name)

    def hog(self, on_ms, period_ms, cpu=SERVICE_CPU, cgroup="neighbour"):
        log = self.lab.dir / "hog.log"
        self.injectors.append(self.lab.start([TOOLS / "hog", on_ms, period_ms, log],
                                             cgroup=cgroup, cpu=cpu))

    def events(self, name):
        """Those since the load began: the warm-up used the same ids."""
        return [e for e in read_events(self.lab.dir / f"{name}.log") if e.start >= self.begin_ns]

    def cgroup_path(self, name):
        return self.lab.cgroup(name).path

    def is_cgroup(self, culprit, name):
        return culprit.get("kind") in ("cgroup", "process", "thread") and \
            culprit.get("cgroup") == self.cgroup_path(name)

    def is_process(self, culprit, comm):
        return culprit.get("kind") in ("process", "thread") and culprit.get("comm") == comm


# --- CPU

class CpuNeighbour(Scenario):
    """nginx compresses pages; a hog in another cgroup wants the same CPU some of the time."""
    name, state, cause = "cpu-neighbour", "runqueue", "neighbour"
    group, mild, unknown_limit = "GET /page", True, 0.05
    urls = ((1, "/page?n=%u(1,20)&id=%i"),)
    load_options = ("--connections", 1, "--gap", 8)

    def start(self):
        (self.lab.dir / "www").mkdir()
        for n in range(1, 21):
            servers.write_text(self.lab.dir / "www" / f"page-{n}.txt", 15000 * n, n)
        _, self.port = servers.nginx(
            self.lab, "location /page { try_files /page-$arg_n.txt =404; gzip on; "
                      "gzip_comp_level 6; gzip_types text/plain; }")
        self.lab.cgroup("service").set_shares(1520)

    def inject(self):
        self.hog(450, 1500)

    def culprit_is(self, culprit):
        return self.is_cgroup(culprit, "neighbour")

    def witness(self):
        ran = Spans((e.start, e.end) for e in self.events("hog"))
        return lambda r: ran.within(r.start, r.end)


class CpuOwn(Scenario):
    """PostgreSQL with more busy backends than CPUs, in bursts."""
    name, state, cause = "cpu-own", "runqueue", "own"
    unknown_limit, pg, greetings = 0.05, True, 5
    urls = ((1, "SELECT /* id=%i */ sum(g) FROM generate_series(1, %u(8000,16000)) g"),)
    load_options = ("--connections", 1, "--gap", 8, "--burst", "4,250,1500", "--burst-gap", 2)
    settings = ("log_statement_stats = on\nlog_min_error_statement = log\n"
                "log_line_prefix = '@%p '\n")

    @property
    def group(self):
        return f"tcp :{self.port} postgres"

    def start(self):
        _, self.port = servers.postgres(self.lab, self.settings)

    def culprit_is(self, culprit):
        return self.is_process(culprit, "postgres")

    def witness(self):
        """What PostgreSQL's own account of each statement does not call CPU time."""
        log = (self.lab.dir / "postgres.out").read_text(errors="replace")
        cpu_ns, last = {}, {}
        for line in re.split(r"\n(?=@\d+ )", log):
            pid = line[1:line.find(" ")]
            used = re.search(r"([\d.]+) s user, ([\d.]+) s system, [\d.]+ s elapsed", line)
            if used:
                last[pid] = int(sum(map(float, used.groups())) * 1e9)
            statement = re.search(r"STATEMENT:.*/\* id=(\d+) \*/", line)
            if statement and pid in last:
                cpu_ns[int(statement.group(1))] = last.pop(pid)
        return lambda r: max(0, r.ns - cpu_ns[r.id])


class CpuQuota(Scenario):
    """A service with 20 ms of CPU in 100 ms; bursts need more."""
    name, state, cause = "cpu-quota", "runqueue", "quota"
    urls = ((1, "/item?id=%i&cpu=%u(1500,2500)"),)
    load_options = ("--connections", 1, "--gap", 25, "--burst", "1,400,1300", "--burst-gap", 2)

    def start(self):
        _, self.port = servers.service(self.lab, "service")
        self.lab.cgroup("service").set_quota(20000, 100000)

    def culprit_is(self, culprit):
        return culprit.get("cgroup") == self.cgroup_path("service")

    def witness(self):
        events = self.events("service")
        served, cpu = by_id(events, "serve"), by_id(events, "cpu")
        return lambda r: max(0, served[r.id].end - r.start - cpu[r.id].ns)


# --- disk

class DiskNeighbour(Scenario):
    """A service reads its blocks past the page cache; fio in another cgroup keeps 16 reads of
    256 KiB in flight on the same disk, some of the time."""
    name, state, cause = "disk-neighbour", "disk", "neighbour"
    urls = ((1, "/item?id=%i&cpu=200&read=8"),)
    load_options = ("--connections", 2, "--gap", 12)

    def start(self):
        self.fio = need("fio", "fio")
        self.disk_dir = self.folder_on_disk()
        self.data = f"{self.disk_dir}/data"
        block = os.urandom(1 << 20)
        with open(self.data, "wb") as out:
            for _ in range(192):
                out.write(block)
            out.flush()
            os.fsync(out.fileno())
            os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        _, self.port = servers.service(self.lab, "service", "--data", self.data)

    def folder_on_disk(self):
        where = tempfile.mkdtemp(prefix="lp-culprits-", dir="/var/tmp")
        self.lab.stack.callback(shutil.rmtree, where, ignore_errors=True)
        kind = subprocess.run(["stat", "-f", "-c", "%T", where], capture_output=True, text=True,
                              check=True).stdout.strip()
        if kind in ("tmpfs", "overlayfs", "nfs"):
            raise Failed(f"/var/tmp is on {kind}, not on a disk")
        return where

    def inject(self):
        """fio is stopped and continued: starting it anew each time would disturb the CPU too."""
        self.process = self.lab.start(
            [self.fio, "--name=hammer", f"--filename={self.data}", "--rw=randread", "--bs=256k",
             "--iodepth=16", "--ioengine=libaio", "--direct=1", "--thread", "--time_based",
             "--runtime=60", "--readonly", "--allow_file_create=0", "--log_unix_epoch=1",
             f"--write_lat_log={self.lab.dir}/fio", "--log_max_value=0"],
            cgroup="neighbour", cpu=SYSTEM_CPU)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.modulate)
        self.thread.start()
        self.lab.stack.callback(self.end_modulation)

    def end_modulation(self):
        self.over.set()
        self.thread.join()

    def modulate(self):
        self.over.wait(0.4)
        while not self.over.is_set():
            self.process.send_signal(signal.SIGSTOP)
            self.over.wait(1.1)
            self.process.send_signal(signal.SIGCONT)
            self.over.wait(0.25)

    def stop_injectors(self):
        self.end_modulation()
        self.lab.stop(self.process, wait_s=15)
        if not (self.lab.dir / "fio_lat.1.log").exists():
            raise Failed("fio wrote no log: " + self.lab.tail("fio"))

    def culprit_is(self, culprit):
        return self.is_cgroup(culprit, "neighbour")

    def witness(self):
        """fio's log says how many of its reads were in flight (to a millisecond); each instant of
        one of our reads is divided among them and itself."""
        to_mono = time.monotonic_ns() - time.time_ns()
        busy = []
        with open(self.lab.dir / "fio_lat.1.log", encoding="utf-8") as lines:
            for line in lines:
                at_ms, ns = map(int, line.split(",")[:2])
                busy.append((at_ms * 1000000 + to_mono - ns, at_ms * 1000000 + to_mono))
        theirs, taken = InFlight(busy), {}
        for e in self.events("service"):
            if e.kind == "read":
                took = sum(ns * n / (n + 1) for ns, n in theirs.pieces(e.start, e.end))
                taken[e.id] = taken.get(e.id, 0) + took
        return lambda r: taken.get(r.id, 0)


# --- other threads and processes

class Lock(Scenario):
    """Every request takes a mutex that a background thread sometimes holds and computes."""
    name, state, cause, mild = "lock", "running", "lock", True
    urls = ((1, "/item?id=%i&cpu=%p(0.05,7000,400)&sleep=%p(0.05,7000,0)&lock=20"),)
    load_options = ("--connections", 3, "--gap", 16)

    def start(self):
        # On all CPUs: on one, the holder would wait for those that compute for themselves.
        _, self.port = servers.service(self.lab, "service", "--hold", "9000,60000", cpu=ALL_CPUS)

    def culprit_is(self, culprit):
        return culprit.get("kind") == "thread" and culprit.get("comm") == "compactor" or \
            culprit.get("kind") == "process" and culprit.get("comm") == "compactor"

    def witness(self):
        events = self.events("service")
        held = Spans((e.start, e.end) for e in events if e.kind == "hold")
        waits = by_id(events, "lockwait")
        return lambda r: held.within(waits[r.id].start, waits[r.id].end)


class Downstream(Scenario):
    """nginx passes requests to a service that computes more for some of them; nginx compresses
    the answers, whose sizes differ."""
    name, state, cause, mild = "downstream", "running", "callee", True
    unknown_limit = 0.05
    urls = ((1, "/item?id=%i&cpu=%p(0.2,4800,700)&size=%u(1000,220000)"),)
    load_options = ("--connections", 1, "--gap", 8)
    compress = True

    def start(self):
        _, port = servers.service(self.lab, "backend")
        http, server = servers.proxy(port)
        if self.compress:
            http += " gzip on; gzip_proxied any; gzip_comp_level 5; gzip_types text/plain;"
        _, self.port = servers.nginx(self.lab, server, http)

    def culprit_is(self, culprit):
        return self.is_process(culprit, "backend")

    def witness(self):
        cpu = by_id(self.events("backend"), "cpu")
        return lambda r: cpu[r.id].ns


class DownstreamSleep(Downstream):
    """The same, but the service sleeps."""
    name, state, mild = "downstream-sleep", "sleep", False
    urls = ((1, "/item?id=%i&cpu=200&sleep=%p(0.2,12000,1000)&size=2000"),)
    load_options = ("--connections", 4, "--gap", 15)
    compress = False

    def witness(self):
        slept = by_id(self.events("backend"), "sleep")
        return lambda r: slept[r.id].ns


class Backlog(Scenario):
    """One worker for all connections; a report now and then holds up everybody else."""
    name, state, cause = "backlog", "backlog", "request"
    urls = ((110, "/item?id=%i&cpu=%u(50,350)"), (1, "/report?id=%i&cpu=30000"))
    load_options = ("--connections", 16, "--gap", 20)

    def start(self):
        _, self.port = servers.service(self.lab, "service", "--loop")

    def culprit_is(self, culprit):
        return culprit.get("kind") == "request" and "/report" in culprit.get("name", "")

    def witness(self):
        events = self.events("service")
        reports = Spans((e.start, e.end) for e in events if e.kind == "report")
        served = by_id(events, "serve")
        return lambda r: reports.within(r.start, served[r.id].start)


class Child(Scenario):
    """Apache starts a program for each request; for some it computes longer.

    Each request has a connection of its own: a worker that finds its program not quite gone sleeps
    47 ms after the answer (apr's free_proc_chain), which the next request on a connection that
    lives on would have to wait for."""
    name, state, cause = "child", "running", "child"
    group, unknown_limit = "GET /cgi/report", 0.05
    urls = ((1, "/cgi/report?id=%i&cpu=%p(0.2,12000,1500)"),)
    load_options = ("--connections", 1, "--gap", 9, "--reconnect")

    def start(self):
        _, self.port = servers.apache(self.lab, servers.cgi(self.lab, "report"), workers=12)

    def culprit_is(self, culprit):
        return self.is_process(culprit, "report")

    def witness(self):
        cpu = by_id(self.events("report"), "cpu")
        return lambda r: cpu[r.id].ns


class Calm(Scenario):
    """nginx with endpoints of different cost, and nobody who disturbs."""
    name, unknown_limit = "calm", 0.05
    group = None
    urls = ((3, "/small.txt?id=%i"), (2, "/page?id=%i"), (1, "/large.txt?id=%i"))
    load_options = ("--connections", 3, "--gap", 12)
    endpoints = ("GET /small.txt", "GET /page", "GET /large.txt")

    def start(self):
        (self.lab.dir / "www").mkdir()
        for name, size in (("small", 800), ("page", 90000), ("large", 600000)):
            servers.write_text(self.lab.dir / "www" / f"{name}.txt", size)
        _, self.port = servers.nginx(
            self.lab, "location /page { try_files /page.txt =404; gzip on; gzip_comp_level 5; "
                      "gzip_types text/plain; }")


ALL = {s.name: s for s in (CpuNeighbour, CpuOwn, CpuQuota, DiskNeighbour, Lock, Downstream,
                           DownstreamSleep, Backlog, Child, Calm)}
