"""The head of a page: the outcome in a sentence, one large figure, what decided the gate, the other rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.report_blocks import Report, RuleFinding
from pytest_tfgrpo.core.texts.text import duration, line, number, signed
from pytest_tfgrpo.report import gates, trust
from pytest_tfgrpo.report.outcome import outcome

DECISIVE = ("baseline", "gain", "minimum mean")
"""Rules about the scores: the first of them that is set decides a gate that passes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Headline:
    """What a reader sees first."""

    outcome: str
    """The outcome of the run in a plain sentence; empty where nothing ran."""
    figure: str
    """The gain with its sign, else the mean of the last sweep or epoch; empty without either."""
    caption: str
    deciding: Sequence[RuleFinding]
    """What failed or is open, worst first; of a gate that passes the rule about the scores."""
    passed: Sequence[RuleFinding]
    """Further rules that passed."""
    unset: Sequence[str]
    """Names of rules that are not set."""
    advised: Sequence[RuleFinding]
    """Rules that were skipped, with what to do about it."""

    @property
    def tells_gain(self) -> bool:
        """Whether the interval of the gain stands in what decided."""
        return any(result["name"] == "gain" for result in self.deciding)


def headline(report: Report) -> Headline:
    """Return the head of a report's page."""
    figure, caption = _figure(report)
    results = report["gate"]["results"] if report["gate"] else []
    passed = [result for result in results if result["outcome"] == "pass"]
    skipped = [result for result in results if result["outcome"] == "skipped"]
    deciding = gates.unsettled(report["gate"]) if report["gate"] else []
    if not deciding and passed:
        scored = [result for name in DECISIVE for result in passed if result["name"] == name]
        deciding = (scored or passed)[:1]
    return Headline(
        outcome=outcome(report),
        figure=figure,
        caption=caption,
        deciding=deciding,
        passed=[result for result in passed if result not in deciding],
        unset=[result["name"] for result in skipped if not result["advice"]],
        advised=[result for result in skipped if result["advice"]],
    )


def _figure(report: Report) -> tuple[str, str]:
    gain = report["gain"]
    if gain and gain["n"]:
        ends = f"from {number(gain['before'])} to {number(gain['after'])}"
        return signed(gain["difference"]), f"gain over {trust.over(gain)}, {ends}"
    known = [row["gt_score"]["mean"] for row in report["epochs"] if row["gt_score"]["mean"] is not None]
    return (number(known[-1]), "mean gt_score") if known else ("", "")


def when(report: Report) -> str:
    """Return when a run began and how long it took, to the minute and in a fitting unit."""
    try:
        start = datetime.fromisoformat(report["started_at"])
        end = datetime.fromisoformat(report["finished_at"]) if report["finished_at"] else None
        took = "" if end is None else f", {duration((end - start).total_seconds() * 1000)}"
        return f"{start:%Y-%m-%d %H:%M}{' UTC' if start.tzinfo else ''}{took}"
    except (TypeError, ValueError):
        return f"{line(report['started_at'], 40)} to {line(report['finished_at'] or '?', 40)}"
