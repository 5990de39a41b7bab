"""Acceptance in whole runs: what is asked, kept, counted and resumed, and what can never change it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.acceptance.engine import acceptance, settle

from pytest_tfgrpo.core.files import LIBRARY
from pytest_tfgrpo.learning.library.library import empty, load_library
from pytest_tfgrpo.report.value import build


def test_mean_and_spread_of_effects_go_on_in_the_library_file(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    run, _, _ = settle(tmp_path, "good", "bad", folder=folder)
    start = load_library(tmp_path / "demo" / LIBRARY)
    assert start.effects == run.library.effects
    assert [known.run_id for known in start.effects] == ["run1"]
    fields: dict[str, Any] = {"job_library": replace(empty(), effects=start.effects), "job_run_id": "run2"}
    again, _, _ = settle(tmp_path, "good", "bad", **fields)
    assert build(again, None)["acceptance"]["epochs"][0]["gain"] == acceptance(run).gain  # type: ignore[index]
    assert again.library.effects == start.effects
    other, _, _ = settle(tmp_path, "good", "bad", seed=1, **fields)
    fresh, _, _ = settle(tmp_path, "good", "bad", seed=1, job_run_id="run2")
    assert [known.run_id for known in other.library.effects] == ["run1", "run2"]
    assert other.library.effects[1].on_topic != fresh.library.effects[0].on_topic
