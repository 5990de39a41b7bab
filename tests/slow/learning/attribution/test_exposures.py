"""Exposures of a run: derived, written down, read back, and made again where a file is not to be trusted."""

import tracemalloc
from pathlib import Path

import pytest
from support.attribution.exposures import KEYS, LESSONS, earlier, written
from support.builders import make_exposure

from pytest_tfgrpo.learning.attribution import pooling
from pytest_tfgrpo.learning.attribution.exposures import (
    history,
)


def test_memory_does_not_grow_with_what_lies_in_the_output_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "MAX_EARLIER", 100)
    for n in range(2):
        written(
            tmp_path,
            f"run{n}",
            [make_exposure(k, included=(KEYS[3 * (k % 500 > 0)],)) for k in range(30_000)],
        )
    earlier(tmp_path, LESSONS)
    tracemalloc.start()
    try:
        assert len(history(earlier(tmp_path, LESSONS))) == 100
        assert tracemalloc.get_traced_memory()[1] < 8_000_000  # 20 MB of rows on file
    finally:
        tracemalloc.stop()
