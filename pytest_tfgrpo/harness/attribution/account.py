"""The account of attribution: what a report says each lesson does, and its lines in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.harness.attribution.evidence import UNSEEN, Standing, standings
from pytest_tfgrpo.harness.attribution.exposures import content_key, known_lessons, record_of
from pytest_tfgrpo.harness.attribution.pooling import UNREAD
from pytest_tfgrpo.harness.attribution.retirement import history
from pytest_tfgrpo.harness.printable import interval, line, table, wrapped
from pytest_tfgrpo.numerics.attribution import MIN_ARM

TITLE = "lessons' effect  "
TEXT = 27
"""Columns of a lesson's text in the table."""
ORDER = ("harmful", "helpful", "unclear", "not_estimable")
WORDS = {"not_estimable": "not yet estimable"}


def account(run: Run) -> dict[str, Any] | None:
    """Return what each lesson in force, or removed in the run, does; None where none was left out by chance.

    It rests on the training groups of the run, and of earlier runs for lessons that it started with.
    """
    chances = [result.phase.leave_out for result in run.phases if result.phase.mode == "train"]
    if not any(chances):
        return None
    own, before = record_of(run).rows, history(run.preflight)
    found = standings([*before, *own])
    in_force = {e.id for e in run.library.experiences}
    lessons = {
        e.id: (_value(e, found.get(content_key(e), UNSEEN), e.id in in_force))
        for e in (*run.library.experiences, *_removed(run))
    }
    return {
        "leave_out": max(chances),
        "groups": len(own),
        "earlier_groups": len(before),
        "unread": list(run.preflight.get(UNREAD, ())),
        "errors": sum(row.errors for row in own),
        "estimated": sum(standing.effect is not None for standing in found.values()),
        "lessons": list(lessons.values()),
    }


def _removed(run: Run) -> list[Experience]:
    """Return the lessons that an operation of the run took away without another in their place."""
    known = known_lessons(run.library_start, run.phases)
    gone = [
        target
        for result in run.phases
        if result.revision is not None
        for operation in result.revision.applied
        if operation.kind == "remove"
        for target in operation.targets
    ]
    return [known[id] for id in gone if id in known]


def _value(experience: Experience, standing: Standing, in_force: bool) -> dict[str, Any]:
    return {
        "id": experience.id,
        "domain": experience.domain,
        "polarity": experience.polarity,
        "text": experience.summary32,
        "in_force": in_force,
        "effect": standing.effect,
        "ci95": None if standing.ci95 is None else list(standing.ci95),
        "p": standing.p,
        "p_adjusted": standing.p_adjusted,
        "included": standing.included,
        "left_out": standing.left_out,
        "scenarios": standing.scenarios,
        "verdict": standing.verdict,
    }


def lines(value: Mapping[str, Any] | None, width: int, *, every: bool) -> list[str]:
    """Return the lines on the key `attribution` of a report; `every` adds a table of the lessons."""
    if value is None or not value["lessons"]:
        return []
    lessons = sorted(value["lessons"], key=lambda v: (ORDER.index(v["verdict"]), v["effect"] or 0.0))
    counts = Counter(lesson["verdict"] for lesson in lessons)
    told = ", ".join(
        f"{counts[verdict]} {WORDS.get(verdict, verdict)}" for verdict in ORDER if counts[verdict]
    )
    text = f"{told}; each left out of {value['leave_out']:.0%} of the training groups by chance"
    retired = sum(lesson["verdict"] == "harmful" and not lesson["in_force"] for lesson in lessons)
    if retired:
        text += f"; harmful and retired: {retired}"
    found = wrapped(text, width, TITLE, "  ")
    if value["unread"]:
        more = f" (and {len(value['unread']) - 1} more)" if len(value["unread"]) > 1 else ""
        found += wrapped(f"warning: {line(value['unread'][0], 200)}{more}", width, "  ", "  ")
    if every:
        found += table(
            ["effect", "95 % interval", "p", "with", "without", "lesson"], [_row(v) for v in lessons], left=0
        )
        legend = f"effect: mean reward with it minus without, from {MIN_ARM} groups of each; p: by Holm"
        found += wrapped(legend, width, "  ")
    return found


def _row(lesson: Mapping[str, Any]) -> list[str]:
    gone = "" if lesson["in_force"] else "gone: "
    text = line(f"{gone}{lesson['polarity']} {lesson['domain']}: {lesson['text']}", TEXT)
    return [
        "-" if lesson["effect"] is None else f"{lesson['effect']:+.3f}",
        interval(lesson["ci95"], "+.3f"),
        probability(lesson["p_adjusted"]),
        str(lesson["included"]),
        str(lesson["left_out"]),
        text.ljust(TEXT),
    ]


def probability(p: float | None) -> str:
    """Return a p value for a table; ``-`` when there is none."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
