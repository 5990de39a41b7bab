"""The choice: which lessons the evidence keeps, refuses, removes and brings back."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from pytest_tfgrpo.core.lessons import Acceptance, Experience, LessonTrial, Operation, Revision
from pytest_tfgrpo.core.settings.learning import ACCEPTANCE, ACCEPTANCE_MARGIN, LIBRARY_CAP
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.learning.acceptance.evidence import (
    Evidence,
    LessonValues,
    value_of,
)
from pytest_tfgrpo.learning.acceptance.pool import ALPHA, Pool, PoolUnit
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.library import carry_out, is_trim
from pytest_tfgrpo.numerics.arrays import Bools, Ints, np
from pytest_tfgrpo.numerics.effect_model import EffectPrior
from pytest_tfgrpo.numerics.pooled_effects import cross_fitted, normal_cdf

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.acceptance.standpoint import Standpoint

EVEN = 0.5
"""Probability to help above which a lesson serves the mean score."""
SHOWN = 1 - ALPHA
"""Probability from which a lesson counts as shown to help."""
UNMEASURED = "not measured: too many rollouts are errors"
LOSS = "together the new lessons were shown to be worse by more than {margin:g}: {change:+.3f}"
Fate: TypeAlias = Literal["accepted", "kept", "returned", "refused", "removed", "replaced"]


class _Gains(TypedDict, total=False):
    """What lessons bring the dev mean, as `Acceptance` holds it."""

    gain: float
    gain_sd: float
    unseen: int
    unseen_gain: float
    unseen_sd: float


class Choice:
    """What becomes of every lesson of the pool."""

    def __init__(self, at: Standpoint, pool: Pool, evidence: Evidence, *, measured: bool) -> None:
        """`measured` is False where too many dev rollouts are errors: then nothing new is kept."""
        self._at = at
        self._pool = pool
        self._evidence = evidence
        self._column = {key: n for n, key in enumerate(evidence.keys)}
        self._strict = ACCEPTANCE.of(at.job.settings) == "strict"
        self._values = value_of(evidence, at.prior)
        self.prior: EffectPrior = self._values.effects.prior
        """Of effects, as learned so far."""
        self._gains = self._cross_fitted()
        self._note = self._is_loss(ACCEPTANCE_MARGIN.of(at.job.settings)) if measured else UNMEASURED
        self._kept = [unit for unit in pool.units if unit.sure or (not self._note and self._keeps(unit))]

    def revision(self) -> Revision:
        """Return what comes into force."""
        at, gone = self._at, {id_ for unit in self._kept for id_ in unit.gone}
        kept = self._operations()
        operations = [o for o in at.candidate.applied if not is_trim(o) and o in kept]
        taken = {id_ for o in operations for id_ in o.targets}
        for unit in self._kept:
            if not unit.proposed:
                operations.append(self._return(unit, taken))
                taken |= set(operations[-1].targets)
        if not self._note:
            operations += [
                Operation(kind="remove", targets=(e.id,), reason=f"it does not help: {self._told(e)}")
                for e in self._pool.library.experiences
                if e.id in self._pool.doubtful and e.id not in gone and not self._serves(e)
            ]
        cap = LIBRARY_CAP.of(at.job.settings)
        made = carry_out(at.library, operations, cap=cap, epoch=at.candidate.epoch)
        return replace(at.candidate, library=made.library, applied=made.applied)

    def acceptance(self, empty: Acceptance) -> Acceptance:
        """Return the record of the decision."""
        kept = self._operations()
        return replace(
            empty,
            rejected=tuple(o for o in self._at.candidate.applied if o not in kept and not is_trim(o)),
            note=self._note,
            lessons=tuple(sorted(self._trials(), key=lambda trial: (-trial.value, trial.key))),
            **self._gains,
            hit_rate=self._hit_rate(),
        )

    def _operations(self) -> list[Operation]:
        """Return the candidate's operations that are carried out."""
        return [o for unit in self._kept if unit.proposed for o in unit.operations]

    def _keeps(self, unit: PoolUnit) -> bool:
        """Return whether the lessons of a unit come in: each must be worth it, and beat what it replaces.

        A removal that was proposed stands, unless the lesson is shown to help.
        """
        active = {e.id: e for e in self._pool.library.experiences}
        rivals = [active[id_] for id_ in unit.gone if id_ not in unit.renewed]
        if not unit.new:
            return not any(self._helps(e) >= SHOWN and self._tried(e) for e in rivals)
        if not all(self._is_worth_it(e) for e in unit.new):
            return False
        best = max((self._value(e) for e in rivals if self._serves(e)), default=0.0)
        return max(self._value(e) for e in unit.new) >= best

    def _is_worth_it(self, lesson: Experience) -> bool:
        if self._strict:
            return self._tried(lesson) and self._helps(lesson) >= SHOWN
        return self._serves(lesson)

    def _serves(self, lesson: Experience) -> bool:
        return self._helps(lesson) > EVEN

    def _return(self, unit: PoolUnit, taken: set[str]) -> Operation:
        """Return the operation that brings a refused lesson back; ids are never used twice."""
        lesson, at = unit.new[0], self._at
        libraries = [at.job.library, *(r.revision.library for r in at.earlier if r.revision is not None)]
        if any(e.id == lesson.id for library in libraries for e in library.experiences):
            again = identify("return", at.job.run_id, at.candidate.epoch, lesson.id)
            lesson = replace(lesson, id=again, parents=(*lesson.parents, lesson.id))
        operation = unit.operations[0]
        targets = tuple(target for target in operation.targets if target not in taken)
        kinds: tuple[Literal["add"], Literal["update"], Literal["merge"]] = ("add", "update", "merge")
        return replace(operation, experience=lesson, targets=targets, kind=kinds[min(len(targets), 2)])

    def _present(self) -> set[str]:
        """Return the keys of what is or could be active: not of revisions that others have replaced."""
        refused = {content_key(e) for e in self._at.refused().values()}
        return refused | {content_key(e) for e in self._pool.lessons}

    def _among(self, keys: set[str]) -> Bools:
        among_L: Bools = np.array([key in keys for key in self._evidence.keys], dtype=np.bool_)
        return among_L & self._values.tried_L

    def _cross_fitted(self) -> _Gains:
        """Return what the lessons bring the dev mean; nothing where no coin has decided on one.

        Chosen by all parts of the scenarios but one and measured on that, for each in turn: what is chosen
        and measured by the same rollouts looks better than it is. For families that training does not see,
        all other scenarios choose.
        """
        evidence, among_L = self._evidence, self._among(self._present())
        if not among_L.any():
            return {}
        gain, sd = self._measured(evidence.parts_S, among_L)
        found: _Gains = {"gain": gain, "gain_sd": sd}
        apart_S = evidence.dev_S & evidence.apart_S
        measured = evidence.cells.scored.within(apart_S).scenario_C
        if measured.size:
            gain, sd = self._measured(np.where(apart_S, 0, -1), among_L)
            number = np.unique(measured).size
            found |= {"unseen": number, "unseen_gain": gain, "unseen_sd": sd}
        return found

    def _measured(self, parts_S: Ints, among_L: Bools) -> tuple[float, float]:
        evidence = self._evidence
        return cross_fitted(
            evidence.cells.scored,
            evidence.about_SL,
            parts_S,
            self._at.prior,
            among_L=among_L,
            confidence=SHOWN if self._strict else EVEN,
            targets_S=evidence.dev_S.astype(np.float64),
            stands_SL=evidence.stands_SL,
        )

    def _is_loss(self, margin: float) -> str:
        """Return that what is new was shown to be worse together, or nothing: `safe` promises that much."""
        new_L = self._among({content_key(e) for unit in self._pool.units for e in unit.new})
        kept_L = new_L & self._picks(self._values)
        change = float(self._values.value_L[kept_L].sum())
        spread = sqrt(float((self._values.sd_L[kept_L] ** 2).sum()))
        shown = change + margin < NormalDist().inv_cdf(1 - SHOWN) * spread
        return LOSS.format(margin=margin, change=change) if shown else ""

    def _picks(self, values: LessonValues) -> Bools:
        return values.helps_L >= SHOWN if self._strict else values.helps_L > EVEN

    def _hit_rate(self) -> float:
        on_topic = self.prior.on_topic
        return float(normal_cdf(np.array([on_topic.mean / on_topic.sd]))[0])

    def _trials(self) -> list[LessonTrial]:
        by_key = {content_key(e): e for e in self._at.lessons.values()}
        fates = self._fates()
        return [
            LessonTrial(
                id=fates[key][1],
                key=key,
                fate=fates[key][0],
                value=self._value(by_key[key]),
                sd=float(self._values.sd_L[self._column[key]]),
                helps=self._helps(by_key[key]),
                included=self._evidence.included.get(key, 0),
                left_out=self._evidence.left_out.get(key, 0),
            )
            for key in fates
        ]

    def _fates(self) -> dict[str, tuple[Fate, str]]:
        """Return what becomes of each lesson that coins decide or decided on, and its id, by content key."""
        after = {content_key(e): e.id for e in self.revision().library.experiences}
        before = {content_key(e): e.id for e in self._pool.library.experiences}
        returned = {u.key for u in self._kept if not u.proposed}
        replaced = {id_ for unit in self._kept if unit.new for id_ in unit.gone}
        pooled = {content_key(e): e.id for e in self._pool.lessons if e.id in self._pool.tossed}
        pooled |= {content_key(e): e.id for unit in self._pool.barred for e in unit.new}
        pooled |= {key: e.id for key, e in self._at.refused().items()}
        pooled |= {key: id_ for key, id_ in before.items() if self._values.tried_L[self._column[key]]}
        fates: dict[str, tuple[Fate, str]] = {}
        for key, lesson_id in sorted(pooled.items()):
            if key in after:
                fate: Fate = "kept" if key in before else "returned" if key in returned else "accepted"
                fates[key] = fate, after[key]
            elif key in before:
                fates[key] = ("replaced" if before[key] in replaced else "removed"), before[key]
            else:
                fates[key] = "refused", lesson_id
        return fates

    def _told(self, lesson: Experience) -> str:
        return f"expected effect {self._value(lesson):+.3f}, probability to help {self._helps(lesson):.2f}"

    def _value(self, lesson: Experience) -> float:
        return float(self._values.value_L[self._column[content_key(lesson)]])

    def _helps(self, lesson: Experience) -> float:
        return float(self._values.helps_L[self._column[content_key(lesson)]])

    def _tried(self, lesson: Experience) -> bool:
        return bool(self._values.tried_L[self._column[content_key(lesson)]])
