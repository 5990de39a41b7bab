"""The effect of each lesson: the value `attribution` of a report, and its lines on the terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import AttributionBlock, EffectRow
from pytest_tfgrpo.core.texts.text import interval, line, plural, wrapped
from pytest_tfgrpo.learning.attribution.exposures import (
    UNREAD,
    content_key,
    history,
    known_lessons,
    record_of,
)
from pytest_tfgrpo.numerics.attribution import MIN_ARM

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.attribution.effects import LessonEffect

TITLE = "lessons' effect  "
ORDER = ("harmful", "helpful", "unclear", "not_estimable")
WORDS = {"not_estimable": "not yet known"}


def attribution_report(run: Run) -> AttributionBlock | None:
    """Return the effect of each lesson that is active or was removed in the run; None without dropout.

    It rests on the training groups of the run, and of earlier runs for lessons that it started with.
    """
    chances = [result.phase.lesson_dropout for result in run.phases if result.phase.mode == "train"]
    if not any(chances):
        return None
    from pytest_tfgrpo.learning.attribution.effects import UNSEEN, lesson_effects, shrunken

    own, before = record_of(run).rows, history(run.preflight)
    found = lesson_effects([*before, *own])
    drawn = shrunken(found)
    in_force = {e.id for e in run.library.experiences}
    lessons = {
        e.id: _value(
            e, found.get(content_key(e), UNSEEN), drawn.get(content_key(e)), in_force=e.id in in_force
        )
        for e in (*run.library.experiences, *_removed(run))
    }
    return {
        "lesson_dropout": max(chances),
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
    return [known[id_] for id_ in gone if id_ in known]


def _value(
    experience: Experience, standing: LessonEffect, drawn: float | None, *, in_force: bool
) -> EffectRow:
    return {
        "id": experience.id,
        "domain": experience.domain,
        "polarity": experience.polarity,
        "text": experience.summary32,
        "in_force": in_force,
        "effect": standing.effect,
        "shrunken": drawn,
        "ci95": None if standing.ci95 is None else list(standing.ci95),
        "p": standing.p,
        "p_adjusted": standing.p_adjusted,
        "included": standing.included,
        "left_out": standing.left_out,
        "scenarios": standing.scenarios,
        "verdict": standing.verdict,
    }


def attribution_lines(value: AttributionBlock | None, width: int, *, every: bool) -> list[str]:
    """Return the lines on the key `attribution` of a report; `every` adds what each estimated lesson does."""
    if value is None or not value["lessons"]:
        return []
    lessons = sorted(value["lessons"], key=lambda v: (ORDER.index(v["verdict"]), v["shrunken"] or 0.0))
    counts = Counter(lesson["verdict"] for lesson in lessons)
    told = ", ".join(
        f"{counts[verdict]} {WORDS.get(verdict, verdict)}" for verdict in ORDER if counts[verdict]
    )
    if set(counts) == {"not_estimable"}:
        told = f"not yet known: it takes {MIN_ARM} groups with a lesson and {MIN_ARM} without"
    text = f"{told}; each left out of {value['lesson_dropout']:.0%} of the training groups at random"
    if not value["groups"]:
        text = f"{told}; the run is too short for that, so none was left out"
    retired = sum(lesson["verdict"] == "harmful" and not lesson["in_force"] for lesson in lessons)
    if retired:
        text += f"; harmful and retired: {retired}"
    found = wrapped(text, width, TITLE, "  ")
    if value["unread"]:
        more = f" (and {len(value['unread']) - 1} more)" if len(value["unread"]) > 1 else ""
        found += wrapped(f"warning: {line(value['unread'][0], 200)}{more}", width, "  ", "  ")
    estimated = [lesson for lesson in lessons if lesson["effect"] is not None]
    if every and estimated:
        found += wrapped(
            "mean reward of training groups with it minus without, drawn towards the mean of the lessons; "
            "alone, with its interval and p adjusted by Holm's method:",
            width,
            "  ",
        )
        for lesson in estimated:
            found += wrapped(_row(lesson), width, "  ", " " * 4)
    return found


def _row(lesson: EffectRow) -> str:
    gone = "" if lesson["in_force"] else "removed: "
    what = f"{gone}{lesson['polarity']} {line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
    spread, p = interval(lesson["ci95"], "+.3f"), probability(lesson["p_adjusted"])
    return (
        f"{lesson['shrunken']:+.3f}; alone {lesson['effect']:+.3f} ({spread}), p {p}, "
        f"{plural(lesson['included'], 'group')} with, {lesson['left_out']} without: {what}"
    )


def probability(p: float | None) -> str:
    """Return a p value for a table; ``-`` when there is none."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
