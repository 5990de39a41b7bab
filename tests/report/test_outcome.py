"""The sentence that stands before the statistics: each way that a run can end, and what it may not say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.sweeps import SETTINGS, Credits, evenly, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.gate.baseline import from_run
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.report.markdown import summary
from pytest_tfgrpo.report.outcome import outcome
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build

TRAIN: dict[str, Credits] = {"t1": [1, 0], "t2": [0, 1]}


def shares(n: int, solved: int, **others: Any) -> dict[str, Credits]:
    return {f"s{i}": [1.0] if i < solved else [0.0] for i in range(n)} | others


def said(run: Run, *, baseline: Run | None = None, **changes: Any) -> str:
    stored = None if baseline is None else from_run(baseline, "main")
    verdict = judge(run, baseline=stored, settings=SETTINGS)
    return outcome(build(run, verdict) | changes)  # type: ignore[arg-type]


def looked(run: Run, times: int) -> Run:
    """Return a run whose eval split has seen so many variants before it."""
    known = {"earlier": times, "runs": [], "variants": [f"v{n}" for n in range(times)]}
    return replace(run, preflight={"evaluations": known})


LESSONS = "2 lessons, kept untested."


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (
            make_run(shares(50, 13), shares(50, 40), TRAIN),
            f"Better: 26 % to 80 % of the tasks; sure enough (50 tasks); no placebo was run. {LESSONS}",
        ),
        (
            make_run(shares(50, 40), shares(50, 13), TRAIN),
            f"Worse: 80 % to 26 % of the tasks; sure enough (50 tasks). {LESSONS}",
        ),
        (
            make_run(evenly(12, [0.5, 0]), evenly(12, [1, 0.5]), TRAIN),
            f"Better: mean score 0.25 to 0.75; sure enough (12 tasks); no placebo was run. {LESSONS}",
        ),
        (
            make_run(shares(10, 5), shares(10, 7), TRAIN),
            "Perhaps better, but not sure: 50 % to 70 % of the tasks, which may be chance (10 tasks). "
            + LESSONS,
        ),
        (
            make_run(shares(10, 7), shares(10, 5), TRAIN),
            "Perhaps worse, but not sure: 70 % to 50 % of the tasks, which may be chance (10 tasks). "
            + LESSONS,
        ),
        (
            looked(make_run(shares(20, 0), shares(20, 9), TRAIN), 99),
            "Perhaps better, but not sure after 100 variants on the same tasks: 0 % to 45 % of the tasks, "
            f"which may be chance (20 tasks). {LESSONS}",
        ),
        (
            make_run(shares(30, 15), shares(30, 15), TRAIN),
            f"No difference shown: 50 % of the tasks before and after (30 tasks). {LESSONS}",
        ),
        (
            make_run(shares(200, 100), shares(200, 100), TRAIN),
            f"Equal within 0.05: 50 % of the tasks before and after (200 tasks). {LESSONS}",
        ),
        (
            make_run(shares(2, 0), shares(2, 2), TRAIN),
            f"Too few tasks to tell: 0 % to 100 % of the tasks (2 tasks). {LESSONS}",
        ),
        (
            make_run(shares(3, 0), {"x": [1]}, TRAIN),
            f"No result: no task has a score both before and after. {LESSONS}",
        ),
        (
            make_run(None, None, TRAIN),
            "Not measured: no task has split: eval. " + LESSONS,
        ),
        (make_run(None, shares(4, 3)), "75 % of 4 tasks solved."),
        (make_run(None, evenly(4, [0.5])), "Mean score 0.50 over 4 tasks."),
        (
            make_run(None, {"a": [None, None], "b": [-1, -1]}),
            "No result: no attempt has an answer (provider, timeout).",
        ),
        (
            make_run(shares(2, 1), {"s0": [None], "s1": [None]}),
            "No result: all 2 attempts of the final sweep are errors.",
        ),
        (make_run(), ""),
    ],
)
def test_each_outcome_has_its_sentence(run: Run, text: str) -> None:
    assert said(run) == text


def test_a_run_that_did_not_end_has_no_result_whatever_its_figures() -> None:
    run = make_run(shares(50, 13), shares(50, 40), TRAIN)
    for status in ("incomplete", "aborted", "cancelled"):
        assert said(replace(run, status=status)) == "No result yet: the run has not ended."  # type: ignore[arg-type]


def test_lessons_that_dev_tasks_tried_are_not_called_untested_and_the_same_library_changes_nothing() -> None:
    run = make_run(shares(50, 13), shares(50, 40), TRAIN)
    value = build(run, None)
    assert value["acceptance"] is not None
    value["acceptance"]["epochs"][0]["verdict"] = "accepted"
    assert outcome(value).endswith("(50 tasks); no placebo was run. 2 lessons.")
    value["library"]["lessons"] = []
    assert outcome(value).endswith("; no placebo was run. No lessons.")
    value["library"]["start"] = value["library"]["hash"]
    assert outcome(value).startswith("Better: ")
    assert value["gain"] is not None
    value["gain"]["claim"]["side"] = None
    assert outcome(value) == "No new lessons, so the agent is as before: 80 % of 50 tasks solved."


def test_a_part_of_the_suite_is_called_one() -> None:
    run = replace(make_run(None, shares(4, 3)), partial_selection=True)
    assert said(run) == "75 % of 4 tasks solved. Only a part of the suite ran."
    alone = replace(make_run(None, None, TRAIN), partial_selection=True)
    assert said(alone).startswith("Not measured: no task was selected. 2 lessons")


def test_few_families_speak_of_themselves_alone() -> None:
    value = build(make_run(shares(50, 13), shares(50, 40), TRAIN), None)
    assert value["gain"] is not None
    value["gain"] |= {"families": 3, "just_these": True}  # type: ignore[typeddict-item]
    text = "sure for these tasks alone (3 families)"
    assert text in outcome(value)


@pytest.mark.parametrize(
    ("unseen", "told"), [(None, False), ([-0.1, 0.2], True), ([0.1, 0.4], False), (..., True)]
)
def test_a_gain_that_families_without_training_do_not_show_says_so(unseen: Any, told: bool) -> None:
    value: Any = build(make_run(shares(50, 13), shares(50, 40), TRAIN), None)
    part = None if unseen is None else {"ci95": None if unseen is ... else unseen}
    value["families"] = {"seen": {"ci95": [0.1, 0.2]}, "unseen": part}
    assert outcome(value).endswith("No gain shown for families that training does not have.") is told


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ({"claim": None}, "No difference shown by people's labels: +0.12 in the mean score"),
        ({"claim": "better"}, "Better by people's labels: +0.12 in the mean score; sure enough"),
        (
            {"claim": "worse", "gain": -0.3, "just_these": True},
            "Worse by people's labels: -0.30 in the mean score; sure for these tasks alone",
        ),
    ],
)
def test_labels_of_people_decide_what_a_judge_scored(labels: dict[str, Any], text: str) -> None:
    value: Any = build(make_run(shares(50, 13), shares(50, 40), TRAIN), None)
    value["labels"] = {"gain": 0.12, "used": 20, "just_these": False} | labels
    end = "; no placebo was run" if labels["claim"] == "better" else ""
    assert outcome(value) == f"{text} (20 labelled tasks){end}. {LESSONS}"


def test_scores_of_a_judge_or_a_vote_are_named_as_such() -> None:
    value: Any = build(make_run(None, shares(4, 3)), None)
    value["scenarios"][0]["truth"] = "judge"
    assert outcome(value) == "75 % of 4 tasks solved, scored by a judge."
    value["scenarios"][1]["truth"] = "majority"
    assert outcome(value).endswith("scored by a judge and a majority vote.")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (20, 2, "Worse than the baseline: 10 % of 20 tasks solved."),
        (12, 12, "60 % of 20 tasks solved; not sure whether it is worse than the baseline."),
    ],
)
def test_a_plain_run_is_set_beside_its_baseline(before: int, after: int, text: str) -> None:
    assert said(make_run(None, shares(20, after)), baseline=make_run(None, shares(20, before))) == text


def test_a_baseline_that_is_held_says_by_how_much() -> None:
    run = make_run(None, shares(100, 60))
    text = said(run, baseline=run)
    assert text.endswith("60 % of 100 tasks solved; not worse than the baseline by more than 0.05.")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0.996, 0.998, "99.6 % to 99.8 %"),
        (0.5, 0.504, "50.0 % to 50.4 %"),
        (0.0, 1.0, "0 % to 100 %"),
        (0.001, 0.5, "0.1 % to 50.0 %"),
    ],
)
def test_a_share_is_not_rounded_to_all_none_or_no_difference(before: float, after: float, text: str) -> None:
    value: Any = build(make_run(shares(50, 13), shares(50, 40), TRAIN), None)
    value["gain"] |= {"before": before, "after": after}
    assert f": {text} of the tasks;" in outcome(value)


def test_all_three_surfaces_begin_with_it() -> None:
    run = make_run(shares(50, 13), shares(50, 40), TRAIN)
    value = build(run, judge(run, baseline=None, settings=SETTINGS))
    text = outcome(value)
    for verbosity in (-1, 0, 1):
        lines = terminal(value, verbosity=verbosity, width=200)
        assert lines[0] == text
        assert lines[1].startswith("gate  ")
    assert " ".join(terminal(value)).startswith(text)
    assert summary(value).replace("\\", "").split("\n\n")[1] == text
    page = html(value, run)
    assert page.index(f'<p class="outcome">{text}</p>') < page.index("Gate passed")


def test_a_quiet_run_that_neither_learned_nor_has_a_gate_says_nothing() -> None:
    value = build(make_run(None, shares(4, 3)), None)
    assert terminal(value, verbosity=-1) == []
    assert terminal(value)[0] == "75 % of 4 tasks solved."
    ended = build(replace(make_run(None, shares(4, 3)), status="aborted"), None)
    assert terminal(ended, verbosity=-1)[0] == "No result yet: the run has not ended."


def test_equal_needs_both_readings_of_errors_and_the_level_of_all_looks() -> None:
    solved = {f"s{i}": [1.0, 1.0, None] for i in range(200)}
    value = build(make_run(shares(200, 200), solved, TRAIN), None)
    assert value["gain"] is not None
    assert (value["gain"]["difference"], value["gain"]["claim"]["equal_within"]) == (0.0, None)
    same = make_run(shares(72, 36), shares(72, 36), TRAIN)
    for looks, equal in ((0, 0.05), (9, None)):
        gain = build(looked(same, looks), None)["gain"]
        assert gain is not None
        assert gain["claim"]["equal_within"] == equal


def plain(mean: float = 0.75, **changes: Any) -> dict[str, Any]:
    """Return the report of a plain run of 4 tasks with this mean."""
    value: Any = build(make_run(None, shares(4, 3)), None)
    value["epochs"][0]["gt_score"] |= {"mean": mean}
    value["epochs"][0]["pass_at_1"] = mean
    return value | changes


def gained(**claim: Any) -> dict[str, Any]:
    """Return the report of a run that went from no task to all, with changes of what may be claimed."""
    value: Any = build(make_run(shares(4, 0), shares(4, 4), TRAIN), None)
    value["gain"] |= {"ci95": [-0.1, 0.3], "difference": 0.2}
    value["gain"]["claim"] |= {"side": None} | claim
    return value


def spoken(value: dict[str, Any]) -> str:
    return outcome(value)  # type: ignore[arg-type]


def test_of_several_final_sweeps_the_last_counts() -> None:
    value = plain()
    early = {**value["epochs"][0], "pass_at_1": 0.0}
    early["gt_score"] = {**early["gt_score"], "mean": 0.0}
    value["epochs"].insert(0, early)
    assert spoken(value) == "75 % of 4 tasks solved."
    assert spoken(plain(0.996)) == "99.6 % of 4 tasks solved."


def test_a_run_has_a_result_where_any_attempt_came_to_something() -> None:
    value: Any = build(make_run(None, {"a": [-1]}), None)
    assert spoken(value).startswith("No result: no attempt has an answer")
    value["epochs"][0]["dev"] = {"rollouts": 1}
    assert spoken(value) == "0 % of 1 task solved."
    assert said(make_run(None, {"a": [1], "b": [None]})) == "100 % of 1 task solved."


def test_three_reasons_of_failed_attempts_are_named() -> None:
    faults = {"errors": {"a": 2, "b": 1}, "failed": {"c": 1, "d": 1}}
    assert spoken(plain(faults=faults)) == "No result: no attempt has an answer (a, b, c)."


@pytest.mark.parametrize(
    ("difference", "margin", "start"),
    [
        (0.05, 0.05, "No difference shown: "),
        (-0.05, 0.05, "No difference shown: "),
        (0.051, 0.05, "Perhaps better, but not sure: "),
        (-0.051, 0.05, "Perhaps worse, but not sure: "),
        (0.2, 0.3, "No difference shown: "),
    ],
)
def test_what_is_not_sure_is_called_a_difference_beyond_the_margin(
    difference: float, margin: float, start: str
) -> None:
    value = gained()
    value["gain"]["difference"] = difference
    value["settings"] = {**value["settings"], "gate_margin": margin}
    assert spoken(value).startswith(start)


def test_the_second_variant_on_the_same_tasks_is_told() -> None:
    start = "Perhaps better, but not sure after 2 variants on the same tasks: "
    assert spoken(gained(looks=2)).startswith(start)


def test_a_single_family_is_named_as_one() -> None:
    value = gained(side="better")
    value["gain"]["families"] = 1
    assert "; sure enough (one family);" in spoken(value)


@pytest.mark.parametrize(
    ("side", "families", "told"),
    [
        ("better", {"seen": {"ci95": None}, "unseen": {"ci95": [0.0, 0.2]}}, True),
        ("better", {"seen": {"ci95": None}, "unseen": {"ci95": [0.01, 0.2]}}, False),
        ("better", {"seen": None, "unseen": {"ci95": [-0.1, 0.2]}}, False),
        ("worse", {"seen": {"ci95": None}, "unseen": {"ci95": [-0.1, 0.2]}}, False),
    ],
)
def test_only_a_gain_beside_families_of_training_may_fail_to_reach_others(
    side: str, families: Any, told: bool
) -> None:
    value = gained(side=side) | {"families": families}
    assert spoken(value).endswith("No gain shown for families that training does not have.") is told
    value["labels"] = {"gain": None}
    assert spoken(value).startswith(f"{side.capitalize()}: 0 % to 100 % of the tasks; sure enough (4 tasks)")
    assert "No gain shown" not in spoken(value)


PLACEBO: dict[str, Any] = {
    "possible": True,
    "side": None,
    "gain_side": None,
    "beside": "no lessons",
    "over": {"difference": 0.1},
    "changed": [],
}


@pytest.mark.parametrize(
    ("placebo", "start"),
    [
        ({}, "Better than no lessons, but not shown better than placebo (+0.10): "),
        ({"gain_side": "worse"}, "Better than no lessons, but not shown better than placebo (+0.10): "),
        ({"gain_side": "better"}, "Any text does this (+0.10 over placebo; answers as long as before): "),
        ({"possible": False}, "Not sure, as a placebo is not possible: "),
    ],
)
def test_a_gain_that_is_not_one_over_placebo_is_not_called_one(placebo: Any, start: str) -> None:
    value = gained(over_nothing={}) | {"placebo": PLACEBO | placebo}
    assert spoken(value) == f"{start}0 % to 100 % of the tasks (4 tasks). {LESSONS}"
    value["labels"] = {"claim": "better", "gain": 0.12, "used": 20, "just_these": False}
    by_people = "+0.12 in the mean score by people's labels (20 labelled tasks)."
    assert spoken(value) == f"{start}{by_people} {LESSONS}"
    value["placebo"]["side"] = "better"
    assert ", also +0.10 over placebo." in spoken(value)


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"answer": "worse"}, "Worse than the reference: {}."),
        ({"answer": "not worse", "margin": 0.1}, "{}; not worse than the reference by more than 0.1."),
        ({"answer": "worse", "lost": ["s1"]}, "{}; not sure whether it is worse than the reference."),
        ({"answer": "worse", "changed": ["s1"]}, "{}; not sure whether it is worse than the reference."),
    ],
)
def test_the_rule_of_a_reference_says_what_a_run_is_beside_it(figures: Any, text: str) -> None:
    value = gained()
    del value["gain"]["claim"]
    rule: Any = {"name": "baseline", "outcome": "pass", "message": "", "advice": "", "figures": figures}
    value["gate"] = {"outcome": "pass", "results": [rule], "strict": False}
    assert spoken(value) == f"0 % to 100 % of the tasks (4 tasks). {LESSONS}"
    value["gain"]["control"]["reference"] = {"name": "old", "kind": "library", "stamp": "1" * 64}
    assert spoken(value) == f"{text.format('0 % to 100 % of the tasks (4 tasks)')} {LESSONS}"
    rule["outcome"] = "skipped"
    assert spoken(value) == f"0 % to 100 % of the tasks (4 tasks). {LESSONS}"


def test_lessons_are_untested_only_where_no_epoch_tried_any() -> None:
    value = gained(side="worse")
    value["acceptance"] = {"epochs": [{"verdict": "not_tried"}, {"verdict": "rejected"}]}
    assert spoken(value).endswith("(4 tasks). 2 lessons.")
    value["acceptance"] = {"epochs": [{"verdict": "not_tried"}, {"verdict": "not_tried"}]}
    assert spoken(value).endswith(f"(4 tasks). {LESSONS}")


@pytest.mark.parametrize("sweep", [0, -1])
def test_a_mean_is_a_share_of_tasks_only_where_it_is_one_in_both_sweeps(sweep: int) -> None:
    value = gained(side="better")
    value["epochs"][sweep]["pass_at_1"] = 0.5
    assert spoken(value).startswith("Better: mean score 0.00 to 1.00; sure enough")


def test_a_judge_of_training_tasks_alone_is_not_named() -> None:
    value = gained(side="better")
    for row in value["scenarios"]:
        if row["split"] == "train":
            row["truth"] = "judge"
    assert "scored by" not in spoken(value)
