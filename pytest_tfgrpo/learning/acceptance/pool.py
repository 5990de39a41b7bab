"""The pool: all lessons that coins bring into dev prompts or keep out, after one epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.lessons import Experience, Library, Operation, Revision
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.learning.acceptance.parts import OperationSet, units_of
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.attribution.leaving_out import SETTLED, is_settled

ALPHA = 0.2
"""Doubt that ``strict`` leaves a lesson: no claim, a choice."""
OPERATIONS: tuple[Literal["add"], Literal["update"], Literal["merge"]] = ("add", "update", "merge")
"""By the number of lessons that are replaced."""
RETURNS = "refused before, and worth keeping by the evidence since"
Toss: TypeAlias = Callable[[str], bool]
"""Returns how the coin of a key falls: True brings it in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolUnit:
    """Lessons that come in together, in the place of others, as one coin falls."""

    key: str
    """What its coin is thrown by: content keys, so that equal runs draw alike."""
    operations: OperationSet
    """What it does to the library; of a lesson refused before, what would bring it back."""
    new: tuple[Experience, ...] = ()
    gone: tuple[str, ...] = ()
    """Ids of the active lessons that leave when it comes in."""
    renewed: tuple[str, ...] = ()
    """Of `gone`, those that `new` repeats with other figures: they leave in any case."""
    sure: bool = False
    """True when it is no question: only the figures of lessons beyond doubt change."""
    proposed: bool = True
    """False for a lesson that an earlier epoch refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """What may be active after an epoch."""

    library: Library
    """The active one."""
    units: tuple[PoolUnit, ...]
    doubtful: frozenset[str]
    """Ids of active lessons that a coin of their own may leave out."""
    barred: tuple[PoolUnit, ...] = ()
    """Proposed again, though settled as harm: they stay out, untried."""

    @property
    def lessons(self) -> Iterator[Experience]:
        """Every lesson that a prompt may carry."""
        yield from self.library.experiences
        for unit in self.units:
            yield from unit.new

    @property
    def tossed(self) -> frozenset[str]:
        """Ids of the lessons that a coin decides on."""
        units = [unit for unit in self.units if not unit.sure]
        ids = {e.id for unit in units for e in unit.new} | {id_ for unit in units for id_ in unit.gone}
        return frozenset(ids | self.doubtful)

    def within(self, domain: str) -> Pool:
        """Return the part of the pool that prompts of `domain` can carry."""
        known = {e.id: e.domain for e in self.lessons}
        units = (u for u in self.units if domain in {known[id_] for id_ in (*(e.id for e in u.new), *u.gone)})
        own = tuple(e for e in self.library.experiences if e.domain == domain)
        return replace(self, library=replace(self.library, experiences=own), units=tuple(units))

    def carried(self, toss: Toss) -> frozenset[str]:
        """Return the ids of the lessons that a prompt may carry as the coins fall."""
        out: set[str] = set()
        come: set[str] = set()
        for unit in self.units:
            if unit.sure or toss(unit.key):
                come |= {e.id for e in unit.new}
                out |= set(unit.gone)
            else:
                out |= set(unit.renewed)
        for e in self.library.experiences:
            if e.id in self.doubtful and not toss(content_key(e)):
                out.add(e.id)
        return frozenset(({e.id for e in self.library.experiences} - out) | come)


def pool_of(
    library: Library,
    candidate: Revision,
    *,
    refused: Mapping[str, Experience],
    helps: Mapping[str, float],
    started: frozenset[str],
) -> Pool:
    """Return what may be active after `candidate`: what is new, what is in doubt, what was refused.

    `refused` has lessons refused before by content key, `helps` with what probability each lesson is known to
    help, `started` the keys of the lessons that the run started with: those are in doubt only once the
    evidence speaks against them.
    """
    doubtful = frozenset(
        e.id for e in library.experiences if _is_doubtful(content_key(e), helps=helps, started=started)
    )
    active = {e.id: e for e in library.experiences}
    proposed = [
        _proposed(unit, active, candidate.library, doubtful) for unit in units_of(library, candidate.applied)
    ]
    barred = [unit for unit in proposed if _is_barred(unit, helps)]
    units = [unit for unit in proposed if not _is_barred(unit, helps)]
    taken = {content_key(e) for e in library.experiences}
    taken |= {content_key(e) for unit in proposed for e in unit.new}
    units += [
        _returning(lesson, active)
        for key, lesson in sorted(refused.items())
        if key not in taken and helps.get(key, 1.0) > SETTLED
    ]
    return Pool(library=library, units=tuple(units), doubtful=doubtful, barred=tuple(barred))


def _is_doubtful(key: str, *, helps: Mapping[str, float], started: frozenset[str]) -> bool:
    if key in started:
        return helps.get(key, 1.0) < 0.5
    return not is_settled(helps.get(key, 0.5))


def _is_barred(unit: PoolUnit, helps: Mapping[str, float]) -> bool:
    keys = [content_key(e) for e in unit.new]
    return bool(keys) and not unit.renewed and any(helps.get(key, 1.0) <= SETTLED for key in keys)


def _proposed(
    operations: OperationSet, active: Mapping[str, Experience], after: Library, doubtful: frozenset[str]
) -> PoolUnit:
    stays = {e.id for e in after.experiences}
    new = tuple(o.experience for o in operations if o.experience is not None and o.experience.id in stays)
    gone = tuple(dict.fromkeys(t for o in operations for t in o.targets if t in active))
    keys = {content_key(e) for e in new}
    renewed = tuple(id_ for id_ in gone if content_key(active[id_]) in keys)
    return PoolUnit(
        key="+".join(sorted(keys)) or "-" + "-".join(sorted(content_key(active[id_]) for id_ in gone)),
        operations=operations,
        new=new,
        gone=gone,
        renewed=renewed,
        sure=bool(new) and len(renewed) == len(gone) == len(new) and not doubtful & set(renewed),
    )


def _returning(lesson: Experience, active: Iterable[str]) -> PoolUnit:
    known = set(active)
    targets = tuple(parent for parent in lesson.parents if parent in known)
    kind = OPERATIONS[min(len(targets), 2)]
    operation = Operation(kind=kind, experience=lesson, targets=targets, reason=RETURNS)
    return PoolUnit(
        key=content_key(lesson), operations=(operation,), new=(lesson,), gone=targets, proposed=False
    )
