"""What single blocks of the report say of their values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_rollout

from pytest_tfgrpo.report.blocks.as_failures import as_failures_markdown, errors_as_zero
from pytest_tfgrpo.report.blocks.contamination import CONTAMINATION, contamination_lines
from pytest_tfgrpo.report.blocks.noise import NOISE
from pytest_tfgrpo.report.blocks.reach import REACH
from pytest_tfgrpo.report.blocks.reused import REUSED
from pytest_tfgrpo.report.blocks.sequential import sequential_lines
from pytest_tfgrpo.runs.reach import UNCONFINED


def test_means_with_errors_as_failures_are_told_by_sweep_with_their_interval_where_there_is_one() -> None:
    rows = [
        {"epoch": 0, "mode": "baseline", "mean": 0.5, "ci95": None},
        {"epoch": 2, "mode": "eval", "mean": 0.625, "ci95": [0.5, 0.75]},
    ]
    report: Any = {"as_failures": rows}
    assert as_failures_markdown(report) == [
        "- With errors counted as failures (score 0), gt mean: epoch 0 (baseline) 0.500, epoch 2 (eval) "
        "0.625 (0.500 to 0.750)."
    ]
    assert errors_as_zero(report) == {(0, "baseline"): 0.5, (2, "eval"): 0.625}
    empty: Any = {}
    assert (as_failures_markdown(empty), errors_as_zero(empty)) == ([], {})


def test_contamination_is_a_warning_with_its_kinds_and_the_first_of_it() -> None:
    found: Any = {
        "found": 3,
        "kinds": {"shared_prompt": 2, "answer": 1},
        "findings": [{"text": "a equals b"}, {"text": "c\n::error::"}],
    }
    assert list(CONTAMINATION.warnings(found)) == [
        "contamination: 3 found (shared prompt 2, answer 1); the first: a equals b; results on such splits "
        "are less reliable than they look"
    ]
    assert list(CONTAMINATION.warnings({"found": 0, "kinds": {}, "findings": []})) == []
    report: Any = {"contamination": found}
    shown = list(contamination_lines(report, 80))
    assert shown[0] == "contamination: a equals b"
    assert all(text.isprintable() for text in shown)
    assert list(contamination_lines({"contamination": None}, 80)) == []  # type: ignore[typeddict-item]


NOISY = {
    "difference": 0.125, "seed_std": 0.25, "rollouts": 2, "gain_within": False,
    "sweeps": [{"scenarios": 3}, {"scenarios": 8}, {"scenarios": 1}],
}  # fmt: skip


def test_seed_noise_is_told_or_why_it_is_not_known() -> None:
    found: Any = NOISY
    assert NOISE.text(found) == (
        "seed noise alone accounts for differences of up to 0.125 between runs of the same library (8 "
        "scenarios x 2 rollouts; std 0.250 with one rollout each)"
    )
    within: Any = NOISY | {"gain_within": True}
    assert NOISE.text(within) == f"{NOISE.text(found)}; the gain is within this noise"
    once: Any = NOISY | {"difference": None, "rollouts": 1}
    assert NOISE.text(once).startswith("unknown: each scenario ran once; set eval_rollouts to 2")
    few: Any = NOISY | {"difference": None}
    assert NOISE.text(few).startswith("unknown: no scenario has two scored rollouts; set eval_rollouts")


@pytest.mark.parametrize(
    ("within", "difference", "ci95", "shown"),
    [
        (True, 0.1, [0.01, 0.2], True),
        (True, 0.1, None, True),
        (True, 0.1, [0.0, 0.2], False),
        (True, 0.1, [-0.2, 0.0], False),
        (True, 0.1, [-0.2, -0.1], True),
        (False, 0.1, [0.01, 0.2], False),
        (True, None, [0.01, 0.2], False),
    ],
)
def test_noise_is_always_shown_where_no_interval_says_that_a_gain_may_be_none(
    within: bool, difference: float | None, ci95: list[float] | None, shown: bool
) -> None:
    found: Any = NOISY | {"gain_within": within, "difference": difference}
    report: Any = {"gain": {"ci95": ci95}}
    assert NOISE.always(found, report) is shown
    none: Any = {"gain": None}
    assert NOISE.always(found, none) is (within and difference is not None)


def test_agents_that_gave_a_decoy_are_named_up_to_three() -> None:
    used = [{"rollout": f"r{n}", "scenario": "s", "where": f"file {n}"} for n in range(4)]
    one: Any = {"why": "x", "decoys": used[:1]}
    (told,) = REACH.warnings(one)
    assert told.startswith("1 rollout returned a wrong answer that only the run's decoy file contains")
    assert told.endswith("do not trust its other scores either: r0 (file 0)")
    three: Any = {"why": "x", "decoys": used[:3]}
    (told,) = REACH.warnings(three)
    assert told.endswith("r0 (file 0), r1 (file 1), r2 (file 2)")
    four: Any = {"why": "x", "decoys": used}
    (told,) = REACH.warnings(four)
    assert told.startswith("4 rollouts returned")
    assert told.endswith("r2 (file 2) and 1 more")
    assert list(REACH.warnings({"why": "x", "decoys": []})) == []
    assert REACH.text({"why": UNCONFINED, "decoys": []}).endswith("; tfgrpo_sandbox = bwrap hides them")
    assert REACH.text({"why": "x", "decoys": []}).endswith("their answers, as x")


def test_decoys_are_looked_for_in_groups_of_both_kinds_and_in_what_is_in_none() -> None:
    made = [make_rollout(decoy=f"d{n}" if n != 1 else None) for n in range(4)]
    phase = SimpleNamespace(
        with_dev=[SimpleNamespace(rollouts=made[:2]), SimpleNamespace(rollouts=made[2:3])], loose=made[3:]
    )
    run = SimpleNamespace(
        phases=[phase], settings={}, preflight={}, scenarios=(), header=None, identities={}, warnings=()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_tfgrpo.report.blocks.reach.why_in_reach", lambda _: "why")
        found = REACH.value(SimpleNamespace(run=run))  # type: ignore[arg-type]
        assert found is not None
        assert [one["where"] for one in found["decoys"]] == ["d0", "d2", "d3"]
        patch.setattr("pytest_tfgrpo.report.blocks.reach.why_in_reach", lambda _: "")
        assert REACH.value(SimpleNamespace(run=run)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "looks", "best"),
    [
        ({"earlier": 0}, None, ""),
        ({"earlier": 1}, 2, "the better"),
        ({"earlier": 2}, 3, "the best"),
        ({"earlier": 0, "looks": 4}, 4, "the best"),
        ({"earlier": 5, "looks": 1}, None, ""),
    ],
)
def test_looks_at_an_eval_split_are_told_from_the_second_on(found: Any, looks: int | None, best: str) -> None:
    text = REUSED.text(found)
    assert text == (
        f"{looks} variants, this one included, were evaluated on this eval split; "
        f"picking {best} of them overstates its score"
        if looks
        else ""
    )
    report: Any = {}
    assert REUSED.always(found, report)


def test_what_a_sequential_gate_saved_is_told_with_what_was_not_run_or_why_it_saved_nothing() -> None:
    known: dict[str, Any] = {"rollouts_saved": 1, "left_out": 0, "scenarios": 9, "asked": 9, "reason": ""}

    def told(**changes: Any) -> str:
        report: Any = {"sequential": known | changes}
        return " ".join(" ".join(sequential_lines(report, 200)).split())

    assert told() == "sequential gate 1 rollout saved"
    assert told(reason="no gate") == "sequential gate 1 rollout saved: no gate"
    assert told(rollouts_saved=8, left_out=4, asked=5, reason="x") == (
        "sequential gate 8 rollouts saved: gate already decided, 4 of 9 eval scenarios were not run; means "
        "and gain are over the 5 that were"
    )
    none: Any = {"sequential": None}
    assert sequential_lines(none, 80) == []
