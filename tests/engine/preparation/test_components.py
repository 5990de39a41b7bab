"""What the components of a run share."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.engine.preparation.components import _Shared


def test_the_models_of_a_run_keep_their_batches_where_the_run_says(tmp_path: Path) -> None:
    request: Any = SimpleNamespace(root=tmp_path, settings=resolve({}, {}, {}))
    shared = _Shared(request, spending=None)  # type: ignore[arg-type]
    shared.keep_batches(tmp_path)  # without a model there is none
    kept: list[Path] = []
    models: Any = SimpleNamespace(keep_batches=kept.append)
    shared._models = models
    shared.keep_batches(tmp_path / "batches.jsonl")
    assert kept == [tmp_path / "batches.jsonl"]
