"""A file is written whole or not at all."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import write_atomic, write_text


def test_a_file_and_its_name_are_on_disk_when_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    write_atomic(tmp_path / "a", [b"one", b"two"])
    assert (tmp_path / "a").read_bytes() == b"onetwo"
    assert [path.parent for path in synced] == [tmp_path, tmp_path.parent]


def broken() -> Iterator[bytes]:
    yield b"half"
    raise ValueError("no more")


@pytest.mark.parametrize("step", ["content", "fsync", "replace"])
def test_a_failure_leaves_the_file_as_it_was_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("before")
    if step != "content":
        monkeypatch.setattr(*{"fsync": (os, "fsync", full), "replace": (Path, "replace", full)}[step])
    with pytest.raises(ValueError if step == "content" else OSError, match=r"No space|no more"):
        write_atomic(tmp_path / "a", broken() if step == "content" else [b"after"])
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "before")]


def test_a_file_of_a_run_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"cannot write .*nowhere/a"):
        write_text(tmp_path / "nowhere" / "a", "text")
