"""Lessons on the terminal: what the dev split did with them, and the effect of each."""

from collections import Counter
from typing import Any

import pytest
from support.sweeps import make_run

from pytest_tfgrpo.report import acceptance, attribution


def tried(fate: str, **changes: Any) -> Any:
    return {
        "id": "e",
        "domain": "text",
        "polarity": "do",
        "text": "Count.",
        "fate": fate,
        "value": 0.1,
        "sd": 0.1,
        "helps": 0.9,
        "included": 6,
        "left_out": 6,
        **changes,
    }


def epoch(*lessons: Any, **changes: Any) -> Any:
    return {
        "epoch": 1,
        "verdict": "accepted",
        "note": "",
        "kept": len(lessons),
        "rejected": [],
        "rollouts": 9,
        "errors": 0,
        "gain": None,
        "gain_sd": None,
        "unseen": 0,
        "unseen_gain": None,
        "unseen_sd": None,
        "hit_rate": None,
        "lessons": list(lessons),
        **changes,
    }


def decided(*epochs: Any, every: bool = False, width: int = 500) -> list[str]:
    value: Any = {"rule": "x", "margin": None, "alpha": None, "scenarios": 3, "epochs": list(epochs)}
    return acceptance.acceptance_lines(value, width, every=every)


def test_what_the_dev_split_did_is_said_by_fate() -> None:
    one = epoch(tried("accepted"), tried("accepted"), tried("returned"), tried("removed"), tried("refused"))
    assert decided(one) == [
        "dev split  epoch1 takes in 2 lessons, brings back 1 lesson, removes 1 lesson, leaves out 1 lesson"
    ]
    assert decided(epoch(note="too few")) == ["dev split  epoch1 changes no lesson: too few"]
    assert decided(epoch(verdict="not_tried")) == []
    assert acceptance.acceptance_lines(None, 80, every=True) == []


@pytest.mark.parametrize(
    ("lesson", "default"),
    [
        (tried("accepted", included=4, left_out=5, helps=0.79), True),
        (tried("kept", included=4, left_out=5, helps=0.79), True),
        (tried("returned", included=4, left_out=5, helps=0.79), True),
        (tried("refused", included=4, left_out=5, helps=0.79), False),
        (tried("accepted", included=5, left_out=5, helps=0.79), False),
        (tried("accepted", included=4, left_out=5, helps=0.8), False),
    ],
)
def test_a_lesson_is_kept_by_default_on_hardly_any_evidence(lesson: Any, default: bool) -> None:
    (text,) = decided(epoch(lesson))
    assert ("; keeps 1 lesson by default: 9 dev rollouts" in text) is default
    shown = decided(epoch(lesson), every=True)[-1]
    assert shown.startswith(f"  {lesson['fate']}{' by default' if default else ''}: +0.100, ")


def test_how_few_dev_rollouts_there_are_is_a_span_where_they_differ() -> None:
    few = [tried("kept", helps=0.5, included=n, left_out=0) for n in (1, 3)]
    assert decided(epoch(*few))[0].endswith("keeps 2 lessons by default: 1 to 3 dev rollouts each")
    assert decided(epoch(few[0]))[0].endswith("keeps 1 lesson by default: 1 dev rollout")


def test_of_many_epochs_the_last_are_shown_and_the_rest_are_counted() -> None:
    rows = [
        epoch(tried("accepted"), epoch=n, rejected=[{"lesson": None, "targets": ["a", "b"]}] * (n == 1))
        for n in range(1, 5)
    ]
    lines = decided(*rows)
    assert lines[0] == "dev split  4 epochs: 4 changes kept, 1 rejected; -v shows each"
    assert [text[:17] for text in lines[1:]] == ["dev split  epoch3", "dev split  epoch4"]
    assert [text[:17] for text in decided(*rows[:3])] == [f"dev split  epoch{n}" for n in (1, 2, 3)]
    every = decided(*rows, every=True)
    assert "  not removed: a, b" in every
    assert sum(text.startswith("dev split  epoch") for text in every) == 4


def test_a_gain_on_dev_and_on_families_unseen_is_said_with_its_error() -> None:
    known = epoch(tried("accepted"), gain=0.25, gain_sd=0.1)
    (text,) = decided(known)
    assert text.endswith(
        "; lessons change the dev mean by +0.250, measured on scenarios that did not select them"
    )
    (unseen,) = decided({**known, "unseen": 4, "unseen_gain": -0.1, "unseen_sd": 0.05})
    assert unseen.endswith("; -0.100 (standard error 0.050) on the 4 of families that training does not use")


def effect(verdict: str, **changes: Any) -> Any:
    return {
        "id": "e",
        "domain": "text",
        "polarity": "do",
        "text": "Count.",
        "verdict": verdict,
        "shrunken": 0.1,
        "effect": 0.2,
        "ci95": [0.0, 0.4],
        "p_adjusted": 0.04,
        "included": 5,
        "left_out": 1,
        "in_force": True,
        **changes,
    }


def test_effects_of_lessons_are_counted_with_the_harmful_first() -> None:
    unknown = effect("not_estimable", shrunken=None, effect=None, ci95=None, p_adjusted=None)
    value: Any = {
        "lessons": [
            unknown,
            effect("helpful"),
            effect("harmful", in_force=False, shrunken=-0.2),
            effect("harmful", shrunken=-0.1),
        ],
        "lesson_dropout": 0.25,
        "groups": 8,
        "unread": ["line 3", "line 4"],
    }
    lines = attribution.attribution_lines(value, 500, every=True)
    assert lines[0] == (
        "lessons' effect  2 harmful, 1 helpful, 1 not yet known; each left out of 25% of the training groups "
        "at random; harmful and retired: 1"
    )
    assert lines[1] == "  warning: line 3 (and 1 more)"
    assert [text[:9] for text in lines[3:]] == ["  -0.200;", "  -0.100;", "  +0.100;"]
    assert lines[3].endswith("p 0.040, 5 groups with, 1 without: removed: do text: Count.")
    assert len(attribution.attribution_lines(value, 500, every=False)) == 2
    short = attribution.attribution_lines({**value, "groups": 0, "unread": ["x"]}, 500, every=False)
    assert "; the run is too short for that, so none was left out" in short[0]
    assert short[1] == "  warning: x"
    alone = attribution.attribution_lines({**value, "lessons": [unknown]}, 500, every=True)
    assert alone[0].startswith("lessons' effect  not yet known: it takes ")
    assert attribution.attribution_lines({**value, "lessons": []}, 80, every=True) == []
    assert [attribution.probability(p) for p in (None, 0.0009, 0.001)] == ["-", "<0.001", "0.001"]


def test_a_run_that_learned_and_tried_nothing_says_so_and_a_plain_one_nothing() -> None:
    run = make_run({"a": [0]}, {"a": [1]}, {"t": [1, 0]})
    assert acceptance.acceptance_report(make_run(None, {"a": [1]})) is None
    found = acceptance.acceptance_report(run)
    assert found is not None
    assert [(row["verdict"], row["kept"], row["lessons"]) for row in found["epochs"]] == [
        ("not_tried", 2, [])
    ]
    assert Counter(lesson.id for lesson in acceptance.lessons_of(run)) == Counter(
        e.id for e in run.library.experiences * 2
    )
