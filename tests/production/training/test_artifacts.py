"""Files of versions in a bucket."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.training.versions.artifacts import BucketArtifacts


def test_files_that_a_driver_leaves_without_a_word_are_an_error() -> None:
    left = SimpleNamespace(
        exists=lambda path: path == "models/rl-logs/job",
        rm=lambda _, recursive: recursive,
        invalidate_cache=lambda: None,
    )
    files = BucketArtifacts("s3://models", left, "models")
    with pytest.raises(StoreError, match="cannot remove s3://models/rl-logs/job: files are left"):
        files.remove("rl-logs/job")
    files.remove("rl-logs/other")
