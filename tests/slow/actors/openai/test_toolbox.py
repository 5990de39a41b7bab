"""Tools from a module: what makes one, what the model is told, what it may send."""

import asyncio
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.model_actor import Bench, script, wants

from pytest_tfgrpo.engine.attempts.attempt import attempt


def test_endless_arguments_do_not_hold_up_other_rollouts(bench: Bench) -> None:
    bench.tools("def note(n: int, text: list = []) -> str:\n    return f'{n} {len(text)}'")
    long = '{"n": 1, "text": [' + ",".join(["[]"] * 200_000) + "]}"
    deep = '{"n": 1, "text": ' + "[" * 400_000 + "]" * 400_000 + "}"
    actor = bench.actor(script(wants(("note", long), ("note", deep)), "3"))
    ticks = 0

    async def scene() -> str:
        nonlocal ticks
        task = asyncio.ensure_future(attempt(actor, bench.make_call(answer_max_bytes=10**6)))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.001)
        return task.result().answer

    assert asyncio.run(scene()) == "3"
    assert bench.told()[0] == "1 200000"
    assert "nested more than 64 levels deep" in bench.told()[1]
    assert ticks > 3


ANYTHING = st.recursive(st.none() | st.integers() | st.text(), st.lists)


@given(st.text(max_size=40) | (ANYTHING | ANYTHING.map(lambda value: {"n": value})).map(json.dumps))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_no_arguments_end_a_rollout(bench: Bench, arguments: str) -> None:
    bench.tools("def note(n: int) -> str:\n    return 'ok'")
    assert bench.ask(script(wants(("note", arguments)), "3"), answer_max_bytes=10**6).answer == "3"
