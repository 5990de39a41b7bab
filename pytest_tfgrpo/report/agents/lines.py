"""Agents side by side as lines of a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.texts.text import line, number, plural, signed, table, wrapped
from pytest_tfgrpo.report.comparison.compare_columns import NAMES, SHOWN, facts
from pytest_tfgrpo.report.comparison.compare_lines import answer, reasons, told

DIFFERING = 5
"""Scenarios that are shown."""


def agents_lines(value: Mapping[str, Any], width: int = 80, *, verbosity: int = 0) -> list[str]:
    """Return the lines of a comparison: what differs for certain, then a table with a column each.

    Below 0 only the former is shown; from 1 all scenarios on which agents differ.
    """
    pairs = [text for pair in value["pairs"] for text in wrapped(pair_text(pair), width, hanging=" " * 4)]
    if value["comparisons"] > 1:
        pairs.append(f"each p is corrected for {value['comparisons']} comparisons (Holm)")
    if verbosity < 0:
        return pairs
    names = [agent["name"] for agent in value["agents"]]
    longest = min(SHOWN, (width - NAMES) // len(names) - 2)
    short = [line(name, longest) for name in names]
    blocks = [
        pairs,
        table(["final sweep", *short], rows_of(value, longest)),
        _scenarios(value["scenarios"], short, width, every=verbosity > 0),
    ]
    return [text for i, block in enumerate(blocks) if block for text in ([""] * (i > 0) + block)]


def rows_of(value: Mapping[str, Any], longest: int = 200) -> list[list[str]]:
    """Return the rows of the table of agents: a name, then a cell for each agent."""
    gains = ["-" if one["gain"] is None else signed(one["gain"]["difference"]) for one in value["agents"]]
    rows = facts(value["agents"], longest)
    return [*rows, ["gain by its own lessons", *gains]] if any(gain != "-" for gain in gains) else rows


def headline(pair: Mapping[str, Any]) -> str:
    """Return what two agents came to."""
    return answer(pair, line(pair["before"]), line(pair["after"]))


def pair_text(pair: Mapping[str, Any]) -> str:
    """Return the result of two agents in words."""
    why = "; ".join(reasons(pair))
    return f"{headline(pair)}: {'; '.join(filter(None, [why, *told(pair)]))}"


def _scenarios(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], width: int, *, every: bool
) -> list[str]:
    """Return the scenarios on which the agents differ."""
    apart = [row for row in rows if len({mean for mean in row["means"] if mean is not None}) > 1]
    if not apart:
        return []
    taken = sum(max(len(name), 5) + 2 for name in names) + 18
    shown = apart if every else apart[:DIFFERING]
    found = table(
        ["largest differences", "domain", *names],
        [
            [
                line(row["scenario"], max(width - taken, 16)),
                line(row["domain"], 16),
                *map(number, row["means"]),
            ]
            for row in shown
        ],
        left=2,
    )
    rest = len(apart) - len(shown)
    return [*found, f"... {plural(rest, 'more scenario')}; -v shows all"] if rest else found
