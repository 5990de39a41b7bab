"""What a run came to in six lines, the verdict first, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pytest_tfgrpo.core.records import Failure, Group, Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.texts.text import count, gist, interval, line, money, number, plural, scenarios_of
from pytest_tfgrpo.metrics.passes import solved
from pytest_tfgrpo.report.blocks.fault_messages import FAULT_MESSAGES
from pytest_tfgrpo.report.gates import overall
from pytest_tfgrpo.report.outcome import outcome

WIDTH = 200
"""Characters of a line; a wider one is cut."""
SHOWN = 50
"""Scenarios in the table of a notebook."""
LONGEST = 200
"""Characters of an answer there."""
STYLE = """<style>
.tfgrpo-result { overflow-x: auto }
.tfgrpo-result pre { white-space: pre; overflow-x: auto }
.tfgrpo-result th, .tfgrpo-result td { text-align: left; vertical-align: top; white-space: nowrap }
.tfgrpo-result td:nth-child(even):not(:nth-child(2)) {
  white-space: normal; min-width: 12em; max-width: 32em; overflow-wrap: anywhere }
</style>"""
"""Answers, in every second column but that of the domain, are wrapped."""
UNTOUCHED = "tex2jax_ignore mathjax_ignore"
"""Classes of what a notebook leaves as it is: it would take `$...$` of an answer for mathematics."""


def headline(report: Report, passed: bool) -> str:
    """Return whether a run passed, and why not."""
    name = f"run {line(report['run_id'], 60)}"
    if report["status"] != "complete":
        return (
            f"{str(report['status']).upper()}: {name}: {line(report['reason'], 300) or 'not all of it ran'}"
        )
    gate = report["gate"]
    if not report["epochs"]:
        return f"NOTHING RAN: {name}: no scenario of the eval split was selected"
    if not passed:
        return f"FAILED: {name}: {_why(report)}"
    if gate is None:
        return f"complete: {name}, without a gate"
    return f"{'passed' if overall(gate) == 'pass' else 'inconclusive'}: {name}"


def _why(report: Report) -> str:
    gate = report["gate"]
    gates = [] if gate is None else [gate, *gate.get("gates", ())]
    failed = [rule for one in gates if one["outcome"] == "fail" for rule in one["results"]]
    found = [f"{one['name']}: {line(one['message'], 200)}" for one in failed if one["outcome"] == "fail"]
    return "; ".join(found) or "a replay lacks answers; see problems"


def result_lines(report: Report, passed: bool, folder: str) -> list[str]:
    """Return six lines: how it ended, the result in a sentence, gain, score, cost, files."""
    cost = report.get("cost")
    usd = "unknown" if cost is None or cost["usd"] is None else money(cost["usd"])
    told = {
        "result": outcome(report) or "none",
        "gain": _gain(report),
        "score": _score(report),
        "cost": usd if cost is None else f"{usd}, {count(cost['tokens'])} tokens",
    }
    lines = [f"{name:8} {line(text, WIDTH)}" for name, text in told.items()]
    return [line(headline(report, passed), WIDTH), *lines, f"files    {folder or 'none were written'}"]


def _score(report: Report) -> str:
    if not report["epochs"]:
        return "none"
    last = report["epochs"][-1]
    return (
        f"{number(last['gt_score']['mean'])} mean of {plural(last['rollouts'], 'rollout')} of "
        f"{plural(last['groups'], 'scenario')}, {faults(report)}"
    )


def faults(report: Report) -> str:
    """Return how many rollouts of the run have no answer or no score, with what the most frequent says."""
    found, rows = report["faults"], FAULT_MESSAGES.of(report) or ()
    why = f" ({rows[0]['code']}: {rows[0]['text']})" if rows else ""
    failed, errors = sum(found["failed"].values()), sum(found["errors"].values())
    return f"{failed} without an answer, {plural(errors, 'error')}{why}"


def _gain(report: Report) -> str:
    gain = report["gain"]
    if gain is None or gain["difference"] is None or gain["before"] is None or gain["after"] is None:
        return "not measured"
    spread = f"95 % interval {interval(gain['ci95'], '+.3f')}" if gain["ci95"] else "too few for an interval"
    counted = scenarios_of(gain["n"], gain["families"], gain["just_these"])
    return f"{gain['difference']:+.3f} ({gain['before']:.3f} to {gain['after']:.3f}), {spread}, {counted}"


def html_of(lines: Sequence[str], runs: Mapping[str, Run]) -> str:
    """Return lines and a table of the last sweep as HTML: a row for each scenario, columns for each agent."""
    sweeps = {name: _last_sweep(run) for name, run in runs.items()}
    ids = list(dict.fromkeys(id_ for sweep in sweeps.values() for id_ in sweep))
    domains = {s.id: s.domain for run in runs.values() for s in run.scenarios}
    single = len(runs) == 1
    head = ["scenario", "domain", *(part for name in runs for part in _titles("" if single else name))]
    rows = []
    for id_ in ids[:SHOWN]:
        cells = [text for sweep in sweeps.values() for text in _cells(sweep.get(id_))]
        rows.append(_html_row("td", [line(id_, 80), line(domains.get(id_, ""), 40), *cells]))
    left = len(ids) - SHOWN
    more = f"<p>{plural(left, 'more scenario')}: <code>rows()</code> has all</p>" if left > 0 else ""
    told = "\n".join(escape(text) for text in lines)
    table = (
        f"<table><thead>{_html_row('th', head)}</thead><tbody>{''.join(rows)}</tbody></table>" if ids else ""
    )
    return f'{STYLE}<div class="tfgrpo-result {UNTOUCHED}"><pre>{told}</pre>{table}{more}</div>'


def _titles(agent: str) -> tuple[str, str]:
    of = f"{agent}: " if agent else ""
    return f"{of}score", f"{of}answer"


def _html_row(tag: str, cells: Iterable[str]) -> str:
    inside = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"


def _last_sweep(run: Run) -> dict[str, Group]:
    """Return the groups of the last phase by scenario."""
    return {group.scenario_id: group for group in run.phases[-1].counted} if run.phases else {}


def _cells(group: Group | None) -> tuple[str, str]:
    """Return the mean score of a group with how many of its rollouts passed, and its worst answer."""
    if group is None:
        return "-", ""
    pairs = list(zip(group.rollouts, group.scores, strict=True))
    worst = min(pairs, key=lambda pair: (pair[1].gt_score is None, pair[1].gt_score or 0.0))[0]
    failure = worst.failure
    told = line(worst.answer, LONGEST) if failure is None else _failure(failure)
    return f"{number(group.gt_mean)} ({solved(group)} of {len(pairs)} passed)", told


def _failure(failure: Failure) -> str:
    return f"{line(failure.code, 40)}: {gist(failure.message, LONGEST)}"
