"""The dev sweeps of a learning step: what they leave, however they end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_rollout

from pytest_tfgrpo.core.errors import BudgetError, OptimizerError, OutageError, RecordingError
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.engine.phases import learning_phase as module
from pytest_tfgrpo.engine.phases.learning_phase import LearningPhase
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd
from pytest_tfgrpo.learning.acceptance.decision import Unfinished

PHASE = Phase(epoch=1, mode="dev", temperature=0.3, rollouts=1, scenarios=("d1", "d2"), dev_sweep=1)


def swept(n: int) -> Any:
    group = make_group([1.0], scenario_id=f"d{n}", group_id=f"run1.e1.d{n}")
    result = SimpleNamespace(loose=(make_rollout(n),))
    return SimpleNamespace(
        groups={group.group_id: group}, groups_of=lambda _: [group], result_of=lambda *_: result
    )


def opened(ends: list[RunEnd]) -> tuple[LearningPhase, list[object]]:
    told: list[object] = []
    coming = iter(enumerate(ends, 1))

    async def sweep(_arm: Any) -> tuple[RunEnd, Any]:
        n, end = next(coming)
        return end, swept(n)

    context: Any = SimpleNamespace(observe=told.append)
    return LearningPhase(context, PHASE, None, (), sweep), told  # type: ignore[arg-type]


def test_each_sweep_of_the_dev_split_adds_its_groups_and_what_is_in_none() -> None:
    phase, told = opened([COMPLETE, COMPLETE])
    found = [asyncio.run(phase._sweep_dev(PHASE, None)) for _ in range(2)]  # type: ignore[arg-type]
    assert [list(one) for one in found] == [["d1"], ["d2"]]
    assert [group.scenario_id for group in phase.dev] == ["d1", "d2"]
    assert [rollout.index for rollout in phase.loose] == [1, 2]
    assert told == [PHASE, PHASE]


def test_a_sweep_that_does_not_end_ends_the_step_with_what_was_paid_for() -> None:
    phase, _ = opened([COMPLETE, RunEnd("incomplete", "used up")])
    asyncio.run(phase._sweep_dev(PHASE, None))  # type: ignore[arg-type]
    with pytest.raises(Unfinished) as unfinished:
        asyncio.run(phase._sweep_dev(PHASE, None))  # type: ignore[arg-type]
    assert (unfinished.value.end, unfinished.value.reason) == ("incomplete", "used up")
    assert [group.scenario_id for group in phase.dev] == ["d1", "d2"]
    assert len(phase.loose) == 2


@pytest.mark.parametrize(
    ("raised", "end"),
    [
        (None, COMPLETE),
        (asyncio.CancelledError(), RunEnd("cancelled", "interrupted")),
        (Unfinished("incomplete", "used up"), RunEnd("incomplete", "used up")),
        (Unfinished("cancelled", "interrupted"), RunEnd("cancelled", "interrupted")),
        (OptimizerError("no lesson"), RunEnd("aborted", "no lesson")),
        (RecordingError("not recorded"), RunEnd("aborted", "not recorded")),
        (BudgetError("used up"), RunEnd("incomplete", "used up")),
        (OutageError("away"), RunEnd("incomplete", "away")),
    ],
)
def test_a_learning_step_says_how_it_ended(raised: BaseException | None, end: RunEnd) -> None:
    phase, _ = opened([])
    learned: list[int] = []

    class Committing:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    context: Any = SimpleNamespace(
        gauge=SimpleNamespace(learn=learned.append), writer=SimpleNamespace(committing=Committing)
    )

    async def learn(_groups: Any) -> RunEnd:
        if raised is not None:
            raise raised
        return COMPLETE

    phase._context, phase._learn = context, learn  # type: ignore[method-assign]
    groups = [make_group([1.0, 0.0]), make_group([1.0, 1.0]), make_group([0.0, 1.0])]
    assert asyncio.run(phase.learn(groups)) == end
    assert learned == [2]


@pytest.mark.parametrize("stops", [True, False])
def test_what_looks_at_a_phase_before_it_learns_is_heard_and_each_complaint_told(
    monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    told: list[Any] = []
    looks = [lambda *_: ("few are mixed", ""), lambda *_: ("none is", "nothing to learn" if stops else "")]
    monkeypatch.setattr(module.features, "BEFORE_LEARNING", looks)
    applied = (SimpleNamespace(experience="a lesson"), SimpleNamespace(experience=None))
    revision = SimpleNamespace(applied=applied)

    async def nothing(*_: object) -> Any:
        return revision

    monkeypatch.setattr(module, "learn", nothing)
    phase, _ = opened([])
    monkeypatch.setattr(phase, "_accept", nothing)
    writer = SimpleNamespace(revision=lambda _: ["one is wrong", "another too"], commit=nothing)
    context: Any = SimpleNamespace(
        job=None, calls=None, writer=writer, observe=told.append, warn=lambda text: told.append(f"! {text}")
    )
    phase._context = context
    end = asyncio.run(phase._learn([]))
    heard = [Notice(text="few are mixed"), Notice(text="none is")]
    if stops:
        assert (end, told, phase.revision) == (RunEnd("incomplete", "nothing to learn"), heard, None)
    else:
        assert (end, phase.revision) == (COMPLETE, revision)
        assert told == [*heard, "! one is wrong", "! another too", "a lesson"]
