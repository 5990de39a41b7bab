"""How the training jobs go, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.report.figure_lines import labelled
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob, queue_depth


def training_figures(jobs: Sequence[TrainingJob], *, runs_here: bool) -> dict[str, Json]:
    """Return what is shown of jobs; `runs_here` is whether this configuration names a project or trainer."""
    ended = [job for job in jobs if job.ended]
    newest = max(ended, key=lambda job: str(job.status["timestamp"]), default=None)
    running = next((job for job in jobs if job.state == "running"), None)
    reasons = (job.status.get("metadata", {}).get("waiting") for job in jobs if job.state == "queued")
    return {
        "queue_depth": queue_depth(jobs),
        "waiting": next(filter(None, reasons), None),
        "queued": [job.id for job in jobs if job.state == "queued"],
        "running": None if running is None else dict(running.status),
        "last": None if newest is None else dict(newest.status),
        "ended": len(ended),
        "runs_here": runs_here,
    }


def training_lines(figures: Mapping[str, Json]) -> Iterator[str]:
    """Yield nothing where there never was a job, else what runs, waits and ended last."""
    queued, running, last = (figures[name] for name in ("queued", "running", "last"))
    if running is not None:
        yield from labelled("training", f"{running['training_job_id']} runs{_progress(running)}")
    if queued:
        ids = ", ".join(queued[:3]) + (", ..." if len(queued) > 3 else "")
        yield from labelled("queued", f"{plural(len(queued), 'training job')}: {ids}")
    if figures["waiting"]:
        yield from labelled("waits", line(str(figures["waiting"]), 300))
    if queued and running is None and not figures["runs_here"]:
        yield from labelled(
            "nobody",
            "no service with this loop.toml runs jobs; set [training] project to the folder of your suite",
        )
    if last is not None:
        yield from labelled("last job", f"{last['training_job_id']} {last['status']}{_end(last)}")


def _progress(status: Mapping[str, Json]) -> str:
    progress = status.get("progress")
    if not progress:
        return ""
    left = progress.get("eta_seconds")
    more = "" if left is None else f", {left:,.0f} s left"
    known = "total_epochs" in progress and "current_epoch" in progress
    epochs = f"epoch {progress['current_epoch']} of {progress['total_epochs']}, " if known else ""
    return f": {epochs}{progress.get('percent_complete', 0):.0f} %{more}"


def _end(status: Mapping[str, Json]) -> str:
    if "error" in status:
        return f": {status['error']['code']}, {line(str(status['error'].get('message') or ''), 300)}"
    if "artifacts" not in status:
        return ""
    reason = status.get("metadata", {}).get("reason")
    said = f"{reason}; " if reason else ""
    return f": {said}{line(str(status['artifacts']['final_checkpoint']), 300)}"
