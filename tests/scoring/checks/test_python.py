"""The check that calls a Python function."""

import importlib
import sys

import pytest
from support import ROOT

from pytest_tfgrpo.core.errors import CheckError, ScenarioError
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.records import checked
from pytest_tfgrpo.suite.scenario import build_scenario

MODULE = "judges_for_tests"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "scoring" / "checks"))


@pytest.mark.parametrize(
    ("returned", "credit", "reason"),
    [
        ("True", 1, ""),
        ("False", 0, "'judges_for_tests:outcome' gave 0"),
        ("0.25", 0.25, "'judges_for_tests:outcome' gave 0.25"),
        ("(0.5, 'half')", 0.5, "half"),
        ("1", 1, ""),
    ],
)
def test_a_bool_a_score_or_a_score_with_a_reason_is_a_result(judge, returned, credit, reason):
    result = judge("python", returned, target=f"{MODULE}:outcome")
    assert (result.credit, result.reason) == (credit, reason)


def test_the_function_sees_the_attempt(judge):
    assert judge("python", target=f"{MODULE}:Judge.sees").passed


@pytest.mark.parametrize(
    "returned",
    ["None", "1.5", "-0.1", "float('nan')", "'yes'", "(1, 2)", "(1, '', '')", "[1]", "1.01", "[0.5, 'half']"],
)
def test_anything_else_is_a_broken_check(judge, returned):
    with pytest.raises(CheckError, match="must return a bool, a score in"):
        judge("python", returned, target=f"{MODULE}:outcome")


@pytest.mark.parametrize(
    ("name", "message"),
    [("length", "must return"), ("outcome", "SyntaxError"), ("fail", "raised no;"), ("leave", "SystemExit")],
)
def test_an_exception_is_a_broken_check_and_never_ends_the_run(judge, name, message):
    with pytest.raises(CheckError, match=message):
        judge("python", "not python at all", target=f"{MODULE}:{name}")


def test_an_interrupt_inside_a_check_is_a_broken_check(judge):
    with pytest.raises(CheckError, match="KeyboardInterrupt"):
        judge("python", target=f"{MODULE}:interrupt")


@pytest.mark.parametrize("target", ["later", "nope", "Judge.nope", "__doc__"])
def test_a_target_that_cannot_be_called_is_an_error_when_loaded(load, target):
    with pytest.raises(ScenarioError, match=f"#/checks/0/target: '{MODULE}:{target}' cannot be used"):
        load("python", target=f"{MODULE}:{target}")


def test_the_code_of_a_check_is_part_of_it_where_it_is_the_projects(load, folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))

    def code(source):
        (folder / "judge_of_a_shop.py").write_text(source)
        (folder / "judges_of_a_shop.py").write_text("from judge_of_a_shop import judge")
        for name in ("judge_of_a_shop", "judges_of_a_shop"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return [load("python", target=f"{name}:judge") for name in ("judge_of_a_shop", "judges_of_a_shop")]

    first = code("def judge(context): return 1")
    assert first[0].params["target_sha256"] == stamp_bytes(b"def judge(context): return 1")
    assert code("def judge(context): return 1") == first
    changed = code("def judge(context): return 0.5")
    assert [one.content != other.content for one, other in zip(first, changed, strict=True)] == [True, True]
    assert load("python", target="json:dumps").params == {"target": "json:dumps"}


def test_a_record_with_a_check_of_the_project_can_be_checked_again(folder):
    checks = [{"kind": "python", "target": f"{MODULE}:outcome"}]
    data = {"id": "a", "prompt": "p", "checks": checks}
    scenario = build_scenario(data, source="x:1", checker=None, folder=folder)
    assert "target_sha256" in scenario.checks[0].params
    assert checked(scenario, folder, KINDS).stamp == scenario.stamp
