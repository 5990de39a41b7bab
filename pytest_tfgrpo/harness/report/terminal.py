"""The terminal section of a run: plain text of 80 columns, made from the report value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.report_blocks import (
    EpochRow,
    LibraryBlock,
    PlannedSweep,
    RefusedLesson,
    Report,
    Sequential,
    ToolUse,
)
from pytest_tfgrpo.core.text import (
    cost,
    count,
    duration,
    interval,
    label,
    line,
    number,
    plural,
    scenarios_of,
    signed,
    table,
    wrapped,
)
from pytest_tfgrpo.harness.report.acceptance import acceptance_lines
from pytest_tfgrpo.harness.report.attribution import attribution_lines
from pytest_tfgrpo.harness.report.cost import cost_lines
from pytest_tfgrpo.harness.report.faults import fault_lines
from pytest_tfgrpo.harness.report.gates import gate_lines, low
from pytest_tfgrpo.harness.report.judge import judge_lines, label_lines
from pytest_tfgrpo.harness.report.trust import (
    ERRORS_LEGEND,
    claim,
    control,
    drift,
    errors_as_zero,
    over,
    trust_lines,
)

SHORT_LESSONS = 5
OPEN_LEGEND = "open: within chance (Holm's p of {:.3g} or more), or too few scenarios to tell"
JUST_THESE_LEGEND = "with fewer than 8 families, the interval of a domain is of just these scenarios"
SHORT_REFUSALS = 3
LEGEND = (
    "gt mean: mean share of checks passed; pass@k: solved within k tries;",
    "informative: groups with mixed results; lessons: active (+new ~revised -removed)",
)


def terminal(report: Report, *, verbosity: int = 0, width: int = 80, told_above: bool = False) -> list[str]:
    """Return the lines of the terminal section; `told_above` says that items have shown failed gates.

    Below 0 (``-q``) only warnings, gain, gate and files are shown; from 1 (``-v``) all lessons, the per-tool
    table, the judge by domain, the cost by model and every rule of the gate.
    """
    quiet, verbose = verbosity < 0, verbosity > 0
    blocks = [
        _head(report, width, verbose=verbose),
        [] if quiet else _epochs(report["epochs"], errors_as_zero(report)),
        _tools(report["epochs"]) if verbose else [],
        [
            *_gain(report, width),
            *label_lines(report.get("labels"), width),
            *([] if quiet else _domains(report, every=verbose)),
        ],
        [] if quiet else trust_lines(report, width, every=verbose),
        [] if quiet else changes_table("largest regressions", report["regressions"]),
        wrapped(low(report, every=verbose), width, hanging="  ") if report.get("low") else [],
        [] if quiet else _lessons(report["library"], width, verbose=verbose),
        [] if quiet else acceptance_lines(report.get("acceptance"), width, every=verbose),
        [] if quiet else attribution_lines(report.get("attribution"), width, every=verbose),
        [] if quiet else judge_lines(report["judge"], width, by_domain=verbose),
        [] if quiet or "cost" not in report else cost_lines(report["cost"], width, by_model=verbose),
        _early_stop(report.get("sequential"), width),
        gate_lines(report["gate"], width, every=verbose, quiet=quiet, told_above=told_above),
        [] if quiet else [line(extra) for extra in report["sections"]],
        [f"files  {line(report['files'])}"] if report["files"] else [],
    ]
    filled = [block for block in blocks if block]
    if quiet:
        return [text for block in filled for text in block]
    return [text for i, block in enumerate(filled) for text in ([""] * (i > 0) + block)]


def _early_stop(sequential: Sequential | None, width: int) -> list[str]:
    if sequential is None:
        return []
    from pytest_tfgrpo.harness.gate.early_stop import early_stop_lines

    return early_stop_lines(sequential, width)


def _head(report: Report, width: int, *, verbose: bool) -> list[str]:
    """Return the status, errors and warnings of a run, if there are any."""
    lines = []
    if report["status"] != "complete":
        why = f": {line(report['reason'], 300)}" if report["reason"] else ""
        advice = "; finish it with --tfgrpo-resume" if report["files"] and not report["gate"] else ""
        lines += wrapped(f"the run is {report['status']}{why}{advice}", width, hanging="  ")
    faults = report["faults"]
    for kind, what, meaning in (
        ("errors", "error", ", not scored"),
        ("failed", "failure", " of the agent, scored 0"),
    ):
        if faults[kind]:
            codes = ", ".join(f"{line(code, 40)} {n}" for code, n in faults[kind].items())
            told = plural(sum(faults[kind].values()), what)
            lines += wrapped(f"{told}{meaning}: {codes}", width, hanging="  ")
    lines += fault_lines(report.get("fault_messages", ()), width, every=verbose, kept=bool(report["files"]))
    for warning in report["warnings"]:
        lines += wrapped(f"warning: {line(warning, 400)}", width, hanging="  ")
    return lines


def lessons_changed(row: EpochRow) -> str:
    """Return the active lessons after an epoch and what changed: ``12 (+3 ~1 -0)``."""
    changes = row["experiences"]
    if row["mode"] != "train":
        return str(changes["in_force"])
    return f"{changes['in_force']} (+{changes['added']} ~{changes['updated']} -{changes['removed']})"


def _epochs(rows: Sequence[EpochRow], as_zero: Mapping[tuple[int, str], float | None]) -> list[str]:
    """Return the table of sweeps and epochs in two parts of 80 columns: scores and cost."""
    if not rows:
        return []
    sizes = {row["rollouts"] / row["groups"] for row in rows if row["groups"]}
    whole = all(size.is_integer() for size in sizes)  # not where a sweep ended while it was extended
    zero = ["errors=0"] if as_zero else []
    pass_g = [] if sizes == {1} else [f"pass@{min(sizes):g}" if whole and len(sizes) == 1 else "pass@G"]
    scores = table(
        ["", "temp", "rollouts", "errors", "gt mean", "95 % interval", "pass@1", *pass_g],
        [
            [
                label(row),
                f"{row['temperature']:g}",
                str(row["rollouts"]),
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
                cost(row["cost_usd"], row["rollouts"]) if row["rollouts"] else "-",
                duration(row["latency_ms"]["p50"]),
                duration(row["latency_ms"]["p95"]),
            ]
            for row in rows
        ],
    )
    tries = " or ".join(f"{size:g}" for size in sorted(sizes))
    within = [f"pass@G: within all tries of a phase, {tries}"] if whole and "pass@G" in pass_g else []
    return [*scores, "", *work, *LEGEND, *within, *([ERRORS_LEGEND] if zero else [])]


def _tools(rows: Sequence[EpochRow]) -> list[str]:
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


def _gain(report: Report, width: int) -> list[str]:
    gain = report["gain"]
    if gain is None:
        return []
    if not gain["n"]:
        return ["gain  no scenario has a score in both sweeps"]
    spread = f"95 % interval {interval(gain['ci95'], '+.3f')}" if gain["ci95"] else "too few for an interval"
    text = (
        f"gain  {gain['difference']:+.3f} over {over(gain)} "
        f"(from {gain['before']:.3f} to {gain['after']:.3f}), {spread}, "
        f"{scenarios_of(gain['n'], gain['families'], gain['just_these'])}, paired"
    )
    if not gain["ci95"] or gain["ci95"][0] <= 0 <= gain["ci95"][1]:
        text += _power(gain["planned"])
    zero = gain["errors_as_zero"]
    if zero is not None:
        text += f"; with errors as 0: {zero['difference']:+.3f}, {interval(zero['ci95'], '+.3f')}"
    claimed = f"claim  {told}" if (told := claim(report)) else ""
    drifted = f"drift  {told}" if (told := drift(gain)) else ""
    more = [line for text in (claimed, drifted) for line in wrapped(text, width, hanging=" " * 7)]
    return [*wrapped(text + control(gain), width, hanging="      "), *more]


def _power(planned: PlannedSweep) -> str:
    """Return the gain that a sweep of the planned size can detect."""
    if planned["detectable"] is None:
        return ""
    size = f"{plural(planned['scenarios'], 'scenario')} x {plural(planned['rollouts'], 'rollout')}"
    return (
        f"; it may be chance: of a true gain of {planned['detectable']:.3f}, {size} would give evidence in "
        "4 of 5 runs, of a smaller one less often"
    )


def _domains(report: Report, *, every: bool) -> list[str]:
    """Return the domains of the final sweep, where there are several; `every` adds the p of their gains."""
    rows, gain = report["domains"], report["gain"]
    level = gain["claim"]["level"] if gain and "claim" in gain else 0.05
    if len(rows) < 2:
        return []
    if not any(row["gain"] for row in rows):
        means = [[line(row["domain"], 16), str(row["scenarios"]), number(row["mean"])] for row in rows]
        return table(["by domain", "scenarios", "mean"], means)
    found = table(
        [
            "by domain",
            "scenarios",
            "mean",
            "gain",
            "95 % interval",
            *(["Holm's p"] if every else []),
            "claim",
        ],
        [
            [
                line(row["domain"], 16),
                str(row["scenarios"]),
                number(row["mean"]),
                signed(row["gain"]["difference"] if row["gain"] else None),
                interval(row["gain"]["ci95"] if row["gain"] else None, "+.3f"),
                *([_p(row["p_adjusted"])] if every else []),
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


def _lessons(library: LibraryBlock, width: int, *, verbose: bool) -> list[str]:
    lessons = library["lessons"]
    if not lessons and not library["groups"]:
        return []
    head = plural(len(lessons), "active lesson")
    if library["groups"]:
        head += (
            f"; {library['informative_groups']} of {library['groups']} training groups had mixed results, "
            f"and {library['lesson_groups']} yielded a lesson"
        )
    if library["refused"]:
        head += "; refused: " + ", ".join(f"{code} {n}" for code, n in library["refused"].items())
    lines = wrapped(head, width, hanging="  ")
    shown = lessons if verbose else lessons[:SHORT_LESSONS]
    for lesson in shown:
        text = f"{lesson['polarity']:5} {line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
        lines += wrapped(text, width, "  ", " " * 8)
    if len(shown) < len(lessons):
        lines.append(f"  ... {len(lessons) - len(shown)} more; -v shows all")
    return [*lines, *_refusals(library.get("refusals", ()), width, verbose=verbose)]


def _refusals(refusals: Sequence[RefusedLesson], width: int, *, verbose: bool) -> list[str]:
    shown = refusals if verbose else refusals[:SHORT_REFUSALS]
    lines = []
    for refusal in shown:
        times = f" ({refusal['n']} times)" if refusal["n"] > 1 else ""
        text = f"refused ({line(refusal['code'], 40)}): {line(refusal['text'], 300) or 'a change'}"
        lines += wrapped(f"{text}: {line(refusal['reason'], 300)}{times}", width, "  ", " " * 8)
    if len(shown) < len(refusals):
        lines.append(f"  ... {len(refusals) - len(shown)} more refused; -v shows them")
    return lines
