"""Named metrics as tables by sweep and epoch, and by domain, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.report_blocks import EpochRow, MetricFigures, Report, ScoreQuantity
from pytest_tfgrpo.core.texts.text import interval, label, line, number, plural, table

CHECK = "check."
NAME = 24
"""Characters of a name on the terminal."""
DOMAINS, ROWS = 24, 100
"""Domains that the terminal, and a table of the page, shows; the others stand in the files."""
LEGEND = "n: scenarios with a score in the last column, whose 95 % interval it is"


def metrics_of(report: Report) -> tuple[list[EpochRow], list[str]]:
    """Return the sweeps and epochs that have metrics, and the names of all; older reports have none.

    A check kind that every scenario has alone repeats gt_score, and is not among them.
    """
    rows = [row for row in report["epochs"] if row.get("metrics")]
    names = dict.fromkeys(name for row in rows for name in row["metrics"])
    return rows, [name for name in names if not (name.startswith(CHECK) and _repeats(rows, name))]


def _repeats(rows: Sequence[EpochRow], name: str) -> bool:
    pairs = [(figures_of(row, name), row["metrics"]["gt_score"]) for row in rows]
    return all(own is None or (own["n"], own["sum"]) == (gt["n"], gt["sum"]) for own, gt in pairs)


def titled(name: str, figures: Mapping[str, Any] | None) -> str:
    """Return the name of a metric with its unit, and with its direction where less is better."""
    known = figures or {}
    about = [known.get("unit") or "", "lower is better" if known.get("better") == "lower" else ""]
    told = ", ".join(filter(None, about))
    return f"{line(name, NAME)} ({line(told, NAME)})" if told else line(name, NAME)


def title_of(rows: Sequence[EpochRow], name: str) -> str:
    """Return the title of a metric in the last of the rows that has it."""
    return titled(name, next((of for row in reversed(rows) if (of := figures_of(row, name))), None))


def left_out(rows: Sequence[EpochRow]) -> str:
    """Return how many metrics the last row does not show; empty where it shows all."""
    n = rows[-1].get("metrics_left_out", 0) if rows else 0
    return f"{plural(n, 'more metric')} of few scenarios: `tfgrpo show` has those of a rollout" if n else ""


def figures_of(row: EpochRow, name: str) -> MetricFigures | None:
    """Return what a sweep or epoch has of a metric; None where no rollout of it was looked at so."""
    return row["metrics"].get(name)


def domains_of(rows: Sequence[EpochRow], name: str) -> list[str]:
    """Return the domains in which a metric has a score in one of the rows."""
    known = [figures["domains"] for row in rows if (figures := figures_of(row, name)) is not None]
    return sorted({domain for domains in known for domain, part in domains.items() if part["n"]})


def named_metric_lines(report: Report, width: int) -> list[str]:
    """Return the metrics as lines of at most `width` characters; none for a report without them."""
    rows, names = metrics_of(report)
    if not rows:
        return []
    more = [f"... {told}"] if (told := left_out(rows)) else []
    return [*_by_phase(rows, names, width), *more, LEGEND, *_by_domain(rows[-1], names, width)]


def _by_phase(rows: Sequence[EpochRow], names: Sequence[str], width: int) -> list[str]:
    """Return means by sweep and epoch; where not all fit, the ones in the middle are left out."""
    last = [figures_of(rows[-1], name) for name in names]

    def lines(shown: Sequence[EpochRow], gap: bool) -> list[str]:
        heads = [label(row) for row in shown]
        cells = [[_mean(figures_of(row, name)) for row in shown] for name in names]
        for row in (heads, *cells) if gap else ():
            row.insert(1, "...")
        ends = [["-", "-"] if of is None else [str(of["n"]), interval(of["ci95"])] for of in last]
        body = [[title_of(rows, name), *row, *end] for name, row, end in zip(names, cells, ends, strict=True)]
        return table(["metric", *heads, "n", "95 % interval"], body)

    shown = list(rows)
    made = lines(shown, gap=False)
    while max(map(len, made)) > width and len(shown) > 2:
        del shown[1]
        made = lines(shown, gap=True)
    return made


def _by_domain(row: EpochRow, names: Sequence[str], width: int) -> list[str]:
    """Return means by domain, in as many tables as the width needs; none for a single domain."""
    domains = sorted({domain for of in row["metrics"].values() for domain in of["domains"]})
    if len(domains) < 2:
        return []
    head = f"in {label(row)}"
    room = width - max(len(head), *(len(title_of([row], name)) for name in names))
    made: list[str] = []
    for part in _fitting(domains[:DOMAINS], room):
        body = []
        for name in names:
            of = figures_of(row, name)
            if of is not None and of["n"]:
                means = [_mean(of["domains"].get(domain)) for domain in part]
                body.append([titled(name, of), *means])
        made += ["", *table([head, *(line(domain, NAME) for domain in part)], body)]
    left = len(domains) - DOMAINS
    return [*made, f"... {plural(left, 'more domain')}: see per-epoch.json"] if left > 0 else made


def _fitting(domains: Sequence[str], room: int) -> Iterator[list[str]]:
    """Yield the domains in parts whose columns fit into so many characters, at least one in each."""
    part: list[str] = []
    used = 0
    for domain in domains:
        needed = 2 + max(len(line(domain, NAME)), len("0.000"))
        if part and used + needed > room:
            yield part
            part, used = [], 0
        part.append(domain)
        used += needed
    if part:
        yield part


def _mean(of: MetricFigures | ScoreQuantity | None) -> str:
    return "-" if of is None else number(of["mean"])
