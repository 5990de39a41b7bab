"""The rule of acceptance before lessons were estimated together: whole candidates, then halves of them.

A candidate library is tried against the active one on the dev split; if it is rejected, parts of it are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal, Protocol, TypeAlias, cast

from pytest_tfgrpo.core.lessons import Acceptance, Library, Operation, Revision, Trial
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.settings.learning import ACCEPTANCE, ACCEPTANCE_MARGIN
from pytest_tfgrpo.learning.acceptance.parts import OperationSet, units_of
from pytest_tfgrpo.learning.library.library import carry_out, is_trim
from pytest_tfgrpo.metrics.comparison import Tally, tally
from pytest_tfgrpo.numerics.stats import one_sided_p, paired_interval
from pytest_tfgrpo.runs.schedule import MIN_DEV

MAX_TRIALS = 4
"""Libraries that are tried on the dev split after an epoch, the whole candidate first."""


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
    return next((place for place, id_ in enumerate(prompt) if id_ in ids), None)


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
            cases=tuple(Case.of(before[id_], after[id_]) for id_ in after),
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
        for id_ in sorted(self.after):
            old = self.before[id_].mean(errors_as_zero=errors_as_zero)
            new = self.after[id_].mean(errors_as_zero=errors_as_zero)
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
    def of(settings: Mapping[str, object]) -> AcceptanceRule:
        """Return the rule that the settings ask for, which must not be ``off``."""
        name = cast("Literal['strict', 'safe']", ACCEPTANCE.of(settings))
        return AcceptanceRule(name=name, margin=ACCEPTANCE_MARGIN.of(settings))

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


def halves(units: Sequence[OperationSet]) -> list[list[OperationSet]]:
    """Return two halves of `units`, in order; a single unit has none."""
    if len(units) < 2:
        return []
    middle = (len(units) + 1) // 2
    return [list(units[:middle]), list(units[middle:])]


def operations_of(operations: Sequence[Operation], units: Sequence[OperationSet]) -> tuple[Operation, ...]:
    """Return the operations of `units`, in the order that they have among `operations`."""
    chosen = {id(operation) for unit in units for operation in unit}
    return tuple(operation for operation in operations if id(operation) in chosen)


UNSEEN = "no dev scenario's prompt changes"
UNMEASURED = "not measured: too many rollouts are errors"


class DevSet(Protocol):
    """Where libraries are compared: `DevSweeps`, or what a test puts in its place."""

    made: int
    """Rollouts of the epoch so far."""

    def changed(self, before: Library, after: Library) -> tuple[str, ...]:
        """Return the ids of the dev scenarios whose prompt differs."""
        ...

    def cost(self, before: Library, after: Library) -> int:
        """Return how many rollouts a comparison still needs."""
        ...

    async def compare(self, before: Library, after: Library) -> Pairs:
        """Return the scores under both libraries."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What decides, and how far it may go."""

    rule: AcceptanceRule
    scenarios: int
    """Dev scenarios there are."""
    rollouts: int
    """Rollouts of an epoch beyond which no further part is tried."""
    cap: int
    """Most active lessons per domain."""


async def decide(library: Library, candidate: Revision, bench: DevSet, limits: Limits) -> Revision:
    """Return what of `candidate` comes into force over `library`, with what decided; raises Unfinished.

    Every part is a test of its own: Holm's correction (Holm 1979) in its sequential form multiplies its p by
    the number of parts that may be tested, less those whose test has rejected its null hypothesis. That the
    whole is tested first, at the full level, costs nothing: parts are tested only where it was rejected.
    """
    if not candidate.applied:
        return replace(candidate, acceptance=_acceptance(limits, note="nothing was proposed"))
    search = _Search(library, candidate, bench, limits)
    await search.run()
    return search.revision()


class _Search:
    """The trials of one epoch."""

    def __init__(self, library: Library, candidate: Revision, bench: DevSet, limits: Limits) -> None:
        self._library = library
        self._candidate = candidate
        self._bench = bench
        self._limits = limits
        self._units = units_of(library, candidate.applied)
        self._kept: list[OperationSet] = []
        self._revision = Revision(epoch=candidate.epoch, library=library)
        """What is accepted so far."""
        self._trials: list[Trial] = []
        self._open: list[list[OperationSet]] = []
        self._cases: tuple[Case, ...] = ()
        """What the last trial saw of single changes, against the library at the start of the epoch."""
        self._shown = 0
        """Parts whose test has rejected its null hypothesis: their share of the level passes on."""

    async def run(self) -> None:
        """Try the whole, and parts of it while that is worth its price."""
        if await self._try_whole():
            self._revision, self._kept = self._candidate, list(self._units)
        elif self._trials[0].p is not None:  # else nothing was measured: parts would show no more
            await self._try_parts()
        if self._revision.applied:
            await self._weed()

    async def _try_parts(self) -> None:
        """Try the whole without operations that their own scenarios reject, else halves of it."""
        against = self._against(self._units)
        rest = [unit for unit in self._units if unit not in against]
        self._open = [rest] if against and rest else halves(self._units)
        while self._open:
            part = self._open.pop(0)
            if len(self._tested) >= MAX_TRIALS:
                self._leave(part, f"{MAX_TRIALS} libraries were tried in this epoch")
            elif len(self._kept) + len(part) == len(self._units):
                self._open[:0] = halves(part)
                if len(part) == 1:
                    self._leave(part, "with the accepted parts it would equal the rejected library")
            elif too_dear := self._too_dear(part):
                self._leave(part, too_dear)
            elif not await self._try_part(part):
                self._open += halves(part)

    async def _weed(self) -> None:
        """Leave out operations that their own scenarios reject, and try the rest, while trials are left.

        Where nothing would be left the rule has the last word: it has accepted what there is.
        """
        while len(self._tested) < MAX_TRIALS and (against := self._against(self._kept)):
            rest = [unit for unit in self._kept if unit not in against]
            if not rest or not await self._try_without(against, rest):
                return

    async def _try_without(self, against: list[OperationSet], rest: list[OperationSet]) -> bool:
        """Try what is accepted without the units `against`; returns whether that comes into its place."""
        rule, drawn = self._limits.rule, self._drawn(rest)
        needed = self._bench.cost(self._library, drawn.library)
        if needed and self._bench.made + needed > self._limits.rollouts:
            return False
        trial = self._trial(self._library, drawn.library, operations_of(self._candidate.applied, rest))
        pairs, trial = await self._measure(self._library, drawn.library, trial)
        ruling = rule.judge(pairs, factor=self._factor, doubted=True)
        number = len(operations_of(self._candidate.applied, against))
        ruling = replace(ruling, why=f"without {number} that did not help their own scenarios: {ruling.why}")
        accepted = self._judge(trial, pairs, ruling)
        if accepted:
            self._revision, self._kept = drawn, rest
        return accepted

    def _against(self, units: Sequence[OperationSet]) -> list[OperationSet]:
        rule = self._limits.rule
        return idle_or_harmful(self._cases, units, margin=rule.margin, alpha=rule.alpha)

    def revision(self) -> Revision:
        """Return what came into force, and what did not."""
        kept = {id(operation) for operation in self._revision.applied}
        rejected = (o for o in self._candidate.applied if id(o) not in kept and not is_trim(o))
        acceptance = _acceptance(self._limits, trials=tuple(self._trials), rejected=tuple(rejected))
        applied, library = self._revision.applied, self._revision.library
        return replace(self._candidate, library=library, applied=applied, acceptance=acceptance)

    @property
    def _tested(self) -> list[Trial]:
        return [trial for trial in self._trials if trial.verdict != "not_tested"]

    @property
    def _factor(self) -> int:
        """How many parts may be tested, less those that have shown something (Holm)."""
        return max(1, min(MAX_TRIALS - 1, len(self._units)) - self._shown)

    async def _try_whole(self) -> bool:
        after = self._candidate.library
        trial = self._trial(self._library, after, self._candidate.applied)
        if not trial.changed:
            return self._pass_unseen(trial)
        pairs, trial = await self._measure(self._library, after, trial)
        return self._judge(trial, pairs, self._limits.rule.judge(pairs))

    async def _try_part(self, part: list[OperationSet]) -> bool:
        """Try `part` on top of what is accepted so far; returns whether it is accepted too."""
        rule, before, drawn = self._limits.rule, self._revision.library, self._with(part)
        trial = self._trial(before, drawn.library, operations_of(self._candidate.applied, part))
        if not trial.changed:
            accepted = self._pass_unseen(trial)
        else:
            pairs, trial = await self._measure(before, drawn.library, trial)
            ruling = rule.judge(pairs, factor=self._factor, doubted=True)
            self._shown += pairs.measured and ruling.p_adjusted < rule.alpha
            if ruling.accepted and rule.name == "safe" and before.hash != self._library.hash:
                ruling, trial = await self._against_start(drawn.library, ruling, trial)
            accepted = self._judge(trial, pairs, ruling)
        if accepted:
            self._kept += part
            self._revision = drawn
        return accepted

    async def _against_start(
        self, after: Library, ruling: AcceptanceResult, trial: Trial
    ) -> tuple[AcceptanceResult, Trial]:
        """Return the result if small losses of several parts could add up to more than the margin."""
        made = trial.rollouts
        pairs, trial = await self._measure(self._library, after, trial)
        trial = replace(trial, rollouts=made + trial.rollouts)
        whole = self._limits.rule.judge(pairs, doubted=True)
        if whole.accepted and pairs.measured:
            return ruling, trial
        why = f"with the accepted parts {whole.reading.difference:+.3f}: {whole.why}"
        return replace(ruling, accepted=False, why=why), trial

    def _judge(self, trial: Trial, pairs: Pairs, ruling: AcceptanceResult) -> bool:
        """Note a trial that was made; returns whether it is accepted."""
        if not pairs.measured:
            reason = f"{UNMEASURED}, {pairs.errors[0]} before and {pairs.errors[1]} after"
            self._trials.append(replace(trial, verdict="rejected", reason=reason))
            return False
        reading = ruling.reading
        before, after = pairs.errors
        errors = f"; with errors {reading.errors}: {before} before, {after} after" if before + after else ""
        self._trials.append(
            replace(
                trial,
                difference=reading.difference,
                ci95=reading.ci95,
                p=reading.p,
                p_adjusted=ruling.p_adjusted,
                verdict="accepted" if ruling.accepted else "rejected",
                reason=ruling.why + errors,
            )
        )
        return ruling.accepted

    def _pass_unseen(self, trial: Trial) -> bool:
        """Note a library that no dev scenario sees: its difference is 0, and no rollout is needed."""
        safe = self._limits.rule.name == "safe"
        reason = UNSEEN if safe else f"{UNSEEN}: not shown to be better"
        verdict: Literal["accepted", "rejected"] = "accepted" if safe else "rejected"
        self._trials.append(replace(trial, difference=0.0, verdict=verdict, reason=reason))
        return safe

    async def _measure(self, before: Library, after: Library, trial: Trial) -> tuple[Pairs, Trial]:
        made = self._bench.made
        pairs = await self._bench.compare(before, after)
        if before.hash == self._library.hash:
            self._cases = pairs.cases
        return pairs, replace(trial, rollouts=self._bench.made - made, errors=sum(pairs.errors))

    def _with(self, part: list[OperationSet]) -> Revision:
        return self._drawn([*self._kept, *part])

    def _drawn(self, units: list[OperationSet]) -> Revision:
        operations = operations_of(self._candidate.applied, units)
        return carry_out(self._library, operations, cap=self._limits.cap, epoch=self._candidate.epoch)

    def _too_dear(self, part: list[OperationSet]) -> str:
        """Return why `part` may not be tried, or nothing."""
        needed = self._bench.cost(self._revision.library, self._with(part).library)
        made, most = self._bench.made, self._limits.rollouts
        if not needed or made + needed <= most:
            return ""
        return f"it needs {needed} rollouts after {made}, but acceptance_rollouts is {most}"

    def _leave(self, part: list[OperationSet], reason: str) -> None:
        """Note that `part` stays out without a test."""
        operations = operations_of(self._candidate.applied, part)
        trial = self._trial(self._revision.library, self._with(part).library, operations)
        self._trials.append(replace(trial, reason=reason))

    def _trial(self, before: Library, after: Library, operations: Sequence[Operation]) -> Trial:
        return Trial(
            n=len(self._trials) + 1,
            operations=tuple(operations),
            before=before.hash,
            after=after.hash,
            scenarios=self._limits.scenarios,
            changed=len(self._bench.changed(before, after)),
        )


def _acceptance(
    limits: Limits, *, trials: tuple[Trial, ...] = (), rejected: tuple[Operation, ...] = (), note: str = ""
) -> Acceptance:
    rule = limits.rule
    return Acceptance(
        rule=rule.name,
        margin=rule.margin,
        alpha=rule.alpha,
        scenarios=limits.scenarios,
        trials=trials,
        rejected=rejected,
        note=note,
    )
