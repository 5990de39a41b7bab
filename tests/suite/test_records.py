"""Scenarios that a program makes."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.projects_in_archives import write_archive

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


def talk(**changes):
    made = scenario(
        "t",
        turns=["Hello.", {"user": "And?", "checks": CHECKS}],
        checks=[{"kind": "contains", "value": "x", "not": True}],
    )
    return replace(made, **changes)


def test_a_conversation_made_by_hand_keeps_its_checks_after_each_turn(tmp_path: Path) -> None:
    known = talk()
    assert [(check.turn, check.negated) for check in known.checks] == [(2, False), (None, True)]
    (kept,) = revised([], [replace(known, split="eval")], tmp_path, KINDS)
    assert (kept.checks, kept.turns, kept.stamp) == (known.checks, known.turns, known.stamp)


@pytest.mark.parametrize(("turn", "fits"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_check_looks_after_a_turn_that_there_is(tmp_path: Path, turn: int, fits: bool) -> None:
    known = talk()
    other = replace(known, checks=(replace(known.checks[0], turn=turn),))
    if fits:
        assert revised([], [other], tmp_path, KINDS)[0].checks[0].turn == turn
        return
    with pytest.raises(ScenarioError, match=f"#/checks: there is no turn {turn}, but 2"):
        revised([], [other], tmp_path, KINDS)


def test_a_prompt_that_is_not_the_first_turn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="#/prompt: must be the first of the turns; change both alike"):
        revised([], [talk(prompt="Hi.")], tmp_path, KINDS)


def test_a_scenario_that_did_not_change_is_the_same_object_and_a_test_keeps_its_split(tmp_path: Path) -> None:
    known = scenario("a", prompt="p", checks=CHECKS)
    tested = replace(known, id="b", prompt="q", checks=(), checker="test_a.py::test_b", split="eval")
    assert revised([known], [known], tmp_path, KINDS)[0] is known
    assert [one.id for one in revised([known, tested], [tested, known], tmp_path, KINDS)] == ["b", "a"]
    for other in (replace(tested, split="train"), replace(tested, checker="test_a.py::test_c")):
        with pytest.raises(ScenarioError, match="whose items have another id or split; remove checker"):
            revised([known, tested], [other], tmp_path, KINDS)
    with pytest.raises(ScenarioError, match="'a' comes twice; ids must be unique"):
        revised([known], [known, known], tmp_path, KINDS)
    with pytest.raises(ScenarioError, match="3 is not a Scenario"):
        revised([known], [3], tmp_path, KINDS)  # type: ignore[list-item]


def test_files_that_are_gone_are_named_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n")
    made = scenario("a", folder=tmp_path, prompt="p", attachments=["data.csv"], checks=CHECKS)
    (tmp_path / "data.csv").write_text("2\n")
    (other,) = revised([], [made], tmp_path, KINDS)
    assert other.attachments[0].sha256 != made.attachments[0].sha256
    (tmp_path / "data.csv").unlink()
    with pytest.raises(ScenarioError, match=r"#/attachments: cannot read .*data\.csv: No such file"):
        revised([], [made], tmp_path, KINDS)
    archive = write_archive(tmp_path / "a.tar.gz", {"x": "1"})
    with_archive = replace(scenario("b", prompt="p", checks=CHECKS), workspace=archive)
    assert revised([], [with_archive], tmp_path, KINDS)[0].workspace == archive
    archive.path.unlink()
    with pytest.raises(ScenarioError, match=r"#/workspace/archive: cannot read .*a\.tar\.gz: No such file"):
        revised([], [with_archive], tmp_path, KINDS)
