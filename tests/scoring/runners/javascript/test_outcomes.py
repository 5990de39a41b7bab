"""What the records of a JavaScript runner say of tests, and when they are not believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.scoring.runners.javascript.outcomes import (
    Canaries,
    Reported,
    merged,
    problem_of,
    read_records,
    relative,
    suite_run,
)
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem

CANARIES = Canaries(passing="up", failing="down", early="first")
END = {"kind": "end"}
MUST_FAIL = "a.js: a test that must fail did not fail"
MUST_PASS = "a.js: a test that must pass did not pass"


def case(*names: str, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    return {"kind": "test", "file": "/tree/a.js", "names": list(names), "outcome": outcome, **more}


OURS = [case("up"), case("down", outcome="failed")]


def report(*records: dict[str, Any], tree: str = "/tree") -> Reported:
    return read_records(records, Path(tree), CANARIES)


def test_each_test_has_outcome_time_and_message_under_its_file_and_names() -> None:
    outcomes, seconds, messages = merged(
        [
            report(
                *OURS,
                case("first"),
                case("adds", "two", ms=250),
                case("pays", outcome="failed", message="at /tree/a.js: no\nmore", ms=-5),
                case("pays", ms=500),
                case("waits", outcome="hung", message="too long"),
                case("waits", outcome="failed", message="again"),
                case("later", outcome="skipped", message="not now"),
                END,
            ),
            report(case("adds", "two", outcome="failed", message="here")),
        ]
    )
    assert {test: outcome.value for test, outcome in outcomes.items()} == {
        "a.js::adds::two": "failed",
        "a.js::pays": "failed",
        "a.js::waits": "hung",
        "a.js::later": "skipped",
    }
    assert seconds["a.js::pays"] == 0.5
    assert messages == {"a.js::pays": "at a.js: no", "a.js::waits": "too long", "a.js::adds::two": "here"}


def test_only_a_test_outside_of_any_group_is_a_canary() -> None:
    assert set(merged([report(case("group", "up"))])[0]) == {"a.js::group::up"}


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([*OURS, case("x"), END], (None, "")),
        (
            [*OURS, case("x"), case("y") | {"file": "/tree/b.js"}, END],
            (RunProblem.TAMPERED, "b.js: a test that must fail did not fail"),
        ),
        ([*OURS, case("x")], (RunProblem.NO_REPORT, "the run ended before all tests were reported")),
        ([case("x")], (RunProblem.NO_REPORT, "the run ended before all tests were reported")),
        ([OURS[0], case("x"), END], (RunProblem.TAMPERED, MUST_FAIL)),
        ([OURS[0], case("down"), END], (RunProblem.TAMPERED, MUST_FAIL)),
        ([OURS[0], case("down")], (RunProblem.TAMPERED, MUST_FAIL)),
        ([*OURS, OURS[1], END], (RunProblem.TAMPERED, MUST_FAIL)),
        ([OURS[1], case("x"), END], (RunProblem.TAMPERED, MUST_PASS)),
        ([OURS[1], case("up", outcome="failed"), case("x")], (RunProblem.TAMPERED, MUST_PASS)),
        ([OURS[1], case("up", outcome="failed"), case("x", outcome="failed"), END], (None, "")),
        ([{"kind": "file", "file": "/tree/a.js"}, END], (None, "")),
        ([*OURS, {"kind": "broken", "message": "no jest\nat all"}, END], (RunProblem.NO_RUNNER, "no jest")),
        ([{"kind": "broken"}], (RunProblem.NO_RUNNER, "the runner cannot be used")),
    ],
)
def test_what_a_report_is_worth(
    records: list[dict[str, Any]], problem: tuple[RunProblem | None, str]
) -> None:
    assert problem_of(report(*records), CANARIES) == problem


def test_without_canaries_of_ours_nothing_is_missed() -> None:
    assert problem_of(report(case("x"), END), None) == (None, "")


def test_a_file_that_does_not_load_is_a_failed_test_by_its_name() -> None:
    found = report({"kind": "file", "file": "/tree/a.js", "message": "cannot load"}, END)
    outcomes, _, messages = merged([found])
    assert outcomes == {"a.js": CaseOutcome.FAILED}
    assert messages == {"a.js": "cannot load"}
    assert not found.files["a.js"].loaded
    assert report({"kind": "loaded", "file": "/tree/a.js"}).files["a.js"].loaded


def test_a_file_is_named_from_the_tree_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    assert relative(f"{link}/a.js", link) == relative(f"{tmp_path.resolve()}/real/a.js", link) == "a.js"
    assert relative("/elsewhere/a.js", link) == "/elsewhere/a.js"
    message = f"{tmp_path.resolve()}/real/a.js: no"
    failing = case("x", outcome="failed", message=message) | {"file": f"{tmp_path.resolve()}/real/a.js"}
    assert merged([read_records([failing], link, CANARIES)])[2] == {"a.js::x": "a.js: no"}


def test_the_times_of_tests_of_one_name_are_added() -> None:
    assert merged([report(case("x", ms=250), case("x", ms=500))])[1] == {"a.js::x": 0.75}


def test_a_run_without_tests_collected_nothing_unless_something_else_went_wrong() -> None:
    found = suite_run([report(END)], None, "", 1.0)
    assert (found.problem, found.detail) == (RunProblem.NOTHING_COLLECTED, "no test was found")
    assert suite_run([report(END)], None, "no files", 1.0).detail == "no files"
    broken = suite_run([report(END)], RunProblem.TIMEOUT, "too slow", 1.0)
    assert (broken.problem, broken.detail) == (RunProblem.TIMEOUT, "too slow")
