"""The watch over a final sweep that may end early: it detects when the gate is decided.

The scenarios run in a random order that the run's seed and their identity fix, family by family. Groups
finish in any order, so only the part of the order that is complete from its start on is looked at: what
happens to finish first would be no random sample. After each family the watch bounds what the whole sweep
would come to.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase, PhaseResult, Reference, Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.agents import RECORD
from pytest_tfgrpo.core.settings.gate import (
    GATE_MARGIN,
    GATE_MAX_COST_PER_SUCCESS_USD,
    GATE_MAX_ERRORS,
    GATE_MIN_MEAN,
    GATE_SEQUENTIAL,
    GATES,
)
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.gate.baseline import Baseline, Stamped, compared_stamps, why_unfair
from pytest_tfgrpo.gate.result import MIN_SCENARIOS, MIN_SHARE
from pytest_tfgrpo.metrics.comparison import Sweeps, Tally, tally
from pytest_tfgrpo.numerics.sequential import IntervalSequence, MeanSequence
from pytest_tfgrpo.numerics.stats import MIN_BCA, effective_families
from pytest_tfgrpo.protocols import OpenWatch
from pytest_tfgrpo.suite.families import families_of

MEAN_ALPHA = 0.0025
"""One-sided chance that the bound of the sweep's mean is ever wrong."""
SPREAD_ALPHA = 0.0025
"""Chance that the bound of its spread is."""
SWEEP_ALPHA = 0.02
"""One-sided level of the interval around a whole sweep that was watched; with both above it makes 0.025."""
MIN_PLANNED = MIN_BCA
"""Effective families of pairs that a sweep must be planned with: with fewer, the spread is no guide."""

NO_FAMILIES: Mapping[str, str] = MappingProxyType({})

NO_CONTROLS: Mapping[str, Tally] = MappingProxyType({})

State: TypeAlias = Literal["open", "pass", "fail"]


def order_of(
    seed: int, scenarios: Iterable[Scenario], families: Mapping[str, str] = NO_FAMILIES
) -> tuple[str, ...]:
    """Return the ids in the order in which a watched sweep runs, random and the same for one run seed.

    `families` by id stay together, and come in random order whatever their size.
    """

    def rank(scenario: Scenario) -> tuple[int, str, int, str]:
        family, own = families.get(scenario.id, ""), seed_of(seed, "sequential", scenario.stamp)
        return (seed_of(seed, "sequential", family) if family else own), family, own, scenario.id

    return tuple(scenario.id for scenario in sorted(scenarios, key=rank))


def obstacle(
    settings: Mapping[str, object], scenarios: Iterable[Scenario], *, foreign_rules: bool, partial: bool
) -> str:
    """Return why a final sweep runs to its end whatever it finds; empty when it may end early."""
    if partial:
        return "only part of the suite was selected"
    if GATES.of(settings):
        return "named gates need the whole sweep"
    if foreign_rules:
        return "rules of plugins need the whole sweep"
    if RECORD.of(settings):
        return "a recording needs the whole sweep"
    if any(s.checker is not None for s in scenarios if s.split == "eval"):
        return "test functions score it, in their own order"
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedBar:
    """What a mean or a difference is held against.

    A difference passes above ``-at`` and fails below 0, for scenarios like these. A mean passes at `at` and
    fails below, as the whole sweep has it.
    """

    at: float
    difference: bool

    @property
    def support(self) -> tuple[float, float]:
        """Least and largest value of one scenario."""
        return (-1.0, 1.0) if self.difference else (0.0, 1.0)

    def judge(self, low: float, high: float) -> State:
        """Return what follows from bounds."""
        if not self.difference:
            return "pass" if low >= self.at else "fail" if high < self.at else "open"
        return "pass" if low > -self.at else "fail" if high < 0 else "open"


class WatchedReading:
    """One rule about a mean, under one reading of errors, over the scenarios that it pairs."""

    def __init__(
        self,
        before: Mapping[str, float | None],
        *,
        bar: WatchedBar,
        share: float,
        families: Mapping[str, str] = NO_FAMILIES,
    ) -> None:
        """`before` are the means to compare with by id, None where they come with the scenario; 0 for a mean.

        `share` is what of both sides is paired. `families` are those of the ids that share one; the ids of a
        family are fed one after the other.
        """
        self._before, self._bar, self._share = before, bar, share
        self.size = len(before)
        self.finding: State = "open"
        self.low, self.high = -math.inf, math.inf
        """Bounds of what decides: of the whole sweep's interval for a difference, else of its mean."""
        self._after_sum = self._before_sum = 0.0
        self._family = {id_: families.get(id_, id_) for id_ in before}
        self._missing = Counter(self._family.values())
        self._values: list[float | None] = []
        """Of the family that is being fed."""
        self.effective = effective_families(list(self._family.values()))
        """Families of equal size with the same information."""
        population, sizes = max(self.size, 1), list(self._missing.values())
        self.mean = MeanSequence(
            population, support=bar.support, alpha_low=MEAN_ALPHA, alpha_high=MEAN_ALPHA, families=sizes
        )
        self._interval = IntervalSequence(self.mean, spread_alpha=SPREAD_ALPHA, alpha=SWEEP_ALPHA)

    def feed(self, id_: str, after: float | None, control: float | None = None) -> None:
        """Take the next scenario of the order; None where it has no score. A finding is final."""
        if id_ not in self._before:
            return
        known = self._before[id_]
        before = control if known is None else known
        value = None if after is None or before is None else after - before
        self._values.append(value)
        if value is not None:
            assert after is not None
            assert before is not None
            self._before_sum += before
            self._after_sum += after
        self._missing[self._family[id_]] -= 1
        if not self._missing[self._family[id_]]:
            self._look()

    def _look(self) -> None:
        """Take the values of a whole family, and see what they decide."""
        values, self._values = self._values, []
        self.mean.feed(*values)
        low, high = self.mean.low, self.mean.high
        if self._bar.difference:
            low, high = self._interval.feed(*values)
        least, most = self._bar.support
        self.low = max(self.low, low, least)
        self.high = min(self.high, high, most)
        if self.finding == "open" and self._enough():
            self.finding = self._bar.judge(self.low, self.high)

    @property
    def before(self) -> float | None:
        """Mean of the scenarios fed, before."""
        return self._before_sum / self.mean.scored if self.mean.scored else None

    @property
    def after(self) -> float | None:
        """Mean of the scenarios fed, after."""
        return self._after_sum / self.mean.scored if self.mean.scored else None

    def _enough(self) -> bool:
        if not self._bar.difference:
            return True
        share = self._share * self.mean.scored / self.mean.fed
        return self.effective >= MIN_PLANNED and self.mean.scored >= MIN_SCENARIOS and share >= MIN_SHARE


class WatchedRule:
    """A rule of the gate that the watch follows, under both readings of errors; the worse one counts."""

    def __init__(
        self,
        name: str,
        before: Mapping[str, Tally] | None,
        planned: Mapping[str, str],
        *,
        bar: WatchedBar,
        families: Mapping[str, str] = NO_FAMILIES,
    ) -> None:
        """`planned` are the task stamps of the sweep's scenarios by id, `families` those that some share.

        `before` is None for a control that runs beside the sweep: then scenarios come in pairs.
        """
        self.name, self.bar, self.pairs = name, bar, before is None
        if before is None:
            pending: dict[str, float | None] = dict.fromkeys(planned)
            self.readings = [WatchedReading(pending, bar=bar, share=1.0, families=families)]
            return
        paired = {id_: row for id_, row in before.items() if planned.get(id_) == row.stamp}
        share = len(paired) / max(len(before), len(planned), 1)
        self.readings = [
            WatchedReading(_means(paired, as_zero), bar=bar, share=share, families=families)
            for as_zero in ((False, True) if any(row.errors for row in paired.values()) else (False,))
        ]

    @property
    def finding(self) -> State:
        """What is decided: one reading that fails, or all that pass."""
        found = {reading.finding for reading in self.readings}
        return "fail" if "fail" in found else "open" if "open" in found else "pass"

    def feed(self, id_: str, after: Tally, control: Tally | None = None) -> None:
        """Take the next scenario of the order, with its control where the rule is about pairs."""
        errors = after.errors or (self.pairs and control is not None and control.errors)
        if errors and len(self.readings) == 1:  # up to here both readings are one
            self.readings.append(copy.deepcopy(self.readings[0]))
        for reading, as_zero in zip(self.readings, (False, True), strict=False):
            before = None if control is None else control.mean(errors_as_zero=as_zero)
            reading.feed(id_, after.mean(errors_as_zero=as_zero), before)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """What besides the comparisons can decide the gate, or keep it open to the end."""

    max_errors: int | None = None
    needs_end: str = ""
    """Why a pass cannot be known before the end; empty when it can."""


class Watch:
    """Follows a final sweep; `settled` once no further scenario can change the gate's result."""

    def __init__(self, order: Sequence[str], rules: Sequence[WatchedRule], bars: Bars) -> None:
        """`order` has the ids of the sweep in the order they run."""
        self.order = tuple(order)
        self.rules = tuple(rules)
        self.needs_end = bars.needs_end
        self.seen = 0
        """Scenarios that were looked at, from the start of the order on."""
        self._max_errors = bars.max_errors
        self._errors = 0
        self._waiting: dict[str, Tally] = {}
        self._controls: dict[str, Tally] = {}
        self._pairs = any(rule.pairs for rule in rules)

    @property
    def outcome(self) -> State:
        """The outcome of the gate, as far as it is known."""
        found = {rule.finding for rule in self.rules}
        if "fail" in found or (self._max_errors is not None and self._errors > self._max_errors):
            return "fail"
        return "pass" if found == {"pass"} and not self.needs_end else "open"

    @property
    def settled(self) -> bool:
        """True once the gate is decided."""
        return self.outcome != "open"

    def feed(self, finished: Mapping[str, Tally], controls: Mapping[str, Tally] = NO_CONTROLS) -> bool:
        """Take scenarios that are finished, in any order; return whether the gate is decided.

        `controls` are those of a concurrent control; a pair counts once both are finished. What comes after
        the decision changes nothing.
        """
        if self.settled:
            return False
        self._waiting |= finished
        self._controls |= controls
        while not self.settled and self.seen < len(self.order):
            id_ = self.order[self.seen]
            if id_ not in self._waiting or (self._pairs and id_ not in self._controls):
                return False
            after, control = self._waiting.pop(id_), self._controls.pop(id_, None)
            self._errors += after.errors
            for rule in self.rules:
                rule.feed(id_, after, control)
            self.seen += 1
        return self.settled


def open_watch(
    *,
    settings: Mapping[str, object],
    scenarios: Sequence[Scenario],
    phase: Phase,
    library: str,
    earlier: PhaseResult | None,
    baseline: Baseline | None,
    against: bool,
    stamps: Mapping[str, str],
) -> Watch | None:
    """Return the watch over a final sweep in `phase` with the library of hash `library`.

    `earlier` is the run's baseline sweep, as far as it ran: a concurrent one comes with the final sweep. It
    is that of the gate's reference where the run is held `against` one.
    `stamps` are those that a stored baseline is compared by. None without a rule that could be settled early.
    """
    in_sweep = frozenset(phase.scenarios)
    planned = {s.id: s.stamp for s in scenarios if s.id in in_sweep}
    families = families_of(s for s in scenarios if s.id in in_sweep)
    rule = partial(WatchedRule, planned=planned, families=families)
    rules, needs_end = [], ""
    minimum, drop = GATE_MIN_MEAN.of(settings), WatchedBar(at=GATE_MARGIN.of(settings), difference=True)
    if minimum is not None:
        zeros = {
            id_: Tally(stamp=stamp, n=1, sum=0.0, sum_sq=0.0, errors=0) for id_, stamp in planned.items()
        }
        rules.append(rule("minimum mean", zeros, bar=WatchedBar(at=minimum, difference=False)))
    if baseline is not None:
        needs_end = why_unfair(baseline, temperature=phase.temperature, stamps=stamps)
        if any(planned.get(id_) != row.stamp for id_, row in baseline.scenarios.items()) or baseline.unsigned:
            needs_end = needs_end or "the baseline is no longer valid"
        if not needs_end:
            rules.append(rule("baseline", baseline.scenarios, bar=drop))
    if earlier is not None and (against or earlier.library_hash != library):
        stamps_by_id = {s.id: s.stamp for s in scenarios}
        before = None if earlier.phase.concurrent else tally(earlier.groups, stamps_by_id)
        rules.append(rule("baseline" if against else "gain", before, bar=drop))
    for row in (GATE_MAX_ERRORS, GATE_MAX_COST_PER_SUCCESS_USD):
        if row.of(settings) is not None:
            needs_end = needs_end or f"{row.name} can only be checked at the end"
    if not rules:
        return None
    order = order_of(SEED.of(settings), (s for s in scenarios if s.id in planned), families)
    return Watch(order, rules, Bars(max_errors=GATE_MAX_ERRORS.of(settings), needs_end=needs_end))


class Planned(Stamped, Protocol):
    """A run, made or planned, with its settings."""

    @property
    def settings(self) -> Mapping[str, object]: ...
    @property
    def partial_selection(self) -> bool: ...
    @property
    def reference(self) -> Reference | None: ...


def watch_for(run: Planned, baseline: Baseline | None = None, *, foreign_rules: bool = False) -> OpenWatch:
    """Return what an engine opens its watches with: over the final sweep of `run`, where it may end early."""

    def watch(phase: Phase, results: Sequence[PhaseResult], library: str) -> Watch | None:
        if phase.mode != "eval" or not GATE_SEQUENTIAL.of(run.settings):
            return None
        if obstacle(run.settings, run.scenarios, foreign_rules=foreign_rules, partial=run.partial_selection):
            return None
        return open_watch(
            settings=run.settings,
            scenarios=run.scenarios,
            phase=phase,
            library=library,
            earlier=next((result for result in results if result.phase.mode == "baseline"), None),
            baseline=baseline,
            against=run.reference is not None,
            stamps=compared_stamps(run),
        )

    return watch


def watched(run: Run, sweeps: Sweeps, baseline: Baseline | None, *, foreign_rules: bool) -> Watch | str:
    """Return the watch over the final sweep of `run` as it was when it ended; else why there was none."""
    sweep = sweeps.after
    if sweep is None or sweep.status != "complete":
        return "the final sweep did not end"
    reason = obstacle(run.settings, run.scenarios, foreign_rules=foreign_rules, partial=run.partial_selection)
    if reason:
        return reason
    watch = open_watch(
        settings=run.settings,
        scenarios=run.scenarios,
        phase=sweep.phase,
        library=sweep.library_hash,
        earlier=sweeps.before,
        baseline=baseline,
        against=run.reference is not None,
        stamps=compared_stamps(run),
    )
    if watch is None:
        return "there is nothing to compare with"
    watch.feed(sweeps.rows_after, sweeps.rows_before)
    return watch


def _means(rows: Mapping[str, Tally], as_zero: bool) -> dict[str, float | None]:
    means = {id_: row.mean(errors_as_zero=as_zero) for id_, row in rows.items()}
    return {id_: mean for id_, mean in means.items() if mean is not None}
