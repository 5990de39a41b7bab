"""The head of a page: one figure, and what decided the gate."""

from typing import Any

import pytest
from support.sweeps import SETTINGS, evenly, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.report.page.headline import headline, when
from pytest_tfgrpo.report.value import build


def judged(run: Run, **settings: Any) -> Report:
    return build(run, judge(run, baseline=None, settings={**SETTINGS, **settings}))


BETTER = make_run(evenly(12, [0, 0]), evenly(12, [1, 1]))
WORSE = make_run(evenly(12, [1, 1]), evenly(12, [0, 0]))


def test_the_figure_is_the_gain_and_the_rule_of_the_gain_decides() -> None:
    found = headline(judged(BETTER))
    assert (found.figure, found.caption) == (
        "+1.000",
        "gain over the baseline sweep, from 0.000 to 1.000",
    )
    assert [(rule["name"], rule["outcome"]) for rule in found.deciding] == [("gain", "pass")]
    assert found.tells_gain
    assert "complete" in [rule["name"] for rule in found.passed]
    assert "errors" in found.unset
    assert [rule["name"] for rule in found.advised] == ["baseline"]


def test_what_failed_decides_before_what_passed() -> None:
    found = headline(judged(WORSE))
    assert found.figure == "-1.000"
    assert [rule["outcome"] for rule in found.deciding] == ["fail"]
    assert all(rule["outcome"] == "pass" for rule in found.passed)


def test_each_rule_is_told_once() -> None:
    report = judged(BETTER, gate_min_mean=0.5)
    found = headline(report)
    told = [rule["name"] for rule in (*found.deciding, *found.passed, *found.advised)] + list(found.unset)
    assert report["gate"] is not None
    assert sorted(told) == sorted(rule["name"] for rule in report["gate"]["results"])


def test_without_a_baseline_the_figure_is_the_mean() -> None:
    found = headline(build(make_run(final={"a": [1, 0]}), None))
    assert (found.figure, found.caption, found.deciding) == ("0.500", "mean gt_score", [])
    assert headline(build(make_run(), None)).figure == ""


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2026-11-23T05:57:05.969Z", "2026-11-23T05:57:14.060Z", "2026-11-23 05:57 UTC, 8.1 s"),
        ("2026-11-23T05:57:05.969Z", None, "2026-11-23 05:57 UTC"),
        ("yesterday", None, "yesterday to ?"),
        ("2026-11-23T05:57:05", "2026-11-23T05:57:14Z", "2026-11-23T05:57:05 to 2026-11-23T05:57:14Z"),
    ],
)
def test_when_a_run_was_is_told_for_readers(start: str, end: str | None, text: str) -> None:
    report = build(BETTER, None)
    report["started_at"], report["finished_at"] = start, end
    assert when(report) == text
