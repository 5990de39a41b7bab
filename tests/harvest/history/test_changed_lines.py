"""Changed lines: those added and those removed, whatever their order."""

import secrets
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.repositories import Repository, remove_object

from pytest_tfgrpo.harvest.history import changed_lines as module
from pytest_tfgrpo.harvest.history.changed_lines import TOO_MANY, changed_lines, differing_lines
from pytest_tfgrpo.harvest.history.changes import changes, range_of
from pytest_tfgrpo.harvest.history.git_objects import GitObjects

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=12)


def lines_of_last(repository: Repository) -> int | str:
    with GitObjects(repository.folder) as objects:
        last = next(changes(objects, range_of(objects, "main")))
        return changed_lines(objects, last.files)


@given(LINES, LINES, LINES)
def test_what_both_texts_share_counts_nothing_and_all_else_once(
    shared: list[bytes], gone: list[bytes], new: list[bytes]
) -> None:
    alone = [b"old " + line for line in gone], [b"new " + line for line in new]
    before, after = b"\n".join([*alone[0], *shared]), b"\n".join([*shared[::-1], *alone[1]])
    assert differing_lines(before, after) == len(gone) + len(new)
    assert differing_lines(after, before) == differing_lines(before, after)


def test_all_files_of_a_change_count_and_binary_ones_do_not(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit({"a.py": "1\n2\n", "b.py": "1\n", "c.bin": b"\0\n" * 9})
    repository.commit({"a.py": "2\n3\n", "b.py": None, "c.bin": b"\0\n" * 5, "d.py": "4\n5"})
    assert lines_of_last(repository) == 2 + 1 + 2
    repository.commit({"a.py": b"\0\n" * 5, "c.bin": "1\n2\n", "d.py": "4\r\n5\r\n6"})
    assert lines_of_last(repository) == 1


@pytest.mark.parametrize(("name", "side"), [("main~1:a.py", "old_id"), ("main:a.py", "new_id")])
def test_a_damaged_or_missing_file_is_named(tmp_path: Path, name: str, side: str) -> None:
    repository = Repository(tmp_path / "project")
    texts = {"old_id": secrets.token_hex(500), "new_id": secrets.token_hex(500)}
    repository.commit({"a.py": texts["old_id"]})
    repository.commit({"a.py": texts["new_id"]})
    with GitObjects(repository.folder) as objects:
        (file,) = next(changes(objects, range_of(objects, "main"))).files
    loose = remove_object(repository, name)
    assert lines_of_last(repository) == f"the object {getattr(file, side)} of a changed file is missing"
    loose.write_bytes(zlib.compress(b"blob 1000\0" + texts[side].encode())[:-60])
    assert lines_of_last(repository) == f"the object {getattr(file, side)} of a changed file is damaged"


@pytest.mark.parametrize(("name", "enough"), [("FILE_MAX", 8), ("CHANGE_MAX", 2 + 4 + 8)])
def test_files_that_are_too_large_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, enough: int
) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit({"a.py": "1\n"})
    repository.commit({"a.py": "1\n2\n", "b.py": "1234567\n"})
    assert lines_of_last(repository) == 2
    monkeypatch.setattr(module, name, enough)
    assert lines_of_last(repository) == 2
    monkeypatch.setattr(module, name, enough - 1)
    assert lines_of_last(repository) == TOO_MANY


def test_a_text_that_holds_a_nul_far_from_its_start_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BINARY", 4)
    repository = Repository(tmp_path / "project")
    repository.commit({"a.py": b"1\n"})
    repository.commit({"a.py": b"1\n3\n\0\n", "b.py": b"1\n2\0\n"})
    assert lines_of_last(repository) == 2


@pytest.mark.parametrize("name", ["FILE_MAX", "CHANGE_MAX"])
def test_large_binary_files_count_no_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit({"a.py": "1\n", "c.bin": b"text" * 9})
    repository.commit({"a.py": "1\n2\n", "b.bin": b"\0" * 99, "c.bin": b"1\0" * 99})
    monkeypatch.setattr(module, name, 7)
    assert lines_of_last(repository) == 1
