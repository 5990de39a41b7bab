"""Details of figures and comparisons of a report, each with the values that decide it."""

from dataclasses import replace
from typing import Any

import pytest
from support.report.worlds import with_rollouts
from support.sweeps import evenly, make_run

from pytest_tfgrpo.core.records import Failure
from pytest_tfgrpo.gate.result import MIN_SCENARIOS
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.report import tables
from pytest_tfgrpo.report.blocks import fault_messages
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.comparison.compare_lines import _names
from pytest_tfgrpo.report.outcome import _means, _percents
from pytest_tfgrpo.report.page.beside import parting
from pytest_tfgrpo.report.value import build


@pytest.mark.parametrize(
    ("shares", "shown"),
    [
        ((0.5,), ["50 %"]),
        ((0.5, 0.5), ["50 %", "50 %"]),
        ((0.501, 0.504), ["50.1 %", "50.4 %"]),
        ((0.996, 0.5), ["99.6 %", "50.0 %"]),
        ((0.004,), ["0.4 %"]),
        ((0.0, 1.0), ["0 %", "100 %"]),
    ],
)
def test_shares_have_a_decimal_where_whole_per_cent_would_hide_something(
    shares: tuple[float, ...], shown: list[str]
) -> None:
    assert _percents(*shares) == shown


@pytest.mark.parametrize(
    ("means", "shown"),
    [
        ((0.5, 0.5), ["0.50", "0.50"]),
        ((0.501, 0.504), ["0.501", "0.504"]),
        ((0.996,), ["0.996"]),
        ((0.0, 1.0), ["0.00", "1.00"]),
    ],
)
def test_means_have_a_third_decimal_where_two_would_hide_something(
    means: tuple[float, ...], shown: list[str]
) -> None:
    assert _means(*means) == shown


def test_a_phase_of_evidence_has_no_temperature_and_cost() -> None:
    (row,) = build(make_run(None, {"a": [1, 0]}), None)["epochs"]
    assert (tables.heat(row), tables.spent(row)) == ("0.3", "$0.0020")
    given: Any = {**row, "mode": "evidence"}
    assert (tables.heat(given), tables.spent(given)) == ("-", "-")
    nothing: Any = {**row, "rollouts": 0}
    assert tables.spent(nothing) == "-"


def test_codes_of_faults_are_in_order_and_of_whom_they_are() -> None:
    def change(rollout: Any) -> Any:
        codes = ("zeta", "alpha", "mid")
        return replace(rollout, failure=Failure(code=codes[rollout.index % 3], message="x"))

    run = with_rollouts(make_run(None, {"a": [None, None, -1], "b": [-1, -1]}), change)
    found = build(run, None)["faults"]
    assert list(found["errors"].items()) == [("alpha", 1), ("zeta", 1)]
    assert list(found["failed"].items()) == [("alpha", 1), ("mid", 1), ("zeta", 1)]


def faults_of(before: dict[str, Any], after: dict[str, Any], code: str = "timeout") -> str:
    def change(rollout: Any) -> Any:
        failed = rollout.failure is not None and rollout.status == "failed"
        return replace(rollout, failure=Failure(code=code, message="x")) if failed else rollout

    return fault_messages.uneven_faults(Sweeps(with_rollouts(make_run(before, after), change)))


def test_sweeps_with_other_faults_are_warned_of() -> None:
    assert faults_of({"a": [1, -1]}, {"a": [-1, 0]}) == ""
    assert faults_of({"a": [1, 1]}, {"b": [None, None]}) == "", "of common scenarios alone"
    told = faults_of({"a": [1, 1]}, {"a": [-1, None]})
    assert "has 0 errors and 0 rollouts without an answer, " in told
    assert "has 1 error and 1 rollout without an answer: a part" in told
    cut = faults_of({"a": [1, 1]}, {"a": [-1, 1]}, fault_messages.TRUNCATED)
    assert "0 rollouts without an answer and 0 cut off, " in cut
    assert "0 rollouts without an answer and 1 cut off: a part" in cut
    assert fault_messages.uneven_faults(Sweeps(make_run(None, {"a": [-1]}))) == ""


@pytest.mark.parametrize(
    ("n", "obstacle"),
    [
        (0, "run run1 has no final sweep"),
        (1, "only 1 scenario is in both; a claim needs 10 or more eval scenarios"),
        (MIN_SCENARIOS - 1, "only 9 scenarios are in both; a claim needs 10 or more eval scenarios"),
        (MIN_SCENARIOS, None),
    ],
)
def test_a_claim_needs_so_many_scenarios(n: int, obstacle: str | None) -> None:
    sides = [make_run(None, evenly(n, [x, 1.0]) or None, run_id=f"run{i}") for i, x in ((1, 1.0), (2, 0.0))]
    found = versus(sides[0], sides[1])["obstacles"]
    assert (found[0] if found else None) == obstacle


def test_a_share_of_the_larger_side_must_be_in_both() -> None:
    few = make_run(None, evenly(12, [1.0, 0.0]), run_id="one")
    for n, told in ((15, None), (16, "only 12 of 16 scenarios are in both")):
        more = make_run(None, evenly(n, [1.0, 1.0]), run_id="two")
        for pair in ((few, more), (more, few)):
            assert next(iter(versus(*pair)["obstacles"]), None) == told


def test_what_keeps_two_runs_apart_is_said_first() -> None:
    run = make_run(None, evenly(12, [1.0, 0.0]))
    assert versus(run, run)["obstacles"][0].startswith("both are the same run")
    hot = replace(run.phases[0], phase=replace(run.phases[0].phase, temperature=0.9))
    other = replace(run, run_id="other", phases=(hot,))
    assert versus(run, other)["obstacles"] == ["the temperatures of the final sweeps differ: 0.3 and 0.9"]
    cut = replace(run, run_id="cut", phases=(replace(run.phases[0], status="cancelled"),))
    assert versus(run, cut)["obstacles"] == ["the final sweep of run cut is cancelled"]
    early = replace(run, run_id="early", phases=(replace(run.phases[0], settled=("s9",)),))
    assert versus(early, run)["obstacles"] == [
        "the final sweep of run early stopped as soon as its gate was decided"
    ]


def test_long_names_of_runs_go_on_below_themselves() -> None:
    side = {"run_id": "r" * 20, "status": "cancelled", "reason": "stopped by somebody at the keyboard"}
    lines = _names({"before": side, "after": {**side, "status": "complete"}, "further": []}, 40)
    assert lines[0].startswith("A       rrrrrrrrrrrrrrrrrrrr, ")
    assert lines[1].startswith("        ")
    assert lines[1][8] != " "
    assert lines[-1] == "B       rrrrrrrrrrrrrrrrrrrr"


@pytest.mark.parametrize(
    ("answers", "shown"),
    [
        (["one", "two"], ["one", "two"]),
        (["", ""], ["", ""]),
        (["x" * 300, "x" * 300], None),
        (["word " * 60 + "end", "word " * 60 + "END"], "..."),
        (["word " * 60 + "end", ""], None),
    ],
)
def test_answers_that_begin_alike_start_shortly_before_they_part(
    answers: list[str], shown: list[str] | str | None
) -> None:
    found = parting(answers)
    if isinstance(shown, list):
        assert found == shown
    elif shown is None:
        assert [text[:4] for text in found] == [text[:4] for text in answers]
    else:
        assert all(text.startswith("... word ") for text in found)
        assert [text[-4:] for text in found] == [" end", " END"]
