# SPDX-License-Identifier: MIT
"""Each scenario of bench/culprits: the first finding names the culprit.

Nine runs of ten must be right (make bench-culprits counts them), so one that is wrong is run once
more here, and two wrong ones in a row are a failure.
"""

import json
import subprocess

import pytest

import scenarios
from lab import ROOT


def run(folder, *names):
    out = folder / "results.json"
    done = subprocess.run([ROOT / "bench/culprits/run", *names, "-d", "4", "--json", out],
                          capture_output=True, text=True, check=False, timeout=300,
                          start_new_session=True)
    assert out.exists(), done.stdout + done.stderr
    return {r["scenario"]: r for r in json.loads(out.read_text())}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All in one go, so that a failure of one does not hide the others."""
    return run(tmp_path_factory.mktemp("scenarios"))


@pytest.mark.parametrize("name", scenarios.ALL)
def test_culprit(results, name, tmp_path):
    result = results[name]
    if result.get("skip"):
        pytest.skip(result["skip"])
    if not result["right"]:
        again = run(tmp_path, name)[name]
        assert again["right"], "; ".join([*result["wrong"], "and again", *again["wrong"]])


def test_cleaned_up(results):
    """Nothing of the labs is left behind."""
    left = subprocess.run("ls -d /sys/fs/cgroup/*/lp-culprits-* /sys/fs/cgroup/lp-culprits-* "
                          "/dev/shm/lp-* /var/tmp/lp-culprits-* 2>/dev/null", shell=True,
                          capture_output=True, text=True, check=False)
    of_scenarios = [line for line in left.stdout.splitlines()
                    if any(line.endswith("-" + n) or f"lp-{n}-" in line for n in scenarios.ALL)]
    assert results and not of_scenarios
