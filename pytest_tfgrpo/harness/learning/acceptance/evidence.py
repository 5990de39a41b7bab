"""Evidence: what all rollouts of a run with coins in their prompts show of its lessons, as arrays.

Axes: ``_R`` rollouts, ``_S`` train and dev scenarios, ``_L`` lessons by content key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.stamp import seed_of
from pytest_tfgrpo.harness.learning.attribution.exposures import content_key
from pytest_tfgrpo.harness.learning.library.retrieval import MIN_RELEVANCE, raw_score, relevances
from pytest_tfgrpo.harness.run.splits import unseen_families
from pytest_tfgrpo.harness.suite.families import family_of, tasks_of
from pytest_tfgrpo.harness.suite.packs import pack_for
from pytest_tfgrpo.numerics.arrays import Floats
from pytest_tfgrpo.numerics.effect_model import EffectPrior
from pytest_tfgrpo.numerics.pooled_effects import PooledEffects, pooled_effects

Flags = npt.NDArray[np.bool_]
ABOUT = 0.5
"""Share of a lesson's best relevance, to any train or dev task, from which it is about a task."""
PARTS = 5
"""Parts of which all but one choose lessons, to measure them on it: half the evidence would choose worse."""


class Seen(NamedTuple):
    """One rollout, as far as it is evidence."""

    scenario: int
    score: float
    """NaN where it is an error."""
    carried: tuple[str, ...]
    """Ids of the lessons in its prompt."""
    left_out: tuple[str, ...]
    dev: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What was seen of the lessons of a run."""

    keys: tuple[str, ...]
    seen: tuple[Seen, ...]
    scores_R: Floats
    """NaN where the rollout is an error."""
    scenarios_R: npt.NDArray[np.intp]
    carried_RL: Flags
    about_SL: Flags
    """Where a lesson is about the task."""
    stands_SL: Flags
    """Where a prompt has a use for it, if there is room."""
    dev_S: Flags
    parts_S: npt.NDArray[np.intp]
    """Which of PARTS parts a scenario is in: its family is spread over them, if training sees it."""
    apart_S: Flags
    """Of a family that training does not see."""

    @property
    def has_errors(self) -> bool:
        """Whether some rollouts are errors."""
        return bool(np.isnan(self.scores_R).any())


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonValues:
    """What the evidence says of each lesson: of two readings of errors, the one that says less for it."""

    value_L: Floats
    sd_L: Floats
    helps_L: Floats
    tried_L: Flags
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
    place = {s.id: n for n, s in enumerate(known)}
    untold = {s.id for s in known if s.truth == "majority"}
    seen = [row for group in groups if group.scenario_id not in untold for row in _rows(group, place)]
    by_key = {content_key(e): e for e in lessons.values()}
    keys = tuple(sorted(by_key))
    column = {key: n for n, key in enumerate(keys)}
    column_of = {id: column[content_key(e)] for id, e in lessons.items()}
    carried_RL = np.zeros((len(seen), len(keys)), dtype=np.bool_)
    for r, row in enumerate(seen):
        carried_RL[r, [column_of[id] for id in row.carried if id in column_of]] = True
    about_SL, stands_SL = _reach([by_key[key] for key in keys], known, packs)
    apart = unseen_families(known)
    return Evidence(
        keys=keys,
        seen=tuple(seen),
        scores_R=np.array([row.score for row in seen], dtype=np.float64),
        scenarios_R=np.array([row.scenario for row in seen], dtype=np.intp),
        carried_RL=carried_RL,
        about_SL=about_SL,
        stands_SL=stands_SL,
        dev_S=np.array([s.split == "dev" for s in known], dtype=np.bool_),
        parts_S=_parts(known, apart),
        apart_S=np.array([s.id in apart for s in known], dtype=np.bool_),
    )


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
    scores_R = np.nan_to_num(evidence.scores_R, nan=0.0) if errors_as_zero else evidence.scores_R
    kept_R = ~np.isnan(scores_R)
    return pooled_effects(
        scores_R[kept_R],
        evidence.scenarios_R[kept_R],
        evidence.carried_RL[kept_R],
        evidence.about_SL,
        prior,
        targets_S=targets_S,
        stands_SL=evidence.stands_SL,
    )


def _rows(group: Group, place: Mapping[str, int]) -> Iterator[Seen]:
    dev = group.mode == "dev"
    for rollout, score in zip(group.rollouts, group.scores, strict=True):
        tossed = rollout.experiences if rollout.tossed is None else rollout.tossed
        if dev or tossed or rollout.left_out:
            yield Seen(
                scenario=place[group.scenario_id],
                score=float("nan") if score.gt_score is None else score.gt_score,
                carried=rollout.experiences,
                left_out=rollout.left_out,
                dev=dev,
            )


def _reach(
    lessons: Sequence[Experience], scenarios: Sequence[Scenario], packs: Mapping[str, PromptPack]
) -> tuple[Flags, Flags]:
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


def _parts(scenarios: Sequence[Scenario], apart: Set[str]) -> npt.NDArray[np.intp]:
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
