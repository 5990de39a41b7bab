"""What a difference is worth in words: its p, what it is over, when the control ran, what is claimed."""

from typing import Any

import pytest

from pytest_tfgrpo.report import trust


def gain(**changes: Any) -> Any:
    return {"n": 5, "claim": {"p": 0.25}, "control": None, **changes}


@pytest.mark.parametrize(
    ("value", "p"),
    [
        (gain(), "0.250"),
        (gain(claim={"p": None}), ""),
        (gain(claim={"p": 0.0001}), "< 0.001"),
        (gain(claim={"p": 0.001}), "0.001"),
        (gain(n=0), ""),
        ({"n": 5}, ""),
    ],
)
def test_the_p_of_a_gain(value: Any, p: str) -> None:
    assert trust.p_of(value) == p


def test_what_a_gain_is_over_and_when_its_control_ran() -> None:
    reference = {"name": "main", "kind": "library", "stamp": "0123456789abcdef"}
    early, beside = (
        {"asked": "early", "shared": 0, "drift": None},
        {"asked": "concurrent", "shared": 0, "drift": None},
    )
    assert trust.over(gain()) == trust.over(gain(control=early)) == "the baseline sweep"
    assert trust.over(gain(control={**beside, "reference": reference})) == (
        "the reference, library main (0123456789ab)"
    )
    packs = {**reference, "name": "packs", "kind": "packs"}
    assert trust.over(gain(control={**beside, "reference": packs})) == "the reference, packs (0123456789ab)"
    assert trust.control(gain()) == ""
    assert trust.control(gain(control=early)).endswith("so drift since then is part of the gain")
    assert trust.control(gain(control={**early, "reference": reference})).endswith("is part of it")
    assert trust.control(gain(control=beside)) == "; control ran beside the final sweep"
    assert trust.control(gain(control={**beside, "shared": 1})).endswith(
        "where 1 scenario has the same prompt and share the answers"
    )
    assert trust.drift(gain()) == trust.drift(gain(control=beside)) == ""
    drift = {"difference": -0.1, "ci95": None, "n": 3, "families": 3, "just_these": False}
    assert trust.drift(gain(control={**beside, "drift": drift})).startswith(
        "-0.100 without new lessons, from before training to the final sweep, too few for an interval, 3 scen"
    )
    assert "95 % interval" in trust.drift(gain(control={**beside, "drift": {**drift, "ci95": [-0.2, 0.0]}}))


def claimed(placebo: Any = None, labels: Any = None, **changes: Any) -> str:
    found = {"p": 0.01, "level": 0.05, "looks": 1, "side": "better", **changes}
    report: Any = {"gain": {"n": 5, "claim": found}}
    report |= {"placebo": placebo} if placebo else {}
    return trust.claim(report | ({"labels": labels} if labels else {}))


def test_what_may_be_claimed_is_said_with_its_test() -> None:
    assert claimed(side="worse") == (
        "this library does worse: p 0.010 (below 0.05 is needed); tfgrpo replicate tests the method"
    )
    assert claimed().endswith("; tfgrpo replicate tests the method; no placebo was run")
    possible = {"possible": 3, "p": None}
    assert claimed(possible).endswith("; over placebo p unknown")
    assert claimed({**possible, "p": 0.0001}).endswith("; over placebo p < 0.001")
    assert claimed({**possible, "p": 0.02}).endswith("; over placebo p 0.020")
    assert claimed({"possible": 0, "p": None}).endswith("; placebo not possible")
    assert claimed({"possible": 0, "p": None}, side=None, over_nothing="better") == (
        "nothing yet about this library beyond placebo: p 0.010 (below 0.05 is needed); placebo not possible"
    )
    assert claimed(side=None) == (
        "nothing yet about this library: p 0.010 (below 0.05 is needed, and an interval beside 0)"
    )
    assert claimed(side=None, looks=2, level=0.025).endswith(
        "(below 0.025 is needed after 2 variants on this eval split, and an interval beside 0); "
        "a fresh split allows 0.05"
    )
    labels = {"gain": 0.1, "claim": "better", "level": 0.05}
    assert claimed(labels=labels) == (
        "by people's labels, this library does better (p below 0.05 is needed); no placebo was run"
    )
    assert claimed(labels={**labels, "gain": -0.1, "claim": "worse"}) == (
        "by people's labels, this library does worse (p below 0.05 is needed)"
    )
    assert claimed(labels={**labels, "claim": None}).startswith("by people's labels, nothing yet about this")
    assert claimed(labels={**labels, "gain": None}).startswith("this library does better")
    assert trust.claim({"gain": None}) == ""  # type: ignore[typeddict-item]
