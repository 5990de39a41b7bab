"""A command's JUnit XML is its report; what is no such file, or lacks our tests, is none."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.runners.command_runner import CODE, run

from pytest_tfgrpo.scoring.runners.command import run_command
from pytest_tfgrpo.scoring.runners.protocol import RunProblem, SuiteCommand, SuiteRequest

WITH_TESTS = (sys.executable, "run.py", "{report}", "{tests}")


def test_a_command_is_read_from_its_junit_xml(tmp_path: Path) -> None:
    found = run(tmp_path, WITH_TESTS)
    assert found.problem is None, found.detail
    assert found.outcomes == {
        "test_cart.py::C::test_adds": "passed",
        "test_cart.py::C::test_discount": "failed",
    }
    assert found.messages == {"test_cart.py::C::test_discount": "AssertionError: 100 != 90"}


@pytest.mark.parametrize(
    ("cheat", "problem"),
    [
        ("import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n", RunProblem.TAMPERED),
        (
            "import sys, os\nopen(sys.argv[1], 'w').write('<testsuites><testcase file=\"test_cart.py\" "
            'name="test_discount"/></testsuites>\')\nos._exit(0)\n',
            RunProblem.TAMPERED,
        ),
        ("import os\nprint('2 passed')\nos._exit(0)\n", RunProblem.NO_REPORT),
        ("import os, sys\nos.symlink('/etc/passwd', sys.argv[1])\nos._exit(0)\n", RunProblem.TAMPERED),
        ("import os, sys\nos.mkfifo(sys.argv[1])\nos._exit(0)\n", RunProblem.TAMPERED),
        ("import os, sys\nopen(sys.argv[1], 'w').write('PASS')\nos._exit(0)\n", RunProblem.NO_REPORT),
    ],
    ids=["patched", "forged", "left", "link", "pipe", "no-xml"],
)
def test_a_command_whose_tests_were_tampered_with_gives_nothing(
    cheat: str, problem: RunProblem, tmp_path: Path
) -> None:
    found = run(tmp_path, WITH_TESTS, cart=cheat + CODE)
    assert found.problem is problem
    assert not found.outcomes


def test_a_command_without_report_program_or_time_says_so(tmp_path: Path) -> None:
    assert run(tmp_path, ("true",)).problem is RunProblem.NO_REPORT
    missing = run(tmp_path, ("no-such-program", "{report}"))
    assert missing.problem is RunProblem.NO_RUNNER
    assert "'no-such-program'" in missing.detail
    assert run(tmp_path, ()).problem is RunProblem.NO_RUNNER
    assert run(tmp_path, ("sleep", "60"), timeout_s=0.5).problem is RunProblem.TIMEOUT


def test_a_program_of_the_tree_shows_its_tests_nothing_of_the_machine(tmp_path: Path) -> None:
    other = tmp_path / "other" / "bin"
    other.mkdir(parents=True)
    (other / "sh").write_text("#!/bin/sh\necho it was shown\n")
    (other / "sh").chmod(0o755)
    tree = tmp_path / "tree"
    tree.mkdir()
    program = tree / "run.sh"
    program.write_text(f"#!{other / 'sh'}\n")
    program.chmod(0o755)
    request = SuiteRequest(
        tree=tree,
        command=SuiteCommand(runner="command", run=("./run.sh", "{report}")),
        files=(),
        timeout_s=60.0,
    )
    shown = run_command(request)
    assert (shown.problem, "it was shown" in shown.detail) == (RunProblem.NO_REPORT, False)
    assert "it was shown" in run_command(replace(request, isolation="none")).detail
    program.unlink()
    program.symlink_to("run.sh")
    assert run_command(request).problem is RunProblem.NO_REPORT


LOCKED_TWICE = """
import fcntl, os, unittest

class Cart(unittest.TestCase):
    def test_locks(self):
        both = [open(os.__file__) for _ in range(2)]
        for file in both:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
"""


def test_locks_of_files_have_no_effect_in_a_command(tmp_path: Path) -> None:
    """By them two runs of the same tests, one of them with other expected values, could meet."""
    found = run(tmp_path, WITH_TESTS, test_cart=LOCKED_TWICE)
    assert found.outcomes == {"test_cart.py::C::test_locks": "passed"}, found.messages


def test_a_report_without_tests_is_none(tmp_path: Path) -> None:
    found = run(tmp_path, ("sh", "-c", 'echo "<testsuites/>" > "$1"', "sh", "{report}"))
    assert found.problem is RunProblem.NOTHING_COLLECTED
