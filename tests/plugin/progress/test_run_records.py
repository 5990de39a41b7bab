"""What the engine has said of a run, kept for the items that show it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders import make_group, make_scenario
from support.sweeps import make_result, make_run

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.observers import EngineFailed, RefusedRollout, SharedPrompt
from pytest_tfgrpo.plugin.progress.run_records import RunRecords

PHASES = (
    Phase(epoch=1, mode="train", temperature=0.5, rollouts=4, scenarios=("a", "b"), dev=("d",)),
    Phase(epoch=0, mode="baseline", temperature=0.5, rollouts=2, scenarios=("e",), concurrent=True),
    Phase(epoch=2, mode="eval", temperature=0.5, rollouts=2, scenarios=("e",)),
)


@pytest.fixture
def records() -> RunRecords:
    return RunRecords(cast(Any, SimpleNamespace(run_id="run1", phases=PHASES, scenarios=())))


def test_why_there_is_no_more_is_what_came_first(records: RunRecords) -> None:
    assert records.why == "the run is not over"
    records.take(RefusedRollout(rollout_id="r", reason="the budget is used up"))
    assert records.why == "the budget is used up"
    records.results[1] = make_result({"a": [1.0]})
    records.results[2] = make_result({"a": [1.0]}, status="incomplete", reason="the provider is away")
    assert records.why == "the provider is away"
    records.take(make_run(status="cancelled"))
    assert records.why == "cancelled"
    records.take(make_run(status="cancelled", reason="interrupted\nhere"))
    assert records.why.isprintable()
    assert records.why.startswith("interrupted")
    records.take(EngineFailed(ValueError("disk " * 1000)))
    assert records.why.startswith("ValueError: disk ")
    assert len(records.why) <= 1000


def test_of_a_large_file_an_epoch_has_what_it_drew_and_of_a_dev_scenario_nothing(records: RunRecords) -> None:
    many = [make_scenario(name) for name in "bcda"]
    assert [scenario.id for scenario in records.drawn(1, many)] == ["b", "a"]
    assert records.drawn(1, many[1:2]) == many[1:2]
    assert records.drawn(1, many[2:3]) == []


def revision(rollouts: int | None) -> Any:
    decided = None if rollouts is None else SimpleNamespace(rollouts=rollouts)
    return SimpleNamespace(acceptance=decided)


ERRORS = make_group([None], scenario_id="d", mode="dev", group_id="x1")
FIRST, LAST = (make_group([0.5], scenario_id="d", mode="dev", group_id=f"g{n}") for n in (1, 2))
OTHER = make_group([1.0], scenario_id="c", mode="dev", group_id="g3")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"dev": (FIRST, LAST, OTHER)}, (LAST, "")),
        ({"dev": (FIRST, ERRORS)}, (FIRST, "")),
        ({"dev": (ERRORS, OTHER)}, (ERRORS, "")),
        ({"dev": (OTHER,)}, (None, "")),
        ({"revision": revision(8)}, (None, "no lesson in question fits its prompt")),
        ({"revision": revision(0)}, (None, "no lesson was in question")),
        ({"revision": revision(None)}, (None, "no lesson was in question")),
    ],
)
def test_a_dev_scenario_has_its_last_group_scored_if_one_is(
    records: RunRecords, fields: dict[str, Any], found: tuple[Any, str]
) -> None:
    assert records.dev_group(1, "d") == (None, "")
    records.results[1] = make_result({"a": [1.0]}, mode="train", **fields)
    assert records.dev_group(1, "d") == found


def test_a_group_is_known_once_it_is_scored_and_none_after_its_phase_without_it(records: RunRecords) -> None:
    group = make_group([1.0], scenario_id="e")
    assert not records.has_group(2, "e")
    records.take(replace(group, epoch=2))
    assert records.has_group(2, "e")
    assert records.group(2, "e") == replace(group, epoch=2)
    records.results[2] = make_result({"e": [1.0]}, settled=("f",))
    assert records.group(2, "f") is None
    assert [records.is_settled(2, name) for name in "ef"] == [False, True]
    assert records.is_settled(1, "f") is False


def test_answers_of_the_final_sweep_serve_the_control_alone(records: RunRecords) -> None:
    records.take(SharedPrompt(scenario_id="e", epoch=0))
    assert [records.is_shared(epoch, "e") for epoch in (0, 1, 2)] == [True, False, False]
    assert records.is_shared(0, "a") is False
