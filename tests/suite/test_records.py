"""Scenarios that a program makes."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_tfgrpo import scenario
from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.scoring.checks.protocol import CheckKind, passed
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect
from pytest_tfgrpo.suite.records import revised

CHECKS = [{"kind": "number", "value": 4}]


def test_a_scenario_made_by_a_program_is_the_one_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.scenario.yaml").write_text(
        "{id: sum, split: eval, prompt: 2 + 2?, checks: [{kind: number, value: 4}]}"
    )
    (of_file,) = collect(tmp_path, ["."], KINDS)
    made = scenario("sum", split="eval", prompt="2 + 2?", checks=CHECKS)
    assert (made.stamp, made.checks, made.prompt) == (of_file.stamp, of_file.checks, of_file.prompt)
    assert collect(tmp_path, [made], KINDS) == [made]


def test_steps_of_the_world_are_those_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "fill.sh").write_text("exit 0\n")
    (tmp_path / "world.py").write_text("def empty(rollout): ...\n")
    (tmp_path / "a.scenario.yaml").write_text(
        "{id: a, prompt: p, checks: [{kind: number, value: 4}], "
        "setup: {command: [sh, fill.sh], timeout_s: 7}, "
        "teardown: {python: 'world:empty', timeout_s: 9}}"
    )
    (of_file,) = collect(tmp_path, ["."], KINDS)
    made = scenario(
        "a", folder=tmp_path, prompt="p", checks=CHECKS,
        setup={"command": ["sh", "fill.sh"], "timeout_s": 7},
        teardown={"python": "world:empty", "timeout_s": 9},
    )  # fmt: skip
    (kept,) = revised([], [replace(made, prompt="q")], tmp_path, KINDS)
    assert kept.steps == of_file.steps == made.steps
    assert [step.timeout_s for step in kept.steps.values()] == [7, 9]


def test_what_is_wrong_is_told_with_the_line_of_the_call() -> None:
    with pytest.raises(ScenarioError, match=r"test_records\.py:\d+: #/checks/0/valu: unknown key 'valu'"):
        scenario("sum", prompt="2 + 2?", checks=[{"kind": "number", "valu": 4}])


def test_files_are_looked_for_beside_the_calling_module_or_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n")
    assert scenario("a", folder=tmp_path, prompt="p", attachments=["data.csv"], checks=CHECKS).attachments
    with pytest.raises(ScenarioError, match=r"'data\.csv' cannot be read: No such file"):
        scenario("a", prompt="p", attachments=["data.csv"], checks=CHECKS)


def test_checks_of_your_own_kinds_are_validated_by_their_schema() -> None:
    kinds = {"own": CheckKind(name="own", params={"required": ["x"]}, evaluate=lambda c, _: passed(c))}
    assert scenario("a", prompt="p", kinds=kinds, checks=[{"kind": "own", "x": 1}]).checks[0].kind == "own"
    with pytest.raises(ScenarioError, match="missing key 'x'"):
        scenario("a", prompt="p", kinds=kinds, checks=[{"kind": "own"}])
