"""The limit of teacher calls in a learning run: never exceeded, and the same questions at any speed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_frame
from support.completers import ScriptedCompleter, make_calls
from support.teachers import PACKS, context_of, operation, says, scored, stage_of, suite

from pytest_tfgrpo.arena.teacher_limit import SPENT, LimitedOptimizer, most_calls
from pytest_tfgrpo.core.errors import BudgetError, ModelError, OutageError
from pytest_tfgrpo.core.records import ModelCall
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.optimizer.llm.optimizer import open_llm
from pytest_tfgrpo.llm.protocol import Message, Request
from pytest_tfgrpo.protocols import LearningContext, Optimizer, Proposal

LONG = 3
"""The group whose attempts are too long to be shown whole."""


def context(**changes: Any) -> LearningContext:
    """Return an epoch of six groups, five of them mixed, in two domains."""
    tasks = [replace(task, domain="dates" if n == 1 else "text") for n, task in enumerate(suite(6))]
    groups = [
        scored(
            task,
            (1.0, 1.0) if n == 2 else (1.0, 0.0),
            frames=(make_frame("count_words", output="so many words " * 200),) if n == LONG else (),
        )
        for n, task in enumerate(tasks)
    ]
    groups = [replace(group, domain=task.domain) for group, task in zip(groups, tasks, strict=True)]
    return context_of(groups, tasks, packs=PACKS, **changes)


def teacher(seed: int = 0, malformed: bool = False) -> ScriptedCompleter:
    """Return a teacher that takes its time, another one with each seed."""
    rng = random.Random(seed)

    async def answer(request: Request) -> str:
        for _ in range(rng.randrange(12) if seed else 0):
            await asyncio.sleep(0)
        stage = stage_of(request)
        if stage == "summary":
            return "it counted"
        if malformed and stage != "repair":
            return "no list"
        return says(operation(**({"sources": ["P1"]} if stage == "consolidation" else {})))

    return ScriptedCompleter(answer)


def learned(
    room: int, asked: ScriptedCompleter, known: Mapping[str, ModelCall] | None = None
) -> tuple[Proposal, list[ModelCall]]:
    written: list[ModelCall] = []
    at = context(calls=make_calls(written, known), concurrency=3)
    return asyncio.run(LimitedOptimizer(open_llm(asked, None), room).propose(at)), written


@pytest.mark.parametrize("malformed", [False, True])
def test_the_calls_are_at_most_so_many_and_the_same_at_any_speed_and_after_a_kill(malformed: bool) -> None:
    wanted = len(learned(100, teacher(malformed=malformed))[1])
    assert wanted == (14 if malformed else 8), "two summaries, five critiques, one consolidation; repairs"
    for room in (0, 1, 2, 4, 5, 7, wanted - 1, wanted, wanted + 2):
        proposal, written = learned(room, teacher(malformed=malformed))
        assert len(written) <= room
        assert len(written) >= min(room, wanted) - 2, "what is left is used"
        assert (SPENT in proposal.failures) == (len(written) < wanted)
        keys = {call.key: call for call in written}
        again, made = learned(room, teacher(room + 1, malformed))
        assert {call.key for call in made} == keys.keys()
        assert again == proposal
        kept = dict(random.Random(room).sample(sorted(keys.items()), len(keys) // 2))
        resumed, rest = learned(room, teacher(room + 2, malformed), kept)
        assert resumed == proposal
        assert {call.key for call in rest} == keys.keys() - kept.keys()


def test_what_is_left_out_is_said_and_counted() -> None:
    proposal, written = learned(3, teacher())
    assert {call.subject for call in written} == {"letter-0", "letter-1"}, "the third is kept for a repair"
    assert proposal.note.endswith("no teacher call was left for 3 groups with mixed results")
    assert proposal.failures[SPENT] == 3
    proposal, written = learned(0, teacher())
    assert (proposal.operations, written) == ((), [])
    assert proposal.note == "no teacher call was left for 5 groups with mixed results"
    proposal, written = learned(100, teacher())
    assert (proposal.note, proposal.failures) == ("", {})


def test_calls_of_earlier_epochs_count_and_those_of_a_judge_or_a_first_word_do_not() -> None:
    def call(key: str, epoch: int, purpose: str = "learn") -> ModelCall:
        _, (known, *_) = learned(100, teacher())
        return replace(known, key=key, epoch=epoch, purpose=purpose)

    before = [call("a", 1), call("b", 2), call("hello.teacher", 1), call("c", 1, "judge")]
    written: list[ModelCall] = []
    calls = make_calls(written, {one.key: one for one in before})
    asyncio.run(LimitedOptimizer(open_llm(teacher(), None), 4).propose(context(calls=calls, epoch=3)))
    assert len(written) == 2


def test_a_teacher_that_is_away_ends_the_run_also_near_the_limit() -> None:
    def away(request: Request) -> str:
        raise ModelError("no server", "rejected")

    with pytest.raises(OutageError, match="no server"):
        learned(2, ScriptedCompleter(away))


class Asker:
    """An optimizer by hook that asks five questions, one after the other."""

    name = "mine"
    identity: Mapping[str, Json] = {}

    def __init__(self, model: ScriptedCompleter, catches: bool) -> None:
        self._model, self._catches = model, catches

    async def propose(self, context: LearningContext) -> Proposal:
        refused = 0
        for n in range(5):
            request = Request(messages=(Message(role="user", content=str(n)),), temperature=0.0)
            try:
                await context.calls.complete(
                    self._model, request, key=f"mine.{n}", purpose="learn", epoch=context.epoch
                )
            except ModelError as error:
                refused += error.code == SPENT
                if not self._catches:
                    raise
        assert len(context.calls.of(context.epoch)) == 5 - refused
        return Proposal(note=f"{refused} refused")


@pytest.mark.parametrize(("catches", "note"), [(True, "2 refused"), (False, "")])
def test_an_optimizer_by_hook_has_no_more_calls_either(catches: bool, note: str) -> None:
    written: list[ModelCall] = []
    at = context(calls=make_calls(written))
    mine: Optimizer = Asker(ScriptedCompleter(lambda _: "ok"), catches)
    proposal = asyncio.run(LimitedOptimizer(mine, 3).propose(at))
    assert ([call.key for call in written], proposal.note) == (["mine.0", "mine.1", "mine.2"], note)
    assert proposal.failures == {SPENT: 2 if catches else 1}
    known = {call.key: call for call in written[1:]}
    again: list[ModelCall] = []
    at = context(calls=make_calls(again, known))
    assert asyncio.run(LimitedOptimizer(mine, 3).propose(at)) == proposal
    assert [call.key for call in again] == ["mine.0"], "those on file have their places"


def test_other_errors_of_a_model_are_not_taken_for_the_limit() -> None:
    def fail(error: Exception) -> Callable[[Request], Awaitable[str]]:
        async def answer(request: Request) -> str:
            raise error

        return answer

    for error in (ModelError("no", "rejected"), BudgetError("no money")):
        mine: Optimizer = Asker(ScriptedCompleter(fail(error)), catches=False)
        with pytest.raises(type(error), match="no"):
            asyncio.run(LimitedOptimizer(mine, 3).propose(context()))


def test_the_most_calls_of_an_epoch() -> None:
    assert most_calls({}, []) == 0
    assert most_calls({"text": 2, "dates": 1}, [4, 2, 16]) == 6 + 4 + 18 + 4
    assert most_calls({"text": 101}, [0] * 101) == 202 + 4, "so many proposals are consolidated in two parts"
