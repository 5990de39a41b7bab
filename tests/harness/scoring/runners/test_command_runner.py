"""A command's JUnit XML is its report; what is no such file, or lacks our tests, is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.tools import require_tool

from pytest_tfgrpo.harness.scoring.runners.command import command_line
from pytest_tfgrpo.harness.scoring.runners.protocol import RunProblem, SuiteCommand, SuiteRequest, SuiteRun
from pytest_tfgrpo.harness.scoring.runners.registry import run_suite

RUNNER = """
import sys, unittest
from xml.sax.saxutils import quoteattr

report, *files = sys.argv[1:]
lines = []
for file in files:
    module = file[:-3].replace("/", ".")
    result = unittest.TestResult()
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    cases = [case for group in suite for case in group]
    suite.run(result)
    wrong = {case.id(): text for case, text in result.failures + result.errors}
    for case in cases:
        why = wrong.get(case.id())
        end = "" if why is None else f"<failure message={quoteattr(why.splitlines()[-1])}/>"
        lines.append(f'<testcase file="{file}" classname="C" name="{case._testMethodName}">{end}</testcase>')
with open(report, "w") as out:
    out.write(f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>")
"""
TESTS = """
import unittest
from cart import total

class Cart(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(total([2, 3]), 5)

    def test_discount(self):
        self.assertEqual(total([100]), 90)
"""
CODE = "total = sum\n"
WITH_TESTS = (sys.executable, "run.py", "{report}", "{tests}")


def run(tree: Path, command: tuple[str, ...], timeout_s: float = 100.0, **files: str) -> SuiteRun:
    require_tool("bwrap")
    named = {"run.py": RUNNER, "test_cart.py": TESTS, "cart.py": CODE}
    for name, text in named.items():
        (tree / name).write_text(files.get(name.removesuffix(".py"), text), encoding="utf-8")
    request = SuiteRequest(
        tree=tree,
        command=SuiteCommand(runner="command", run=command),
        files=("test_cart.py",),
        timeout_s=timeout_s,
    )
    return run_suite(request)


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


def test_a_report_without_tests_is_none(tmp_path: Path) -> None:
    found = run(tmp_path, ("sh", "-c", 'echo "<testsuites/>" > "$1"', "sh", "{report}"))
    assert found.problem is RunProblem.NOTHING_COLLECTED


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        (".", ["run", "/r/report.xml", "web/a.js", "lib/b.js"]),
        ("web", ["run", "/r/report.xml", "a.js", "../lib/b.js"]),
        ("web/x", ["run", "/r/report.xml", "../a.js", "../../lib/b.js"]),
    ],
)
def test_files_are_named_as_seen_from_the_folder(folder: str, words: list[str]) -> None:
    run = ("run", "{report}", "{tests}")
    assert command_line(run, Path("/r/report.xml"), ("web/a.js", "lib/b.js"), folder) == words


def test_a_file_that_begins_with_a_dash_is_no_option() -> None:
    run = ("run", "--out={report}", "{tests}")
    assert command_line(run, Path("/r"), ("--help.js",), ".") == ["run", "--out=/r", "./--help.js"]
