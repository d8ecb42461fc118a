# SPDX-License-Identifier: MIT
"""longpole why: what it refuses, and that a refusal records and leaves nothing."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGPOLE = os.environ.get("LONGPOLE", str(ROOT / "build/longpole"))


def run(*words, **kwargs):
    return subprocess.run([LONGPOLE, "why", *words], capture_output=True, text=True, timeout=60,
                          check=False, **kwargs)


@pytest.mark.parametrize("words, wrong", [
    (["a.lp", "b.lp"], "'b.lp'"),
    (["a.lp", "-d", "2s"], "--duration"),
    (["a.lp", "-o", "x.lp"], "--output"),
    (["a.lp", "--", "true"], "'a.lp'"),
    (["a.lp", "--begin", "noon"], "'noon'"),
    (["a.lp", "--end", "24:00:00"], "'24:00:00'"),
    (["a.lp", "--begin", "2s", "--end", "1s"], "'1s'"),
    (["a.lp", "--percentile", "100"], "'100'"),
    (["a.lp", "--percentile", "0"], "'0'"),
    (["a.lp", "--percentile", "x"], "'x'"),
    (["a.lp", "--pid", "99999999999"], "'99999999999'"),
    (["a.lp", "--pid", "me"], "'me'"),
    (["a.lp", "--top", "0"], "'0'"),
    (["a.lp", "--top", "5000"], "'5000'"),
    (["a.lp", "--slower", "soon"], "'soon'"),
    (["--frob"], "'--frob'"),
    (["--"], "'--'"),
])
def test_wrong_usage_names_the_word(words, wrong):
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert wrong in done.stderr
    assert "longpole why --help" in done.stderr


def test_no_such_recording(tmp_path):
    done = run(str(tmp_path / "none.lp"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "none.lp" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_not_a_recording(tmp_path):
    (tmp_path / "x.lp").mkdir()
    done = run("--json", str(tmp_path / "x.lp"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "x.lp" in done.stderr


def test_nothing_is_left_in_tmpdir_when_the_command_is_missing(tmp_path):
    done = run("--", "/no/such/program", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 1
    assert not list(tmp_path.iterdir())


def test_tmpdir_that_is_not_there(tmp_path):
    done = run("-d", "1s", env={**os.environ, "TMPDIR": str(tmp_path / "gone")})
    assert done.returncode == 1
    assert "gone" in done.stderr
