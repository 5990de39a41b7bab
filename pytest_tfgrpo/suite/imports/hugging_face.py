"""Datasets of Hugging Face from local files; the only file that imports ``datasets``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.tables import Row, TableColumns, add_rows

INSTALL = "install it with: pip install 'pytest-tfgrpo[datasets]'"


def read_dataset(found: Imported, path: Path, columns: TableColumns, expect: str) -> None:
    """Add the scenarios of a Parquet or Arrow file, or of a folder that ``save_to_disk`` wrote.

    Raises ScenarioError; the network is never used, and no script of a dataset runs.
    """
    if find_spec("datasets") is None:
        raise ScenarioError(f"an import of Hugging Face datasets needs a library that is not here; {INSTALL}")
    add_rows(found, path.stem, _rows(path), columns=columns, expect=expect)


def _rows(path: Path) -> Iterator[Row]:
    for split, rows in _splits(path).items():
        for n, cells in enumerate(rows):
            yield f"{path.name}, {split}, row {n}", cells


def _splits(path: Path) -> dict[str, Any]:
    from datasets import Dataset, load_from_disk

    try:
        if path.is_dir():
            loaded = load_from_disk(str(path))
            return dict(loaded) if isinstance(loaded, dict) else {"all": loaded}
        if path.suffix == ".parquet":
            return {"all": Dataset.from_parquet(str(path), keep_in_memory=True)}
        if path.suffix == ".arrow":
            return {"all": Dataset.from_file(str(path), in_memory=True)}
    except Exception as error:  # the library raises its own, and those of its formats
        raise ScenarioError(f"{path} cannot be read as a dataset: {error}") from error
    raise ScenarioError(
        f"{path} is not a dataset; name a folder of save_to_disk, or a .parquet or .arrow file"
    )
