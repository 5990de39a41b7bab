"""The cost of a run: the block `cost` of a report as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, get_args

from pytest_tfgrpo.core.report_blocks import CostBlock, ModelCost, Spent
from pytest_tfgrpo.core.texts.text import count, line, money, table, wrapped

Purpose: TypeAlias = Literal["rollouts", "learning", "judge", "user"]


def cost_summary(cost: CostBlock, width: int) -> list[str]:
    """Return what a run cost in all, and what is left of each budget; nothing where neither is known."""
    shown: list[str] = []
    if cost["usd"]:
        by = [f"{purpose} {spent(sums)}" for purpose, sums in by_purpose(cost)]
        of = f" ({', '.join(by)})" if len(by) > 1 else ""
        parts = [f"cost  {spent(cost)}{of}", *_unknown(cost), *list(_each(cost))[:1], *_tables(cost)]
        shown += wrapped("; ".join(parts), width, hanging="      ")
    return shown + [row for text in budget(cost) for row in wrapped(text, width, hanging="  ")]


def cost_lines(cost: CostBlock, width: int) -> list[str]:
    """Return the lines of a bill, none where nothing cost anything and no budget is set."""
    shown: list[str] = []
    if is_paid(cost):
        shown += _purposes(cost)
        if cost["models"]:
            shown += _models(cost["models"])
        for text in (*_unknown(cost), *_each(cost), *_tables(cost)):
            shown += wrapped(text, width, hanging="  ")
    for text in budget(cost):
        shown += wrapped(text, width, hanging="  ")
    return shown


def is_paid(cost: CostBlock) -> bool:
    """Return whether something cost money, or may have."""
    return bool(cost["usd"] or (cost["unknown"] and cost["models"]))


def spent(sums: Spent | ModelCost | CostBlock) -> str:
    """Return the cost of some calls: ``?`` is unknown, and ``+`` means that some of it is."""
    return money(sums["usd"]) + ("+" if sums["unknown"] and sums["usd"] is not None else "")


def by_purpose(cost: CostBlock) -> list[tuple[Purpose, Spent]]:
    """Return the sums over all epochs of each purpose that calls were made for."""
    purposes: tuple[Purpose, ...] = get_args(Purpose)
    sums = [
        (purpose, _sum(epoch[purpose] for epoch in cost["epochs"] if purpose in epoch))
        for purpose in purposes
    ]
    return [(purpose, own) for purpose, own in sums if own["calls"]]


def _sum(parts: Iterable[Spent]) -> Spent:
    parts = list(parts)
    known = [part["usd"] for part in parts if part["calls"] and part["usd"] is not None]
    return {
        "calls": sum(part["calls"] for part in parts),
        "failed": sum(part["failed"] for part in parts),
        "unknown": sum(part["unknown"] for part in parts),
        "tokens": sum(part["tokens"] for part in parts),
        "usd": sum(known) if known else None,
    }


def _purposes(cost: CostBlock) -> list[str]:
    rows: list[tuple[str, Spent | CostBlock]] = [*by_purpose(cost)]
    total = [("total", cost)] if len(rows) > 1 else []
    return table(
        ["purpose", "calls", "failed", "tokens", "cost"],
        [
            [name, str(row["calls"]), str(row["failed"]), count(row["tokens"]), spent(row)]
            for name, row in (*rows, *total)
        ],
    )


def _models(rows: Sequence[ModelCost]) -> list[str]:
    kinds = ("prompt", "cached", "completion", "reasoning")
    return table(
        ["model", "calls", *kinds, "cost"],
        [
            [
                line(row["model"], 30),
                str(row["calls"]),
                *(count(row["usage"][kind] if row["usage"] else None) for kind in kinds),
                spent(row),
            ]
            for row in rows
        ],
    )


def _unknown(cost: CostBlock) -> Iterator[str]:
    if cost["unknown"]:
        named = [(line(row["model"], 60), row["unknown"]) for row in cost["models"] if row["unknown"]]
        rest = cost["unknown"] - sum(n for _, n in named)
        named += [("rollouts that report no model call", rest)] if rest > 0 else []
        of = ", ".join(f"{name} {n}" for name, n in named)
        yield f"calls without a known cost: {cost['unknown']} ({of}); sums marked + leave them out"


def _each(cost: CostBlock) -> Iterator[str]:
    """Yield what one solved scenario and one lesson cost."""
    solved, lesson = cost["solved"], cost["lesson"]
    if solved is not None and solved["scenarios"]:
        n = round(solved["scenarios"], 2)
        text = f"per solved scenario {money(solved['usd_each'])} ({n:g} in the final sweep)"
        if solved["gained"] and solved["gained"] > 0:
            each, more = money(solved["usd_each_gained"]), round(solved["gained"], 2)
            text += f"; per scenario gained {each} ({more:g} more than before, at the cost of the whole run)"
        yield text
    if lesson is not None:
        yield f"per lesson {money(lesson['usd_each'])} ({lesson['lessons']} learned)"


def budget(cost: CostBlock) -> Iterator[str]:
    """Yield what of each budget is used and left."""
    for unit, row in (cost["budget"] or {}).items():
        show = money if unit == "usd" else count
        loose = "at least " if unit == "usd" and cost["unknown"] else ""
        rest = f"{show(row['over'])} over" if row["over"] else f"{show(row['left'])} left"
        yield f"budget_{unit}  {loose}{show(row['used'])} of {show(row['limit'])} used, {rest}"


def _tables(cost: CostBlock) -> Iterator[str]:
    """Yield where the prices are from: they change, and a table is as old as it is."""
    tables: dict[str, list[str]] = {}
    for row in cost.get("prices", ()):
        tables.setdefault(row["table"], []).append(line(row["model"], 60))
    if len(tables) == 1:
        yield f"prices of {line(next(iter(tables)), 60)}"
    elif tables:
        yield "prices " + "; ".join(f"{', '.join(m)} of {line(table, 60)}" for table, m in tables.items())
