"""How the run of a job ended, and what the job says of it."""

from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import REPORT_JSON
from pytest_tfgrpo.production.training.jobs.run_end import (
    TAIL_BYTES,
    _results,
    end_of,
    failure,
    read_report,
    unfinished,
    usage_of,
)


@pytest.mark.parametrize("text", ["no json", "{}", "[]"])
def test_a_report_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    assert read_report(tmp_path) is None
    (tmp_path / REPORT_JSON).write_text(text)
    with pytest.raises(JournalError, match=f"cannot read .*{REPORT_JSON}: .*; restore or delete it"):
        read_report(tmp_path)


@pytest.mark.parametrize(
    ("code", "output", "kind", "says"),
    [
        (-9, "", "OOM", "signal 9 ended pytest, again and again; the machine may have too little memory"),
        (-15, "", "INFRA", "signal 15 ended pytest, again and again"),
        (77, "", "UNKNOWN", "pytest ended with code 77 and without a whole run; see the traceback"),
    ],
)
def test_a_pytest_that_ends_without_a_run_says_why(code: int, output: str, kind: str, says: str) -> None:
    found = failure(code, output, "evidence")
    assert found.trigger == "fail"
    assert found.parts["error"]["code"] == kind
    assert found.parts["error"]["message"].startswith(says)
    assert ("memory" in found.parts["error"]["message"]) is (code == -9)
    assert "traceback" not in found.parts["error"]


def test_what_the_evidence_lacks_is_the_fault_of_the_data_in_usage_errors_alone() -> None:
    codes = [failure(code, "x evidence y", "evidence").parts["error"]["code"] for code in (4, 2)]
    assert codes[0] == "DATA" != codes[1]
    assert failure(4, "other", "evidence").parts["error"]["code"] != "DATA"


def test_a_run_that_a_budget_ended_says_which_to_raise() -> None:
    report = {"status": "stopped", "reason": "budget_usd: 2 spent", "run_id": "r1"}
    times = {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:01:00Z"}
    for reason, advised in (("budget_usd: 2 spent", True), ("interrupted", False), (None, False)):
        found = unfinished({**report, **times, "reason": reason}, "the end")
        error = found.parts["error"]
        assert error["message"].startswith(f"the run is stopped: {reason or 'stopped'}")
        assert ("set [training] budget_usd_per_job" in error["message"]) is advised
        assert (error["code"], error["traceback"], found.parts["metadata"]) == (
            "INFRA", "the end", {"run_id": "r1"}
        )  # fmt: skip


def test_of_a_log_the_end_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert end_of(log) == ""
    log.write_text("short\n")
    assert end_of(log) == "short"
    log.write_bytes(b"first " + b"\xff" * TAIL_BYTES + b" last")
    assert end_of(log).endswith("last")
    assert "first" not in end_of(log)


def test_results_are_those_that_the_run_has() -> None:
    baseline = {"mode": "baseline", "gt_score": {"mean": 0.25}}
    first, last = ({"mode": "eval", "gt_score": {"mean": mean}} for mean in (0.5, 0.75))
    bare = {"epochs": [baseline], "domains": [{"domain": "words", "mean": None}], "gain": None}
    assert _results(bare) == {}
    assert _results({"epochs": [first, last, baseline]}) == {"holdout_reward": 0.75}
    unknown = {"mode": "eval", "gt_score": {"mean": None}}
    assert _results({"epochs": [first, unknown], "gain": {"difference": 0.0}}) == {
        "improvement_over_baseline": 0.0
    }


def test_a_bill_is_never_below_0() -> None:
    times = {"started_at": "2026-01-01T00:01:00Z", "finished_at": "2026-01-01T00:00:00Z"}
    for cost in ({}, {"cost": None}, {"cost": {"usd": None}}):
        assert usage_of({**times, **cost}) == {"cost_usd": 0.0, "total_training_time_seconds": 0.0}
