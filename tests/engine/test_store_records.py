"""What of an epoch goes to the lesson store, and what a watched sweep lets its gate know."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience, make_group, make_scenario

from pytest_tfgrpo.core.lessons import Operation, Revision, Tombstone
from pytest_tfgrpo.engine.lineup import Lineup
from pytest_tfgrpo.engine.run_writer import _store_records
from pytest_tfgrpo.learning.library.library import empty


def test_new_lessons_are_stored_and_only_removals_leave_tombstones() -> None:
    new, better = make_experience(1), make_experience(2)
    applied = (
        Operation(kind="add", experience=new),
        Operation(kind="update", experience=better, targets=(new.id,)),
        Operation(kind="remove", targets=("x", "y"), reason="harmful"),
    )
    first, second, *gone = _store_records(Revision(epoch=3, library=empty(), applied=applied), "run1")
    assert (first, second) == (new, better)
    assert all(isinstance(one, Tombstone) and one.created_at for one in gone)
    told: list[Any] = gone
    assert [(one.id, one.run_id, one.epoch, one.reason) for one in told] == [
        ("x", "run1", 3, "harmful"),
        ("y", "run1", 3, "harmful"),
    ]


@pytest.mark.parametrize("decided", [True, False])
def test_the_gate_is_fed_both_sides_of_a_sweep_and_shared_answers_on_each(decided: bool) -> None:
    fed: list[list[str]] = []
    settled: list[int] = []

    def feed(after: Any, before: Any) -> bool:
        fed.append([*after, "|", *before])
        return decided

    lineup: Any = Lineup.__new__(Lineup)
    lineup._watch = SimpleNamespace(feed=feed)
    lineup._arms = [SimpleNamespace(phase=SimpleNamespace(epoch=epoch)) for epoch in (0, 2)]
    scenarios = {name: make_scenario(name) for name in "abc"}
    lineup._context = SimpleNamespace(scenarios=scenarios, writer=SimpleNamespace(settled=settled.append))
    lineup.feed(
        [
            make_group([1.0], scenario_id="a", epoch=0, mode="baseline"),
            make_group([1.0], scenario_id="b", epoch=2, mode="eval"),
            make_group([1.0], scenario_id="c", epoch=2, mode="eval", shared=True),
        ]
    )
    assert fed == [["b", "c", "|", "a", "c"]]
    assert settled == ([2] if decided else [])
    lineup._watch = None
    lineup.feed([])
    assert len(fed) == 1
