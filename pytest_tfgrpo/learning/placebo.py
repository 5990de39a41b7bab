"""Placebo: the texts of a library in the wrong places, to see what any text of that size does to answers.

A prompt gets as many lessons as it would, in the same slots, but those of other domains or, where these are
too few, of other families of its own domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Phase, Reference
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.stamp import seed_of, stamp
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.suite.families import family_of

PLACEBO: Final = "placebo"


def as_placebo(library: Library, seed: int) -> Library:
    """Return the lessons of a library under the hash of their placebo, which the seed of a run picks."""
    return replace(library, hash=stamp([PLACEBO, seed, library.hash]))


def is_placebo(phase: Phase | None, reference: Reference | None) -> bool:
    """Return whether the prompts of a phase carry a placebo: its own, or a reference that is one."""
    if phase is None:
        return False
    against = reference is not None and reference.kind == PLACEBO
    return phase.mode == PLACEBO or (phase.is_control and against)


class Placebo:
    """Gives prompts other lessons than those that fit them."""

    def __init__(self, lessons: Sequence[Experience], scenarios: Mapping[str, Scenario], seed: int) -> None:
        """`lessons` are those that prompts may carry; `scenarios` by id say which families they are from."""
        self._lessons = lessons
        self._seed = seed
        self._families = {lesson.id: _family(lesson, scenarios) for lesson in lessons}
        self._keys = {lesson.id: content_key(lesson) for lesson in lessons}

    def in_place_of(self, picked: Sequence[Experience], scenario: Scenario) -> tuple[Experience, ...] | None:
        """Return other lessons for the slots of those `picked`, each about as long; None: too few.

        None of them is of the family of the task, or of a lesson picked. Which of several of one length is
        drawn by identity, so that equal runs draw alike.
        """
        own = {family_of(scenario), *(self._families[lesson.id] for lesson in picked)}
        texts = {lesson.summary32 for lesson in picked}
        free = [
            lesson
            for lesson in self._lessons
            if lesson.summary32 not in texts
            and (lesson.domain != scenario.domain or self._families[lesson.id] not in own | {""})
        ]
        if len(free) < len(picked):
            return None
        drawn = {
            lesson.id: seed_of(self._seed, PLACEBO, scenario.seed_stamp, self._keys[lesson.id])
            for lesson in free
        }
        chosen = []
        for lesson in picked:
            chosen.append(min(free, key=lambda other: _preference(lesson, other, drawn[other.id])))
            free.remove(chosen[-1])
        return tuple(chosen)


def _preference(lesson: Experience, other: Experience, drawn: int) -> tuple[bool, int, int]:
    """Return what orders the lessons that may stand in place of another one: the best first."""
    longer = len(other.summary32.split()) - len(lesson.summary32.split())
    return other.domain == lesson.domain, abs(longer), drawn


def _family(lesson: Experience, scenarios: Mapping[str, Scenario]) -> str:
    """Return the family of the task that a lesson rests on most; empty where it is unknown."""
    task = scenarios.get(lesson.group_id.removeprefix(f"{lesson.run_id}.e{lesson.epoch}."))
    return "" if task is None else family_of(task)
