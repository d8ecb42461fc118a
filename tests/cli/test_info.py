# SPDX-License-Identifier: MIT
"""longpole info on recordings written by hand (docs/format/recording.md)."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGPOLE = os.environ.get("LONGPOLE", str(ROOT / "build/longpole"))
UUID = bytes(range(1, 17))
METADATA = """/* CTF 1.8 */
trace { uuid = "01020304-0506-0708-090a-0b0c0d0e0f10"; };
env { tracer_name = "longpole"; tracer_major = %d; };
"""
SWITCH, LOST = 1, 11


def info(*words, **kwargs):
    return subprocess.run([LONGPOLE, "info", *map(str, words)], capture_output=True, text=True,
                          timeout=60, check=False, **kwargs)


def record(kind, ts, body):
    body += bytes(-len(body) % 8)
    return struct.pack("<QHHI", ts, kind, 0, 16 + len(body)) + body


def switch(ts, prev, following):
    return record(SWITCH, ts, struct.pack("<IIII", prev, prev, following, following) + bytes(80))


def lost(ts, since, count):
    return record(LOST, ts, struct.pack("<QQII", since, count, 0, 0))


def packet(begin, end, records, seq=0):
    content = b"".join(records)
    bits = (80 + len(content)) * 8
    return struct.pack("<I16sIQQQQQQII", 0xC1FC1FC1, UUID, 0, begin, end, bits, bits, seq, 0, 0,
                       0) + content


@pytest.fixture(name="recording")
def fixture_recording(tmp_path):
    """A function that writes a recording of these packets."""
    def write(*packets, complete=True, version=1, host=None, more=None):
        top = tmp_path / "a.lp"
        (top / "kernel").mkdir(parents=True)
        (top / "kernel" / "metadata").write_text(METADATA % version)
        (top / "kernel" / "stream_0").write_bytes(b"".join(packets))
        (top / "host.json").write_text(host if host is not None else json.dumps({
            "format": "longpole.recording/1", "host": "web1", "boot_id": "b", "kernel": "6.1",
            "start_ns": "1000", "end_ns": "9000", "complete": complete, "cpus": 1,
            "clocks": [{"monotonic": "1000", "realtime": "1700000000000000123",
                        "boottime": "1000"}],
            "lost": {"records": 0, "by_reason": {}}} | (more or {})))
        return top
    return write


def three_switches():
    return packet(2000, 4000, [switch(2000, 0, 7), switch(3000, 7, 0), switch(4000, 0, 7)])


def test_whole(recording):
    top = recording(three_switches())
    result = info("--json", top)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["schema"] == "longpole.info/1"
    assert answer["records"]["switch"] == 3
    assert set(answer["records"]) == {"switch", "migrate", "thread", "cgroup", "socket", "recv",
                                      "request", "send", "close", "block", "lost", "steal"}
    assert answer["lost"] == {"records": 0, "by_reason": {}}
    assert answer["hosts"][0]["name"] == "web1"
    assert answer["hosts"][0]["threads"] == 1
    assert answer["window"] == {"start_ns": 1700000000000000123, "start": "1700000000000000123",
                                "duration_ns": 8000}
    assert answer["complete"] is True and answer["damage"] == ""
    text = info(top)  # from the history that is there now
    assert text.returncode == 0
    assert "web1, 1 CPUs" in text.stdout and "3 records" in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 80


def test_losses_and_status(recording):
    top = recording(packet(2000, 5000, [switch(2000, 0, 7), lost(5000, 2500, 42)]))
    for _ in range(2):  # read, then from the history
        result = info("--json", top)
        assert result.returncode == 3
        assert json.loads(result.stdout)["lost"] == {"records": 42,
                                                     "by_reason": {"ring-full": 42}}
    assert "42 records: 42 ring-full" in info(top).stdout


def test_killed_recorder(recording):
    """The last packet is cut: what is before it counts, and that is no damage."""
    top = recording(three_switches(), three_switches()[:100], complete=False)
    result = info("--json", top)
    answer = json.loads(result.stdout)
    assert result.returncode == 3
    assert answer["records"]["switch"] == 3
    assert answer["damage"] == "" and answer["complete"] is False


def test_damage(recording):
    top = recording(three_switches(), three_switches()[:100])
    result = info("--json", top)
    assert result.returncode == 3
    assert json.loads(result.stdout)["damage"].endswith(
        "kernel/stream_0: offset 416: the packet is cut short")


@pytest.mark.parametrize("what, words", [
    ({"version": 9}, "records of version 9"),
    ({"host": "{"}, "host.json: offset"),
    ({"host": "{}"}, "host.json: format ''"),
])
def test_refused(recording, what, words):
    result = info(recording(three_switches(), **what))
    assert result.returncode == 1
    assert result.stdout == ""
    assert words in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("more", [
    {"start_ns": "9223372036854775807"}, {"end_ns": "9223372036854775807"}, {"end_ns": "999"},
    {"end_ns": "-9223372036854775808"}, {"start_ns": 1e30}, {"start_ns": None},
    {"clocks": [{}]}, {"clocks": [{"monotonic": "5", "realtime": "-9223372036854775808"}]},
    {"clocks": [{"monotonic": "5", "realtime": "5"}, {"monotonic": "4", "realtime": "6"}]}])
def test_impossible_times(recording, more):
    result = info(recording(three_switches(), more=more))
    assert result.returncode == 1 and result.stdout == ""
    assert "host.json: " in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("more", [
    {"lost": {"records": -1, "by_reason": [1, 2]}}, {"clocks": 7}, {"cpus": -1e30},
    {"host": None, "kernel": []}, {"command": {"argv": [1, None]}}, {"disks": [None, 1, {}]},
    {"lost": [], "recorder": {"cpu_pct": "x"}, "cgroup_mounts": "x", "report": 1}])
def test_fields_of_another_kind(recording, more):
    """They count as missing."""
    result = info("--json", recording(three_switches(), more=more))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["records"]["switch"] == 3


@pytest.mark.parametrize("streams, kept, says", [
    ([{"cpu": 0, "bytes": "416"}], 1, ""),
    ([{"cpu": 0, "bytes": "832"}], 1, "stream_0: offset 416: the file ends too early"),
    ([{"cpu": 0, "bytes": "416"}], 2, "stream_0: offset 832: the file is longer than"),
    ([{"cpu": 0, "bytes": "416"}, {"cpu": 1, "bytes": "9"}], 1,
     "stream_1: offset 0: the file is missing"),
    ([{"cpu": 7, "bytes": "416"}], 0, "stream_0: offset 0: the file is not of this recording"),
])
def test_files_are_as_they_were_written(recording, streams, kept, says):
    """Cut between two packets a file looks whole: only host.json knows."""
    one = three_switches()
    two = packet(5000, 7000, [switch(5000, 7, 0), switch(6000, 0, 7), switch(7000, 7, 0)], 1)
    top = recording(one, *[two] * (kept > 1), more={"streams": streams})
    for _ in range(2):  # read, then from the history
        result = info("--json", top)
        answer = json.loads(result.stdout)
        assert says in answer["damage"] and bool(says) == bool(answer["damage"])
        assert result.returncode == (3 if says else 0)
        assert answer["records"]["switch"] == 3 * kept


@pytest.mark.parametrize("name", ["host.json", "kernel/metadata", "kernel/stream_0"])
def test_no_file_is_waited_for(recording, name):
    top = recording(three_switches())
    (top / name).unlink()
    os.mkfifo(top / name)
    result = info(top)
    assert result.returncode == 1
    assert result.stderr.endswith(f"{name}: not a file\n") and not result.stdout


def test_names_do_not_command_the_terminal(recording, tmp_path):
    evil = "\x1b[2J\r\n\x9b"
    result = info(recording(three_switches(), more={
        "host": evil, "kernel": evil, "command": {"argv": [evil], "pid": 1}}))
    assert result.returncode == 0
    assert "host      \\x1b[2J\\x0d\\x0a\\xc2\\x9b, 1 CPUs" in result.stdout
    assert not set(result.stdout) & set("\x1b\r\x9b")
    result = info(tmp_path / evil)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1 and "\x1b" not in result.stderr


def test_no_recording(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        result = info(path)
        assert result.returncode == 1
        assert str(path) in result.stderr and len(result.stderr.splitlines()) == 1
    assert info().returncode == 2


def test_history_of_another_version(recording):
    top = recording(three_switches())
    for bad in (b"", b"lphist\x1a\n\x63" + bytes(200), os.urandom(5000)):
        (top / "history").write_bytes(bad)
        result = info("--json", top)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["records"]["switch"] == 3


def test_two_at_once(recording):
    """Both build; neither sees half of the other's, and nothing is left over."""
    top = recording(*[packet(2000 + 1000 * i, 2999 + 1000 * i,
                             [switch(2000 + 1000 * i + j, 7 * (j % 2), 7 - 7 * (j % 2))
                              for j in range(1000)], i) for i in range(200)])
    runs = [subprocess.Popen([LONGPOLE, "info", "--json", str(top)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for one in runs:
        out, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
        assert json.loads(out)["records"]["switch"] == 200000
    assert sorted(p.name for p in top.iterdir()) == ["history", "host.json", "kernel"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_folder_that_cannot_be_written(recording):
    with tempfile.TemporaryDirectory(dir="/tmp") as open_to_all:
        top = pathlib.Path(open_to_all) / "a.lp"
        program = pathlib.Path(open_to_all) / "longpole"
        shutil.copytree(recording(three_switches()), top)
        shutil.copy(LONGPOLE, program)
        for path in [top.parent, top, *top.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        result = subprocess.run([program, "info", "--json", top], capture_output=True, text=True,
                                timeout=60, check=False, user=65534, group=65534,
                                extra_groups=[], env=dict(os.environ, TMPDIR="/tmp"))
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["records"]["switch"] == 3
        assert not (top / "history").exists()
