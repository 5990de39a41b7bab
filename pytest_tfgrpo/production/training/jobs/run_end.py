"""What became of a job's run, from its report and from the exit code of pytest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import JOURNAL, LIBRARY, REPORT_JSON, read_plain
from pytest_tfgrpo.core.texts.text import block
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.jobs.status import JobErrorCode, JobOutcome, failed
from pytest_tfgrpo.runs.journal.journal import ended_at

NOTHING_LEARNED = "nothing_learned"
TAIL_BYTES = 4000
"""Of a log, which an error shows."""
_LOST = 9
"""SIGKILL, which is what a machine without memory sends."""
_SAID: Mapping[int, tuple[JobErrorCode, str]] = {
    2: ("INFRA", "pytest was interrupted, or could not collect the project"),
    3: ("INFRA", "pytest broke"),
    4: ("INFRA", "pytest refused its arguments or the project's settings"),
    5: ("DATA", "the project has no scenarios"),
}

_REFUSED = "budget_usd is "
"""In what pytest says where it refuses a budget."""
_BUDGETS = "set [training] budget_usd_per_job and budget_usd_per_day"


def read_report(run: Path) -> Mapping[str, Json] | None:
    """Return the report of a run that came to an end; None if it did not. Raises JournalError."""
    path = run / REPORT_JSON
    try:
        report: Mapping[str, Json] = load_json(read_plain(path))
        whole = ended_at(run / JOURNAL, str(report["finished_at"]))
        return report if whole else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JournalError(f"cannot read {path}: {error}; restore or delete it") from error


def run_outcome(run: Path, report: Mapping[str, Json]) -> JobOutcome:
    """Return the outcome of a run that is complete."""
    learned = report["library"]["start"] != report["library"]["hash"]
    library = run.parent.parent / LIBRARY
    start = report["settings"].get("library") or "none"
    checkpoint = str(library) if library.is_file() else start
    metadata: dict[str, Json] = {"run_id": report["run_id"], "gate": _gate(report)}
    if not learned:
        metadata["reason"] = NOTHING_LEARNED
    parts = {
        "evaluation_results": _results(report),
        "artifacts": {"final_checkpoint": checkpoint},
        "resource_usage": usage_of(report),
        "metadata": metadata,
    }
    return JobOutcome(trigger="finish", parts=parts)


def usage_of(report: Mapping[str, Json]) -> dict[str, Json]:
    """Return the block ``resource_usage`` from the bill of a run."""
    started, finished = (datetime.fromisoformat(report[name]) for name in ("started_at", "finished_at"))
    return {
        "cost_usd": (report.get("cost") or {}).get("usd") or 0.0,
        "total_training_time_seconds": max(0.0, round((finished - started).total_seconds(), 3)),
    }


def _gate(report: Mapping[str, Json]) -> str:
    return str((report.get("gate") or {}).get("outcome", "none"))


def _results(report: Mapping[str, Json]) -> dict[str, Json]:
    swept = [row for row in report["epochs"] if row["mode"] == "eval"]
    found: dict[str, Json] = {}
    if swept and (mean := swept[-1]["gt_score"]["mean"]) is not None:
        found["holdout_reward"] = mean
    if report.get("gain"):
        found["improvement_over_baseline"] = report["gain"]["difference"]
    scores = {row["domain"]: row["mean"] for row in report.get("domains", ()) if row["mean"] is not None}
    return {**found, **({"benchmark_scores": scores} if scores else {})}


def failure(code: int, output: str, evidence: str) -> JobOutcome:
    """Return the outcome of pytest where no run came to its end; `output` is the end of what it printed."""
    if code < 0:
        error: JobErrorCode = "OOM" if -code == _LOST else "INFRA"
        message = f"signal {-code} ended pytest, again and again" + (
            "; the machine may have too little memory" if error == "OOM" else ""
        )
        return failed(error, message, output)
    kind, message = _SAID.get(code, ("UNKNOWN", f"pytest ended with code {code} and without a whole run"))
    if code == 4 and evidence in output:
        kind = "DATA"
    if code == 4 and _REFUSED in output:
        message = f"the project's agent or a model costs more than the budget allows; {_BUDGETS}"
    return failed(kind, f"{message}; see the traceback, fix that, and ask for another job", output)


def unfinished(report: Mapping[str, Json], output: str) -> JobOutcome:
    """Return the outcome of a run that ended before it was complete: by a budget, or by an error."""
    reason = report.get("reason") or report["status"]
    parts = {"resource_usage": usage_of(report), "metadata": {"run_id": report["run_id"]}}
    advice = f"; {_BUDGETS}" if reason.startswith("budget_usd") else ""
    return failed("INFRA", f"the run is {report['status']}: {reason}{advice}", output, parts)


def end_of(log: Path) -> str:
    """Return the end of a log, fit for a reader; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return block(file.read().decode(errors="replace").strip())
    except OSError:
        return ""
