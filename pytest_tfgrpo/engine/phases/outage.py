"""An outage of the actor's provider: what it loses is made again, or waits until the run ends.

What is settled is returned: the caller keeps the results, says what will not be made, and makes the rest
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.engine.attempts.breaker import Attempted, Breaker

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Rollout
    from pytest_tfgrpo.engine.attempts.attempt import Slot
    from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces

TRIES_AGAIN = 1
"""How often a rollout is made again that failed because the provider was away, as it seemed."""


class SettledAttempts(NamedTuple):
    """What is known of rollouts: nothing yet, where all is empty."""

    taken: Sequence[Attempted] = ()
    """Attempts that are results."""
    refused: Sequence[Slot] = ()
    """Rollouts that will not be made in this run."""
    again: Sequence[Slot] = ()
    """Rollouts to be made again, in order, whose attempts are no results."""


class LostRollouts:
    """Makes the rollouts of a phase, and knows those that were lost because the provider was away.

    The sides of a pair are settled together: nothing that drifts may lie between them.
    """

    def __init__(
        self,
        breaker: Breaker,
        workspaces: RunWorkspaces,
        *,
        make: Callable[[Slot], Awaitable[Attempted | None]],
        undo: Callable[[Slot], Awaitable[object]],
        forget: Callable[[Rollout], None],
    ) -> None:
        """`make` makes one attempt, and `undo` what that did; `forget` keeps of it only what it cost."""
        self._breaker = breaker
        self._workspaces = workspaces
        self._make = make
        self._undo = undo
        self._forget = forget
        self._held: list[Attempted] = []
        """Those that failed alike, as all rollouts of the run so far."""
        self._waiting: dict[str, Attempted] = {}
        """Attempts by id of which another side has not ended yet."""
        self._failed: set[str] = set()
        """Ids of those whose provider was away, as it seemed."""
        self._lost: list[list[Attempted]] = []
        """Single attempts and pairs."""
        self._tries: Counter[str] = Counter()

    async def make(self, slot: Slot) -> SettledAttempts:
        """Make one rollout, unless the run ends; waits while it pauses."""
        if not await self._breaker.passing():
            return SettledAttempts(refused=[slot])
        with self._breaker.attempting():
            attempted = await self._make(slot)
        if attempted is None:
            return SettledAttempts(refused=[slot])
        if self._breaker.is_lost(attempted):
            self._tries[slot.rollout_id] += 1
            self._failed.add(slot.rollout_id)
        else:
            self._breaker.worked(attempted)
        if self._breaker.first.holds(attempted.outcome, slot.question.scenario.id):
            self._held.append(attempted)
            return self._drop_held() if self._breaker.first.stopped else SettledAttempts()
        return SettledAttempts([*self._let_held_go(), *self._settle(attempted)])

    async def look_after(self, slot: Slot) -> None:
        """Pause the run where the rollout that ended was one too many whose provider was away."""
        if slot.rollout_id in self._failed and self._breaker.due:
            await self._breaker.pause(self._probe)

    def _drop_held(self) -> SettledAttempts:
        """Take none of the attempts that failed alike: that ended the run."""
        held, self._held = self._held, []
        for attempted in held:
            self._forget(attempted.rollout)
        return SettledAttempts(refused=[attempted.slot for attempted in held])

    def _let_held_go(self) -> Sequence[Attempted]:
        """Take what failed alike, as something else is known now."""
        held, self._held = self._held, []
        return [one for attempted in held for one in self._settle(attempted)]

    def _settle(self, attempted: Attempted) -> Sequence[Attempted]:
        """Return what can be taken now; one of a pair waits for its other sides."""
        slot = attempted.slot
        if not all(id_ in self._waiting for id_ in slot.pair):
            self._waiting[slot.rollout_id] = attempted
            return ()
        both = [*map(self._waiting.pop, slot.pair), attempted]
        torn = min(one.began for one in both) < self._breaker.back_at <= max(one.began for one in both)
        if torn or not self._failed.isdisjoint(one.slot.rollout_id for one in both):
            self._lost.append(both)
            return ()
        return both

    @property
    def any(self) -> bool:
        """Whether attempts are lost, or held."""
        return bool(self._lost or self._held)

    async def sort_out(self) -> SettledAttempts:
        """Say what becomes of the lost once the provider answers: one more try, then the error stands."""
        if self._held:
            return SettledAttempts(self._let_held_go())
        if self._breaker.in_a_row and not self._breaker.reason:
            await self._breaker.pause(self._probe)
        lost, self._lost, self._failed = self._lost, [], set()
        taken: list[Attempted] = []
        again: list[Slot] = []
        for both in lost:
            if self._breaker.reason or any(self._tries[one.slot.rollout_id] > TRIES_AGAIN for one in both):
                taken += both
                continue
            for attempted in sorted(both, key=lambda one: one.began):
                self._forget(attempted.rollout)
                again.append(attempted.slot)
        return SettledAttempts(taken, again=again)

    def rest(self) -> Sequence[Attempted]:
        """Return what still waits: a budget or the breaker keeps their other sides from it."""
        waiting, self._waiting = self._waiting, {}
        return tuple(waiting.values())

    def forget(self) -> None:
        """Keep only what attempts cost that are still lost, or without their other side: the run ended."""
        lost: Iterable[Attempted] = (one for both in self._lost for one in both)
        for attempted in (*lost, *self._waiting.values(), *self._held):
            self._forget(attempted.rollout)

    async def _probe(self, slot: Slot) -> bool:
        """Make a rollout that worked once more, for nothing but to see whether its provider answers."""
        name = f"{slot.rollout_id}.probe"
        before = slot.call.workspace
        files = self._workspaces.new(name, before.attachments, before.archive, before.environment)
        probing = replace(slot, rollout_id=name, call=replace(slot.call, workspace=files))
        attempted = await self._make(probing)
        await self._undo(probing)
        if attempted is None:  # a budget ends the run anyway
            return True
        self._forget(attempted.rollout)
        return not self._breaker.is_lost(attempted)
