import asyncio

import pytest

from pytest_tfgrpo.llm.limits.queueing import Ticket, current_ticket, take_ticket

pytestmark = pytest.mark.asyncio


async def test_an_alarm_rings_once_when_its_time_is_up() -> None:
    rings: list[int] = []
    Ticket().timer(0.01, lambda: rings.append(1))
    await asyncio.sleep(0.05)
    assert rings == [1]


async def test_an_alarm_stands_still_while_its_turn_waits_and_then_goes_on() -> None:
    ticket, rung = Ticket(), asyncio.Event()
    ticket.timer(0.01, rung.set)
    with ticket.waiting():
        with ticket.waiting():
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.02)
        late = asyncio.Event()
        ticket.timer(0.0, late.set)
        await asyncio.sleep(0.01)
        assert not rung.is_set()
        assert not late.is_set()
    assert ticket.waited_s >= 0.05
    await asyncio.wait_for(asyncio.gather(rung.wait(), late.wait()), 100)


async def test_calls_that_wait_side_by_side_wait_from_the_first_to_the_last() -> None:
    ticket, rung = Ticket(), asyncio.Event()
    timer = ticket.timer(100.0, rung.set)
    with ticket.waiting():
        await asyncio.sleep(0.03)
        with ticket.waiting():
            await asyncio.sleep(0.01)
    timer.cancel()
    assert ticket.waited_s >= 0.04


async def test_a_cancelled_alarm_never_rings_even_if_its_turn_waits() -> None:
    ticket, rings = Ticket(), []
    timer = ticket.timer(0.0, lambda: rings.append(1))
    with ticket.waiting():
        timer.cancel()
    await asyncio.sleep(0.01)
    assert rings == []


async def test_a_task_has_the_turn_of_who_started_it_and_others_have_their_own() -> None:
    async def place() -> int:
        return current_ticket().place

    async def begin(number: int) -> int:
        take_ticket(number)
        return await asyncio.create_task(place())

    assert await asyncio.gather(begin(1), begin(2)) == [1, 2]
    assert current_ticket().place == 0
