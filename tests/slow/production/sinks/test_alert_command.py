"""The command of alerts as a process: one that works, hangs, fails, or is not there."""

import json
import resource
import sys
import time
from pathlib import Path

import pytest

from pytest_tfgrpo.production.sinks.alerts.command import CommandProcess

DATA = json.dumps({"summary": "x" * 200_000}).encode()


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_command_gets_the_alert_on_its_standard_input_in_its_folder(tmp_path: Path) -> None:
    run = CommandProcess(tmp_path, {"WHO": "me"})
    command = python("import os, sys; open('got', 'w').write(os.environ['WHO'] + sys.stdin.read())")
    assert run(command, DATA) == ""
    assert (tmp_path / "got").read_bytes() == b"me" + DATA


@pytest.mark.parametrize("reads", ["", "sys.stdin.read(); "])
def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path, reads: str) -> None:
    child = "import time; time.sleep(1.5); open('late', 'w')"
    starts = f"subprocess.Popen([sys.executable, '-c', {child!r}])"
    text = f"import subprocess, sys, time; {reads}{starts}; time.sleep(60)"
    began = time.monotonic()
    said = CommandProcess(tmp_path, {}, timeout_s=0.7)(python(text), DATA)
    assert said == "it took longer than 0.7 s, and was ended"
    assert time.monotonic() - began < 30.0
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    run = CommandProcess(tmp_path, {})
    said = run(python("import sys; print('no such pager', file=sys.stderr); sys.exit(3)"), DATA)
    assert said == "it ended with code 3: no such pager"
    assert (
        run(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), DATA)
        == "it ended with code -9"
    )


@pytest.mark.parametrize("command", [["./there-is-none"], ["/"], ["a\0b"]])
def test_a_command_that_cannot_start_is_a_failure(tmp_path: Path, command: list[str]) -> None:
    assert CommandProcess(tmp_path, {})(command, DATA).startswith("it does not start: ")


def test_a_command_that_reads_nothing_and_ends_well_is_one_that_worked(tmp_path: Path) -> None:
    assert CommandProcess(tmp_path, {})(python("pass"), DATA) == ""


def test_a_command_that_floods_its_errors_fills_no_disk_and_no_memory(tmp_path: Path) -> None:
    began = resource.getrusage(resource.RUSAGE_SELF).ru_oublock
    text = "import os\nwhile True: os.write(2, b'x' * 65536 + b'the end')"
    said = CommandProcess(tmp_path, {}, timeout_s=1.0)(python(text), DATA)
    assert said == "it took longer than 1 s, and was ended"
    text = "import os\nfor _ in range(999): os.write(2, b'x' * 65536)\nos.write(2, b'the end'); os._exit(1)"
    said = CommandProcess(tmp_path, {}, timeout_s=100.0)(python(text), DATA)
    assert said.endswith("xthe end")
    assert len(said) < 400
    assert resource.getrusage(resource.RUSAGE_SELF).ru_oublock - began < 2000


def test_a_child_that_goes_on_holds_up_nothing(tmp_path: Path) -> None:
    text = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])"
    assert CommandProcess(tmp_path, {}, timeout_s=25.0)(python(text), DATA) == ""
