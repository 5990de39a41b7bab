"""Figures of jobs and patterns in words."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tfgrpo.patterns.shelf.stats_page import stats_sections

FIGURES: dict[str, Any] = {
    "jobs": {
        "jobs": {"queued": 1, "validated": 2},
        "causes": {"environment": 3},
        "pass_rate": 0.675,
        "stalls": {"open": 4, "resolved": 5, "median_s": 7199.4},
        "regressions_caught": 6,
    },
    "review": {"waiting": 7, "decided": 8, "rejection_rate": 0.25, "median_latency_s": 7200.0},
    "regressions": {"escaped": 9, "median_time_to_detect_s": 172_799.0},
    "hygiene": {
        "deprecated": 10,
        "reintroduced": 11,
        "escaped_and_in_force": 12,
        "median_time_to_remove_s": 172_800.0,
    },
    "patterns": {"candidates": 0, "active": 1},
    "trials": {},
    "reuse": {"runs": 13, "runs_with_patterns": 2, "by_pattern": {"one": 2, "two": 1}},
}


def test_each_figure_stands_in_its_section_safety_first() -> None:
    assert list(stats_sections(FIGURES)) == [
        (
            "validation",
            [
                "jobs: 1 queued, 2 validated; pass rate 68%",
                "causes of failures: 3 environment",
                "stalls: 4 open, 5 resolved, median 7199 s",
            ],
        ),
        ("review", ["7 waiting, 8 decided, rejected 25%", "median latency 2.0 hours"]),
        ("regressions", ["6 caught, 9 escaped", "median time to detect 48.0 hours"]),
        (
            "hygiene",
            [
                "10 deprecated, 11 reintroduced",
                "12 with an escape still in force",
                "median time to remove 2.0 days",
            ],
        ),
        (
            "patterns",
            [
                "0 candidates, 1 active; trials: none",
                "2 of 13 runs started with patterns",
                "  one: 2",
                "  two: 1",
            ],
        ),
    ]


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_what_is_not_known_is_no_zero(seconds: float | None) -> None:
    review = {"waiting": 0, "decided": 0, "rejection_rate": seconds, "median_latency_s": seconds}
    _, (_, lines), *_ = stats_sections({**FIGURES, "review": review})
    share, time = ("unknown", "unknown") if seconds is None else ("0%", "0 s")
    assert lines == [f"0 waiting, 0 decided, rejected {share}", f"median latency {time}"]
