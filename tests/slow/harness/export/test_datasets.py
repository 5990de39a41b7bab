"""Exported rows load with the library that trainers read them with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.exports import run_shipped, write_run_of_rare_calls
from support.tools import tfgrpo

from pytest_tfgrpo.harness.export.export import Export, export

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
