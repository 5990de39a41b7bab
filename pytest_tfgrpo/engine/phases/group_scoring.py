"""Groups of a cohort, from judged rollouts to scores."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import RewarderError
from pytest_tfgrpo.core.records import Group, Rollout, Score
from pytest_tfgrpo.core.settings.runs import REWARDER_TIMEOUT_S
from pytest_tfgrpo.sandbox.programs.threads import call_in_daemon
from pytest_tfgrpo.scoring.rewarders.scoring import group_of, score

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.context import RunContext
    from pytest_tfgrpo.engine.ledger import Ledger
    from pytest_tfgrpo.engine.lineup import Lineup
    from pytest_tfgrpo.engine.phases.grader import Grader
    from pytest_tfgrpo.runs.journal.stored_groups import GroupsById

COALESCE_S = 0.002
"""Groups that complete within this time are scored in one batch: arrays cost by the call."""


class RewarderTimeout(RewarderError):
    """A rewarder ran over its time limit: the epoch is aborted (decision 18)."""


class GroupScoring:
    """Collects judged rollouts, and scores each group that is complete."""

    def __init__(
        self,
        context: RunContext,
        groups: GroupsById,
        first: Mapping[str, int],
        *,
        grader: Grader,
        ledger: Ledger,
        lineup: Lineup,
    ) -> None:
        """Put what is scored into `groups`; `first` has the rollouts of each that are there already, by id.

        What is on file stays as it is, whatever becomes of the others.
        """
        self._context, self._groups, self.first = context, groups, first
        self._grader, self._ledger, self._lineup = grader, ledger, lineup
        self._open = {id_: list(groups[id_].rollouts) for id_ in first}
        self._complete: list[list[Rollout]] = []
        self._wake = asyncio.Event()
        self._finished = False

    def take(self, rollout: Rollout, of: int) -> None:
        """Take a judged rollout; a group `of` so many rollouts is scored once they are here."""
        self._context.gauge.finish(rollout)
        self._context.observe(rollout)
        group = self._open.setdefault(rollout.group_id, [])
        group.append(rollout)
        if len(group) == of:
            del self._open[rollout.group_id]
            if rollout.group_id not in self._grader.excluded:
                self._complete.append(sorted(group, key=lambda r: r.index))
                self._wake.set()

    def end(self) -> None:
        """Have `run` return once all that is complete is scored."""
        self._finished = True
        self._wake.set()

    async def run(self) -> None:
        """Score complete groups in batches: whatever is ready when the last batch is done.

        Raises RewarderTimeout, RewarderError, RecordingError, JournalError.
        """
        while True:
            await self._wake.wait()
            await asyncio.sleep(COALESCE_S)
            self._wake.clear()
            while self._complete:
                ready = list(self._complete)
                await self._score(ready)
                del self._complete[: len(ready)]
            if self._finished:
                return

    async def _score(self, ready: list[list[Rollout]]) -> None:
        rollouts = [rollout for group in ready for rollout in group]
        scenarios = {r.scenario_id: self._context.scenarios[r.scenario_id] for r in rollouts}
        extra = self._context.job.rewarders
        if extra:
            limit = REWARDER_TIMEOUT_S.of(self._context.job.settings)
            try:
                async with asyncio.timeout(limit):
                    scores = await call_in_daemon(score, rollouts, scenarios, extra)
            except TimeoutError:
                names = ", ".join(rewarder.name for rewarder in extra)
                raise RewarderTimeout(
                    f"rewarders ({names}) exceeded rewarder_timeout_s = {limit:g}"
                ) from None
        else:
            scores = score(rollouts, scenarios)
        at = 0
        for members in ready:
            group = self._group(members, scores[at : at + len(members)])
            at += len(members)
            self._context.writer.group(group, self.first.get(group.group_id, 0))
            self._context.gauge.score(group)
            self._context.observe(self._groups[group.group_id])
        self._lineup.feed([self._groups[members[0].group_id] for members in ready])

    def _group(self, members: Sequence[Rollout], scores: Sequence[Score]) -> Group:
        """Return the group of some rollouts, which is kept."""
        scenario = self._context.scenarios[members[0].scenario_id]
        group = group_of(members, scores, scenario)
        if served := self._lineup.served_by(group.epoch, scenario.id):
            group = replace(group, shared="baseline" in served, as_placebo="placebo" in served)
        self._groups[group.group_id] = group
        self._ledger.settle(members)
        return group

    def keep_unscored(self) -> None:
        """Keep groups that no rewarder scored, without scores: their metrics still count (decision 18)."""
        for members in [*self._complete, *self._open.values()]:
            scores = [
                Score(rollout_id=r.rollout_id, gt_score=None, reward=None, relative_rank=None, advantage=None)
                for r in members
            ]
            self._context.writer.metrics(self._group(members, scores))
