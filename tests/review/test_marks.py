"""Files of marks, which may come from anybody, and how marks stand beside the checks."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.review.marks import mark, written
from support.sweeps import make_run

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.records import CheckResult, Run
from pytest_tfgrpo.review.disagreements import ReviewedAnswer, review
from pytest_tfgrpo.review.lines import LISTED, change_lines, review_lines
from pytest_tfgrpo.review.marks import load_marks
from pytest_tfgrpo.review.patch import SuiteChange
from pytest_tfgrpo.review.proposals import NeedsPerson

HOSTILE = "\x1b[2J\u202e::error::x $(rm -rf /) !!python/object:os.system\n- {{7*7}} </script>"
SECRET = "sk-proj-" + "a1B2c3D4" * 6


@pytest.fixture
def run() -> Run:
    """A run with the scenarios ``s`` (1, 0, error) and ``t`` (1, 1, 1) in its final sweep."""
    return make_run({"s": [0.0] * 3, "t": [0.0] * 3}, {"s": [1.0, 0.0, None], "t": [1.0] * 3}, {})


def now(run: Run) -> dict[str, str]:
    return {scenario.id: scenario.stamp for scenario in run.scenarios}


def test_each_file_is_a_reviewer_with_a_name_of_its_own(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, "a.json", mark("run1.e2.s.r0"), reviewer="Ann"),
        written(tmp_path, "b.json", mark("run1.e2.s.r0"), reviewer=" Ann "),
        written(tmp_path, "c.json", mark("run1.e2.s.r0")),
        written(tmp_path, "d.json", mark("run1.e2.s.r0"), reviewer="Ann (2)"),
        written(tmp_path, "e.json", mark("run1.e2.s.r0"), reviewer="Ann"),
    ]
    named = [one.reviewer for one in load_marks(paths)]
    assert named == ["Ann", "Ann (2)", "c", "Ann (2) (2)", "Ann (3)"]


def test_an_answer_marked_twice_in_one_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", mark("run1.e2.s.r0"), mark("run1.e2.s.r0", "wrong"))
    with pytest.raises(JournalError, match=r"/marks/1: 'run1\.e2\.s\.r0' is marked twice"):
        load_marks([path])


@pytest.mark.parametrize(
    "changes",
    [
        {"mark": "maybe"},
        {"comment": "x" * 2001},
        {"words": "x" * 501},
        {"rollout": ""},
        {"stamp": 7},
        {"path": "/etc/passwd"},
        {"comment": None},
    ],
)
def test_a_mark_beyond_its_limits_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = written(tmp_path, "a.json", mark("run1.e2.s.r0") | changes)
    with pytest.raises(JournalError, match="is not a file of marks: /marks/0"):
        load_marks([path])


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_refused_or_read_and_never_breaks(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(written(tmp_path, "a.json", mark("run1.e2.s.r0", comment="why", words="w")).read_bytes())
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    (tmp_path / "a.json").write_bytes(bytes(data))
    try:
        marks = load_marks([tmp_path / "a.json"])
    except JournalError:
        return
    assert len(marks) == 1


def test_checks_and_people_are_set_side_by_side(tmp_path: Path, run: Run) -> None:
    ann = [mark("run1.e2.s.r0", "wrong"), mark("run1.e2.s.r1"), mark("run1.e2.t.r0"), mark("run1.e2.t.r1")]
    bob = [mark("run1.e2.s.r0", "unsure"), mark("run1.e2.t.r1", "wrong"), mark("run1.e2.t.r2", "unsure")]
    marks = load_marks([written(tmp_path, "ann.json", *ann), written(tmp_path, "bob.json", *bob)])
    found = review(run, marks, now(run))
    assert [answer.rollout.rollout_id for answer in found.false_passes] == ["run1.e2.s.r0"]
    assert [answer.rollout.rollout_id for answer in found.false_fails] == ["run1.e2.s.r1"]
    assert [answer.rollout.rollout_id for answer in found.disputed] == ["run1.e2.t.r1"]
    assert {answer.rollout.rollout_id: answer.opinion for answer in found.answers} == {
        "run1.e2.s.r0": "wrong",
        "run1.e2.s.r1": "right",
        "run1.e2.t.r0": "right",
        "run1.e2.t.r1": None,
        "run1.e2.t.r2": "unsure",
    }
    assert found.not_applied == {}


@pytest.mark.parametrize(
    ("one", "more", "stamps", "reason"),
    [
        (mark("run1.e2.s.r0"), {"run_id": "run9"}, now, "of run run9"),
        (mark("run1.e2.s.r7"), {}, now, "the run has no such answer"),
        (mark("run1.e2.s.r0") | {"scenario": "t"}, {}, now, "the run has no such answer"),
        (mark("run1.e2.s.r2"), {}, now, "an error of the run, not an answer"),
        (mark("run1.e2.s.r0") | {"stamp": "1" * 64}, {}, now, "made for another version of the scenario"),
        (mark("run1.e2.s.r0"), {}, lambda run: {"s": "1" * 64}, "the scenario changed since the run"),
        (mark("run1.e2.s.r0"), {}, lambda run: {}, "the scenario is gone since the run"),
    ],
)
def test_a_mark_that_does_not_belong_to_the_run_is_listed_and_not_applied(
    tmp_path: Path,
    run: Run,
    one: dict[str, Any],
    more: dict[str, Any],
    stamps: Callable[[Run], dict[str, str]],
    reason: str,
) -> None:
    found = review(run, load_marks([written(tmp_path, "a.json", one, **more)]), stamps(run))
    assert list(found.not_applied.values()) == [reason]
    assert found.answers == ()
    assert any(reason in line for line in review_lines(found, 80))


def test_a_scenario_of_a_test_function_has_no_file_that_could_change(tmp_path: Path, run: Run) -> None:
    run = replace(run, scenarios=tuple(replace(s, checker="test_a.py::test_a") for s in run.scenarios))
    found = review(run, load_marks([written(tmp_path, "a.json", mark("run1.e2.s.r0", "wrong"))]), {})
    assert len(found.false_passes) == 1


def test_an_estimate_counts_as_passed_from_a_half_on(tmp_path: Path, run: Run) -> None:
    run = make_run({"s": [0.0]}, {"s": [0.5, 0.4]}, {})
    judged = replace(run, scenarios=tuple(replace(s, truth="judge") for s in run.scenarios))
    marks = load_marks(
        [written(tmp_path, "a.json", mark("run1.e2.s.r0", "wrong"), mark("run1.e2.s.r1", "wrong"))]
    )
    assert review(run, marks, now(run)).false_passes == ()
    assert [a.rollout.index for a in review(judged, marks, now(run)).false_passes] == [0]


def test_hostile_marks_print_as_harmless_lines(tmp_path: Path, run: Run) -> None:
    said = {"comment": HOSTILE + SECRET, "words": HOSTILE + SECRET}
    strange = mark("run1.e2.s.r0", "wrong", **said), mark(f"run1.e2.{HOSTILE[:40]}.r0") | {"scenario": "s"}
    path = written(tmp_path, "a.json", *strange, reviewer=HOSTILE[:80])
    lines = list(review_lines(review(run, load_marks([path]), now(run)), 80))
    text = "\n".join(lines)
    assert text.replace("\n", "").isprintable()
    assert SECRET not in text
    assert not any(line.lstrip().startswith("::") for line in lines)


def test_a_comment_is_kept_without_secrets(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", mark("run1.e2.s.r0", comment=f"use {SECRET}"))
    (found,) = load_marks([path])
    assert found.comment.startswith("use [redacted:")


def test_an_answer_of_the_dev_split_can_be_marked(tmp_path: Path, run: Run) -> None:
    phase = run.phases[-1]
    run = replace(
        run, phases=(*run.phases[:-1], replace(phase, groups=phase.groups[1:], dev=phase.groups[:1]))
    )
    found = review(run, load_marks([written(tmp_path, "a.json", mark("run1.e2.s.r0", "wrong"))]), now(run))
    assert found.not_applied == {}
    assert len(found.false_passes) == 1


def test_of_many_answers_the_first_are_listed_each_with_short_texts(tmp_path: Path) -> None:
    run = make_run({"s": [0.0]}, {"s": [1.0] * (LISTED + 2)}, {})
    long = "so " * 600
    marks = [mark(f"run1.e2.s.r{n}", "wrong", comment=long) for n in range(LISTED + 2)]
    found = review(run, load_marks([written(tmp_path, "a.json", *marks)]), now(run))
    found = replace(
        found,
        answers=tuple(
            replace(answer, rollout=replace(answer.rollout, answer="" if n else long))
            for n, answer in enumerate(found.answers)
        ),
    )
    lines = list(review_lines(found, 80))
    assert sum(line.strip().startswith("mark ") for line in lines) == LISTED
    assert lines[-1] == "  ... 2 more"
    assert "    answer    (empty)" in lines
    assert len(" ".join(lines)) < LISTED * 600


def test_who_has_to_look_is_shown_where_and_how_many_more_there_are() -> None:
    run = make_run({"s": [0.0]}, {"s": [1.0, 1.0]}, {})
    answers = tuple(
        ReviewedAnswer(rollout=rollout, scenario=run.scenarios[0], marks=(), passed=True)
        for rollout in run.phases[-1].groups[0].rollouts
    )
    for n, said in ((1, "  see tfgrpo show e2.s.r0"), (2, "  see tfgrpo show e2.s.r0, and 1 more")):
        left = NeedsPerson(run.scenarios[0], "it is hard", answers[:n])
        (_, where) = change_lines(SuiteChange(proposals=(), left=(left,), files=()), 80)
        assert where == said


def test_a_review_reads_well(tmp_path: Path, run: Run) -> None:
    strange = [mark(f"run1.e2.q.r{n}") for n in range(3)]
    ann = [
        mark("run1.e2.s.r0", "wrong", words="3", comment="off"),
        mark("run1.e2.s.r1"),
        mark("run1.e2.t.r1"),
    ]
    bob = [mark("run1.e2.s.r0", "unsure"), mark("run1.e2.t.r1", "wrong"), mark("run1.e2.t.r2", "unsure")]
    lone = mark("run1.e2.q.r9") | {"rollout": "lone"}
    paths = [written(tmp_path, "ann.json", *ann, lone), written(tmp_path, "bob.json", *bob, *strange)]
    found = review(run, load_marks(paths), now(run))
    checks = (CheckResult(kind="exact", weight=1.0, credit=0.0, reason="no match"),)
    answers = tuple(
        replace(one, rollout=replace(one.rollout, checks=(*one.rollout.checks, *checks)))
        if one.is_false_fail
        else one
        for one in found.answers
    )
    assert list(review_lines(replace(found, answers=answers), 200)) == [
        "run run1: 4 marked answers by ann, bob: 1 right, 1 wrong, 1 unsure, 1 disputed",
        "checks and people agree on 0 of 2: 1 false pass, 1 false fail. People chose what to mark, so this "
        "is not a rate for the suite",
        "",
        "false pass: checks passed it, people call it wrong",
        "  e2.s.r0",
        "    scenario  s, fixtures/s.scenario.yaml:1",
        "    answer    3",
        '    mark      wrong by ann for "3": off',
        "    mark      unsure by bob",
        "",
        "false fail: checks failed it, people call it right",
        "  e2.s.r1",
        "    scenario  s, fixtures/s.scenario.yaml:1",
        "    answer    4",
        "    checks    exact: expected '3', got '4'; exact: no match",
        "    mark      right by ann",
        "",
        "disputed: reviewers disagree, so it does not count until they agree",
        "  e2.t.r1",
        "    scenario  t, fixtures/t.scenario.yaml:1",
        "    answer    3",
        "    mark      right by ann",
        "    mark      wrong by bob",
        "",
        "not applied: 4 marks",
        "  4  the run has no such answer: lone, e2.q.r0, e2.q.r1, ...",
    ]


def test_as_many_answers_as_are_listed_leave_no_more(tmp_path: Path) -> None:
    run = make_run({"s": [0.0]}, {"s": [1.0] * LISTED}, {})
    marks = [mark(f"run1.e2.s.r{n}", "wrong") for n in range(LISTED)]
    found = review(run, load_marks([written(tmp_path, "a.json", *marks)]), now(run))
    assert list(review_lines(found, 80))[-1].endswith("mark      wrong by a")


def test_what_is_no_json_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"schema": "tfgrpo.marks/1",\n"run_id": "run1",\n"marks": [}')
    with pytest.raises(JournalError, match=r"a\.json, line 3: "):
        load_marks([path])
