"""Runs as the columns of tables: their facts, metrics and scenarios, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_tfgrpo.core.texts.text import cost, count, duration, interval, line, money, number, price, signed
from pytest_tfgrpo.report.cost import spent
from pytest_tfgrpo.report.named_metrics import CHECK, titled

LETTERS = "ABCDE"
"""One for each run, as columns and sentences call it: A is the run that the others are compared with."""
SHOWN = 20
"""Most characters of a value that a table shows."""
NAMES = 26
"""Characters of the longest name of a row, with the space behind it."""

_Facts: TypeAlias = Mapping[str, Any]
_Get: TypeAlias = Callable[[Any], Any]
_Show: TypeAlias = Callable[[Any], str]


def pairs(value: _Facts) -> list[tuple[str, _Facts]]:
    """Return each run that is compared with A, by its letter."""
    return list(zip(LETTERS[1:], (value, *value["further"]), strict=False))


def runs(value: _Facts) -> list[tuple[str, _Facts]]:
    """Return the facts of all runs by letter."""
    return [("A", value["before"]), *((letter, one["after"]) for letter, one in pairs(value))]


def heads(value: _Facts) -> list[str]:
    """Return the heads of a table with a column for each run: with two of them also their change."""
    return [*(letter for letter, _ in runs(value)), *([] if value["further"] else ["change"])]


def sides(value: _Facts, width: int = 80) -> list[list[str]]:
    """Return the rows of the table of facts: a name, each run, and of two runs the change."""
    every = [side for _, side in runs(value)]
    return facts(every, min(SHOWN, (width - NAMES - 12 * (len(every) == 2)) // len(every) - 2), change=True)


def facts(every: Sequence[_Facts], longest: int, *, change: bool = False) -> list[list[str]]:
    """Return the rows of a table of runs: a name, each run, and of two runs the `change` if it is wanted."""

    def row(
        name: str, of: _Get, show: _Show, number_of: _Get | None = None, unit: _Show | None = None
    ) -> list[str]:
        """`number_of` returns the number of a side whose change is shown in `unit`; else there is none."""
        shown = ["-" if one is None else line(show(one), longest) for one in map(of, every)]
        if len(every) > 2 or not change:
            return [name, *shown]
        before, after = (None if number_of is None else number_of(side) for side in every)
        return [name, *shown, _change(before, after, unit or show)]

    def both(name: str, of: _Get, show: _Show) -> list[str]:
        return row(name, of, show, of)

    return [
        row("status", lambda side: side, _status),
        row("actor", lambda side: side["actor"], str),
        row("temperature", _final("temperature"), "{:g}".format),
        both("scenarios", _final("scenarios"), str),
        both("rollouts", _final("rollouts"), str),
        both("errors", _final("errors"), str),
        both("gt mean, errors left out", _final("mean"), number),
        both("gt mean, errors as 0", _final("mean_errors_as_zero"), number),
        both("pass@1", _final("pass_at_1"), number),
        both("tokens per rollout", _final("tokens", "mean"), count),
        both("cost per rollout", _rollout_usd, price),
        row("cost of the final sweep", _final(), _sweep_cost, _sweep_usd, money),
        both("p50", _final("p50_ms"), duration),
        both("tokens of the whole run", lambda side: side["total"]["tokens"], count),
        row("cost of the whole run", lambda side: side["total"], spent, _total_usd, money),
        both("lessons", lambda side: side["lessons"], str),
    ]


def metrics(value: _Facts) -> list[list[str]]:
    """Return the rows of named metrics, as `sides` does; of two runs the interval of the change follows."""
    found = [{row["name"]: row for row in one.get("metrics", ())} for _, one in pairs(value)]
    rows = []
    for name in dict.fromkeys(name for by_name in found for name in by_name):
        own = [by_name.get(name, {}) for by_name in found]
        before = next((row["before"] for row in own if row), None)
        known: Mapping[str, Any] = max(own, key=lambda row: row.get("n", -1))
        gt = [by_name.get("gt_score", {}) for by_name in found]
        if name.startswith(CHECK) and own == [{**of, "name": name} for of in gt]:
            continue  # every scenario has this kind of checks alone
        row = [titled(name, known), *map(number, (before, *(one.get("after") for one in own)))]
        if len(own) == 1:
            row += [signed(own[0]["difference"]), interval(own[0]["ci95"], "+.3f")]
        rows.append(row)
    return rows


def changed(value: _Facts) -> list[dict[str, Any]]:
    """Return the scenarios scored in A and in another run, those that differ most first.

    Each has its `means`, `errors` and `changes` against A by run; None where a run has no score of it.
    """
    others = [{row["scenario"]: row for row in one["scenarios"]} for _, one in pairs(value)]
    found = []
    for id_ in dict.fromkeys(id_ for rows in others for id_ in rows):
        rows = [by_id.get(id_) for by_id in others]
        known = [row for row in rows if row is not None]
        changes = [None if row is None else row["difference"] for row in rows]
        found.append(
            {
                "scenario": id_,
                "domain": known[0]["domain"],
                "means": [known[0]["before"], *(None if row is None else row["after"] for row in rows)],
                "errors": [known[0]["errors"][0], *(0 if row is None else row["errors"][1] for row in rows)],
                "changes": changes,
            }
        )
    return sorted(found, key=_by_change)


def differing(value: _Facts, kind: str) -> list[tuple[str, list[Any]]]:
    """Return the settings, versions or stamps (`kind`) that differ from A's, with the value in each run."""
    found: dict[str, list[Any]] = {}
    for place, (_, one) in enumerate(pairs(value), 1):
        for row in one[kind]:
            values = found.setdefault(row["name"], [row["before"]] * (1 + len(pairs(value))))
            values[place] = row["after"]
    return sorted(found.items())


def _by_change(row: _Facts) -> tuple[float, float, str]:
    """Return what sorts scenarios: by the largest change, of equal ones losses first."""
    largest = max((one for one in row["changes"] if one is not None), key=abs)
    return -abs(largest), largest, row["scenario"]


def _final(*path: str) -> _Get:
    """Return what gets a value of the final sweep; None where a run has none."""

    def of(side: Any) -> Any:
        for key in ("final", *path):
            side = None if side is None else side[key]
        return side

    return of


def _sweep_cost(final: _Facts) -> str:
    return cost(final["cost_usd"], final["rollouts"])


def _sweep_usd(side: _Facts) -> float | None:
    """Return the cost of the final sweep where all of it is known."""
    final = side["final"]
    if final is None or not final["rollouts"] or final["cost_usd"]["n"] < final["rollouts"]:
        return None
    return float(final["cost_usd"]["sum"])


def _rollout_usd(side: _Facts) -> float | None:
    """Return the mean cost of a rollout of the final sweep where all of it is known and not nothing."""
    usd = _sweep_usd(side)
    return usd / side["final"]["rollouts"] if usd else None


def _total_usd(side: _Facts) -> float | None:
    total = side["total"]
    return None if total["unknown"] or total["usd"] is None else float(total["usd"])


def _status(side: _Facts) -> str:
    return f"{side['status']}{' (partial)' if side['partial_selection'] else ''}"


def _change(before: Any, after: Any, show: _Show) -> str:
    """Return a difference in the unit of its values; empty where they are equal or one is unknown."""
    if before is None or after is None or after == before:
        return ""
    return ("+" if after > before else "-") + show(abs(after - before))
