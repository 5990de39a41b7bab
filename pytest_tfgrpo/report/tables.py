"""Tables of a run on the terminal, made from the report value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.records import TRAINING
from pytest_tfgrpo.core.report_blocks import EpochRow, Report, ToolUse
from pytest_tfgrpo.core.texts.text import cost, count, duration, interval, label, line, number, signed, table
from pytest_tfgrpo.report.blocks.as_failures import ERRORS_LEGEND

OPEN_LEGEND = "open: within chance (Holm's p of {:.3g} or more), or too few scenarios to tell"
JUST_THESE_LEGEND = "with fewer than 8 families, the interval of a domain is of just these scenarios"
LEGEND = (
    "gt mean: mean share of checks passed; pass@k: solved within k tries;",
    "informative: groups with mixed results; lessons: active (+new ~revised -removed)",
)
SHARED_LEGEND = "N + M: the agent ran N times; M answers are taken from the final sweep"


def rollouts(row: EpochRow) -> str:
    """Return the rollouts that a sweep counts: ``265 + 65`` if 65 of them are those of the final sweep."""
    shared = row.get("shared_rollouts", 0)
    return f"{row['rollouts']} + {shared}" if shared else str(row["rollouts"])


def shared_legend(rows: Sequence[EpochRow]) -> list[str]:
    """Return what explains rows whose rollouts are in part those of the final sweep, if there are any."""
    return [SHARED_LEGEND] if any(row.get("shared_rollouts") for row in rows) else []


def lessons_changed(row: EpochRow) -> str:
    """Return the active lessons after an epoch and what changed: ``12 (+3 ~1 -0)``."""
    changes = row["experiences"]
    if row["mode"] not in TRAINING:
        return str(changes["in_force"])
    return f"{changes['in_force']} (+{changes['added']} ~{changes['updated']} -{changes['removed']})"


def epoch_tables(rows: Sequence[EpochRow], as_zero: Mapping[tuple[int, str], float | None]) -> list[str]:
    """Return the table of sweeps and epochs in two parts of 80 columns: scores and cost."""
    if not rows:
        return []
    sizes = {row["rollouts"] / row["groups"] for row in rows if row["groups"] and row["mode"] != "evidence"}
    whole = all(size.is_integer() for size in sizes)  # not where a sweep ended while it was extended
    zero = ["errors=0"] if as_zero else []
    pass_g = [] if sizes == {1} else [f"pass@{min(sizes):g}" if whole and len(sizes) == 1 else "pass@G"]
    scores = table(
        ["", "temp", "rollouts", "errors", "gt mean", "95 % interval", "pass@1", *pass_g],
        [
            [
                label(row),
                heat(row),
                rollouts(row),
                str(row["errors"]),
                number(row["gt_score"]["mean"]),
                interval(row["gt_score"]["ci95"]),
                number(row["pass_at_1"]),
                *([number(row["pass_at_g"])] if pass_g else []),
            ]
            for row in rows
        ],
    )
    work = table(
        ["", *zero, "informative", "lessons (+ ~ -)", "tokens", "cost", "p50", "p95"],
        [
            [
                label(row),
                *([number(as_zero.get((row["epoch"], row["mode"])))] if zero else []),
                f"{row['informative_groups']}/{row['groups']}",
                lessons_changed(row),
                count(row["tokens"]["sum"]),
                spent(row),
                duration(row["latency_ms"]["p50"]),
                duration(row["latency_ms"]["p95"]),
            ]
            for row in rows
        ],
    )
    tries = " or ".join(f"{size:g}" for size in sorted(sizes))
    within = [f"pass@G: within all tries of a phase, {tries}"] if whole and "pass@G" in pass_g else []
    more = [*within, *([ERRORS_LEGEND] if zero else [])]
    return [*scores, "", *work, *shared_legend(rows), *LEGEND, *more]


def heat(row: EpochRow) -> str:
    """Return the temperature of a phase; ``-`` where no agent ran."""
    return f"{row['temperature']:g}" if row["mode"] != "evidence" else "-"


def spent(row: EpochRow) -> str:
    """Return what the rollouts of a phase cost; ``-`` where no agent ran."""
    paid = row["rollouts"] > 0 and row["mode"] != "evidence"
    return cost(row["cost_usd"], row["rollouts"]) if paid else "-"


def sweep_table(rows: Sequence[EpochRow]) -> list[str]:
    """Return a row for each sweep of the eval split, or for each epoch of a run without one."""
    swept = [row for row in rows if row["mode"] not in TRAINING] or rows
    if not swept:
        return []
    found = table(
        ["", "rollouts", "errors", "gt mean", "95 % interval", "pass@1", "cost", "p50"],
        [
            [
                label(row),
                rollouts(row),
                str(row["errors"]),
                number(row["gt_score"]["mean"]),
                interval(row["gt_score"]["ci95"]),
                number(row["pass_at_1"]),
                spent(row),
                duration(row["latency_ms"]["p50"]),
            ]
            for row in swept
        ],
    )
    return found + shared_legend(swept)


def tool_table(rows: Sequence[EpochRow]) -> list[str]:
    """Return the calls of each tool over the whole run, busiest first."""
    calls: dict[str, list[ToolUse]] = {}
    for row in rows:
        for tool in row["tools"]:
            calls.setdefault(tool["tool"], []).append(tool)
    if not calls:
        return []
    totals = [
        (
            sum(use["calls"] for use in uses),
            line(name, 30),
            sum(use["tokens"]["sum"] or 0 for use in uses),
            sum(use["latency_ms"]["sum"] or 0.0 for use in uses),
        )
        for name, uses in calls.items()
    ]
    return table(
        ["tool", "calls", "tokens", "mean latency"],
        [
            [name, str(n), count(tokens), duration(ms / n)]
            for n, name, tokens, ms in sorted(totals, reverse=True)
        ],
    )


def domain_table(report: Report) -> list[str]:
    """Return the domains of the final sweep, where there are several."""
    rows, gain = report["domains"], report["gain"]
    level = gain["claim"]["level"] if gain and "claim" in gain else 0.05
    if len(rows) < 2:
        return []
    if not any(row["gain"] for row in rows):
        means = [[line(row["domain"], 16), str(row["scenarios"]), number(row["mean"])] for row in rows]
        return table(["by domain", "scenarios", "mean"], means)
    found = table(
        ["by domain", "scenarios", "mean", "gain", "95 % interval", "Holm's p", "claim"],
        [
            [
                line(row["domain"], 16),
                str(row["scenarios"]),
                number(row["mean"]),
                signed(row["gain"]["difference"] if row["gain"] else None),
                interval(row["gain"]["ci95"] if row["gain"] else None, "+.3f"),
                _p(row["p_adjusted"]),
                row["claim"] or "open",
            ]
            for row in rows
        ],
    )
    found += [] if all(row["claim"] for row in rows) else [OPEN_LEGEND.format(level)]
    few = any(row["gain"] and row["gain"]["just_these"] for row in rows)
    return [*found, JUST_THESE_LEGEND] if few else found


def _p(value: float | None) -> str:
    return "<0.001" if value is not None and value < 0.001 else number(value)


def changes_table(title: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of the scenarios that changed most; none without rows."""
    if not rows:
        return []
    return table(
        [title, "domain", "before", "after", "change"],
        [
            [
                line(row["scenario"], 34) + (" (flaky)" if row.get("flaky") else ""),
                line(row["domain"], 16),
                number(row["before"]),
                number(row["after"]),
                signed(row["difference"]),
            ]
            for row in rows
        ],
        left=2,
    )
