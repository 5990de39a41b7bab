"""What the tests of scoring/runners/test_command_runner.py share with the slow ones."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand, SuiteRequest, SuiteRun
from pytest_tfgrpo.scoring.runners.registry import run_suite
from support.tools import require_tool

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
