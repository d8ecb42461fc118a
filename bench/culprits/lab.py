# SPDX-License-Identifier: MIT
"""A place for an experiment: cgroups, programs and files of its own, all gone afterwards.

Every scenario, the demo and the live tests use a Lab as a context.  What it made is taken down in
reverse order, also after a failure or Ctrl-C; programs are ended by their pid (or, for servers
with children, by the cgroup this lab made for them).
"""

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build" / "bench"
LONGPOLE = ROOT / "build" / "longpole"
SYSTEM_CPU, SERVICE_CPU = 0, 1  # load and injectors on one, what is measured on the other
ALL_CPUS = -1


class Skip(Exception):
    """The scenario cannot run on this machine; the text says why."""


class Failed(Exception):
    """The experiment itself went wrong; nothing is known about longpole."""


def build_tools():
    """Builds service, load, hog and cgi; quick when they are there."""
    names = ("service", "load", "hog", "cgi")
    made = subprocess.run(["make", "-s", *(f"build/bench/{n}" for n in names)], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    if made.returncode:
        raise Failed("cannot build the scenario programs:\n" + made.stderr)


def need(program, package):
    """The path of a program, or Skip with the package that has it."""
    found = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        raise Skip(f"{program} is not installed (Debian package {package})")
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpus():
    return len(os.sched_getaffinity(0))


def busy_ns():
    """CPU time that this machine has used since it started, interrupts and all."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = list(map(int, stat.readline().split()[1:]))
    user, nice, system, _idle, _iowait, irq, softirq = ticks[:7]
    return (user + nice + system + irq + softirq) * (1000000000 // os.sysconf("SC_CLK_TCK"))


def process_cpu_ns(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) * (1000000000 // os.sysconf("SC_CLK_TCK"))


# --- cgroups

def cgroup_trees():
    """Where a party needs a folder: {controller: mount}.  v1's cpu, cpuacct and blkio, else
    the v2 tree."""
    trees = {}
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, where, kind, options, *_ = line.split()
            if kind == "cgroup":
                for name in {"cpu", "cpuacct", "blkio"} & set(options.split(",")):
                    trees.setdefault(name, where)
            elif kind == "cgroup2":
                trees.setdefault("v2", where)
    if "cpu" in trees:
        trees.pop("v2", None)
    if not trees:
        raise Skip("no cgroup tree is mounted")
    return trees


class Cgroup:
    """The same path in every tree that matters."""

    def __init__(self, path, trees):
        self.path = path
        self.folders = {name: pathlib.Path(mount + path) for name, mount in trees.items()}

    def make(self):
        for folder in set(self.folders.values()):
            folder.mkdir(exist_ok=True)

    def join(self):
        """Called by the new program itself, between fork and exec."""
        for folder in set(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def pids(self):
        """A thread that is just exiting is listed as 0, which kill() takes for our own group."""
        found = set()
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                found |= {int(p) for p in (folder / "cgroup.procs").read_text().split()}
        return {p for p in found if p > 1 and p != os.getpid()}

    def set_cpu(self, v1_file, v1_value, v2_file, v2_value):
        """Writes a setting of the cpu controller, in whichever tree has it."""
        if "cpu" in self.folders:
            (self.folders["cpu"] / v1_file).write_text(str(v1_value))
            return
        setting = self.folders["v2"] / v2_file
        if not setting.exists():
            raise Skip("the cpu controller is not enabled for new cgroups at the root of the tree")
        setting.write_text(str(v2_value))

    def set_shares(self, shares):
        self.set_cpu("cpu.shares", shares, "cpu.weight",
                     min(10000, max(1, shares * 100 // 1024)))

    def cpu_ns(self):
        """CPU time of all that ran in it and below."""
        if "cpuacct" in self.folders:
            return int((self.folders["cpuacct"] / "cpuacct.usage").read_text())
        stat = (self.folders.get("v2", self.folders["cpu"]) / "cpu.stat").read_text()
        found = re.search(r"usage_usec (\d+)", stat)
        return int(found.group(1)) * 1000 if found else 0

    def set_quota(self, quota_us, period_us):
        if "cpu" in self.folders:
            self.set_cpu("cpu.cfs_period_us", period_us, "", "")
        self.set_cpu("cpu.cfs_quota_us", quota_us, "cpu.max", f"{quota_us} {period_us}")

    def remove(self):
        for folder in set(self.folders.values()):
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)


# --- the lab

class Lab:
    def __init__(self, name, cgroup=None):
        """cgroup: what its top cgroup is called, if not after the scenarios."""
        self.name = name
        self.top = cgroup or f"lp-culprits-{os.getpid()}-{name}"
        self.stack = contextlib.ExitStack()
        self.dir = None

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip("needs root")
        try:
            self._set_up()
        except BaseException:
            self.stack.close()
            raise
        return self

    def _set_up(self):
        # On memory: what the parties log must not become disk traffic in the recording.
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"lp-{self.name}-", dir=base))
        self.dir.chmod(0o755)
        self.stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.trees = cgroup_trees()
        self.root = Cgroup("/" + self.top, self.trees)
        self.root.make()
        self.stack.callback(self.root.remove)
        if "v2" in self.trees:
            have = (self.root.folders["v2"] / "cgroup.controllers").read_text().split()
            wanted = " ".join("+" + c for c in ("cpu", "io") if c in have)
            (self.root.folders["v2"] / "cgroup.subtree_control").write_text(wanted)
        self.groups = {}
        # The lab as a whole comes before whatever else this machine does; inside it all are equal.
        with contextlib.suppress(Skip, OSError):
            self.root.set_shares(65536)

    def __exit__(self, *_):
        self.stack.close()

    def cgroup(self, name):
        """A child cgroup of the lab, by name; whatever still runs in it dies with the lab."""
        if name not in self.groups:
            group = Cgroup(f"{self.root.path}/{name}", self.trees)
            group.make()
            self.stack.callback(group.remove)
            self.stack.callback(self.end_all, group)
            self.groups[name] = group
        return self.groups[name]

    @staticmethod
    def end_all(group):
        """SIGTERM for all that runs in a cgroup of this lab, then SIGKILL."""
        for sig in (signal.SIGTERM, signal.SIGKILL):
            for _ in range(100):
                pids = group.pids()
                if not pids:
                    return
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, sig)
                        os.kill(pid, signal.SIGCONT)
                time.sleep(0.02)

    def start(self, args, cgroup=None, cpu=None, user=None, env=None, output=None):
        """Starts a program in a cgroup on a CPU.  Its output goes to NAME.out in the lab."""
        group = self.cgroup(cgroup) if cgroup else None
        entry = pwd.getpwnam(user) if user else None

        def prepare():
            # Not Popen's own user=: it changes ids first, and then the cgroup cannot be joined.
            if group:
                group.join()
            if cpu is not None:
                wanted = range(os.cpu_count()) if cpu == ALL_CPUS else {cpu % os.cpu_count()}
                os.sched_setaffinity(0, wanted)
            if entry:
                os.setgroups([])
                os.setgid(entry.pw_gid)
                os.setuid(entry.pw_uid)

        # A session of its own: Apache ends with a signal to its whole process group.
        name = output or pathlib.Path(str(args[0])).name
        with open(self.dir / f"{name}.out", "ab") as out:
            process = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, cwd=self.dir,
                                       env={**os.environ, **(env or {})}, preexec_fn=prepare,
                                       start_new_session=True)
        self.stack.callback(self.stop, process)
        return process

    @staticmethod
    def stop(process, sig=signal.SIGTERM, wait_s=5):
        """Ends a program that start() returned and waits for it."""
        if process.poll() is None:
            process.send_signal(sig)
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(wait_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return process.returncode

    def tail(self, name, n=5):
        with contextlib.suppress(OSError):
            lines = (self.dir / f"{name}.out").read_text(errors="replace").splitlines()
            return "\n".join(lines[-n:])
        return ""

    def wait_port(self, port, process, wait_s=10):
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            if process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                return
            time.sleep(0.03)
        name = pathlib.Path(str(process.args[0])).name
        raise Failed(f"{name} does not answer on port {port}: {self.tail(name)}")
