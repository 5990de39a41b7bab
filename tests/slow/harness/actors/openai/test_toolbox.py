"""Tools from a module: what makes one, what the model is told, what it may send."""

import asyncio

from support.model_actor import Bench, script, wants

from pytest_tfgrpo.harness.engine.attempt import attempt


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
