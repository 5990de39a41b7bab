"""The decision on a candidate library: try it whole and, if it is rejected, in halves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pytest_tfgrpo.core.lessons import Acceptance, Library, Operation, Revision, Trial
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.harness.learning.acceptance.parts import OperationSet, halves, operations_of, units_of
from pytest_tfgrpo.harness.learning.acceptance.per_lesson import Case, idle_or_harmful
from pytest_tfgrpo.harness.learning.acceptance.rule import AcceptanceResult, AcceptanceRule, Pairs
from pytest_tfgrpo.harness.learning.library.library import carry_out, is_trim
from pytest_tfgrpo.harness.run.schedule import MAX_TRIALS, MIN_DEV

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


def limits_of(phase: Phase, settings: SettingValues) -> Limits:
    """Return what decides on what a training epoch learned."""
    return Limits(
        rule=AcceptanceRule.of(settings),
        scenarios=len(phase.dev),
        rollouts=settings["acceptance_rollouts"],
        cap=settings["library_cap"],
    )


def undecided(candidate: Revision, scenarios: Iterable[Scenario], settings: SettingValues) -> Revision:
    """Return `candidate`, which is accepted untried, with the reason why nothing decides on it."""
    if candidate.acceptance is not None or settings["acceptance"] == "off":
        return candidate
    number = sum(scenario.split == "dev" for scenario in scenarios)
    note = f"not tried: {number} dev scenarios, at least {MIN_DEV} are needed"
    limits = Limits(rule=AcceptanceRule.of(settings), scenarios=number, rollouts=0, cap=0)
    return replace(candidate, acceptance=_acceptance(limits, note=note))


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
