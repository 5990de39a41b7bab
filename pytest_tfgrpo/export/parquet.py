"""Parquet of rows that were written as JSON lines; the only file here that imports ``datasets``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_tfgrpo.core.errors import ExportError
from pytest_tfgrpo.core.files import make_private

INSTALL = "pip install 'pytest-tfgrpo[datasets]'"


def can_write_parquet() -> bool:
    """Return whether the library is here."""
    return find_spec("datasets") is not None


def write_parquet(rows: Path) -> Path:
    """Write the rows of a file of JSON lines beside it as Parquet; raises ExportError."""
    from datasets import Dataset, disable_progress_bars

    target = rows.with_suffix(".parquet")
    unready = target.with_suffix(".part")
    disable_progress_bars()
    try:
        make_private(unready)
        with TemporaryDirectory(prefix="parquet-", dir=rows.parent) as cache:
            Dataset.from_json(str(rows), cache_dir=cache).to_parquet(str(unready))
        unready.replace(target)
    except Exception as error:  # the library raises its own, and those of its formats
        raise ExportError(f"cannot write {target}: {error}") from error
    return target
