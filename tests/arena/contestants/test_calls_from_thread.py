"""Calls that a thread makes on the loop: answered in order, ended by the first failure or a cancellation."""

import asyncio
import threading

import pytest

from pytest_tfgrpo.arena.contestants.calls_from_thread import CallsEnded, LoopCalls, run_in_thread


async def give(value):
    await asyncio.sleep(0)
    return value


async def fail(error):
    raise error


def run(work):
    return asyncio.run(run_in_thread(work, "tested"))


def test_calls_run_on_the_loop_and_the_work_in_a_thread():
    names = []

    async def name():
        names.append(threading.current_thread().name)
        return len(names)

    def work(calls):
        names.append(threading.current_thread().name)
        return [calls(name), calls(name)]

    assert run(work) == [2, 3]
    assert names == ["tested", "MainThread", "MainThread"]


def test_a_call_that_fails_ends_the_work_with_its_error():
    made = []

    def work(calls):
        for error in (KeyError("first"), ValueError("second")):
            try:
                calls(lambda error=error: fail(error))
            except CallsEnded:
                made.append(error)
        return "an end of its own"

    with pytest.raises(KeyError, match="first"):
        run(work)
    assert len(made) == 2


def test_what_the_work_raises_is_raised():
    def work(calls):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(work)


def test_cancelled_between_and_within_calls_it_waits_for_the_thread():
    ended = []

    def work(calls: LoopCalls):
        reached.set()
        go.wait(5)
        try:
            calls(lambda: give(1))
        finally:
            ended.append(True)

    async def play():
        task = asyncio.create_task(run_in_thread(work, "tested"))
        await asyncio.to_thread(reached.wait, 5)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    reached, go = threading.Event(), threading.Event()
    asyncio.run(play())
    assert ended == [True]
