"""Untested lessons: those that a run learned, and that no prompt of its dev or eval split carried."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Group, Run
from pytest_tfgrpo.core.settings.learning import UNTESTED
from pytest_tfgrpo.learning.attribution.exposures import content_key


def untested(run: Run) -> tuple[Experience, ...]:
    """Return the lessons of the final library that a run learned and did not test."""
    lessons = {e.id: e for r in run.phases if r.revision is not None for e in r.revision.library.experiences}
    carried = {id_ for group in _tests(run) for rollout in group.rollouts for id_ in rollout.experiences}
    known = {content_key(e) for e in run.library_start.experiences}
    known |= {content_key(lessons[id_]) for id_ in carried if id_ in lessons}
    return tuple(e for e in run.library.experiences if e.id not in carried and content_key(e) not in known)


def _tests(run: Run) -> Iterator[Group]:
    for result in run.phases:
        yield from result.dev
        if result.phase.mode == "eval":
            yield from result.groups


def held_back(run: Run, library: Library) -> tuple[Experience, ...]:
    """Return the untested lessons of a library of the run, where the setting holds those back."""
    if UNTESTED.of(run.settings) == "keep":
        return ()
    held = {lesson.id for lesson in untested(run)}
    return tuple(lesson for lesson in library.experiences if lesson.id in held)
