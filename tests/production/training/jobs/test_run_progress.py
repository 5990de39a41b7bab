"""What a status says of a run that is not over."""

from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.production.training.jobs.run_progress import RunProgress, newest_run, parts_of
from pytest_tfgrpo.runs.journal.journal import encode


def progress_of(folder: Path, *events: tuple[str, dict[str, Any]]) -> RunProgress:
    lines = [encode(n, name, data) for n, (name, data) in enumerate(events, 1)]
    (folder / JOURNAL).write_bytes(b"".join(lines))
    progress = RunProgress(folder)
    progress.look()
    return progress


def rollout(
    epoch: int, name: str, cost: float | None = None, mode: str = "train"
) -> tuple[str, dict[str, Any]]:
    return "rollout", {"epoch": epoch, "mode": mode, "rollout_id": name, "cost_usd": cost}


def test_a_status_says_steps_time_left_and_what_everything_cost(tmp_path: Path) -> None:
    phases = [
        {"epoch": 0, "mode": "baseline", "scenarios": ["a", "b"], "rollouts": 2},
        {"epoch": 1, "mode": "train", "scenarios": ["a"], "rollouts": 9, "sizes": {"a": 2, "b": 3}},
        {"epoch": 2, "mode": "train", "scenarios": ["a"], "rollouts": 3},
    ]
    found = progress_of(
        tmp_path,
        ("run", {"phases": phases}),
        rollout(0, "r1", 0.5, "baseline"),
        ("phase", {"status": "complete", "phase": {"epoch": 0, "mode": "baseline"}}),
        ("phase", {"status": "begun", "phase": {"epoch": 1, "mode": "train"}}),
        rollout(1, "r2", 0.25),
        rollout(1, "r2", 0.25),
        ("abandoned", {"epoch": 1, "mode": "train", "rollout_id": "r3", "cost_usd": 0.125}),
        ("call", {"cost_usd": 1.0}),
        ("call", {"cost_usd": None}),
    )
    assert found.progress(2.0) == {
        "current_epoch": 1,
        "total_epochs": 2,
        "current_step": 5,
        "total_steps": 12,
        "percent_complete": 41.67,
        "eta_seconds": 3.5,
    }
    assert "eta_seconds" not in found.progress()
    assert parts_of(found, None)["resource_usage"] == {"cost_usd": 2.125}
    assert found.metrics() == {}


def test_a_run_without_phases_has_no_percent_and_a_baseline_is_no_epoch_that_trained(tmp_path: Path) -> None:
    group = {"group_id": "g", "epoch": 0, "mode": "baseline", "scores": [{"reward": 1.0}, {"reward": None}]}
    dev = {"group_id": "h", "epoch": 1, "mode": "dev", "scores": [{"reward": 1.0}, {"reward": None}]}
    found = progress_of(tmp_path, ("run", {"phases": []}), ("group", group))
    assert (found.progress()["percent_complete"], found.metrics()) == (0.0, {})
    found = progress_of(tmp_path, ("group", group), ("group", dev))
    assert found.metrics() == {"current": {"reward_mean": 1.0, "reward_std": 0.0}}


def test_an_event_that_lacks_a_key_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(
        JournalError, match=rf"{JOURNAL}:2: event 'group' cannot be read: KeyError\('scores'\)"
    ):
        progress_of(tmp_path, ("call", {}), ("group", {"group_id": "g"}))


def test_of_epochs_that_trained_equally_well_the_first_is_the_best(tmp_path: Path) -> None:
    groups = [(1, [0.25, 0.25]), (2, [0.0, 1.0]), (3, [0.5]), (4, [0.125, 0.375])]
    lines = [
        encode(
            n,
            "group",
            {
                "group_id": f"g{epoch}",
                "epoch": epoch,
                "mode": "train",
                "scores": [{"reward": reward} for reward in rewards],
            },
        )
        for n, (epoch, rewards) in enumerate(groups, 1)
    ]
    (tmp_path / JOURNAL).write_bytes(b"".join(lines))
    progress = RunProgress(tmp_path)
    progress.look()
    found = progress.metrics()
    assert found["best"] == {"epoch": 2, "reward_mean": 0.5}
    assert found["current"] == {"reward_mean": 0.25, "reward_std": 0.125}


def test_the_newest_run_is_the_last_by_name_that_has_begun(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no task")
    assert newest_run(tmp_path) is None
    for name in ("20260102T000000-aa", "20260103T000000-aa", "20260101T000000-aa", "20260104T000000-aa"):
        run = tmp_path / "suite" / "runs" / name
        run.mkdir(parents=True)
        (run / JOURNAL).write_bytes(b"{" if "0104" in name else b"{}\n")
    found = newest_run(tmp_path)
    assert found is not None
    assert found.name == "20260103T000000-aa"
