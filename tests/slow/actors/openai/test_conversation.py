"""What an actor says to a model, and how a conversation ends."""

import asyncio
import time

from support.model_actor import Bench, script, wants

from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.llm.protocol import Request


async def _never(_: Request) -> str:
    await asyncio.Event().wait()
    return ""


async def _stalls(_: Request) -> str:
    time.sleep(0.1)  # holds up the loop, so that all time limits are found to be over at once
    await asyncio.Event().wait()
    return ""


def test_a_stalled_loop_does_not_make_a_slow_model_the_agents_fault(bench: Bench) -> None:
    outcome = bench.ask(_stalls, timeout_s=0.05)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("error", "timeout")
    assert [(f.kind, f.cost_usd) for f in outcome.frames] == [("model", None)]


def test_a_rollout_that_started_late_tells_no_less(bench: Bench) -> None:
    actor = bench.actor(_never)

    async def scene() -> AttemptResult:
        asyncio.get_running_loop().call_soon(time.sleep, 0.1)  # between the attempt's start and the actor's
        return await attempt(actor, bench.make_call(timeout_s=0.2))

    outcome = asyncio.run(scene())
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("error", "timeout")
    assert len(outcome.frames) == 1


def test_a_stalled_loop_loses_no_frame_of_a_rollout_whose_tools_are_at_work(bench: Bench) -> None:
    bench.tools(
        "import asyncio, time\nasync def work():\n    time.sleep(0.1)\n    await asyncio.Event().wait()"
    )
    outcome = bench.ask(script(wants(("work", ""))), timeout_s=0.05)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("failed", "timeout")
    assert [(f.kind, f.cost_usd) for f in outcome.frames] == [("model", 0.01), ("tool", 0.0)]
