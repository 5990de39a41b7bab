"""What a run takes of a suite: its dev split, its draw, and its phases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario
from support.journals import write_run

from pytest_tfgrpo.core.settings import Settings, resolve
from pytest_tfgrpo.launch.choice import choose, is_reference, limited, planned, select
from pytest_tfgrpo.runs.schedule import MIN_DEV
from pytest_tfgrpo.runs.seeds import draw

EVALS = [make_scenario(f"e{n}", split="eval", stamp=f"{n:064x}") for n in range(6)]
TRAINS = [make_scenario(f"t{n}", split="train", stamp=f"{n + 9:064x}") for n in range(20)]


def settings_of(learning: bool = False, **flags: Any) -> Settings:
    return resolve({"actor": "python:m:a"} | flags, {}, {}, learning_flag=learning)


def test_what_a_limit_leaves_out_stays_in_the_suite(tmp_path: Path) -> None:
    chosen = choose([*TRAINS, *EVALS], settings_of(limit="2"), tmp_path)
    assert (chosen.suite, len(chosen.scenarios)) == (EVALS, 2)
    assert chosen.left_out == "tfgrpo_limit takes 2 of 6 eval scenarios"
    assert [phase.scenarios for phase in chosen.phases] == [tuple(s.id for s in chosen.scenarios)]
    for size in range(1, 6):
        kept, _ = limited(EVALS, settings_of(limit=str(size), seed="3"))
        assert tuple(s.id for s in kept) == draw(EVALS, size=size, seed=3, epoch=0)


@pytest.mark.parametrize(
    ("flags", "learning", "dev"),
    [({}, True, ["t1"]), ({"acceptance": "off"}, True, []), ({}, False, [])],
)
def test_only_a_run_that_accepts_lessons_on_a_dev_split_has_one(
    flags: dict[str, Any], learning: bool, dev: list[str], tmp_path: Path
) -> None:
    begun = [make_scenario("t1", split="dev"), *EVALS]
    write_run(tmp_path / "out" / "demo" / "runs" / "run1", [], begun, status=None)
    settings = settings_of(learning, out="out", task_id="demo", **flags)
    taken = select([*TRAINS, *EVALS], settings, tmp_path, "run1")
    assert [s.id for s in taken if s.split == "dev"] == dev
    assert {s.split for s in taken} >= ({"train", "eval"} if learning else {"eval"})


def test_a_dev_split_is_of_the_share_that_is_set_and_its_run_found_by_the_name_of_the_folder(
    tmp_path: Path,
) -> None:
    trains = [make_scenario(f"t{n}", split="train", prompt=f"task {n}") for n in range(100)]
    sizes = [
        sum(s.split == "dev" for s in select(trains, settings_of(True, dev_share=share), tmp_path))
        for share in ("0.25", "0.5")
    ]
    assert MIN_DEV <= sizes[0] < sizes[1] - 10
    root = tmp_path / "shop"
    begun = [make_scenario("t1", split="dev"), *EVALS]
    write_run(root / "out" / "shop" / "runs" / "run1", [], begun, status=None)
    taken = select([*TRAINS, *EVALS], settings_of(True, out="out"), root, "run1")
    assert [s.id for s in taken if s.split == "dev"] == ["t1"]


def test_a_dev_split_alone_is_nothing_that_a_plain_run_takes(tmp_path: Path) -> None:
    dev = make_scenario("d", split="dev")
    assert select([dev, *EVALS], settings_of(), tmp_path) == EVALS
    assert limited([dev, *EVALS], settings_of(limit="6")) == ([dev, *EVALS], "")


def test_a_run_that_only_learns_has_its_train_phases(tmp_path: Path) -> None:
    phases = planned(TRAINS, settings_of(True, epochs="2", acceptance="off"), tmp_path)
    assert {phase.mode for phase in phases} == {"train"}


@pytest.mark.parametrize(
    ("name", "live"), [(None, False), ("", False), ("main", False), ("no-lessons", True)]
)
def test_only_a_reference_runs_in_the_run_itself(name: str | None, live: bool, tmp_path: Path) -> None:
    assert is_reference(name, tmp_path) is live
