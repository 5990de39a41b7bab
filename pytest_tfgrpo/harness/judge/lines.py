"""The judge in the terminal section: what it said, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tfgrpo.harness.printable import interval, line, number, table, wrapped

Judge = Mapping[str, Any] | None
"""The value `judge` of a report."""


def lines(judge: Judge, width: int, *, by_domain: bool) -> list[str]:
    """Return the lines about the judge; `by_domain` adds a table where there is more than one domain."""
    if judge is None:
        return []
    found = [text for part in _sentences(judge) for text in wrapped(part, width, hanging="       ")]
    if by_domain and len(judge["domains"]) > 1:
        found += calibration_table(judge)
    return found


def _sentences(judge: Mapping[str, Any]) -> Iterator[str]:
    votes = "" if judge["votes"] is None else f", {judge['votes']} votes each"
    head = f"judge  {line(judge['model'] or 'unknown', 80)}{votes}: {judge['opinions']} rollouts judged"
    if judge["no_verdict"]:
        head += f", {judge['no_verdict']} without a verdict"
    if judge["vote_agreement"] is not None:
        head += f"; votes agree {judge['vote_agreement']:.3f}"
    yield head
    against = judge["calibration"]
    if against is None or not against["n"]:
        if judge["opinions"]:
            yield "       not calibrated: no rollout was scored by checks too"
        return
    yield (
        f"       against the checks of {against['n']} rollouts: agreement {against['agreement']:.3f} "
        f"({interval(against['ci95'])}), kappa {number(against['kappa'])}, bias {against['bias']:+.3f}, "
        f"rank correlation {number(against['rank_correlation'])}"
    )


def calibration_table(judge: Mapping[str, Any]) -> list[str]:
    """Return the calibration by domain."""
    return table(
        ["judge by domain", "rollouts", "agreement", "kappa", "bias", "no verdict", "votes agree"],
        [
            [
                line(row["domain"], 24),
                str(row["n"]),
                number(row["agreement"]),
                number(row["kappa"]),
                "-" if row["bias"] is None else f"{row['bias']:+.3f}",
                str(row["no_verdict"]),
                number(row["vote_agreement"]),
            ]
            for row in judge["domains"]
        ],
    )
