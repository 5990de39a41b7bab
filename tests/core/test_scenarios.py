"""Scenarios: what makes one another one, names of criteria, and what an agent sees."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.scenarios import (
    Attachment,
    Check,
    Criterion,
    MockCase,
    Prompt,
    SimulatedUser,
    ToolMock,
    WorkspaceArchive,
    WorldStep,
    criterion_names,
    given_families,
    task_key,
    task_stamp,
)

FILE = Attachment(name="data/a.csv", path=Path("/suite/data/a.csv"), sha256="1" * 64)
ARCHIVE = WorkspaceArchive(archive="a.tar.gz", path=Path("a.tar.gz"), sha256="2" * 64)
STEP = WorldStep(command=("sh", "data/a.csv"), timeout_s=5.0, files=(FILE,))
USER = SimulatedUser(goal="A table.")
MOCK = ToolMock(tool="pay", cases=(MockCase(kind="returns", value=1, when={"n": 2}),))
SEEN: dict[str, Any] = {
    "prompt": "Other?",
    "input": {"a": 1},
    "attachments": (FILE,),
    "tools": (),
    "workspace": ARCHIVE,
    "environment": "3" * 64,
    "setup": STEP,
    "mocks": (MOCK,),
    "turns": ("Hello.", "And?"),
    "user": USER,
}
GRADED: dict[str, Any] = {
    "checks": (Check(kind="exact", params={"value": "4"}),),
    "rubric": (Criterion(text="It is short."),),
    "truth": "majority",
    "teardown": STEP,
}
REST: dict[str, Any] = {
    "id": "other",
    "domain": "other",
    "split": "eval",
    "min_score": 0.5,
    "tags": ("a",),
    "timeout_s": 9.0,
    "family": "f",
    "source": "b.yaml:1",
    "agents": ("small",),
    "overlay": (FILE,),
}


@pytest.mark.parametrize(("name", "value"), [*SEEN.items(), *GRADED.items(), *REST.items()])
def test_the_stamp_of_a_task_depends_on_what_is_asked_and_on_what_checks_it(name: str, value: object) -> None:
    scenario = make_scenario()
    other = replace(scenario, **{name: value})
    assert (task_stamp(other) != task_stamp(scenario)) is (name in SEEN or name in GRADED)
    assert (other.seen != scenario.seen) is (name in SEEN)
    asked = {"prompt", "input", "attachments", "workspace", "setup", "turns"}
    assert (task_key(other) != task_key(scenario)) is (name in asked)


def test_the_weight_of_a_criterion_counts_and_its_name_does_not() -> None:
    def stamp(**fields: Any) -> str:
        return task_stamp(make_scenario(rubric=(Criterion(text="It is short.", **fields),)))

    assert stamp() == stamp(name="short") != stamp(weight=2.0)


def test_a_check_is_another_where_it_is_turned_around_or_looks_after_a_turn() -> None:
    plain = Check(kind="contains", weight=2.0, params={"value": "a"})
    assert plain.content == ["contains", 2.0, {"value": "a"}]
    assert replace(plain, negated=True).content == ["contains", 2.0, {"value": "a"}, "not"]
    assert replace(plain, turn=1).content == ["contains", 2.0, {"value": "a"}, 1]
    assert replace(plain, negated=True, turn=2).content[3:] == ["not", 2]
    assert (plain.title, replace(plain, negated=True).title) == ("contains", "not contains")


def test_criteria_have_different_names_of_40_characters_and_a_hash_beyond() -> None:
    texts = ["It is short.", "It is: SHORT", "It is short", "x" * 40, "x" * 41, "Größe?", "…", "a-b " * 20]
    names = criterion_names([Criterion(text=text) for text in texts])
    assert names[:4] == ("it-is-short", "it-is-short-2", "it-is-short-3", "x" * 40)
    assert names[4].startswith("x" * 40 + "-")
    assert len(names[4]) == 47
    assert names[5].startswith("gr-")
    assert names[6].startswith("criterion-")
    assert names[7].startswith("a-b-a-b")
    assert not names[7][:-7].endswith("-")
    taken = [Criterion(text="a"), Criterion(text="b", name="a"), Criterion(text="a")]
    assert criterion_names(taken) == ("a-2", "a", "a-3")


@pytest.mark.parametrize(
    ("kind", "value", "when", "written"),
    [
        ("returns", 1, None, {"returns": 1}),
        ("raises", "no", {"a": 1}, {"when": {"a": 1}, "raises": "no"}),
        ("real", None, None, {"real": True}),
        ("recorded", [["pay", {}, "1", None]], None, {"recorded": "calls.jsonl"}),
        ("returns", None, {}, {"when": {}, "returns": None}),
    ],
)
def test_a_mock_is_written_as_it_was(kind: Any, value: Any, when: Any, written: Any) -> None:
    file = "calls.jsonl" if kind == "recorded" else ""
    assert MockCase(kind=kind, value=value, when=when, file=file).written == written
    assert ToolMock(tool="pay", cases=(MockCase(kind=kind, value=value, when=when),)).content == [
        "pay",
        [[kind, value, when]],
    ]


def test_a_step_names_its_files_and_is_another_with_other_ones() -> None:
    assert STEP.argv == ["sh", "/suite/data/a.csv"]
    assert STEP.content == {"command": ["sh", "data/a.csv"], "files": [["data/a.csv", "1" * 64]]}
    assert STEP.written == {"command": ["sh", "data/a.csv"], "timeout_s": 5.0}
    python = WorldStep(target="world:make")
    assert (python.content, python.written) == (
        {"python": "world:make"},
        {"python": "world:make", "timeout_s": 60.0},
    )


def test_a_task_has_no_more_than_an_agent_may_see() -> None:
    scenario = make_scenario(attachments=(FILE,), tools=("count",), timeout_s=9.0, input=[1], min_score=0.5)
    task = scenario.task()
    assert (task.id, task.attachments, task.tools, task.timeout_s, task.input) == (
        scenario.id, ("data/a.csv",), ("count",), 9.0, [1],
    )  # fmt: skip
    assert not hasattr(task, "checks")
    assert scenario.wording == scenario.prompt
    assert replace(scenario, turns=("A", "B")).wording == "A\n\nB"
    assert replace(scenario, stamp="s", recorded_stamp="r").seed_stamp == "r"
    assert replace(scenario, stamp="s").seed_stamp == "s"
    assert replace(scenario, setup=STEP, teardown=None).steps == {"setup": STEP}


def test_a_family_is_one_of_its_domain_and_a_user_has_10_turns() -> None:
    scenarios = [
        make_scenario("a", family="f"),
        make_scenario("b", family="f", domain="other"),
        make_scenario("c"),
    ]
    assert given_families(scenarios) == {"a": "text f", "b": "other f"}
    assert USER.max_turns == 10


def test_a_prompt_has_both_its_texts() -> None:
    assert str(Prompt(system="Be short.", user="Count.")) == "Be short.\n\nCount."
    assert str(Prompt(system="", user="Count.")) == "Count."
    assert Prompt(system="a", user="b").stamp != Prompt(system="", user="a\n\nb").stamp
