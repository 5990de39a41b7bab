"""What is lost while the provider is away, attempt by attempt."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import AWAY, LOST_WORKER
from pytest_tfgrpo.engine.attempts.breaker import IN_A_ROW, Attempted, Breaker
from pytest_tfgrpo.engine.attempts.first_crashes import ALIKE
from pytest_tfgrpo.engine.phases import outage as module
from pytest_tfgrpo.engine.phases.outage import LostRollouts


def outcome(status: str = "ok", code: str = "", message: str = "refused") -> Any:
    return SimpleNamespace(
        status=status, failure=SimpleNamespace(code=code, message=message) if code else None
    )


def slot(name: str, pair: str = "") -> Any:
    question = SimpleNamespace(scenario=SimpleNamespace(id=name))
    before = SimpleNamespace(attachments=(), archive=None, environment=None)
    return SimpleNamespace(
        rollout_id=name,
        pair=tuple(pair),
        question=question,
        call=SimpleNamespace(workspace=before),
    )


class World:
    """A breaker, and attempts whose outcomes are written down beforehand."""

    def __init__(self, outcomes: dict[str, list[Any]], *, watching: bool = True) -> None:
        self.notices: list[str] = []
        self.forgotten: list[str] = []
        self.made: list[str] = []
        self.breaker = Breaker(self.notices.append, watching=watching)
        self.outcomes = {name: iter(found) for name, found in outcomes.items()}
        self.lost = LostRollouts(
            self.breaker, SimpleNamespace(), make=self.make, undo=self.make,  # type: ignore[arg-type]
            forget=lambda rollout: self.forgotten.append(rollout.rollout_id),
        )  # fmt: skip

    async def make(self, of: Any) -> Attempted | None:
        self.made.append(of.rollout_id)
        found = next(self.outcomes[of.rollout_id])
        began = asyncio.get_running_loop().time()
        rollout: Any = SimpleNamespace(rollout_id=of.rollout_id)
        return None if found is None else Attempted(of, rollout, found, began)

    async def take(self, name: str, pair: str = "") -> tuple[list[str], list[str]]:
        """Return the rollouts that are taken and refused once one more was made."""
        found = await self.lost.make(slot(name, pair))
        return [one.slot.rollout_id for one in found.taken], [one.rollout_id for one in found.refused]


def play(world: World, steps: Callable[[World], Awaitable[object]]) -> Any:
    return asyncio.run(asyncio.wait_for(steps(world), 100))


ERROR = outcome("error", "connection")


def test_what_the_budget_or_the_breaker_refuses_is_not_made() -> None:
    async def steps(world: World) -> Any:
        first = await world.take("a")
        world.breaker.stop("enough")
        world.breaker.stop("later")
        return first, await world.take("b")

    world = World({"a": [None], "b": [outcome()]})
    assert play(world, steps) == (([], ["a"]), ([], ["b"]))
    assert (world.made, world.breaker.reason, world.breaker.in_flight) == (["a"], "enough", 0)


def test_a_lost_rollout_is_made_once_more_and_then_its_error_stands() -> None:
    async def steps(world: World) -> Any:
        found = [await world.take("a"), await world.take("b")]
        assert world.lost.any
        sorted_out = await world.lost.sort_out()
        assert [one.rollout_id for one in sorted_out.again] == ["b"]
        assert (sorted_out.taken, world.lost.any) == ([], False)
        found.append(await world.take("b"))
        last = await world.lost.sort_out()
        return found, [one.slot.rollout_id for one in last.taken], list(last.again)

    world = World({"a": [outcome()], "b": [ERROR, ERROR]})
    world.breaker.pause = lambda probe: asyncio.sleep(0)  # type: ignore[method-assign]
    assert play(world, steps) == ([(["a"], []), ([], []), ([], [])], ["b"], [])
    assert world.forgotten == ["b"]


def test_one_of_a_pair_waits_for_the_other_and_is_lost_with_it() -> None:
    async def steps(world: World) -> Any:
        found = [await world.take("a", "b"), await world.take("b", "a"), await world.take("c", "d")]
        return found, [one.slot.rollout_id for one in world.lost.rest()], world.lost.rest(), world.lost.any

    world = World({"a": [outcome()], "b": [ERROR], "c": [outcome()]})
    assert play(world, steps) == ([([], [])] * 3, ["c"], (), True)
    world.lost.forget()
    assert world.forgotten == ["a", "b"]


def test_three_that_run_side_by_side_are_taken_together() -> None:
    async def steps(world: World) -> Any:
        return [await world.take("a", "bc"), await world.take("c", "ab"), await world.take("b", "ca")]

    world = World({name: [outcome()] for name in "abc"})
    found = play(world, steps)
    assert [sorted(taken) for taken, _ in found] == [[], [], ["a", "b", "c"]]


def test_when_the_run_ends_what_waits_leaves_its_cost() -> None:
    async def steps(world: World) -> Any:
        return [await world.take("a", "b"), await world.take("c"), await world.take("d")]

    world = World({"a": [outcome()], "c": [ERROR], "d": [ERROR]})
    play(world, steps)
    world.lost.forget()
    assert sorted(world.forgotten) == ["a", "c", "d"]


CRASH = outcome("failed", "crash", "no module named x")


def test_what_is_held_when_the_run_ends_leaves_its_cost() -> None:
    world = World({"a": [CRASH]})
    assert play(world, lambda world: world.take("a")) == ([], [])
    world.lost.forget()
    assert world.forgotten == ["a"]


def test_first_crashes_are_held_until_another_ends_differently() -> None:
    async def steps(world: World) -> Any:
        return [await world.take(name) for name in "abc"]

    world = World({"a": [CRASH], "b": [CRASH], "c": [outcome()]})
    assert play(world, steps) == [([], []), ([], []), (["a", "b", "c"], [])]
    assert world.forgotten == []


def test_first_crashes_that_end_the_run_are_no_results() -> None:
    names = [f"n{n}" for n in range(ALIKE)]

    async def steps(world: World) -> Any:
        return [await world.take(name) for name in names]

    world = World({name: [CRASH] for name in names})
    assert play(world, steps) == [*[([], [])] * (ALIKE - 1), ([], names)]
    assert world.forgotten == names
    assert "crash: no module named x" in world.breaker.reason


def test_held_rollouts_are_taken_when_nothing_else_comes() -> None:
    async def steps(world: World) -> Any:
        await world.take("a")
        assert world.lost.any
        found = await world.lost.sort_out()
        return [one.slot.rollout_id for one in found.taken], world.lost.any

    assert play(World({"a": [CRASH]}), steps) == (["a"], False)


@pytest.mark.parametrize(
    ("found", "watching", "lost", "row"),
    [
        (ERROR, True, True, 1),
        (ERROR, False, False, 0),
        (outcome("error", LOST_WORKER), True, True, 0),
        (outcome("error", "content_filter"), True, False, 0),
        (outcome("error"), True, False, 0),
        (outcome("failed", "connection"), True, False, 0),
        (outcome(), True, False, 0),
    ],
)
def test_only_an_error_of_a_provider_that_is_away_counts(
    found: Any, watching: bool, lost: bool, row: int
) -> None:
    async def steps(world: World) -> Any:
        attempted = await world.make(slot("a"))
        assert attempted is not None
        return world.breaker.is_lost(attempted), world.breaker.is_worth_another(found)

    assert LOST_WORKER in AWAY
    world = World({"a": [found]}, watching=watching)
    assert play(world, steps) == (lost, lost)
    assert world.breaker.in_a_row == row
    world.breaker.stop("no more")
    assert not world.breaker.is_worth_another(found)


def test_a_row_of_errors_is_looked_into_once() -> None:
    async def steps(world: World) -> Any:
        due = []
        for n in range(IN_A_ROW):
            await world.take(f"n{n}")
            due.append(world.breaker.due)
        return due

    world = World({f"n{n}": [ERROR] for n in range(IN_A_ROW)})
    assert play(world, steps) == [False] * (IN_A_ROW - 1) + [True]


def test_a_run_pauses_only_after_an_error_and_a_provider_that_never_answered_ends_it() -> None:
    async def steps(world: World) -> Any:
        await world.take("a")
        await world.lost.look_after(slot("b"))
        before = world.breaker.reason
        world.breaker.in_a_row = IN_A_ROW
        await world.lost.look_after(slot("b"))
        same = world.breaker.reason
        await world.lost.look_after(slot("a"))
        return before, same, world.breaker.reason

    world = World({"a": [ERROR]})
    assert play(world, steps) == ("", "", "the actor's provider does not answer: connection: refused")
    assert world.notices == []


def test_a_pair_is_made_again_in_its_order_until_one_of_it_fails_twice() -> None:
    async def steps(world: World) -> Any:
        await world.take("b", "a")
        await asyncio.sleep(0.001)
        await world.take("a", "b")
        again = [one.rollout_id for one in (await world.lost.sort_out()).again]
        await world.take("b", "a")
        await world.take("a", "b")
        last = await world.lost.sort_out()
        return again, [one.slot.rollout_id for one in last.taken], list(last.again)

    world = World({"a": [ERROR, ERROR], "b": [outcome(), outcome()]})
    world.breaker.pause = lambda probe: asyncio.sleep(0)  # type: ignore[method-assign]
    assert play(world, steps) == (["b", "a"], ["b", "a"], [])


@pytest.mark.parametrize(
    ("found", "there", "forgotten"),
    [(outcome(), True, ["a.probe"]), (ERROR, False, ["a.probe"]), (None, True, [])],
)
def test_a_rollout_is_made_once_more_in_files_of_its_own_and_leaves_its_cost(
    monkeypatch: pytest.MonkeyPatch, found: Any, there: bool, forgotten: list[str]
) -> None:
    given: list[Any] = []
    undone: list[str] = []
    world = World({"a.probe": [found]})

    async def undo(slot: Any) -> None:
        undone.append(slot.rollout_id)

    world.lost._undo = undo
    workspaces: Any = SimpleNamespace(new=lambda *arguments: given.append(arguments) or "new files")
    world.lost._workspaces = workspaces
    before = SimpleNamespace(attachments=("f",), archive="an archive", environment="an environment")
    asked = slot("a")
    asked.call.workspace = before

    def replaced(record: Any, **changes: Any) -> Any:
        return SimpleNamespace(**{**vars(record), **changes})

    monkeypatch.setattr(module, "replace", replaced)
    assert play(world, lambda world: world.lost._probe(asked)) is there
    assert given == [("a.probe", ("f",), "an archive", "an environment")]
    assert (undone, world.forgotten) == (["a.probe"], forgotten)
