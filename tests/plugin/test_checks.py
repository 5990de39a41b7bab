"""Every kind of check judges what an agent did, in a scenario file that pytest collects."""

import json
from typing import Any

import pytest
from support.project import Project

from pytest_tfgrpo.core.stamp import stamp_bytes
from pytest_tfgrpo.harness.sandbox.archives import ArchiveEntry, pack
from pytest_tfgrpo.harness.scoring.checks.registry import KINDS

AGENT2 = """
def solve(context):
    good = context.scenario.domain == "good"
    (context.workspace / "out.txt").write_text("total 3\\n" if good else "total 4\\n")
    frames = [{"kind": "tool", "name": "count" if good else "guess", "input": {"n": 3}}]
    right = "so it is $1 + 2$" if context.prompt.user == "math" else '{"n": 3}'
    return {"answer": right if good else "four", "frames": frames if good else 2 * frames}
"""

JUDGES = "def judge(context):\n    return 1.0 if '3' in context.answer else (0.0, 'no 3')\n"

CHECKS = {
    "exact": {"value": '{"n": 3}'},
    "contains": {"value": '"n"'},
    "regex": {"pattern": r"\d"},
    "number": {"value": 3.0001, "abs_tol": 0.001},
    "math": {"value": "6/2"},
    "json": {"value": {"n": 3}},
    "json_schema": {"schema": {"type": "object", "required": ["n"]}},
    "tool_calls": {"calls": [{"name": "count", "arguments": {"n": 3}}]},
    "file": {"path": "out.txt", "pattern": "total 3"},
    "command": {"run": "grep -q 3 out.txt"},
    "limits": {"steps": 1},
    "similar": {"value": '{"n": 4}', "min": 0.8},
    "python": {"target": "judges:judge"},
    "tests": {
        "runner": "pytest",
        "hidden": "hidden.tar.gz",
        "fail_to_pass": ["tests/test_out.py::test_out"],
    },
}
STARTING = {"command", "math", "tests"}
"""Kinds whose check is a program."""
HIDDEN = b"def test_out():\n    with open('out.txt') as file:\n        assert file.read() == 'total 3\\n'\n"


def test_each_kind_has_its_example_here() -> None:
    assert CHECKS.keys() == KINDS.keys()


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


def test_the_score_is_the_weighted_share_of_the_checks(project: Project) -> None:
    checks = [{"kind": "exact", "value": "3"}, {"kind": "contains", "value": "nothing", "weight": 3}]
    project.scenarios(train=0, sweep=1, checks=checks, min_score=0.25).run().assert_outcomes(passed=1)
    result = project.scenarios(train=0, sweep=1, checks=checks, min_score=0.26).run()
    result.stdout.fnmatch_lines(["suite-eval0: gt_score 0.250, at least 0.26 required"])


def test_files_beside_a_scenario_are_there_for_the_agent_and_for_its_checks(project: Project) -> None:
    project.agent(
        "def solve(context):\n"
        "    text = (context.workspace / 'data/in.txt').read_text()\n"
        "    (context.workspace / 'out.txt').write_text(text.upper())\n"
        "    return 'done'\n"
    )
    project.write("data/in.txt", "abc\n").write("golden.txt", "ABC\n")
    check = {"kind": "file", "path": "out.txt", "golden": "golden.txt"}
    project.scenarios(train=0, sweep=1, attachments=["data/in.txt"], checks=[check])
    project.ini(actor="python:agent2:solve").run().assert_outcomes(passed=1)
    project.write("golden.txt", "ABD\n").run().assert_outcomes(failed=1)


def test_a_csv_file_of_prompts_and_answers_is_a_suite(project: Project) -> None:
    rows = "".join(f"How many are {n}?,{3 if n else 4},text,eval\n" for n in range(3))
    project.write("simple.scenarios.csv", "prompt,answer,domain,split\n" + rows)
    project.run().assert_outcomes(passed=2, failed=1)
