"""From judged rollouts to scored groups."""

import asyncio
import time
from collections.abc import Iterable
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from support.builders import make_rollout, make_scenario

from pytest_tfgrpo.core.records import Group, Rollout
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.engine.phases.group_scoring import GroupScoring, RewarderTimeout

NAMES = ("a", "b", "c")


class World:
    """What stands around the scoring of a cohort, and what it was told."""

    def __init__(
        self,
        *,
        rewarders: Any = (),
        first: Any = None,
        groups: Any = None,
        served: Any = MappingProxyType({}),
    ) -> None:
        self.told: dict[str, list[Any]] = {
            key: [] for key in ("written", "fed", "settled", "metrics", "seen")
        }
        settings = resolve({"rewarder_timeout_s": "0.01"}, {}, {}).values
        self.groups: dict[str, Group] = {} if groups is None else groups
        put: Any = self.groups
        writer = SimpleNamespace(
            group=lambda group, first: self.told["written"].append((group, first)),
            metrics=self.told["metrics"].append,
        )
        gauge = SimpleNamespace(finish=lambda rollout: None, score=lambda group: None)
        context: Any = SimpleNamespace(
            gauge=gauge, writer=writer, observe=self.told["seen"].append,
            scenarios={name: make_scenario(name) for name in NAMES},
            job=SimpleNamespace(rewarders=rewarders, settings=settings),
        )  # fmt: skip
        self.excluded: set[str] = set()
        grader: Any = SimpleNamespace(excluded=self.excluded)
        ledger: Any = SimpleNamespace(settle=self.told["settled"].extend)
        lineup: Any = SimpleNamespace(
            feed=self.told["fed"].append, served_by=lambda _epoch, name: served.get(name, set())
        )
        self.scoring = GroupScoring(context, put, first or {}, grader=grader, ledger=ledger, lineup=lineup)

    def play(self, rollouts: Iterable[Rollout], of: int = 2) -> dict[str, list[int]]:
        """Take rollouts, and return the places of those that were scored, by scenario."""

        async def run() -> None:
            for one in rollouts:
                self.scoring.take(one, of)
            self.scoring.end()
            await asyncio.wait_for(self.scoring.run(), 100)

        asyncio.run(run())
        return {
            group.scenario_id: [rollout.index for rollout in group.rollouts] for group in self.groups.values()
        }


def rolled(name: str, index: int, credit: float | None = 1.0) -> Rollout:
    return make_rollout(index, credit, scenario_id=name)


def test_a_group_is_scored_once_it_is_complete_in_the_order_of_its_rollouts() -> None:
    world = World(served={"b": {"baseline"}, "a": {"placebo"}})
    found = world.play([rolled("a", 1, 0.0), rolled("b", 0), rolled("a", 0), rolled("c", 0), rolled("b", 1)])
    assert found == {"a": [0, 1], "b": [0, 1]}
    scores = {group.scenario_id: [s.gt_score for s in group.scores] for group in world.groups.values()}
    assert scores == {"a": [1.0, 0.0], "b": [1.0, 1.0]}
    assert {group.scenario_id: group.shared for group in world.groups.values()} == {"a": False, "b": True}
    placebo = {group.scenario_id: group.as_placebo for group in world.groups.values()}
    assert placebo == {"a": True, "b": False}
    assert [(group.scenario_id, first) for group, first in world.told["written"]] == [("a", 0), ("b", 0)]
    assert [[group.shared for group in fed] for fed in world.told["fed"]] == [[False, True]]
    assert len(world.told["settled"]) == 4
    seen = [type(one).__name__ for one in world.told["seen"]]
    assert seen == ["Rollout"] * 5 + ["Group"] * 2


def test_a_group_that_a_test_function_skipped_is_none() -> None:
    world = World()
    world.excluded.add(rolled("a", 0).group_id)
    assert world.play([rolled("a", 0), rolled("a", 1), rolled("b", 0), rolled("b", 1)]) == {"b": [0, 1]}


def test_a_group_that_has_rollouts_on_file_is_scored_with_those_to_come() -> None:
    before = World()
    before.play([rolled("a", 0), rolled("a", 1)])
    [known] = before.groups
    world = World(first={known: 2}, groups=before.groups)
    assert world.play([rolled("a", 2)], of=3) == {"a": [0, 1, 2]}
    assert [first for _, first in world.told["written"]] == [2]


def test_a_rewarder_that_takes_too_long_is_named_with_its_limit_and_the_groups_are_kept_unscored() -> None:
    class Slow:
        weight = 1.0

        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, batch: object) -> list[float]:
            time.sleep(0.04)
            return [1.0, 1.0]

    world = World(rewarders=(Slow("slow"), Slow("other")))
    with pytest.raises(
        RewarderTimeout, match=r"rewarders \(slow, other\) exceeded rewarder_timeout_s = 0.01"
    ):
        world.play([rolled("a", 1), rolled("a", 0), rolled("b", 0)])
    world.scoring.keep_unscored()
    assert {g.scenario_id: len(g.rollouts) for g in world.told["metrics"]} == {"a": 2, "b": 1}
    assert all(score.gt_score is None for group in world.told["metrics"] for score in group.scores)


def test_a_group_that_is_complete_while_others_are_scored_is_scored_next() -> None:
    world = World()
    more = [rolled("b", 0), rolled("b", 1)]

    def feed(_groups: object) -> None:
        while more:
            world.scoring.take(more.pop(0), 2)

    world.scoring._lineup.feed = feed  # type: ignore[method-assign, assignment]
    assert world.play([rolled("a", 0), rolled("a", 1)]) == {"a": [0, 1], "b": [0, 1]}
