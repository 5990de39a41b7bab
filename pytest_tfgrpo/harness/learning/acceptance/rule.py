"""The rule: whether a comparison on the dev split accepts the new library; axis ``_K``: scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Literal, TypeAlias, cast

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.harness.learning.acceptance.per_lesson import Case
from pytest_tfgrpo.harness.metrics.comparison import Tally, tally
from pytest_tfgrpo.harness.run.schedule import MIN_DEV
from pytest_tfgrpo.numerics.stats import one_sided_p, paired_interval

ALPHA = 0.2
"""Level of the one-sided tests: a gate for candidates, not a claim."""
Errors: TypeAlias = Literal["", "excluded", "as 0"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedReading:
    """One comparison of two libraries: with errors excluded or counted as 0, where there are any."""

    errors: Errors
    difference: float
    """Mean of after - before over scenarios, in [-1, 1]."""
    ci95: tuple[float, float] | None
    p: float
    """One-sided p of the rule, not yet corrected."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptanceResult:
    """The result of the rule for a library that was tried."""

    reading: PairedReading
    p_adjusted: float
    accepted: bool
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """What was measured of two libraries on the dev scenarios."""

    unchanged: int
    """Scenarios whose prompt is the same under both: a difference of exactly 0."""
    before: Mapping[str, Tally]
    """Scores of the other scenarios under the active library, by scenario id."""
    after: Mapping[str, Tally]
    cases: tuple[Case, ...] = ()
    """The same scenarios, with the lessons that their prompts carry."""

    @staticmethod
    def of(unchanged: int, before: Mapping[str, Group], after: Mapping[str, Group]) -> Pairs:
        """Return the pairs of the scenarios in `after`, which `before` has too."""
        stamps = dict.fromkeys((*before, *after), "")
        return Pairs(
            unchanged=unchanged,
            before=tally(before.values(), stamps),
            after=tally(after.values(), stamps),
            cases=tuple(Case.of(before[id], after[id]) for id in after),
        )

    @property
    def errors(self) -> tuple[int, int]:
        """Rollouts that are errors, before and after."""
        before, after = (sum(row.errors for row in rows.values()) for rows in (self.before, self.after))
        return before, after

    @property
    def measured(self) -> bool:
        """False when errors leave less than MIN_DEV scenarios, or less than half of those that changed."""
        both = len(self.scores(errors_as_zero=False))
        return 2 * both >= len(self.after) and both + self.unchanged >= MIN_DEV

    def scores(self, *, errors_as_zero: bool) -> list[tuple[float, float]]:
        """Return (before, after) of each changed scenario that has a mean on both sides, in order of id."""
        found = []
        for id in sorted(self.after):
            old = self.before[id].mean(errors_as_zero=errors_as_zero)
            new = self.after[id].mean(errors_as_zero=errors_as_zero)
            if old is not None and new is not None:
                found.append((old, new))
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptanceRule:
    """When a library that was tried comes into force."""

    name: Literal["strict", "safe"]
    margin: float
    """Drop that ``safe`` tolerates."""
    alpha: float = ALPHA

    @staticmethod
    def of(settings: SettingValues) -> AcceptanceRule:
        """Return the rule that the settings ask for, which must not be ``off``."""
        name = cast("Literal['strict', 'safe']", settings["acceptance"])
        return AcceptanceRule(name=name, margin=settings["acceptance_margin"])

    def judge(self, pairs: Pairs, *, factor: int = 1, doubted: bool = False) -> AcceptanceResult:
        """Return the result for `pairs`; p is multiplied by `factor`, the number of open tests.

        An error is not the agent's fault, but the library may still cause it: if there are errors, both
        readings must accept, and the one that speaks most against the library is shown. `doubted`
        is a part of a library that was rejected: in ``safe`` the doubt no longer speaks for it.
        """
        kinds: list[Errors] = ["excluded", "as 0"] if any(pairs.errors) else [""]
        rulings = []
        for kind in kinds:
            reading = self._reading(pairs, kind)
            p = min(1.0, reading.p * factor)
            accepted, why = self._accepts(reading.difference, p, doubted=doubted)
            rulings.append(AcceptanceResult(reading=reading, p_adjusted=p, accepted=accepted, why=why))
        return min(rulings, key=lambda ruling: (ruling.accepted, ruling.reading.difference))

    def _reading(self, pairs: Pairs, errors: Errors) -> PairedReading:
        rows = pairs.scores(errors_as_zero=errors == "as 0")
        before_K = [row[0] for row in rows] + [0.0] * pairs.unchanged
        after_K = [row[1] for row in rows] + [0.0] * pairs.unchanged
        differences_K = [new - old for old, new in zip(before_K, after_K, strict=True)]
        interval = paired_interval(before_K, after_K)
        low, high = interval.low, interval.high
        return PairedReading(
            errors=errors,
            difference=fsum(differences_K) / len(differences_K) if differences_K else 0.0,
            ci95=None if low is None or high is None else (low, high),
            p=one_sided_p(differences_K)
            if self.name == "strict"
            else one_sided_p(differences_K, shift=-self.margin, alternative="less"),
        )

    def _accepts(self, difference: float, p: float, *, doubted: bool) -> tuple[bool, str]:
        level = f"p {p:.3f}"
        if self.name == "strict":
            if difference > 0 and p < self.alpha:
                return True, f"better, {level} < {self.alpha:g}"
            return False, f"not shown to be better, {level}" if difference > 0 else "not better"
        if difference < -self.margin and (doubted or p < self.alpha):
            shown = f"{level} < {self.alpha:g}" if p < self.alpha else "like the whole library"
            return False, f"worse by more than {self.margin:g}, {shown}"
        return True, f"not shown to be worse by more than {self.margin:g}, {level}"
