"""Markdown: the summary of a run for a pull request, made from the report value.

Whatever comes from scenarios and models is escaped: it cannot format, link, mention anybody or end a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.report_blocks import (
    CostBlock,
    DomainRow,
    EpochRow,
    Gain,
    GateBlock,
    Lesson,
    Regression,
    Report,
    RuleFinding,
)
from pytest_tfgrpo.core.texts.text import count, interval, line, number, plural, scenarios_of, signed
from pytest_tfgrpo.report.blocks.as_failures import as_failures_markdown
from pytest_tfgrpo.report.blocks.endpoints import endpoint_texts
from pytest_tfgrpo.report.blocks.low import low
from pytest_tfgrpo.report.cost import is_paid, spent
from pytest_tfgrpo.report.gates import in_order, named, overall, unsettled
from pytest_tfgrpo.report.judging.judge import label_markdown
from pytest_tfgrpo.report.outcome import outcome
from pytest_tfgrpo.report.tables import rollouts, shared_legend
from pytest_tfgrpo.report.trust import claim, control, drift, over, trust_markdown

CELL = 200
"""Characters of one cell."""
LESSONS = 20
OUTCOMES = {
    "pass": "passed",
    "fail": "**failed**",
    "inconclusive": "inconclusive",
    "skipped": "skipped",
    "not_judged": "not checked",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~@:-])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def summary(report: Report) -> str:
    """Return a page of a run: gate, means, gain, cost, what got worse, and the lessons."""
    blocks = [
        [f"## tfgrpo: {_headline(report)}"],
        [escaped(told, 1000)] if (told := outcome(report)) else [],
        [f"Run `{report['run_id']}` is {escaped(report['status'])}: {escaped(report['reason'])}"]
        if report["status"] != "complete"
        else [],
        _gate(report["gate"]),
        _named_gates(report["gate"]),
        [*_gain(report["gain"], claim(report)), *label_markdown(report.get("labels"), escaped)],
        _epochs(report["epochs"]),
        _domains(report["domains"]),
        _regressions(report["regressions"]),
        [f"- {escaped(text, 1000)}."] if (text := low(report)) else [],
        [*trust_markdown(report, escaped), *as_failures_markdown(report)],
        _cost(report["cost"]),
        [f"- Endpoint {escaped(text, 300)}." for text in endpoint_texts(report)],
        list(_lessons(report["library"]["lessons"])),
        [f"- {escaped(warning)}" for warning in report["warnings"]],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def escaped(text: object, limit: int = CELL) -> str:
    """Return foreign text as one line of Markdown that shows it literally."""
    return _SPECIAL.sub(r"\\\1", line(str(text), limit).translate(_ENTITIES))


def _headline(report: Report) -> str:
    gate = report["gate"]
    if gate is None:
        return escaped(report["status"])
    failed = [one["name"] for one in named(gate) if one["outcome"] == "fail" != one["severity"]]
    warned = f", with warnings from {escaped(', '.join(failed))}" if failed else ""
    return f"gate {OUTCOMES[overall(gate)].strip('*')}{warned}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _gate(gate: GateBlock | None) -> list[str]:
    if gate is None:
        return []
    rows = [_finding(r) for r in gate["results"] if r["outcome"] != "skipped"]
    return _table(["rule", "result", "why"], rows)


def _named_gates(gate: GateBlock | None) -> list[str]:
    """Return the named gates, failed ones first: one row for each that passed, else what keeps it from it."""
    rows = []
    for one in in_order(() if gate is None else named(gate)):
        name = [escaped(one["name"]), one["severity"]]
        if one["outcome"] == "pass":
            rows.append([*name, "all rules", OUTCOMES["pass"], plural(one["scenarios"], "scenario")])
        rows += [[*name, *_finding(result)] for result in unsettled(one)]
    return _table(["gate", "severity", "rule", "result", "why"], rows) if rows else []


def _finding(result: RuleFinding) -> list[str]:
    why = "; ".join(filter(None, (result["message"], result["advice"])))
    return [escaped(result["name"]), OUTCOMES[result["outcome"]], escaped(why, 500)]


def _gain(gain: Gain | None, claimed: str) -> list[str]:
    if gain is None or gain["difference"] is None:
        return []
    words = f"Gain {gain['difference']:+.3f} over {escaped(over(gain))}"
    if not gain["ci95"]:
        return [f"{words}."]
    counted = scenarios_of(gain["n"], gain["families"], gain["just_these"])
    told = f" Shown: {claimed}." if claimed else ""
    found = [f"{words}, 95 % interval {interval(gain['ci95'])}, {counted}, paired{control(gain)}.{told}"]
    return found + ([f"Drift {text}."] if (text := drift(gain)) else [])


def _epochs(epochs: Sequence[EpochRow]) -> list[str]:
    rows = [
        [
            f"{row['epoch']} ({row['mode']})",
            rollouts(row),
            str(row["errors"]),
            number(row["gt_score"]["mean"]),
            interval(row["gt_score"]["ci95"]),
        ]
        for row in epochs
    ]
    if not rows:
        return []
    table = _table(["epoch", "rollouts", "errors", "gt mean", "95 % interval"], rows)
    return [*table, *(part for legend in shared_legend(epochs) for part in ("", f"{legend}."))]


def _domains(domains: Sequence[DomainRow]) -> list[str]:
    if len(domains) < 2:
        return []
    rows = [
        [
            escaped(row["domain"]),
            str(row["scenarios"]),
            number(row["mean"]),
            signed(row["gain"]["difference"] if row["gain"] else None),
        ]
        for row in domains
    ]
    return _table(["domain", "scenarios", "mean", "gain"], rows)


def _regressions(rows: Sequence[Regression]) -> list[str]:
    found = [
        [escaped(r["scenario"]) + " (flaky)" * bool(r.get("flaky")), number(r["before"]), number(r["after"])]
        for r in rows
    ]
    return (
        ["Worse than before learning:", "", *_table(["scenario", "before", "after"], found)] if found else []
    )


def _cost(cost: CostBlock) -> list[str]:
    if not is_paid(cost):
        return []
    return [f"Cost {spent(cost)} in {plural(cost['calls'], 'call')}, {count(cost['tokens'])} tokens."]


def _lessons(lessons: Sequence[Lesson]) -> Iterator[str]:
    if not lessons:
        return
    yield f"<details><summary>{plural(len(lessons), 'active lesson')}</summary>"
    yield ""
    for lesson in lessons[:LESSONS]:
        flags = ", ".join(lesson.get("flags", ()))
        note = f" (read before promote: {flags})" if flags else ""
        yield f"- {lesson['polarity']}, {escaped(lesson['domain'])}: {escaped(lesson['text'], 400)}{note}"
    if len(lessons) > LESSONS:
        yield f"- and {len(lessons) - LESSONS} more"
    yield ""
    yield "</details>"
