# SPDX-License-Identifier: MIT
"""The command line itself: help, wrong words, exit statuses, completion, man pages."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGPOLE = os.environ.get("LONGPOLE", str(ROOT / "build/longpole"))


def run(*words, **kwargs):
    return subprocess.run([LONGPOLE, *words], capture_output=True, text=True, timeout=60,
                          check=False, **kwargs)


def commands():
    """The commands that help lists, besides help itself."""
    text = run("help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in text.splitlines() if line.split()[0] != "help"]


def options(command):
    """{long name: its argument or None} from the command's help."""
    text = run(command, "--help").stdout.split("Options:\n")[1].split("\nExamples:")[0]
    return dict(re.findall(r"^  (?:-\w,|   ) --([\w-]+)(?: (\S+))?", text, re.M))


def test_help_is_data_and_fine():
    for words in (["help"], ["--help"], ["-h"]):
        done = run(*words)
        assert done.returncode == 0
        assert done.stdout.startswith("Usage: longpole")
        assert done.stderr == ""


def test_version():
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"longpole \d+\.\d+\.\d+\n", done.stdout)


def test_no_command_is_wrong_usage():
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "longpole help" in done.stderr


@pytest.mark.parametrize("words, wrong", [
    (["frobnicate"], "'frobnicate'"),
    (["--frobnicate"], "'--frobnicate'"),
    (["help", "frobnicate"], "'frobnicate'"),
    (["completion"], "completion"),
    (["completion", "tcsh"], "'tcsh'"),
    (["completion", "bash", "zsh"], "'zsh'"),
    (["completion", "--frob=1", "bash"], "'--frob'"),
    (["completion", "-q", "bash"], "'-q'"),
    (["completion", "-vq", "bash"], "'-q'"),
    (["completion", "--verbose=3", "bash"], "'3'"),
    (["completion", "--verb", "bash"], "'--verb'"),
    (["completion", "bash", "--", "ls"], "'--'"),
    (["record", "-d", "0"], "'0'"),
    (["why", "-d", "0ms"], "'0ms'"),
    (["man-options", "frobnicate", "name"], "'frobnicate'"),
    (["man-options", "completion", "frob"], "'frob'"),
])
def test_wrong_words_are_named(words, wrong):
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert wrong in done.stderr


BAD = {"TIME": "5parsecs", "T": "5parsecs", "PID": "0x7", "N": "-3", "P": "101", "SIZE": "8Q"}


def test_wrong_values_are_named():
    for command in commands():
        for name, arg in options(command).items():
            if arg not in BAD:
                continue
            for words in ([f"--{name}={BAD[arg]}"], [f"--{name}", BAD[arg]]):
                done = run(command, *words)
                assert done.returncode == 2, (command, name)
                assert f"'{BAD[arg]}'" in done.stderr and f"--{name}" in done.stderr


def test_values_that_are_missing_are_named():
    for command in commands():
        for name, arg in options(command).items():
            if arg:
                done = run(command, f"--{name}")
                assert done.returncode == 2
                assert f"--{name} needs a value, {arg}" in done.stderr


def test_every_command_has_help():
    for command in commands():
        done = run(command, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Usage: longpole {command}")
        assert "Examples:" in done.stdout
        assert done.stdout == run("help", command).stdout
        assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_full_disk_is_a_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([LONGPOLE, "help"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr


def test_files_do_not_take_the_place_of_closed_ones():
    """Messages would be written into whatever is opened next."""
    done = subprocess.run(["sh", "-c", 'exec "$0" info "$1" <&- 2>&-', LONGPOLE, "/none"],
                          stdout=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    done = subprocess.run(["sh", "-c", 'exec "$0" help >&-', LONGPOLE], timeout=60, check=False,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


def test_reader_that_goes_away_is_no_message():
    done = subprocess.run(["bash", "-c", 'for i in {1..50}; do "$0" help; done | head -n 1',
                           LONGPOLE], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


def completed(line, cwd):
    """What bash offers at the end of line."""
    words = line.split(" ")
    script = (f'source <("{LONGPOLE}" completion bash)\n'
              f'COMP_WORDS=({" ".join(repr(w) for w in words)}) COMP_CWORD={len(words) - 1}\n'
              '_longpole\nprintf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                          cwd=cwd, check=False)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completion(tmp_path):
    (tmp_path / "web.lp").mkdir()
    assert set(completed("longpole ", tmp_path)) == {*commands(), "help", "--version", "--help"}
    assert "help" in completed("longpole he", tmp_path)
    for command in commands():
        offered = completed(f"longpole {command} --", tmp_path)
        assert set(offered) == {f"--{name}" for name in options(command)}
        assert completed(f"longpole {command} we", tmp_path) == ["web.lp"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_parse_and_hold_every_option(shell):
    script = run("completion", shell).stdout
    for command in commands():
        assert re.search(rf"\b{command}\b", script)
        for name in options(command):
            assert name in script
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: its script was not parsed")
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def man_page(command, tmp_path):
    name = "longpole.1" if command is None else f"longpole-{command}.1"
    source = ROOT / "docs/man" / (name + ".in")
    assert source.exists(), f"no man page for {command}"
    page = tmp_path / name
    page.write_bytes(subprocess.run([ROOT / "tools/make-man", LONGPOLE, source],
                                    capture_output=True, timeout=60, check=True).stdout)
    return page


def test_man_pages_hold_every_option(tmp_path):
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    env = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    for command in [None, *commands()]:
        page = man_page(command, tmp_path)
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                              env=env, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), command
        if command is None:
            assert all(f"longpole-{c}(1)" in done.stdout for c in commands())
            continue
        for name in options(command):
            assert f"--{name}" in done.stdout
        for section in ("NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
            assert f"\n{section}\n" in "\n" + done.stdout, (command, section)
