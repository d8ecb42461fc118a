# SPDX-License-Identifier: MIT
"""Live tests: real eBPF, real servers, cgroups of their own.  They need root and BTF."""

import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "culprits"))

import lab as lab_module  # noqa: E402
import recorder  # noqa: E402


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What a lab cannot find on this machine is a skip with its reason, not an error."""
    if call.excinfo and call.excinfo.errisinstance(lab_module.Skip):
        try:
            pytest.skip(str(call.excinfo.value))
        except pytest.skip.Exception:
            call.excinfo = pytest.ExceptionInfo.from_current()
    yield


@pytest.fixture(scope="session", autouse=True)
def machine():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("this kernel has no BTF")
    assert lab_module.LONGPOLE.exists(), "build/longpole is not built"
    lab_module.build_tools()


@pytest.fixture
def lab(request):
    name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))[:32].strip("-")
    with lab_module.Lab(name) as made:
        yield made


class Why:
    """`with Why(lab, seconds) as why: ...load...`, and then why.json is the answer."""

    def __init__(self, lab, seconds, *options):
        self.lab, self.seconds, self.options = lab, seconds, options
        self.json = None

    def __enter__(self):
        self.process = recorder.start_longpole(self.lab, self.seconds, options=self.options)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.json = recorder.read_why(self.lab, self.process)

    @property
    def recording(self):
        return self.lab.dir / recorder.FOLDER

    def group(self, name):
        found = [g for g in self.json["groups"] if g["name"] == name]
        names = [(g["name"], g["count"]) for g in self.json["groups"]]
        assert len(found) == 1, f"no group '{name}', but {names}"
        return found[0]


@pytest.fixture
def why(lab):
    return lambda seconds, *options: Why(lab, seconds, *options)
