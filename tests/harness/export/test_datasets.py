"""Exported rows load with the library that trainers read them with, and give what a trainer computes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import ROOT
from support.tools import tfgrpo

import pytest_tfgrpo
from pytest_tfgrpo.core.schema import violations
from pytest_tfgrpo.numerics.advantages import group_advantage, grpo_advantage, rloo_advantage
from pytest_tfgrpo.numerics.losses import policy_loss


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library, without network and with a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
        try:
            import datasets
        except ImportError as error:
            if os.environ.get("CI_REQUIRE_TOOLS") == "1":
                raise
            pytest.skip(f"NOT TESTED: datasets cannot be imported: {error}")
        yield datasets


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of shipped fixtures."""
    out = tmp_path_factory.mktemp("shipped") / "out"
    found = pytest_tfgrpo.run(
        ROOT, ROOT / "fixtures/calendar.scenario.yaml", actor="offline", group_size=5, out=str(out)
    )
    assert found.run.status == "complete"
    assert found.folder is not None
    return found.folder


def load(datasets: Any, path: Path, folder: Path) -> Any:
    return datasets.Dataset.from_json(str(path), cache_dir=str(folder / "cache"))


def test_rollouts_of_the_shipped_fixtures_give_advantages_and_a_policys_loss(
    datasets: Any, shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shipped.parents[3])
    for kind in ("grpo", "dr_grpo", "rloo"):
        file = tmp_path / f"{kind}.jsonl"
        argv = ["export", "latest", "--format", "rollouts", "-o", str(file), "--advantage", kind]
        said = tfgrpo(*argv, "--task-id", shipped.parents[1].name)
        rows = load(datasets, file, tmp_path)
        assert said.startswith(f"{file}: {len(rows)} rows from ")
        rewards, own = np.asarray(rows["reward"]), np.asarray(rows["advantage"])
        _, group = np.unique(rows["group_id"], return_inverse=True)
        again = {
            "grpo": lambda x, g: grpo_advantage(x, g),
            "dr_grpo": lambda x, g: grpo_advantage(x, g, scale="none"),
            "rloo": lambda x, g: rloo_advantage(x, g),
        }[kind](rewards, group)
        assert np.abs(own).max() > 0.1
        np.testing.assert_allclose(own, again, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(rows["run_advantage"], group_advantage(rewards, group), atol=1e-12)
    assert set(rows.features["messages"].feature) == {"role", "content", "tool_calls", "tool_call_id", "name"}
    spoken = [sum(m["role"] == "assistant" for m in messages) for messages in rows["messages"]]
    mask = np.arange(max(spoken)) < np.asarray(spoken)[:, None]
    old = np.where(mask, -1.0, np.nan)
    loss = policy_loss(old, old, own, mask, kind="grpo")
    assert loss.value == pytest.approx(-own.mean(), abs=1e-12)
    assert np.isfinite(loss.gradient).all()
    assert loss.gradient.any()


def test_every_row_of_the_shipped_fixtures_fits_the_schema_and_none_is_of_a_sweep(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shipped.parents[3])
    file = tmp_path / "rows.jsonl"
    tfgrpo("export", "--format", "rollouts", "-o", str(file), "--task-id", shipped.parents[1].name)
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [violations("rollouts", row) for row in rows if violations("rollouts", row)] == []
    events = [json.loads(line) for line in (shipped / "journal.jsonl").read_bytes().splitlines()]
    scenarios = {s["id"]: s["split"] for s in events[0]["data"]["scenarios"]}
    assert {scenarios[row["scenario_id"]] for row in rows} == {"train"}
    trained = [
        e["data"]["rollout_id"] for e in events if e["event"] == "rollout" and e["data"]["mode"] == "train"
    ]
    assert sorted(row["rollout_id"] for row in rows) == sorted(trained)
