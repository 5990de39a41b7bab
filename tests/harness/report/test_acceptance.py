"""What the terminal says of the decisions on the dev split."""

from typing import Any

import pytest

from pytest_tfgrpo.harness.report.acceptance import acceptance_lines

WORSE = "worse by more than 0.02, p 0.004 < 0.2"
OPEN = "not shown to be worse by more than 0.02, p 0.996"


def epoch(kept: int, rejected: int, verdict: str, ci95: list[float] | None, reason: str) -> dict[str, Any]:
    trial = {"difference": 0.031, "ci95": ci95, "p_adjusted": 0.004, "verdict": verdict, "reason": reason}
    return {"epoch": 1, "kept": kept, "rejected": [None] * rejected, "trials": [trial]}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            epoch(12, 0, "accepted", [0.01, 0.05], OPEN),
            "keeps all 12 changes: +0.031 (+0.010 to +0.050), better",
        ),
        (epoch(1, 0, "accepted", None, OPEN), "keeps its one change: +0.031, " + OPEN.partition(", p ")[0]),
        (
            epoch(6, 2, "rejected", None, WORSE),
            "keeps 6 of 8 changes; all together +0.031, worse by more than 0.02",
        ),
        (epoch(0, 8, "rejected", None, WORSE), "keeps none of 8 changes: +0.031, worse by more than 0.02"),
        (epoch(0, 1, "rejected", None, WORSE), "rejects its one change: +0.031, worse by more than 0.02"),
    ],
)
def test_an_epoch_is_told_in_words_without_a_p(row: dict[str, Any], told: str) -> None:
    found = acceptance_lines({"rule": "safe", "epochs": [row]}, 80, every=False)
    assert " ".join(" ".join(found).split()) == f"dev split epoch1 {told}"
    assert max(map(len, found)) <= 80


def test_what_was_not_measured_is_said_so() -> None:
    row = epoch(0, 2, "rejected", None, "not measured: too many errors")
    row["trials"][0]["difference"] = None
    assert acceptance_lines({"rule": "strict", "epochs": [row]}, 80, every=False) == [
        "dev split  epoch1 keeps none of 2 changes: not measured: too many errors"
    ]
