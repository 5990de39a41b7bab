"""Digests of files, kept while a file stays the same."""

import hashlib
import os
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox import file_digests
from pytest_tfgrpo.sandbox.file_digests import digest_of


def test_a_file_is_read_again_once_its_size_its_time_or_its_place_on_disk_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"

    def written(data: bytes, time: int) -> str:
        path.write_bytes(data)
        os.utime(path, ns=(time, time))
        return digest_of(path)

    def of(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    assert written(b"one", 1) == of(b"one")
    assert written(b"two", 2) == of(b"two"), "another time"
    assert written(b"three", 2) == of(b"three"), "another size"
    (tmp_path / "b").write_bytes(b"other")
    os.utime(tmp_path / "b", ns=(2, 2))
    (tmp_path / "b").rename(path)
    assert digest_of(path) == of(b"other"), "another file"
    monkeypatch.setattr(file_digests.hashlib, "file_digest", None)
    assert digest_of(path) == of(b"other"), "the same file is not read again"
