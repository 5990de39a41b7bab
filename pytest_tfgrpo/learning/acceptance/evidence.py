"""Evidence: what all rollouts of a run with coins in their prompts show of its lessons, as sums.

Axes: ``_R`` rollouts, ``_S`` train and dev scenarios, ``_L`` lessons by content key.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.retrieval import MIN_RELEVANCE, raw_score, relevances
from pytest_tfgrpo.numerics.arrays import Bools, Floats, Ints, np
from pytest_tfgrpo.numerics.cells import Cells, cells_of
from pytest_tfgrpo.numerics.effect_model import EffectPrior
from pytest_tfgrpo.numerics.pooled_effects import PooledEffects, pooled_effects
from pytest_tfgrpo.runs.splits import unseen_families
from pytest_tfgrpo.suite.families import family_of, tasks_of
from pytest_tfgrpo.suite.packs import pack_for

ABOUT = 0.5
"""Share of a lesson's best relevance, to any train or dev task, from which it is about a task."""
PARTS = 5
"""Parts of which all but one choose lessons, to measure them on it: half the evidence would choose worse."""
AT_ONCE = 100_000
"""Rollouts that are held before they are added up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What was seen of the lessons of a run."""

    keys: tuple[str, ...]
    cells: Cells
    """Sums over the rollouts with the same lessons in one scenario."""
    included: Mapping[str, int]
    """Dev rollouts whose prompt carried a lesson, by its key."""
    left_out: Mapping[str, int]
    """Dev rollouts that a coin kept a lesson out of, by its key."""
    about_SL: Bools
    """Where a lesson is about the task."""
    stands_SL: Bools
    """Where a prompt has a use for it, if there is room."""
    dev_S: Bools
    parts_S: Ints
    """Which of PARTS parts a scenario is in: its family is spread over them, if training sees it."""
    apart_S: Bools
    """Of a family that training does not see."""

    @property
    def is_empty(self) -> bool:
        """Whether no rollout shows anything."""
        return not self.cells.n_C.size

    @property
    def has_errors(self) -> bool:
        """Whether some rollouts are errors."""
        return bool(self.cells.errors_C.any())


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonValues:
    """What the evidence says of each lesson: of two readings of errors, the one that says less for it."""

    value_L: Floats
    sd_L: Floats
    helps_L: Floats
    tried_L: Bools
    effects: PooledEffects
    """With errors left out."""


def gather(
    groups: Iterable[Group],
    lessons: Mapping[str, Experience],
    scenarios: Sequence[Scenario],
    packs: Mapping[str, PromptPack],
) -> Evidence:
    """Return what `groups` of training and of dev sweeps show of `lessons`, given by id.

    Of training, groups count in whose prompts chance had a part.
    """
    known = [s for s in scenarios if s.split in ("train", "dev")]
    by_key = {content_key(e): e for e in lessons.values()}
    keys = tuple(sorted(by_key))
    about_SL, stands_SL = _reach([by_key[key] for key in keys], known, packs)
    apart = unseen_families(known)
    nothing = Evidence(
        keys=keys,
        cells=cells_of(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros((0, len(keys)), dtype=np.bool_)),
        included={},
        left_out={},
        about_SL=about_SL,
        stands_SL=stands_SL,
        dev_S=np.array([s.split == "dev" for s in known], dtype=np.bool_),
        parts_S=_parts(known, apart),
        apart_S=np.array([s.id in apart for s in known], dtype=np.bool_),
    )
    return joined(nothing, groups, lessons, scenarios)


def joined(
    evidence: Evidence,
    groups: Iterable[Group],
    lessons: Mapping[str, Experience],
    scenarios: Sequence[Scenario],
) -> Evidence:
    """Return `evidence`, of the same lessons and scenarios, with what more `groups` show."""
    known = [s for s in scenarios if s.split in ("train", "dev")]
    place = {s.id: n for n, s in enumerate(known)}
    untold = {s.id for s in known if s.truth == "majority"}
    column = {key: n for n, key in enumerate(evidence.keys)}
    sums = _Sums(evidence, {id_: column[content_key(e)] for id_, e in lessons.items()})
    for group in groups:
        if group.scenario_id not in untold:
            sums.add(group, place[group.scenario_id])
    return sums.evidence()


class _Sums:
    """Adds up groups, a bounded number of rollouts at a time."""

    def __init__(self, start: Evidence, column_of: Mapping[str, int]) -> None:
        """`column_of` has the place of each lesson in `start`, by its id."""
        self._start, self._column_of = start, column_of
        self._cells = start.cells
        self._scores = array("d")
        self._scenarios = array("q")
        self._patterns = array("q")
        self._pattern_of: dict[tuple[str, ...], int] = {}
        """By the ids of the lessons in a prompt."""
        self._dev = Counter[tuple[tuple[str, ...], tuple[str, ...]]]()

    def add(self, group: Group, scenario: int) -> None:
        """Add the rollouts of a group that are evidence; one without a score is an error."""
        dev = group.mode == "dev"
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            carried, left_out = rollout.experiences, rollout.left_out
            if dev:
                self._dev[carried, left_out] += 1
            elif not (left_out or (carried if rollout.tossed is None else rollout.tossed)):
                continue
            self._scores.append(math.nan if score.gt_score is None else score.gt_score)
            self._scenarios.append(scenario)
            self._patterns.append(self._pattern_of.setdefault(carried, len(self._pattern_of)))
        if len(self._scores) >= AT_ONCE:
            self._add_up()

    def evidence(self) -> Evidence:
        """Return what the groups show, with what was known before."""
        self._add_up()
        included, left_out = Counter(self._start.included), Counter(self._start.left_out)
        for (carried, missing), rollouts in self._dev.items():
            for count, ids in ((included, carried), (left_out, missing)):
                count.update(dict.fromkeys({self._start.keys[n] for n in self._columns(ids)}, rollouts))
        return replace(self._start, cells=self._cells, included=included, left_out=left_out)

    def _add_up(self) -> None:
        carried_ML = np.zeros((len(self._pattern_of), len(self._start.keys)), dtype=np.bool_)
        for ids, n in self._pattern_of.items():
            carried_ML[n, self._columns(ids)] = True
        self._cells = cells_of(
            np.array(self._scores),
            np.array(self._scenarios),
            carried_ML[np.array(self._patterns)],
            before=self._cells,
        )
        for values in (self._scores, self._scenarios, self._patterns):
            del values[:]
        self._pattern_of.clear()

    def _columns(self, ids: Iterable[str]) -> list[int]:
        return [self._column_of[id_] for id_ in ids if id_ in self._column_of]


def value_of(
    evidence: Evidence, prior: EffectPrior | None, *, targets_S: Floats | None = None
) -> LessonValues:
    """Return what each lesson is worth over the scenarios with the weights `targets_S`, alike by default.

    An error is not the agent's fault, but a lesson may cause it: both readings, left out and as 0, count.
    """
    excluded = _effects(evidence, prior, targets_S, errors_as_zero=False)
    readings = [excluded]
    if evidence.has_errors:
        readings.append(_effects(evidence, prior, targets_S, errors_as_zero=True))
    helps_KL = np.stack([reading.helps for reading in readings])
    at_L, k_L = np.argmin(helps_KL, axis=0), np.arange(helps_KL.shape[1])
    return LessonValues(
        value_L=np.stack([reading.value for reading in readings])[at_L, k_L],
        sd_L=np.stack([reading.value_sd for reading in readings])[at_L, k_L],
        helps_L=helps_KL[at_L, k_L],
        tried_L=excluded.tried,
        effects=excluded,
    )


def _effects(
    evidence: Evidence, prior: EffectPrior | None, targets_S: Floats | None, *, errors_as_zero: bool
) -> PooledEffects:
    return pooled_effects(
        evidence.cells.errors_as_zero if errors_as_zero else evidence.cells.scored,
        evidence.about_SL,
        prior,
        targets_S=targets_S,
        stands_SL=evidence.stands_SL,
    )


def _reach(
    lessons: Sequence[Experience], scenarios: Sequence[Scenario], packs: Mapping[str, PromptPack]
) -> tuple[Bools, Bools]:
    """Return (``_SL`` where each lesson is about the task, ``_SL`` where a prompt has a use for it)."""
    about_SL = np.zeros((len(scenarios), len(lessons)), dtype=np.bool_)
    stands_SL = np.zeros_like(about_SL)
    for domain in {lesson.domain for lesson in lessons}:
        own_L = [n for n, lesson in enumerate(lessons) if lesson.domain == domain]
        own_S = [n for n, scenario in enumerate(scenarios) if scenario.domain == domain]
        if not own_S:
            continue
        texts = tuple(lessons[n].summary32 for n in own_L)
        relevance_SL = np.array([relevances(texts, scenarios[n].wording) for n in own_S])
        best_L = relevance_SL.max(axis=0)
        at = np.ix_(own_S, own_L)
        about_SL[at] = (relevance_SL >= ABOUT * best_L) & (relevance_SL >= MIN_RELEVANCE)
        pack = pack_for(packs, domain)
        able_L = [
            lesson.stamp_signature == pack.stamp and raw_score(lesson, pack.weights) >= pack.min_reward
            for lesson in (lessons[n] for n in own_L)
        ]
        fits_SL = relevance_SL >= MIN_RELEVANCE if pack.retrieval == "relevant" else relevance_SL >= 0
        stands_SL[at] = fits_SL & np.array(able_L, dtype=np.bool_)
    return about_SL, stands_SL


def _parts(scenarios: Sequence[Scenario], apart: Set[str]) -> Ints:
    """Return the part of each scenario, in an order that nobody chose.

    Alike tasks are in one part, and so are families that training does not see: what is chosen by one of
    their tasks and measured on another is no stranger to it.
    """
    task_of = tasks_of(scenarios)
    units = {s.id: family_of(s) if s.id in apart else task_of[s.id] for s in scenarios}
    first = {units[s.id]: s for s in reversed(scenarios)}

    def order(unit: str) -> tuple[str, str, str, int]:
        one = first[unit]
        return one.split, one.domain, one.family or "", seed_of("part", one.stamp)

    place = {unit: n % PARTS for n, unit in enumerate(sorted(first, key=order))}
    return np.array([place[units[s.id]] for s in scenarios], dtype=np.intp)
