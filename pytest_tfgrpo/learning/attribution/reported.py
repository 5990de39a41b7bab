"""The effect of each lesson as the value `attribution` of a report."""

from __future__ import annotations

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import AttributionBlock, EffectRow
from pytest_tfgrpo.learning.attribution.effects import UNSEEN, LessonEffect, lesson_effects, shrunken
from pytest_tfgrpo.learning.attribution.exposures import (
    UNREAD,
    content_key,
    history,
    known_lessons,
    record_of,
)


def attribution_report(run: Run) -> AttributionBlock:
    """Return the effect of each lesson that is active or was removed in a run with lesson dropout.

    It rests on the training groups of the run, and of earlier runs for lessons that it started with.
    """
    chances = [result.phase.lesson_dropout for result in run.phases if result.phase.mode == "train"]
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
