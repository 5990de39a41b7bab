"""The terminal section of a run: plain text of 80 columns, made from the report value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_tfgrpo.core.report_blocks import Lesson, LibraryBlock, PlannedSweep, RefusedLesson, Report
from pytest_tfgrpo.core.texts.text import interval, line, plural, scenarios_of, wrapped
from pytest_tfgrpo.report.acceptance import acceptance_lines
from pytest_tfgrpo.report.attribution import attribution_lines
from pytest_tfgrpo.report.blocks.as_failures import errors_as_zero
from pytest_tfgrpo.report.blocks.contamination import contamination_lines
from pytest_tfgrpo.report.blocks.endpoints import endpoint_lines
from pytest_tfgrpo.report.blocks.fault_messages import FAULT_MESSAGES, RAISE, TRUNCATED, fault_lines
from pytest_tfgrpo.report.blocks.low import low
from pytest_tfgrpo.report.blocks.sequential import sequential_lines
from pytest_tfgrpo.report.cost import cost_lines, cost_summary
from pytest_tfgrpo.report.failures.failure_clusters import cluster_lines, cluster_rows
from pytest_tfgrpo.report.gates import gate_lines
from pytest_tfgrpo.report.judging.judge import judge_lines, label_lines
from pytest_tfgrpo.report.named_metrics import named_metric_lines
from pytest_tfgrpo.report.outcome import outcome
from pytest_tfgrpo.report.tables import (
    changes_table,
    domain_table,
    epoch_tables,
    sweep_table,
    tool_table,
)
from pytest_tfgrpo.report.trust import claim, control, drift, over, p_of, trust_lines

SHORT_LESSONS = 3
SHORT_REFUSALS = 3
SHORT_FLAGGED = 3
NOTHING_MIXED = "no group had mixed results, so there was nothing to learn from"
"""What a learning step notes where it had nothing to learn from."""
ALIKE = "kinds of task without a difference in tools, arguments or form of answer: "
"""How the note of a learning step starts that counts kinds of task which gave no lesson."""

_EPOCH = re.compile(r"epoch\d+")
_ADVISED = re.compile("; (finish|follow) it with ")
"""In a reason that says already what to do."""

REST = "-v shows all lessons, tables, costs and rules of the gate"


def terminal(
    report: Report, *, verbosity: int = 0, width: int = 80, told_above: bool = False, warned: bool = False
) -> list[str]:
    """Return the lines of the terminal section: result, lessons, warnings, failures, tables, files.

    `told_above` says that items have shown failed gates, `warned` that warnings are shown elsewhere. Below 0
    (``-q``) only gate, gain, warnings and files are shown; from 1 (``-v``) everything that the report has.
    """
    sentence = outcome(report)
    if verbosity < 0:
        if report["gate"] is None and report["gain"] is None and report["status"] == "complete":
            sentence = ""  # `pytest -q` of a suite that neither learned nor has a gate: dots say it
        blocks = [
            wrapped(sentence, width),
            _result(report, width, False, told_above),
            _warnings(report, width, every=False, quiet=True, warned=warned),
        ]
        return [text for block in (*blocks, _files(report)) for text in block]
    every = verbosity > 0
    blocks = [
        [*wrapped(sentence, width), *_result(report, width, every, told_above)],
        _learned(report, width, every=every),
        [
            *_warnings(report, width, every=every, warned=warned),
            *trust_lines(report, width, every=every),
            *(contamination_lines(report, width) if every else []),
            *_clusters(report, width, every=every),
        ],
        *(_tables(report, width) if every else []),
        [
            *([] if every else _short_tables(report, width)),
            *endpoint_lines(report, width),
            *(line(extra) for extra in report["sections"]),
            *_files(report),
            *([] if every or not report["epochs"] else [REST]),
        ],
    ]
    filled = [block for block in blocks if block]
    return [text for i, block in enumerate(filled) for text in ([""] * (i > 0) + block)]


def _result(report: Report, width: int, every: bool, told_above: bool) -> list[str]:
    """Return how the run ended: its gate, its gain and what that shows."""
    lines = list[str]()
    if report["status"] != "complete":
        why = f": {line(report['reason'], 300)}" if report["reason"] else ""
        told = report["gate"] or _ADVISED.search(report["reason"])
        advice = "; finish it with --tfgrpo-resume" if report["files"] and not told else ""
        lines += wrapped(f"the run is {report['status']}{why}{advice}", width, hanging="  ")
    lines += gate_lines(report["gate"], width, every=every, quiet=not every, told_above=told_above)
    lines += _gain(report, width, every=every)
    lines += label_lines(report.get("labels"), width)
    lines += sequential_lines(report, width)
    return lines + (wrapped(text, width, hanging="  ") if (text := low(report, every=every)) else [])


def _learned(report: Report, width: int, *, every: bool) -> list[str]:
    known = report.get("attribution")
    estimated = known is not None and any(lesson["effect"] is not None for lesson in known["lessons"])
    return [
        *_lessons(report["library"], width, verbose=every),
        *acceptance_lines(report.get("acceptance"), width, every=every),
        *(attribution_lines(known, width, every=every) if every or estimated else []),
    ]


def _clusters(report: Report, width: int, *, every: bool) -> list[str]:
    """Return what failed rollouts have in common: in full, or a row and an id for ``tfgrpo show`` each."""
    block, kept = report.get("failures"), bool(report["files"])
    return (cluster_lines if every else cluster_rows)(block, width, kept=kept)


def _short_tables(report: Report, width: int) -> list[str]:
    return [
        *sweep_table(report["epochs"]),
        *changes_table("largest regressions", report["regressions"]),
        *judge_lines(report["judge"], width, by_domain=False),
        *(cost_summary(report["cost"], width) if "cost" in report else []),
    ]


def _tables(report: Report, width: int) -> list[list[str]]:
    return [
        epoch_tables(report["epochs"], errors_as_zero(report)),
        named_metric_lines(report, width),
        tool_table(report["epochs"]),
        domain_table(report),
        changes_table("largest regressions", report["regressions"]),
        judge_lines(report["judge"], width, by_domain=True),
        cost_lines(report["cost"], width) if "cost" in report else [],
    ]


def _files(report: Report) -> list[str]:
    return [f"files  {line(report['files'])}"] if report["files"] else []


def _warnings(
    report: Report, width: int, *, every: bool, quiet: bool = False, warned: bool = False
) -> list[str]:
    """Return the errors, failures and warnings of a run, if there are any; `quiet` shows no clusters."""
    lines: list[str] = []
    faults = report["faults"]
    without = {code: n for code, n in faults["failed"].items() if code != TRUNCATED}
    for counts, what, meaning in (
        (faults["errors"], "error", ", not scored"),
        (without, "rollout", " without an answer, scored 0"),
    ):
        if counts:
            codes = ", ".join(f"{line(code, 40)} {n}" for code, n in counts.items())
            told = plural(sum(counts.values()), what)
            lines += wrapped(f"{told}{meaning}: {codes}", width, hanging="  ")
    if cut_off := faults["failed"].get(TRUNCATED):
        lines += wrapped(f"{plural(cut_off, 'rollout')} cut off, scored 0: {RAISE}", width, hanging="  ")
    clusters = None if quiet else report.get("failures")
    rows, kept = FAULT_MESSAGES.of(report) or (), bool(report["files"])
    lines += fault_lines(rows, width, every=every, kept=kept, told=clusters)
    for text in () if warned else warnings_of(report, every=every):
        lines += wrapped(f"warning: {text}", width, hanging="  ")
    return lines


def warnings_of(report: Report, *, every: bool = False) -> list[str]:
    """Return the warnings of a run on a line each; unless `every`, what epochs have in common once."""
    return [line(warning, 400) for warning in (report["warnings"] if every else _together(report))]


def _together(report: Report) -> list[str]:
    """Return the warnings, those that say the same of several epochs as one: ``epoch1, epoch2: ...``.

    So are counts of kinds of task that gave no lesson. Left out is what the lessons above say of all epochs:
    that no group had mixed results, or that some kinds of task gave lessons and others did not.
    """
    known, found = report["library"], dict[str, list[tuple[str, str]]]()
    for warning in report["warnings"]:
        epoch, colon, text = warning.partition(": ")
        if not colon or _EPOCH.fullmatch(epoch) is None:
            found.setdefault(warning, [])
            continue
        if text == NOTHING_MIXED and known["groups"] and not known["informative_groups"]:
            continue
        if text.startswith(ALIKE) and known["lesson_groups"]:
            continue
        stem = text.rstrip("0123456789") if text.startswith(ALIKE) else text
        found.setdefault(stem, []).append((epoch, text.removeprefix(stem)))
    return [_of_epochs(stem, told) for stem, told in found.items()]


def _of_epochs(stem: str, told: Sequence[tuple[str, str]]) -> str:
    """Return a warning of some epochs, each with the number that ends it; of none as it is."""
    numbers = list(dict.fromkeys(number for _, number in told))
    shown = ", ".join(number for _, number in told) if len(numbers) > 1 else "".join(numbers)
    return f"{', '.join(epoch for epoch, _ in told)}: {stem}{shown}" if told else stem


def _gain(report: Report, width: int, *, every: bool) -> list[str]:
    gain = report["gain"]
    if gain is None:
        return []
    if not gain["n"]:
        return ["gain  no scenario has a score in both sweeps"]
    spread = f"95 % interval {interval(gain['ci95'], '+.3f')}" if gain["ci95"] else "too few for an interval"
    chance = f", p {told}" if (told := p_of(gain)) else ""
    text = (
        f"gain  {gain['difference']:+.3f} over {over(gain)} "
        f"(from {gain['before']:.3f} to {gain['after']:.3f}), {spread}{chance}, "
        f"{scenarios_of(gain['n'], gain['families'], gain['just_these'] and every)}, paired"
    )
    if every and (not gain["ci95"] or gain["ci95"][0] <= 0 <= gain["ci95"][1]):
        text += _power(gain["planned"])
    zero = gain["errors_as_zero"]
    if zero is not None:
        spread = interval(zero["ci95"], "+.3f") if zero["ci95"] else "too few for an interval"
        text += f"; with errors as 0: {zero['difference']:+.3f}, {spread}"
    claimed = f"shown  {told}" if every and (told := claim(report)) else ""
    drifted = f"drift  {told}" if (told := drift(gain)) else ""
    more = [line for text in (claimed, drifted) for line in wrapped(text, width, hanging=" " * 7)]
    asked = gain.get("control")
    text += control(gain) if every or (asked is not None and asked["asked"] == "early") else ""
    return [*wrapped(text, width, hanging="      "), *more]


def _power(planned: PlannedSweep) -> str:
    """Return the gain that a sweep of the planned size can detect."""
    if planned["detectable"] is None:
        return ""
    smallest = f"{planned['detectable']:.3f}"
    return f"; it may be chance: a true gain of {smallest} shows in 4 of 5 runs of the planned size"


def _lessons(library: LibraryBlock, width: int, *, verbose: bool) -> list[str]:
    lessons = library["lessons"]
    if not lessons and not library["groups"]:
        return []
    head = plural(len(lessons), "active lesson")
    if library["groups"]:
        head += (
            f"; {library['informative_groups']} of {library['groups']} training groups had mixed results, "
            f"{library['lesson_groups']} yielded one"
        )
    if library["refused"]:
        head += "; refused: " + ", ".join(f"{code} {n}" for code, n in library["refused"].items())
    lines = wrapped(head, width, hanging="  ")
    shown = lessons if verbose else lessons[:SHORT_LESSONS]
    for lesson in shown:
        text = f"{line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
        kind = f"  {lesson['polarity']:5} "
        lines += wrapped(kind + text, width, "", " " * 8) if verbose else [kind + line(text, width - 8)]
    lines += _flagged([lesson for lesson in lessons if lesson.get("flags")], width, verbose=verbose)
    return [*lines, *_refusals(library.get("refusals", ()), width, verbose=verbose)]


def _flagged(lessons: Sequence[Lesson], width: int, *, verbose: bool) -> list[str]:
    shown = lessons if verbose else lessons[:SHORT_FLAGGED]
    lines = []
    for lesson in shown:
        text = f"read before promote ({', '.join(lesson.get('flags', ()))}): {line(lesson['text'], 300)}"
        lines += wrapped(text, width, "  ", " " * 8)
    if len(shown) < len(lessons):
        lines.append(f"  ... {len(lessons) - len(shown)} more to read before promote; -v shows them")
    return lines


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
