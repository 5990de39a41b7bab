"""Every kind of check judges what an agent did, in a scenario file that pytest collects."""

import json
from typing import Any

import pytest
from support.plugin.checks import CHECKS
from support.project import Project

from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack

AGENT2 = """
def solve(context):
    good = context.scenario.domain == "good"
    (context.workspace / "out.txt").write_text("total 3\\n" if good else "total 4\\n")
    frames = [{"kind": "tool", "name": "count" if good else "guess", "input": {"n": 3}}]
    right = "so it is $1 + 2$" if context.prompt.user == "math" else '{"n": 3}'
    return {"answer": right if good else "four", "frames": frames if good else 2 * frames}
"""

JUDGES = "def judge(context):\n    return 1.0 if '3' in context.answer else (0.0, 'no 3')\n"
STARTING = {"command", "math", "tests"}
"""Kinds whose check is a program."""
HIDDEN = b"def test_out():\n    with open('out.txt') as file:\n        assert file.read() == 'total 3\\n'\n"


def write_archives(project: Project) -> str:
    """Write the archives of the kind tests; return the digest of the workspace's."""
    base = pack([ArchiveEntry(name="README.md", data=b"Write out.txt.")])
    (project.root / "base.tar.gz").write_bytes(base)
    (project.root / "hidden.tar.gz").write_bytes(pack([ArchiveEntry(name="tests/test_out.py", data=HIDDEN)]))
    return stamp_bytes(base)


def pair(kind: str, project: Project) -> list[dict[str, Any]]:
    """Return two scenarios of a kind of check, of which the agent solves the first."""
    one: dict[str, Any] = {"split": "eval", "prompt": kind, "checks": [{"kind": kind} | CHECKS[kind]]}
    if kind == "tests":
        one["workspace"] = {"archive": "base.tar.gz", "sha256": write_archives(project)}
    return [one | {"id": f"{name}-{kind}", "domain": name} for name in ("good", "bad")]


@pytest.mark.parametrize("kinds", [CHECKS.keys() - STARTING, STARTING])
def test_each_check_passes_what_is_right_and_fails_what_is_wrong(project: Project, kinds: set[str]) -> None:
    scenarios = [one for kind in sorted(kinds) for one in pair(kind, project)]
    project.agent(AGENT2).write("judges.py", JUDGES)
    project.write("suite.scenario.json", json.dumps(scenarios))
    project.ini(actor="python:agent2:solve", check_sandbox="none")
    result = project.run("-rpf", "-o", "pythonpath=.")
    result.assert_outcomes(passed=len(kinds), failed=len(kinds))
    for kind in kinds:
        result.stdout.fnmatch_lines(
            [
                f"  {kind} failed*",
                f"PASSED suite.scenario.json::good-{kind}",
                f"FAILED suite.scenario.json::bad-{kind}*",
            ]
        )
