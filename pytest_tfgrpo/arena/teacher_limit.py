"""The limit of a side's teacher calls: which questions a learning run may still put, whoever comes first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.records import Group, ModelCall, Run
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.optimizer.contrast import attempts_of
from pytest_tfgrpo.learning.optimizer.llm.critique import MAX_ATTEMPTS, MAX_CHANGES, deeds_of
from pytest_tfgrpo.learning.optimizer.llm.optimizer import MAX_PROPOSALS, ModelOptimizer
from pytest_tfgrpo.learning.optimizer.llm.transcript import SHOWN
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.protocol import Completer, Completion, Request
from pytest_tfgrpo.protocols import LearningContext, Optimizer, Proposal

SPENT: Final = "teacher_calls_spent"
"""Reason code of what was not put to the teacher."""


def is_taught(call: ModelCall) -> bool:
    """Return whether a call counts as one of the teacher; that it is there at all is found out beside."""
    return call.purpose == "learn" and not call.key.startswith("hello.")


def taught_in(runs: Iterable[Run]) -> int:
    """Return the teacher calls of runs."""
    return sum(is_taught(call) for run in runs for result in run.phases for call in result.calls)


def was_limited(run: Run) -> bool:
    """Return whether a learning run left out questions for the limit."""
    revisions = [result.revision for result in run.phases if result.revision is not None]
    return any(SPENT in revision.failures for revision in revisions)


class LimitedCalls(Calls):
    """The calls of one epoch's learning, as many as there is room for; those on file count."""

    def __init__(self, calls: Calls, epoch: int, room: int, shares: Mapping[str, int] | None) -> None:
        """`shares` are the calls about each subject; without them whoever comes first is served."""
        self._calls, self._room, self._shares = calls, room, shares
        self._keys = defaultdict[str, set[str]](set)
        for call in filter(is_taught, calls.of(epoch)):
            self._keys[self._share_of(call.subject)].add(call.key)
        self.refused = 0

    def _share_of(self, subject: str) -> str:
        return "" if self._shares is None else subject

    def of(self, epoch: int) -> tuple[ModelCall, ...]:
        """Return the calls of an epoch."""
        return self._calls.of(epoch)

    async def complete(
        self,
        completer: Completer,
        request: Request,
        *,
        key: str,
        purpose: str,
        epoch: int,
        subject: str = "",
    ) -> Completion:
        """Call `completer`; raises ModelError, before any call, where there is no room for another."""
        keys = self._keys[self._share_of(subject)]
        if key not in keys:
            most = self._room if self._shares is None else self._shares.get(subject, 0)
            if len(keys) >= most:
                self.refused += 1
                raise ModelError("the limit of teacher calls is reached", SPENT, cost_usd=0.0)
            keys.add(key)
        return await self._calls.complete(
            completer, request, key=key, purpose=purpose, epoch=epoch, subject=subject
        )


class LimitedOptimizer:
    """An optimizer that makes no more calls than a side has left; without a call it changes nothing."""

    def __init__(self, optimizer: Optimizer, left: int) -> None:
        """`left` are the calls of the whole run."""
        self._optimizer, self._left = optimizer, left
        self.name: str = optimizer.name
        self.identity: Mapping[str, Json] = optimizer.identity

    async def propose(self, context: LearningContext) -> Proposal:
        """Propose as the optimizer does, from as many groups as there are calls for."""
        earlier = (call for epoch in range(context.epoch) for call in context.calls.of(epoch))
        room = self._left - sum(map(is_taught, earlier))
        skipped, shares = 0, None
        if isinstance(self._optimizer, ModelOptimizer):
            groups = [group for group in context.groups if group.informative]
            if most_calls(Counter(group.domain for group in groups), map(_attempts, groups)) > room:
                chosen, shares = shares_of(context, groups, room)
                skipped = len(groups) - len(chosen)
                context = replace(context, groups=chosen)
        calls = LimitedCalls(context.calls, context.epoch, room, shares)
        proposal = Proposal()
        try:
            if context.groups or not skipped:
                proposal = await self._optimizer.propose(replace(context, calls=calls))
        except ModelError as error:
            if error.code != SPENT:
                raise
        if not skipped and not calls.refused:
            return proposal
        notes = [proposal.note] if proposal.note else []
        if skipped:
            notes.append(f"no teacher call was left for {plural(skipped, 'group')} with mixed results")
        failures = {**proposal.failures, SPENT: skipped + calls.refused}
        return replace(proposal, note="; ".join(notes), failures=failures)


def _attempts(group: Group) -> int:
    return min(len(group.rollouts), MAX_ATTEMPTS)


def most_calls(domains: Mapping[str, int], attempts: Iterable[int]) -> int:
    """Return the most calls of `llm` in an epoch; it has groups by domain, and attempts by group.

    Each attempt is summarised, each group studied and each domain consolidated; an answer is repaired once.
    """
    parts = sum(-(-groups * MAX_CHANGES // MAX_PROPOSALS) for groups in domains.values())
    return sum(count + 2 for count in attempts) + 2 * parts


def shares_of(
    context: LearningContext, groups: Sequence[Group], room: int
) -> tuple[list[Group], dict[str, int]]:
    """Return the groups that `llm` has room to study, and the calls about each of them and each domain.

    They depend on the groups alone, not on how fast a teacher answers. What is left over serves repairs.
    """
    chosen: list[Group] = []
    shares, members = Counter[str](), Counter[str]()
    for group in groups:
        if room <= 0:
            break
        scenario = context.scenarios[group.scenario_id]
        deeds = deeds_of(group, attempts_of(group), scenario)
        studied = 1 + sum(len(deed.text) > SHOWN for deed in deeds)
        consolidated = int(members[group.domain] == 1)  # what one group suggests needs none
        if studied + consolidated > room:
            continue
        room -= studied + consolidated
        shares[scenario.id] += studied
        shares[group.domain] += consolidated
        members[group.domain] += 1
        chosen.append(group)
    for subject in (*(group.scenario_id for group in chosen), *(d for d, n in members.items() if n > 1)):
        if room <= 0:
            break
        room -= 1
        shares[subject] += 1
    return chosen, shares
