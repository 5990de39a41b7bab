"""What pytest, its plugins and JUnit see of an item's report."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from support.builders import make_group, make_rollout, make_scenario
from support.project import Project

from pytest_tfgrpo.core.records import CheckResult, Failure
from pytest_tfgrpo.plugin.items.item_reports import failure_representation
from pytest_tfgrpo.report.rollout import reason

AGENT = """
def solve(context):
    if "crash" in context.prompt.user:
        raise TypeError("two \\x1b[1mwords")
    return "42.0"
"""
SCENARIOS = """
- {id: off, split: eval, domain: d, prompt: How many?, checks: [{kind: number, value: 17}]}
- {id: crashes, split: eval, domain: d, prompt: crash, checks: [{kind: number, value: 42}]}
- {id: fine, split: eval, domain: d, prompt: Please count, checks: [{kind: number, value: 42}]}
"""
CHECKER = """
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_scored(rollout):
    tfgrpo.score(0.3, "expected the number alone")

@pytest.mark.tfgrpo(split="eval", **MARK | {"prompt": "another"})
def test_asserts(rollout):
    assert rollout.answer == "17"

@pytest.mark.tfgrpo(split="eval", **MARK | {"prompt": "crash it"})
def test_without_answer(rollout):
    pass
"""
LINES = [
    "*/x.scenario.yaml:2: number: expected 17, got 42.0",
    "*/x.scenario.yaml:3: crash: TypeError: two words",
    "*/test_agent.py:6: score 0.3 is below 1: expected the number alone",
    "*/test_agent.py:12: *assert '42.0' == '17'",
    "*/test_agent.py:14: crash: TypeError: two words",
]


@pytest.fixture
def failing(project: Project) -> Project:
    project.agent(AGENT).write("x.scenario.yaml", SCENARIOS).checker(CHECKER)
    return project.ini(actor="python:agent2:solve")


def cases(project: Project) -> dict[str, ET.Element]:
    return {str(case.get("name")): case for case in ET.parse(project.root / "j.xml").iter("testcase")}


def test_each_failure_is_one_line_where_pytest_shows_one(failing: Project) -> None:
    result = failing.run("--tb=line")
    result.stdout.fnmatch_lines([*LINES, "FAILED x.scenario.yaml::off - number: expected 17, got 42.0"])
    assert "run it again" not in result.stdout.str()
    names = [line for line in result.outlines if line.startswith("FAILED ")]
    assert len(names) == len(LINES)


def test_all_is_shown_once_and_in_junit_too(failing: Project) -> None:
    result = failing.run("-vv", "--junitxml=j.xml")
    text = result.stdout.str()
    again = [line for line in result.outlines if line.startswith("run it again: ")]
    assert [line.rpartition(" ")[2].strip("'") for line in again] == [
        "x.scenario.yaml::off", "x.scenario.yaml::crashes", "test_agent.py::test_scored[tfgrpo-eval-r0]",
        "test_agent.py::test_asserts[tfgrpo-eval-r0]", "test_agent.py::test_without_answer[tfgrpo-eval-r0]",
    ]  # fmt: skip
    assert text.count("How many words has 'a b c'?\n") == text.count("  another\n") == 1
    found = cases(failing)
    failure = found["off"].find("failure")
    assert failure is not None
    assert failure.get("message") == "number: expected 17, got 42.0"
    assert "run it again: pytest x.scenario.yaml::off" in str(failure.text)


def test_junit_has_the_whole_text_though_the_terminal_shows_none(failing: Project) -> None:
    result = failing.run("--tb=no", "--junitxml=j.xml")
    assert "run it again" not in result.stdout.str()
    texts = [str(failure.text) for case in cases(failing).values() for failure in case.iter("failure")]
    assert [text.count("run it again: ") for text in texts] == [1] * 5


def test_an_item_takes_as_long_as_its_rollouts_and_not_as_pytest_waited(failing: Project) -> None:
    """The first item waits for all of them."""
    failing.conftest("""
def pytest_runtest_logreport(report):
    if report.when == "call":
        took = dict(report.user_properties)["tfgrpo_latency_ms"]
        print("exact", report.nodeid.partition("::")[2][:4], abs(report.duration * 1000 - took) < 1e-9)
""")
    result = failing.run("-s")
    assert result.stdout.str().count("True") == 6


def test_what_a_gate_stands_in_for_is_below_and_skipped_in_junit(failing: Project) -> None:
    result = failing.run("-v", "--junitxml=j.xml", "--tfgrpo-gate-min-mean=0.1", "--runxfail")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2, "below": 5}
    result.stdout.fnmatch_lines(["x.scenario.yaml::off BELOW (score 0.000 is below min_score = 1;*"])
    case = cases(failing)["off"]
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "score 0.000 is below min_score = 1; the gate decides"
    assert ("tfgrpo_category", "below") in [(p.get("name"), p.get("value")) for p in case.iter("property")]


def test_a_representation_is_one_that_other_processes_can_read() -> None:
    made = failure_representation("whole\ntext", "why", "a/b.yaml", 7)
    assert str(made) == "whole\ntext"
    assert str(made.reprcrash) == "a/b.yaml:7: why"
    report: Any = pytest.TestReport("a::b", ("a", 6, "b"), {}, "failed", made, "call")
    config: Any = pytest.Config.fromdictargs({}, ["-p", "no:cacheprovider", "-p", "no:randomly"])
    data = config.hook.pytest_report_to_serializable(config=config, report=report)
    again = config.hook.pytest_report_from_serializable(config=config, data=data)
    assert again.longreprtext == "whole\ntext"
    assert again.longrepr.reprcrash.message == "why"


CHECKS = [
    CheckResult(kind="exact", weight=1.0, credit=0.5, reason="half"),
    CheckResult(
        kind="number", weight=1.0, credit=0.0, reason="expected 3 within 1e-9, got 4.0 as the last number"
    ),
    CheckResult(kind="regex", weight=1.0, credit=1.0),
]


@pytest.mark.parametrize(
    ("fields", "scores", "said"),
    [
        ({"checks": CHECKS[1:]}, [0.5], "number: expected 3, got 4.0"),
        ({"checks": CHECKS}, [0.5], "number: expected 3, got 4.0 (and 1 more check)"),
        ({"checks": ()}, [0.5], "scored too low"),
        ({"checks": CHECKS[1:]}, [0.5, 0.6], "number: expected 3, got 4.0 (mean 0.550 of 2 rollouts)"),
        ({"failure": Failure(code="auth", message="no\x1b[1m key")}, [None], "auth: no key"),
    ],
)
def test_a_reason_is_one_line_that_names_the_worst_check_or_the_fault(
    fields: Any, scores: Any, said: str
) -> None:
    rollouts = tuple(make_rollout(n, **fields) for n in range(len(scores)))
    assert reason(make_scenario(), make_group(scores, rollouts=rollouts)) == said
