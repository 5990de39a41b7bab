"""Leaving out: which lessons the prompts of a training epoch leave out at random, to see what they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pytest_tfgrpo.core.lessons import LessonTrial, Library
from pytest_tfgrpo.core.records import Phase, PhaseResult
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.numerics.attribution import MIN_ARM
from pytest_tfgrpo.runs.job import Job

SETTLED = 0.05
"""Doubt that is left about a lesson which is settled as help or as harm."""


def probed(job: Job, phase: Phase, library: Library, results: Sequence[PhaseResult]) -> frozenset[str]:
    """Return the ids of the lessons of `library` that training epoch `phase` leaves out at random.

    A lesson stays in all prompts once it is settled what it does. So does one that the run has learned, where
    its training epochs to come leave it out of too few groups to find out; what a run shows of the lessons
    that it started with adds up with other runs.
    """
    if phase.mode != "train" or not phase.lesson_dropout or not library.experiences:
        return frozenset()

    groups, since, known = _groups(job), _first_epochs(results), latest_trials(results)
    started = {content_key(e) for e in job.library.experiences}
    found = set()
    for lesson in library.experiences:
        key = content_key(lesson)
        trained = sum(
            count
            for (epoch, domain), count in groups.items()
            if domain == lesson.domain and epoch >= since.get(key, 0)
        )
        enough = key in started or phase.lesson_dropout * trained >= MIN_ARM
        if enough and not (key in known and is_settled(known[key].helps)):
            found.add(lesson.id)
    return frozenset(found)


def is_settled(helps: float) -> bool:
    """Return whether a lesson that helps with probability `helps` is no longer in doubt."""
    return not SETTLED < helps < 1 - SETTLED


def latest_trials(results: Iterable[PhaseResult]) -> Mapping[str, LessonTrial]:
    """Return what the run knows of each lesson that coins decided on, by content key."""
    revisions = (result.revision for result in results)
    decided = (r.acceptance for r in revisions if r is not None and r.acceptance is not None)
    return {lesson.key: lesson for acceptance in decided for lesson in acceptance.lessons}


def _groups(job: Job) -> Mapping[tuple[int, str], int]:
    """Return how many groups each training epoch of the run has in each domain."""
    domains = {s.id: s.domain for s in job.scenarios}
    return Counter(
        (phase.epoch, domains[id_])
        for phase in job.phases
        if phase.mode == "train"
        for id_ in phase.scenarios
    )


def _first_epochs(results: Iterable[PhaseResult]) -> Mapping[str, int]:
    """Return the first epoch whose prompts can carry each lesson that a run has learned, by content key."""
    first: dict[str, int] = {}
    for result in results:
        for lesson in result.revision.library.experiences if result.revision is not None else ():
            first.setdefault(content_key(lesson), result.phase.epoch + 1)
    return first
