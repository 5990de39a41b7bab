"""What a page tells of learning: each epoch's changes, what decided on them, and what lessons do."""

from dataclasses import replace
from typing import Any

from support.builders import make_experience
from support.sweeps import make_result, make_run

from pytest_tfgrpo.core.lessons import Acceptance, LessonTrial, Library, Operation, Refusal, Revision
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.report.page.grid import grid
from pytest_tfgrpo.report.page.history import history
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.value import build

OLD, OTHER, NEW, BAD = (make_experience(n, summary32=f"lesson {n}") for n in range(4))
REVISION = Revision(
    epoch=1,
    library=Library(experiences=(NEW,), hash="d" * 64),
    applied=(
        Operation(
            kind="merge", experience=replace(NEW, parents=(OLD.id, OTHER.id)), targets=(OLD.id, OTHER.id)
        ),
    ),
    refused=(
        Refusal(operation=Operation(kind="add", experience=BAD), code="leak", reason="it has an answer"),
    ),
    acceptance=Acceptance(
        rule="safe",
        margin=0.02,
        alpha=0.2,
        scenarios=24,
        lessons=(
            LessonTrial(
                id=NEW.id,
                key="k",
                fate="accepted",
                value=0.0625,
                sd=0.02,
                helps=0.99,
                included=40,
                left_out=39,
            ),
        ),
        gain=0.05,
        gain_sd=0.03,
        unseen=7,
        unseen_gain=-0.01,
        unseen_sd=0.04,
        hit_rate=0.7,
        rollouts=79,
        rejected=(Operation(kind="remove", targets=(OLD.id,), reason="useless"),),
    ),
)


def learned() -> Run:
    run = make_run({"a": [1, 0]}, {"a": [1, 1]}, {"t": [1, 0]})
    start = Library(experiences=(OLD, OTHER), hash="b" * 64)
    baseline, train, final = run.phases
    return replace(
        run,
        library_start=start,
        library=REVISION.library,
        phases=(baseline, replace(train, revision=REVISION), final),
    )


def test_every_change_of_an_epoch_is_told_with_what_became_of_it() -> None:
    (entry,) = history(learned(), {})
    assert [(c["kind"], c["fate"], c["code"]) for c in entry["changes"]] == [
        ("merge", "", ""),
        ("remove", "rejected", ""),
        ("add", "refused", "leak"),
    ]
    assert entry["changes"][0]["old"] == [(OLD.id, "lesson 0"), (OTHER.id, "lesson 1")]
    assert entry["counts"] == ["1 merged", "1 rejected", "1 refused"]


def test_the_page_shows_the_diff_the_decision_and_the_effects() -> None:
    run = learned()
    effect: dict[str, Any] = {
        "id": NEW.id,
        "domain": "text",
        "polarity": "do",
        "text": "lesson 2",
        "in_force": True,
        "effect": 0.125,
        "shrunken": 0.1,
        "ci95": [0.05, 0.2],
        "p": 0.01,
        "p_adjusted": 0.02,
        "included": 80,
        "left_out": 31,
        "verdict": "helps",
    }
    gone = effect | {
        "id": OLD.id,
        "text": "lesson 0",
        "in_force": False,
        "effect": -0.25,
        "shrunken": -0.2,
        "verdict": "harmful",
    }
    attribution = {"lesson_dropout": 0.2, "groups": 111, "estimated": 2, "lessons": [effect, gone]}
    text = html(build(run, None) | {"attribution": attribution}, run)
    for part in (
        '<del><span class="hidden">before: </span>lesson 0</del>',
        "<ins>lesson 2</ins>",
        "Lessons change the dev mean by <b>+0.050</b> (standard error 0.030)",
        "About 70 % of lessons help",
        "They are drawn towards those of the other lessons",
        "<strong>accepted</strong></td><td>+0.062</td><td>0.020</td><td>0.990</td><td>40</td><td>39</td>",
        "it has an answer",
        "measured on scenarios that did not select them; the 7 of families that training does not use "
        "<b>-0.010</b> (standard error 0.040)",
        'effect +0.100 <span class="soft">(alone +0.125, +0.050 to +0.200)</span>',
        '<td data-label="effect">+0.100</td><td data-label="alone">+0.125</td>',
        '<td data-label="95 % interval">+0.050 to +0.200</td><td data-label="p adjusted">0.020</td>',
        '<td data-label="with / without">80 / 31</td>',
        "Effects of lessons no longer active (1)",
    ):
        assert part in text


def test_sweeps_of_the_dev_split_are_columns_beside_their_epoch() -> None:
    run = learned()
    baseline, train, final = run.phases
    (group,) = make_result({"a": [1, 0]}, scenarios=run.scenarios).groups
    sweeps = tuple(replace(group, mode="dev", group_id=f"run1.e1d{n}.a", epoch=1) for n in (1, 2))
    run = replace(run, phases=(baseline, replace(train, dev=sweeps), final))
    columns = grid(build(run, None), run).columns
    assert [c.label for c in columns] == ["baseline", "epoch1", "epoch1-dev1", "epoch1-dev2", "epoch2-eval"]
