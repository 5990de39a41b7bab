"""The block `as_failures`: the mean of each sweep and epoch with errors counted as 0."""

from __future__ import annotations

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.texts.text import number
from pytest_tfgrpo.metrics.noise import AsFailures, as_failures
from pytest_tfgrpo.report.blocks.block import ReportBlock

ERRORS_LEGEND = "errors=0: gt mean with errors counted as failures"


def errors_as_zero(report: Report) -> dict[tuple[int, str], float | None]:
    """Return the mean with errors as 0 by epoch and mode; empty for a run without errors."""
    return {(row["epoch"], row["mode"]): row["mean"] for row in AS_FAILURES.of(report) or ()}


def as_failures_markdown(report: Report) -> list[str]:
    """Return the means for a summary."""
    means = ", ".join(map(_mean, AS_FAILURES.of(report) or ()))
    return [f"- With errors counted as failures (score 0), gt mean: {means}."] if means else []


def _mean(row: AsFailures) -> str:
    ends = "" if row["ci95"] is None else f" ({row['ci95'][0]:.3f} to {row['ci95'][1]:.3f})"
    return f"epoch {row['epoch']} ({row['mode']}) {number(row['mean'])}{ends}"


AS_FAILURES = ReportBlock("as_failures", lambda at: as_failures(at.run))
