"""The judge for a reader: what it said, and how far it can be trusted; in terminal and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tfgrpo.harness.printable import interval, line, number, table, wrapped

TITLE = "judge  "
HEAD = ("judge by domain", "rollouts", "agreement", "kappa", "bias", "no verdict", "votes agree")


def lines(judge: Mapping[str, Any] | None, width: int, *, by_domain: bool) -> list[str]:
    """Return the lines about the value `judge` of a report; `by_domain` adds a table of several domains."""
    if judge is None:
        return []
    found: list[str] = []
    for sentence in sentences(judge):
        indent = " " * len(TITLE) if found else TITLE
        found += wrapped(sentence, width, indent, " " * len(TITLE))
    if by_domain and len(judge["domains"]) > 1:
        found += table(HEAD, list(rows(judge)))
    return found


def sentences(judge: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the judge did, and how its verdicts compare with checks."""
    votes = "" if judge["votes"] is None else f", {judge['votes']} votes each"
    head = f"{line(judge['model'] or 'unknown', 80)}{votes}: {judge['opinions']} rollouts judged"
    if judge["no_verdict"]:
        head += f", {judge['no_verdict']} without a verdict"
    if judge["vote_agreement"] is not None:
        head += f"; votes agree {judge['vote_agreement']:.3f}"
    yield head
    against = judge["calibration"]
    if against is not None and against["n"]:
        yield (
            f"against the checks of {against['n']} rollouts: agreement {against['agreement']:.3f} "
            f"({interval(against['ci95'])}), kappa {number(against['kappa'])}, bias {against['bias']:+.3f}, "
            f"rank correlation {number(against['rank_correlation'])}"
        )
    elif judge["opinions"]:
        yield "not calibrated: no rollout has both a verdict and a score by checks"


def rows(judge: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the calibration of each domain, as cells under `HEAD`."""
    for row in judge["domains"]:
        yield [
            line(row["domain"], 20),
            str(row["n"]),
            number(row["agreement"]),
            number(row["kappa"]),
            "-" if row["bias"] is None else f"{row['bias']:+.3f}",
            str(row["no_verdict"]),
            number(row["vote_agreement"]),
        ]
