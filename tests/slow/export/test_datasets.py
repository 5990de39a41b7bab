"""Exported rows load with the library that trainers read them with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.evidence import group, write
from support.exports import run_shipped, write_run_of_rare_calls
from support.feedback.training import payload
from support.tools import tfgrpo

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.export.export import Export, export
from pytest_tfgrpo.numerics.rl.advantages import group_advantage, grpo_advantage, rloo_advantage
from pytest_tfgrpo.numerics.rl.losses import policy_loss
from pytest_tfgrpo.production.training.dataset.said_rows import said_of_rows
from pytest_tfgrpo.production.training.dataset.training_rows import write_training_rows

pytestmark = pytest.mark.filterwarnings("ignore")  # those of another library are its own


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library, without network and with a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
        try:
            import datasets
            import tqdm
        except ImportError as error:
            if os.environ.get("CI_REQUIRE_TOOLS") == "1":
                raise
            pytest.skip(f"NOT TESTED: datasets cannot be imported: {error}")
        patch.setattr(tqdm.tqdm, "monitor_interval", 0)  # no thread stays for later tests
        yield datasets


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of shipped fixtures."""
    return run_shipped(tmp_path_factory.mktemp("shipped") / "out")


def load(datasets: Any, path: Path, folder: Path, **options: Any) -> Any:
    """Return the rows; `chunksize` is how many bytes settle the types of columns, usually 10 MB."""
    return datasets.Dataset.from_json(str(path), cache_dir=str(folder / "cache"), **options)


def written(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.parametrize("shape", ["rollouts", "preference", "prompt"])
def test_rows_of_the_shipped_fixtures_load_as_they_were_written(
    datasets: Any, shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.chdir(shipped.parents[3])
    file = tmp_path / "rows.jsonl"
    tfgrpo("export", "--format", shape, "--task-id", shipped.parents[1].name, "-o", str(file))
    rows = load(datasets, file, tmp_path)
    assert rows.to_list() == [json.loads(line) for line in file.read_bytes().splitlines()]
    if shape == "rollouts":
        spoken = rows.features["messages"].feature
        assert set(spoken) == {"role", "content", "tool_calls", "tool_call_id", "name"}


@pytest.mark.parametrize("shape", ["rollouts", "preference"])
def test_a_column_that_is_null_in_most_rows_loads(datasets: Any, tmp_path: Path, shape: Any) -> None:
    write_run_of_rare_calls(tmp_path)
    file, other = tmp_path / "rows.jsonl", tmp_path / "other.jsonl"
    assert [*export(tmp_path, file, Export(format=shape))]
    rows = load(datasets, file, tmp_path, chunksize=4096)
    with_tools = [any(m["tool_calls"] for m in row[-3:]) for row in rows[COLUMN[shape]]]
    assert 0 < sum(with_tools) < len(rows)
    assert with_tools[0]
    if shape == "rollouts":
        assert [found is not None for found in rows["sampled"]] == with_tools
        assert [one and one[1]["logprobs"] for one in rows["sampled"][:5]] == [
            None,
            None,
            [-0.5],
            [-0.5],
            None,
        ]
        assert [one and one[1]["token_ids"] for one in rows["sampled"][:3]] == [[7], [7], None]
    shown = rows["scenario_id"].index("plain")
    assert shown == (4 if shape == "rollouts" else 1), "groups that show the types come first"
    lines = file.read_bytes().splitlines(keepends=True)
    other.write_bytes(b"".join([*lines[shown:], *lines[:shown]]))
    with pytest.raises(datasets.exceptions.DatasetGenerationError):
        load(datasets, other, tmp_path, chunksize=4096)


COLUMN = {"rollouts": "messages", "preference": "rejected"}


def test_rollouts_of_the_shipped_fixtures_give_advantages_and_a_policys_loss(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shipped.parents[3])
    for kind in ("grpo", "dr_grpo", "rloo"):
        file = tmp_path / f"{kind}.jsonl"
        argv = ["export", "latest", "--format", "rollouts", "-o", str(file), "--advantage", kind]
        said = tfgrpo(*argv, "--task-id", shipped.parents[1].name)
        rows = written(file)
        assert said.startswith(f"{file}: {len(rows)} rows from ")
        rewards, own = (np.array([row[key] for row in rows]) for key in ("reward", "advantage"))
        _, group = np.unique([row["group_id"] for row in rows], return_inverse=True)
        again = {
            "grpo": lambda x, g: grpo_advantage(x, g),
            "dr_grpo": lambda x, g: grpo_advantage(x, g, scale="none"),
            "rloo": lambda x, g: rloo_advantage(x, g),
        }[kind](rewards, group)
        assert np.abs(own).max() > 0.1
        np.testing.assert_allclose(own, again, rtol=1e-12, atol=1e-15)
        run_advantage = [row["run_advantage"] for row in rows]
        np.testing.assert_allclose(run_advantage, group_advantage(rewards, group), atol=1e-12)
    for message in (message for row in rows for message in row["messages"]):
        assert set(message) == {"role", "content", "tool_calls", "tool_call_id", "name"}
    spoken = [sum(m["role"] == "assistant" for m in row["messages"]) for row in rows]
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
    rows = written(file)
    assert [violations("rollouts", row) for row in rows if violations("rollouts", row)] == []
    events = [json.loads(line) for line in (shipped / "journal.jsonl").read_bytes().splitlines()]
    scenarios = {s["id"]: s["split"] for s in events[0]["data"]["scenarios"]}
    assert {scenarios[row["scenario_id"]] for row in rows} == {"train"}
    trained = [
        e["data"]["rollout_id"] for e in events if e["event"] == "rollout" and e["data"]["mode"] == "train"
    ]
    assert sorted(row["rollout_id"] for row in rows) == sorted(trained)


def test_pairs_and_prompts_have_the_columns_that_trainers_read(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shipped.parents[3])
    for shape in ("preference", "prompt"):
        argv = ["export", "--format", shape, "--task-id", shipped.parents[1].name]
        tfgrpo(*argv, "-o", str(tmp_path / f"{shape}.jsonl"))
    pairs = written(tmp_path / "preference.jsonl")
    assert pairs
    for pair in pairs:
        assert {"prompt", "chosen", "rejected"} <= set(pair)
        assert [message["role"] for message in pair["prompt"]] == ["system", "user"]
        assert pair["chosen_reward"] > pair["rejected_reward"]
        assert pair["chosen"] != pair["rejected"]
    prompts = written(tmp_path / "prompt.jsonl")
    for row in prompts:
        assert {"data_source", "prompt", "ability", "reward_model", "extra_info"} == set(row)
    assert [row["extra_info"]["index"] for row in prompts] == list(range(len(prompts)))
    checks = [json.loads(row["reward_model"]["ground_truth"]) for row in prompts]
    assert all(check["kind"] for own in checks for check in own)


@pytest.mark.parametrize("algorithm", ["dpo", "grpo"])
def test_rows_of_evidence_are_parquet_too(datasets: Any, tmp_path: Path, algorithm: str) -> None:
    write(tmp_path / "evidence.jsonl", [group(n, 0.9, 0.1, 0.4) for n in range(6)])
    asked = payload(algorithm=algorithm, evaluation={"holdout_size": 0.3})
    write_training_rows(tmp_path / "evidence.jsonl", asked, None)
    shapes = ("preference",) if algorithm == "dpo" else ("prompt", "rollouts")
    names = [f"{shape}{part}" for shape in shapes for part in ("", "-holdout")]
    assert sorted(path.stem for path in tmp_path.glob("*.parquet")) == sorted(names)
    for name in names:
        lines = written(tmp_path / f"{name}.jsonl")
        cache = str(tmp_path / "cache")
        found = datasets.Dataset.from_parquet(str(tmp_path / f"{name}.parquet"), cache_dir=cache)
        assert found.to_list() == lines
        assert (tmp_path / f"{name}.parquet").stat().st_mode & 0o077 == 0
    assert [path for path in tmp_path.iterdir() if path.name.startswith("parquet-")] == []
    assert not any("no Parquet" in one for one in said_of_rows(tmp_path))
