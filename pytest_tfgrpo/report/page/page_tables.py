"""Tables that only the page makes: tools, faults with examples, values of any shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.texts.text import label, pathless
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.blocks import table
from pytest_tfgrpo.report.blocks.fault_messages import RAISE, TRUNCATED
from pytest_tfgrpo.report.page.grid import Grid

EXAMPLES = 3
MOST = 1_000
"""Rows of a table by scenario that is no map."""
MAX_ROWS = 300
"""Rows of a table of any shape; the page says how many it leaves out."""
SHOWN = frozenset(
    {
        "schema", "run_id", "task_id", "actor", "status", "reason", "started_at", "finished_at",
        "partial_selection", "files", "epochs", "gain", "domains", "regressions", "scenarios", "faults",
        "library", "judge", "fault_messages", "failures", "cost", "gate", "settings", "stamps", "versions",
        "warnings", "sections", "acceptance", "attribution",
    }
)  # fmt: skip
"""Keys of the report that have a place of their own; all others are shown as tables by what they hold."""


def tools(report: Report) -> list[dict[str, Any]]:
    """Return calls, tokens, cost and latency of each tool and model over the run, busiest first."""
    totals: dict[str, dict[str, Any]] = {}
    for row in report["epochs"]:
        for use in row["tools"]:
            total = totals.setdefault(
                use["tool"],
                {"tool": use["tool"], "calls": 0, "tokens": 0, "usd": 0.0, "unknown": 0, "ms": 0.0, "by": {}},
            )
            total["calls"] += use["calls"]
            total["tokens"] += use["tokens"]["sum"] or 0
            total["usd"] += use["cost_usd"]["sum"] or 0.0
            total["unknown"] += use["calls"] - use["cost_usd"]["n"]
            total["ms"] += use["latency_ms"]["sum"] or 0.0
            total["by"][label(row)] = use["calls"]
    return sorted(totals.values(), key=lambda total: (-total["calls"], total["tool"]))


def tags(cells: Grid, run: Run | None) -> list[dict[str, Any]]:
    """Return each tag with how the scenarios that have it did in the final sweep, by name; at most MAX_ROWS.

    A gain is that of the scenarios which were in the baseline sweep too.
    """
    if run is None or cells.last is None:
        return []
    tagged = {scenario.id: dict.fromkeys(scenario.tags) for scenario in run.scenarios if scenario.tags}
    means: defaultdict[str, list[tuple[float, float | None]]] = defaultdict(list)
    for row in cells.rows:
        cell = row.cells[cells.last]
        if row.split == "eval" and cell is not None and cell.mean is not None:
            for tag in tagged.get(row.id, ()):
                means[tag].append((cell.mean, row.change))
    found = []
    for tag in sorted(means)[:MAX_ROWS]:
        gains = [gain for _, gain in means[tag] if gain is not None]
        scores = [mean for mean, _ in means[tag]]
        gain = fsum(gains) / len(gains) if gains else None
        found.append({"tag": tag, "n": len(scores), "mean": fsum(scores) / len(scores), "gain": gain})
    return found


def faults(report: Report, run: Run | None) -> list[dict[str, Any]]:
    """Return each reason code with how often it came and the first rollouts that it came to."""
    examples: dict[tuple[str, str], list[dict[str, str]]] = {}
    for result in run.phases if run is not None else ():
        for rollout in (r for group in result.groups for r in group.rollouts if r.status != "ok"):
            code = rollout.failure.code if rollout.failure else "unknown"
            rows = examples.setdefault((rollout.status, code), [])
            if len(rows) < EXAMPLES:
                message = rollout.failure.message if rollout.failure else ""
                rows.append(
                    {
                        "scenario": rollout.scenario_id,
                        "phase": result.phase.label,
                        "rollout": str(rollout.index),
                        "message": message,
                    }
                )
    return [
        {
            "kind": f"cut off, scored 0: {RAISE}" if code == TRUNCATED else meaning,
            "code": code,
            "n": n,
            "examples": examples.get((status, code), []),
        }
        for kind, status, meaning in (
            ("errors", "error", "error, not scored"),
            ("failed", "failed", "without an answer, scored 0"),
        )
        for code, n in sorted(report["faults"][kind].items(), key=lambda item: (-item[1], item[0]))
    ]


def settings_rows(settings: Mapping[str, Json]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the settings that differ from their defaults, and the others, as names and texts."""
    chosen, usual = list[tuple[str, str]](), list[tuple[str, str]]()
    for name, value in sorted(settings.items()):
        known = BY_NAME.get(name)
        rows = usual if known is not None and known.default == value else chosen
        rows.append((name, _setting_text(name, value)))
    return chosen, usual


def _setting_text(name: str, value: Json) -> str:
    """Return the value of a setting as one writes it, with its unit."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, str):
        return pathless(value)
    text = f"{value:g}" if isinstance(value, float) and value == float(f"{value:g}") else str(value)
    return text + (" s" if name.endswith("_s") else "")


EFFECTS = {
    "effect": "shrunken",
    "alone": "effect",
    "95 % interval": "ci95",
    "p adjusted": "p_adjusted",
    "with / without": "included",
    "result": "verdict",
}
"""Columns on what a lesson does, with the key of each."""


def effect_columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of the effects of lessons in which one has a figure; none where none is measured."""
    known = list(rows)
    if not any(row.get("shrunken") is not None for row in known):
        return []
    return [name for name, key in EFFECTS.items() if any(row.get(key) is not None for row in known)]


def reach_columns(rows: Iterable[Any]) -> list[str]:
    """Return the columns of what became of the scenarios that lessons reach in which one has a figure."""
    known = [row for row in rows if row]
    return [
        key for key in ("before", "after", "change") if any(getattr(row, key) is not None for row in known)
    ]


def further(report: Report) -> list[tuple[str, Json]]:
    """Return the keys of the report that have no place of their own, with something in them."""
    placed = SHOWN | {block.key for block in table.BLOCKS if block.caveat}
    return [
        (key, value) for key, value in report.items() if key not in placed and value not in (None, {}, [], "")
    ]


def has_caveats(report: Report) -> bool:
    """Return whether there is something to say about how far the result can be trusted."""
    return any(block.of(report) for block in table.BLOCKS if block.caveat)


def shape(value: Json) -> dict[str, Any]:
    """Return any JSON value as what a template can show: `text`, `facts`, `table` or `list`."""
    if isinstance(value, Mapping):
        plain = {key: item for key, item in value.items() if not _nested(item)}
        parts = [(key, shape(item)) for key, item in value.items() if _nested(item)]
        return {
            "kind": "facts",
            "facts": [(key, flat(item, key)) for key, item in plain.items()],
            "parts": parts,
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and all(isinstance(item, Mapping) for item in value):
            heads = list(dict.fromkeys(key for item in value for key in item))
            return {
                "kind": "table",
                "heads": heads,
                "rows": [[flat(item.get(head), head) for head in heads] for item in value[:MAX_ROWS]],
                "more": max(0, len(value) - MAX_ROWS),
            }
        return {
            "kind": "list",
            "items": [flat(item) for item in value[:MAX_ROWS]],
            "more": max(0, len(value) - MAX_ROWS),
        }
    return {"kind": "text", "text": flat(value)}


def _nested(value: Json) -> bool:
    """Return whether a value needs a part of its own: a table, an object, or a list of more than numbers."""
    if isinstance(value, Mapping):
        return bool(value)
    return (
        isinstance(value, list | tuple) and bool(value) and not all(isinstance(x, int | float) for x in value)
    )


def flat(value: Json, key: str = "") -> str:
    """Return a value as one text: numbers rounded for a reader, an interval by its `key` as ``a to b``."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) >= 1000 or (value and abs(value) < 0.001) else f"{value:.3f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {flat(item)}" for key, item in value.items()) or "-"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if key.startswith("ci") and len(value) == 2:
            return f"{value[0]:.3f} to {value[1]:.3f}"
        return ", ".join(map(flat, value)) or "-"
    return str(value)
