"""The command of alerts, as a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_tfgrpo.patterns.jobs.alerts import AlertCommand


def call(folder: Path, code: str, timeout_s: float = 10.0) -> str:
    return AlertCommand([sys.executable, "-c", code], folder, timeout_s)(b'{"job": "x"}\n')


def test_it_gets_the_alert_in_its_folder(tmp_path: Path) -> None:
    code = "import sys; open('got', 'w').write(sys.stdin.read())"
    assert call(tmp_path, code) == ""
    assert (tmp_path / "got").read_text() == '{"job": "x"}\n'


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('no mail: ' + 'x' * 9000 + ' end')", "it ended with code 1: x"),
        ("import os; os.kill(os.getpid(), 9)", "it ended with code -9"),
        ("import sys; sys.stdin.close(); print('x' * 10**6)", ""),
    ],
)
def test_its_end_is_said(tmp_path: Path, code: str, said: str) -> None:
    found = call(tmp_path, code)
    assert found.startswith(said)
    assert bool(found) == bool(said)
    assert len(found) < 400


def test_it_has_so_long_and_its_children_too(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    assert call(tmp_path, code, 0.5) == "it took longer than 0.5 s, and was ended"


def test_one_that_does_not_start_is_said(tmp_path: Path) -> None:
    assert AlertCommand(["/no/such/program"], tmp_path)(b"").startswith("it does not start: ")
    assert AlertCommand(["a\0b"], tmp_path)(b"").startswith("it does not start: ")
