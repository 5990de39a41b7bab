"""The figures of one phase of a run that goes on; their memory is set by its plan, not by what it answers."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import fsum, isnan, nan
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import TRAINING
from pytest_tfgrpo.core.texts.named_values import phase_label
from pytest_tfgrpo.core.wire.wire import Json

OUTCOMES = ("", "ok", "failed", "error", "cancelled")
"""Statuses of a rollout by their code; 0: not made yet."""
SCORED, ERROR, WAITING = "0123456789a", "e", "."
"""Marks of a scenario: its mean in tenths, only errors, nothing scored yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PhasePlan:
    """What a phase is to do."""

    epoch: int
    mode: str
    concurrent: bool
    each: int
    """Rollouts of a scenario at most."""
    rows: Mapping[int, int]
    """Place of a scenario in the phase, in order, by its number in the run."""
    rollouts: int

    @classmethod
    def of(cls, plan: Mapping[str, Any], places: Mapping[str, int], dev_rollouts: int) -> PhasePlan:
        """Read one of the `phases` of a header; raises KeyError and TypeError."""
        each = dev_rollouts or plan["rollouts"]
        listed = plan["dev" if dev_rollouts else "scenarios"]
        sizes: Mapping[str, int] = {} if dev_rollouts else plan.get("sizes", {})
        return cls(
            epoch=plan["epoch"],
            mode="dev" if dev_rollouts else plan["mode"],
            concurrent=bool(plan.get("concurrent", False)),
            each=each,
            rows={places[id_]: row for row, id_ in enumerate(listed)},
            rollouts=sum(sizes.values()) if sizes else len(listed) * each,
        )

    @property
    def is_dev(self) -> bool:
        """Whether it is what the dev split does after an epoch."""
        return self.mode == "dev"

    @property
    def label(self) -> str:
        """Its name, as items and messages have it."""
        return f"epoch{self.epoch}-dev" if self.is_dev else phase_label(self.epoch, self.mode)


class PhaseFigures:
    """A pass over scenarios: what of its plan is done, and how well."""

    def __init__(self, plan: Mapping[str, Any], places: Mapping[str, int], *, dev_rollouts: int = 0) -> None:
        """Take one of the `phases` of a header; with `dev_rollouts` it is what the dev split does after it.

        `places` are the numbers of the scenarios of the run. Raises KeyError and TypeError.
        """
        self.plan = PhasePlan.of(plan, places, dev_rollouts)
        scenarios = len(self.plan.rows)
        self._codes = bytearray(scenarios * self.plan.each)
        self._counts = [0] * len(OUTCOMES)
        self._means = array("d", [nan]) * scenarios
        self._errors_only = bytearray(scenarios)
        self._scored: tuple[int, float | None] | None = None
        self._shared = 0
        self.status = self.reason = ""
        self.settled = False
        self.lessons: int | None = None
        self.tokens = self.unknown = self.calls = 0
        self.usd = 0.0

    @property
    def planned(self) -> int | None:
        """Rollouts of the plan, without those that another sweep makes for it; None where lessons decide."""
        return None if self.plan.is_dev else self.plan.rollouts - self._shared * self.plan.each

    @property
    def learns(self) -> bool:
        """Whether its rollouts are made, and what they teach is being written."""
        made = self.plan.mode in TRAINING and not self.status and self.lessons is None
        return made and self.done > 0 and not self.left

    @property
    def done(self) -> int:
        """Rollouts made."""
        return sum(self._counts[1:])

    @property
    def left(self) -> int:
        """Rollouts to come, as far as is planned."""
        planned = self.planned
        return 0 if self.status or self.settled or planned is None else max(0, planned - self.done)

    def rollout(self, place: int, index: int, status: str) -> bool:
        """Count a rollout, or put it in the place of an earlier attempt; return whether it is the first."""
        code = OUTCOMES.index(status)
        each = self.plan.each
        at = self.plan.rows[place] * each + index
        if not 0 <= index < each:
            raise ValueError(f"rollout {index} of {each}")
        before, self._codes[at] = self._codes[at], code
        self._counts[before] -= before > 0
        self._counts[code] += code > 0
        return before == 0

    def group(self, place: int, scores: Sequence[Mapping[str, Any]]) -> None:
        """Take the scores of a scenario's group."""
        known = [s["gt_score"] for s in scores if s["gt_score"] is not None]
        row, self._scored = self.plan.rows[place], None
        self._means[row] = fsum(known) / len(known) if known else nan
        self._errors_only[row] = all(s.get("reward", s["gt_score"]) is None for s in scores)

    def share(self, place: int, scores: Sequence[Mapping[str, Any]]) -> None:
        """Take the scores of a group of the final sweep that serves this phase too: no agent runs here."""
        self._shared += isnan(self._means[self.plan.rows[place]])
        self.group(place, scores)

    def pay(self, tokens: int, usd: float | None) -> None:
        """Add what a call used."""
        self.tokens += tokens
        self.unknown += usd is None
        self.usd += usd or 0.0

    def mean_of(self, place: int) -> float | None:
        """Return the mean gt_score of a scenario; None while there is none."""
        row = self.plan.rows.get(place)
        return None if row is None or isnan(self._means[row]) else self._means[row]

    def scored(self) -> tuple[int, float | None]:
        """Return how many scenarios have a mean, and the mean of those."""
        if self._scored is None:
            means = [mean for mean in self._means if not isnan(mean)]
            self._scored = len(means), fsum(means) / len(means) if means else None
        return self._scored

    def marks(self, most: int) -> str:
        """Return one character for each of the first `most` scenarios."""
        rows = zip(self._means[:most], self._errors_only, strict=False)
        return "".join(
            (ERROR if failed else WAITING) if isnan(mean) else SCORED[min(10, max(0, int(mean * 10)))]
            for mean, failed in rows
        )

    def row(self) -> dict[str, Json]:
        """Return what a reader sees of it."""
        scored, mean = self.scored()
        return {
            "label": self.plan.label,
            "mode": self.plan.mode,
            "status": self.status,
            "reason": self.reason,
            "done": self.done,
            "planned": self.planned,
            "most": self.plan.rollouts,
            "failed": self._counts[OUTCOMES.index("failed")],
            "errors": self._counts[OUTCOMES.index("error")],
            "scenarios": len(self._means),
            "scored": scored,
            "mean": mean,
            "lessons": self.lessons,
            "calls": self.calls,
            "tokens": self.tokens,
            "usd": self.usd,
            "unknown": self.unknown,
        }
