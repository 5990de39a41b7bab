"""Single changes: which operations of a candidate did not help their own dev scenarios.

Ten good lessons and three bad ones are better than none, as a whole. The sweep can say more: a prompt
prefers one lesson to another, and a lesson's *own* scenarios are those in which it stands highest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.harness.learning.acceptance.parts import OperationSet
from pytest_tfgrpo.numerics.stats import one_sided_p


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One dev scenario whose prompt differs between two libraries."""

    before: tuple[str, ...]
    """Ids of the lessons in its prompt under the active library, the preferred first."""
    after: tuple[str, ...]
    differences: tuple[float, ...]
    """gt_score after - before, of each pair of rollouts of one seed that both have a score."""
    room: bool
    """True when a rollout before has less than full score, so that a lesson could help."""

    @staticmethod
    def of(before: Group, after: Group) -> Case:
        """Return the case of a scenario from its groups under both libraries."""
        scores = ((old.gt_score, new.gt_score) for old, new in zip(before.scores, after.scores, strict=True))
        pairs = [(old, new) for old, new in scores if old is not None and new is not None]
        return Case(
            before=before.rollouts[0].experiences,
            after=after.rollouts[0].experiences,
            differences=tuple(new - old for old, new in pairs),
            room=any(old < 1.0 for old, _ in pairs),
        )


def idle_or_harmful(
    cases: Iterable[Case], units: Sequence[OperationSet], *, margin: float, alpha: float
) -> list[OperationSet]:
    """Return those of `units` that their own scenarios reject.

    A new lesson has to show something: it is named when its own scenarios are no better on average,
    though they had room to be. Any other change is named when they are worse by more than `margin`, with a
    one-sided p below `alpha` over the pairs of rollouts: were the prompt without effect, each would be as
    likely up as down. Nothing is corrected for the number of changes: one left out wrongly can be proposed
    again, a bad one kept stays. A change that no dev scenario sees is not named.
    """
    known = list(cases)
    return [unit for unit in units if _speaks_against(_own(unit, known), unit, margin, alpha)]


def _speaks_against(own: Sequence[Case], unit: OperationSet, margin: float, alpha: float) -> bool:
    differences = [difference for case in own for difference in case.differences]
    if not differences:
        return False
    mean = sum(differences) / len(differences)
    if all(operation.kind == "add" for operation in unit):
        return mean < 0 or (mean == 0 and any(case.room for case in own))
    return mean < -margin and one_sided_p(differences, shift=-margin, alternative="less") < alpha


def _own(unit: OperationSet, cases: Sequence[Case]) -> list[Case]:
    """Return the cases in which a lesson of `unit` stands highest, or for a mere removal stood highest."""
    new = {operation.experience.id for operation in unit if operation.experience is not None}
    gone = {target for operation in unit for target in operation.targets}
    ranks = [_rank(case.after, new) if new else _rank(case.before, gone) for case in cases]
    best = min((rank for rank in ranks if rank is not None), default=None)
    return [case for case, rank in zip(cases, ranks, strict=True) if best is not None and rank == best]


def _rank(prompt: Sequence[str], ids: set[str]) -> int | None:
    return next((place for place, id in enumerate(prompt) if id in ids), None)
