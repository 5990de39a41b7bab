"""Calibration: what the judge says beside what checks say."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_scenario
from support.sweeps import make_result, make_run

from pytest_tfgrpo.core.records import JudgeResult, PhaseResult, Run
from pytest_tfgrpo.core.scenarios import Criterion, Scenario
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.report.judging.judge import (
    judge_lines,
    judge_report,
    label_sentences,
    label_warnings,
)
from pytest_tfgrpo.report.value import build

RUBRIC = (Criterion(text="It greets."),)
IDENTITY = {"judge": {"name": "openai:x", "identity": {"votes": 3}}}
Row = tuple[float, float | None]
"""Score by checks, score by the judge (None: no verdict)."""


def opinion(score: float | None) -> JudgeResult:
    if score is None:
        return JudgeResult(score=None, asked=3, reason="0 of 3 votes are valid")
    return JudgeResult(
        score=score, votes=(score,) * 3, asked=3, agreement=0.5 if score == 1 else 1.0, reason="r"
    )


def judged(rows: dict[str, list[Row]], truth: str = "checks", **changes: Any) -> Run:
    """Return a run with one scenario per id; ids that start with ``date`` are of another domain."""
    scenarios: tuple[Scenario, ...] = tuple(
        make_scenario(id_, domain="dates" if id_.startswith("date") else "text", split="eval", rubric=RUBRIC)
        for id_ in rows
    )
    result = make_result(
        {id_: [gt for gt, _ in row] for id_, row in rows.items()}, scenarios=scenarios, epoch=2
    )
    groups = tuple(
        replace(
            group,
            rollouts=tuple(
                replace(rollout, opinion=opinion(said))
                for rollout, (_, said) in zip(group.rollouts, rows[group.scenario_id], strict=True)
            ),
        )
        for group in result.groups
    )
    phases: tuple[PhaseResult, ...] = (replace(result, groups=groups),)
    truths: Any = tuple(replace(s, truth=truth) for s in scenarios)
    fields: dict[str, Any] = {"scenarios": truths, "phases": phases, "identities": IDENTITY}
    return replace(make_run(), **fields | changes)


def report_of(run: Run) -> dict[str, Any]:
    value = judge_report(run)
    assert value is not None
    return value


def test_without_a_judge_there_is_nothing_to_report():
    assert judge_report(make_run(final={"a": [1, 0]})) is None
    assert judge_lines(None, 80, by_domain=True) == []


def test_a_judge_is_measured_against_checks():
    # yes/yes 3, yes/no 1, no/yes 1, no/no 3: p_o = .75, p_e = .5
    rows = {"a": [(1, 1), (1, 1), (1, 0.25), (0, 0)], "b": [(1, 0.5), (0, 0.75), (0, 0), (0, 0.25)]}
    found = report_of(judged(rows))["calibration"]
    assert found["n"] == 8
    assert (found["agreement"], found["kappa"]) == (0.75, pytest.approx(0.5))
    assert found["ci95"] == pytest.approx([0.4093, 0.9285], abs=1e-4)
    assert found["bias"] == pytest.approx((1 + 1 + 0.25 + 0 + 0.5 + 0.75 + 0 + 0.25 - 4) / 8)
    assert 0 < found["rank_correlation"] < 1
    assert found["vote_agreement"] == pytest.approx((0.5 + 0.5 + 6) / 8)


def test_a_missing_verdict_is_counted_and_never_a_score():
    found = report_of(judged({"a": [(1, 1), (0, None), (1, None)]}))
    assert (found["opinions"], found["no_verdict"], found["calibration"]["n"]) == (3, 2, 1)
    assert found["calibration"]["bias"] == 0


def test_domains_are_calibrated_apart():
    found = report_of(judged({"a": [(1, 1), (0, 0)], "date1": [(1, 0), (0, 1)]}))
    assert [(row["domain"], row["agreement"]) for row in found["domains"]] == [("dates", 0), ("text", 1)]
    assert found["calibration"]["agreement"] == 0.5


def test_a_judge_is_no_measure_of_itself():
    found = report_of(judged({"a": [(1, 1), (1, 1)]}, truth="judge"))
    assert (found["opinions"], found["calibration"], found["domains"]) == (2, None, [])
    assert "not calibrated" in "\n".join(judge_lines(found, 80, by_domain=True))


def test_a_judge_who_was_asked_nothing_is_told_so():
    found = report_of(replace(make_run(final={"a": [1]}), identities=IDENTITY))
    assert judge_lines(found, 80, by_domain=False) == ["judge  openai:x, 3 votes each: 0 rollouts judged"]


def test_the_terminal_tells_it_in_two_sentences_and_a_table_by_domain():
    found = report_of(judged({"a": [(1, 1), (0, 0), (1, None)], "date1": [(1, 0.5), (0, 0)]}))
    assert judge_lines(found, 80, by_domain=True) == [
        "judge  openai:x, 3 votes each: 5 rollouts judged, 1 without a result; votes",
        "       agree 0.875",
        "       against the checks of 4 rollouts: agreement 1.000 (0.510 to 1.000), kappa",
        "       1.000, bias -0.125, rank correlation 0.943",
        "judge by domain  rollouts  agreement  kappa    bias  no result  votes agree",
        "dates                   2      1.000  1.000  -0.250          0        1.000",
        "text                    2      1.000  1.000  +0.000          1        0.750",
    ]
    assert len(judge_lines(found, 80, by_domain=False)) == 4


rows = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.none() | st.floats(0, 1)), min_size=1, max_size=5
)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "date1"]), rows, min_size=1),
    st.sampled_from(["checks", "judge"]),
)
def test_every_report_of_a_judge_fits_the_schema_and_80_columns(cases, truth):
    value = build(judged(cases, truth), None)
    assert violations("report", value) == []
    for shown in judge_lines(value["judge"], 80, by_domain=True):
        assert len(shown) <= 80
        assert shown.isprintable()


def test_foreign_names_do_not_break_out_of_the_terminal():
    run = judged({"a": [(1, 1)]}, identities={"judge": {"name": "\x1b[2J" + "x" * 300, "identity": {}}})
    assert all(
        text.isprintable() and len(text) <= 80 for text in judge_lines(report_of(run), 80, by_domain=True)
    )


LABELS: Any = {
    "labelled": 40, "asked": 40, "gain": 0.1, "ci95": [0.0, 0.2], "families": 40, "used": 40,
    "just_these": False, "judged": 90, "judge_gain": 0.2, "arms": [],
    "correction_ci95": None, "correction": None, "skipped": 0,
    "reads": [40], "level": 0.05,
}  # fmt: skip


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        (None, None),
        ([-0.1, 0.1], None),
        ([0.0, 0.1], None),
        ([-0.1, 0.0], None),
        ([0.01, 0.1], "less generous in the final than in the baseline sweep, by 0.050 (0.010 to 0.100)"),
        ([-0.1, -0.01], "more generous in the final than in the baseline sweep, by 0.050 (0.010 to 0.100)"),
    ],
)
def test_a_judge_who_is_shown_to_change_is_warned_of(bounds: list[float] | None, told: str | None) -> None:
    found = [*label_warnings({**LABELS, "correction_ci95": bounds, "correction": 0.05})]
    assert (told is None) == (found == [])
    assert told is None or told in found[0]


@pytest.mark.parametrize(
    ("used", "told"),
    [
        (7, "7 labelled tasks are too few for an interval"),
        (8, "8 labelled tasks are few"),
        (19, "19 labelled tasks are few"),
    ],
)
def test_few_labels_are_warned_of(used: int, told: str) -> None:
    assert [text.partition(";")[0] for text in label_warnings({**LABELS, "used": used})] == [told]
    assert [*label_warnings({**LABELS, "used": 20})] == []


def test_families_are_told_where_tasks_share_them() -> None:
    assert "on 40 tasks drawn at random from 90" in next(label_sentences(LABELS))
    assert "on 40 tasks of 20 families drawn at random" in next(label_sentences({**LABELS, "families": 20}))
