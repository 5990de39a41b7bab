"""Figures of a shelf: rates and times from the log, counts from the files, use from the journals."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.patterns.shelves import make_pattern

from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus, TrialResult
from pytest_tfgrpo.patterns.shelf.shelf_stats import reuse_of, shelf_stats

A, B, C = "p-00000000000a", "p-00000000000b", "p-00000000000c"


def entry(event: str, id_: str, minute: int, **more: Any) -> Mapping[str, Any]:
    return {"event": event, "id": id_, "time": at(minute), **more}


def at(minute: int) -> str:
    return f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00.000Z"


LOG = [
    entry("written", A, 0),
    entry("written", B, 0),
    entry("written", C, 1),
    entry("comment", A, 2),
    entry("promoted", A, 10),
    entry("rejected", B, 30),
    entry("escaped", A, 60, committed_at=at(50)),
    entry("escaped", A, 70, committed_at=at(65)),
    entry("deprecated", A, 75),
    entry("restored", A, 80),
]


def on_shelf(id_: str, status: PatternStatus, **more: Any) -> Pattern:
    return make_pattern(f"n{id_[-1]}", id=id_, status=status, **more)


def test_figures_of_a_log_and_its_files() -> None:
    tried = on_shelf(C, PatternStatus.CANDIDATE, reintroduced=B)
    trial = TrialResult(outcome="harms", gain=-0.1, low=None, high=None, scenarios=9, families=3)
    files = [
        on_shelf(A, PatternStatus.ACTIVE, trial=trial),
        on_shelf(B, PatternStatus.DEPRECATED),
        replace(tried, trial=replace(trial, pattern_stamp=tried.stamp)),
    ]
    assert shelf_stats(LOG, files) == {
        "review": {"waiting": 1, "decided": 2, "rejection_rate": 0.5, "median_latency_s": 1200.0},
        "regressions": {"escaped": 1, "median_time_to_detect_s": 3000.0},
        "hygiene": {
            "deprecated": 1,
            "reintroduced": 1,
            "median_time_to_remove_s": 900.0,
            "escaped_and_in_force": 1,
        },
        "patterns": {"candidates": 1, "active": 1, "deprecated": 1},
        "trials": {"harms": 1, "untried": 2},
    }


def test_what_is_not_known_is_null_and_a_clock_that_went_back_is_zero() -> None:
    nothing = shelf_stats([], [])
    assert nothing["review"] == {
        "waiting": 0,
        "decided": 0,
        "rejection_rate": None,
        "median_latency_s": None,
    }
    back = [entry("written", A, 9), entry("promoted", A, 3), entry("escaped", B, 9, committed_at=at(1))]
    found = shelf_stats(back, [])
    assert found["review"]["median_latency_s"] == 0.0
    assert found["regressions"] == {"escaped": 1, "median_time_to_detect_s": None}


@pytest.mark.parametrize("line", ["", "{", "[]", '{"data": {"library": {"experiences": [{}]}}}'])
def test_runs_that_started_with_patterns_are_counted(tmp_path: Path, line: str) -> None:
    def run(name: str, *lessons: tuple[str, str]) -> None:
        experiences = [{"task_id": task, "run_id": id_} for task, id_ in lessons]
        path = tmp_path / "runs" / name / "journal.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"data": {"library": {"experiences": experiences}}}) + "\nmore\n")

    run("1", ("patterns", A), ("patterns", B), ("shop", "RUN-1"))
    run("2", ("patterns", A), ("patterns", "p-else"))
    run("3", ("shop", A))
    run("4")
    (tmp_path / "runs/4/journal.jsonl").write_text(line)
    files = [on_shelf(id_, PatternStatus.ACTIVE) for id_ in (A, B, C)]
    assert reuse_of(tmp_path, files) == {
        "runs": 4,
        "runs_with_patterns": 2,
        "by_pattern": {"na": 2, "nb": 1},
    }
