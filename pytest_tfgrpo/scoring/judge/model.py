"""A language model as judge: several votes on one attempt, one call each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from pytest_tfgrpo.core.errors import BudgetError, ModelError, RecordingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import JudgeResult, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.protocol import Completer, Completion, Message, Request
from pytest_tfgrpo.protocols import Judge
from pytest_tfgrpo.scoring.judge.prompt import question, repair, shown, template_stamp, vote_schema
from pytest_tfgrpo.scoring.judge.votes import Vote, read_vote, tally

TEMPERATURE = 0.7
"""Of several votes: at 0 they would be one vote repeated, and their agreement would say nothing."""


@dataclass(frozen=True, slots=True)
class _Ballot:
    """One vote to be cast: where its calls are filed, and what they are seeded with."""

    scenario: Scenario
    rollout: Rollout
    n: int

    @property
    def key(self) -> str:
        """Identity in the run: the phase, as group ids name it, the rollout in it, and the vote."""
        rollout = self.rollout
        phase = rollout.group_id.removeprefix(f"{rollout.run_id}.").removesuffix(f".{rollout.scenario_id}")
        return f"{phase}.judge.{rollout.scenario_id}.r{rollout.index}.v{self.n}"


class ModelJudge:
    """Decides each criterion by the votes of a language model."""

    def __init__(self, completer: Completer, *, votes: int, seed: int, concurrency: int) -> None:
        self.name = completer.name
        self.identity: Mapping[str, Json] = {
            "model": completer.name,
            "model_identity": dict(completer.identity),
            "template": template_stamp(),
            "votes": votes,
        }
        self._completer = completer
        self._votes = votes
        self._seed = seed
        self._places = asyncio.Semaphore(concurrency)

    async def ask_judge(self, scenario: Scenario, rollout: Rollout, calls: Calls) -> JudgeResult:
        """Return the judge's result; without one, a score of None and the reason, never a default score.

        Raises BudgetError when a call was not made; those beside it are on file by then.
        """
        asked = question(scenario, rollout)
        casting = (self._cast(_Ballot(scenario, rollout, n), asked, calls) for n in range(self._votes))
        cast = await asyncio.gather(*casting, return_exceptions=True)
        broken = [found for found in cast if isinstance(found, BaseException)]
        for error in sorted(broken, key=lambda error: isinstance(error, BudgetError)):
            if not isinstance(error, RecordingError):
                raise error
        if broken:  # a replay that lacks one vote must not pass for one with fewer votes
            return JudgeResult(score=None, asked=self._votes, reason=str(broken[0]))
        votes = [found for found in cast if isinstance(found, tuple)]
        void = [found for found in cast if isinstance(found, str)]
        return tally(scenario.rubric, votes, void, self._votes)

    async def _cast(self, ballot: _Ballot, asked: tuple[Message, ...], calls: Calls) -> Vote | str:
        """Return one vote, after at most one repair, or why it is void."""
        count, messages, problem = len(ballot.scenario.rubric), asked, ""
        for attempt in ("", "repair"):
            try:
                reply = await self._ask(ballot, messages, attempt, calls)
            except ModelError as error:
                return f"{error.code}: {error}"
            try:
                return read_vote(reply.text, count, partial(_judged, ballot))
            except ValueError as error:
                problem = f"{error} (the reply was cut off)" if reply.finish == "length" else str(error)
            messages = repair(asked, reply.text, problem, count)
        return f"malformed: {problem}"

    async def _ask(
        self, ballot: _Ballot, messages: tuple[Message, ...], attempt: str, calls: Calls
    ) -> Completion:
        scenario, rollout = ballot.scenario, ballot.rollout
        place = (rollout.epoch, rollout.index, ballot.n)  # not the run: recordings are found by the request
        request = Request(
            messages=messages,
            temperature=TEMPERATURE if self._votes > 1 else 0.0,
            seed=seed_of(self._seed, "judge", scenario.stamp, *place, attempt),
            schema=vote_schema(len(scenario.rubric)),
        )
        async with self._places:
            return await calls.complete(
                self._completer,
                request,
                key=f"{ballot.key}.{attempt}" if attempt else ballot.key,
                purpose="judge",
                epoch=rollout.epoch,
                subject=scenario.id,
            )


def _judged(ballot: _Ballot) -> list[str]:
    """Return what a reply may quote."""
    data = shown(ballot.scenario, ballot.rollout)
    return [data[name] for name in ("task", "steps", "answer")]


def open_judge(completer: Completer, *, votes: int, seed: int, concurrency: int = 64) -> Judge:
    """Return a judge that calls `completer` for `votes` on each rollout; `seed` is that of the run.

    At most `concurrency` calls are in flight.
    """
    return ModelJudge(completer, votes=votes, seed=seed, concurrency=concurrency)
