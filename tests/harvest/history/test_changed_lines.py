"""Changed lines: those added and those removed, whatever their order."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.repositories import Repository

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


@pytest.mark.parametrize("name", ["FILE_MAX", "CHANGE_MAX"])
def test_files_that_are_too_large_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit({"a.py": "1\n"})
    repository.commit({"a.py": "1\n2\n", "b.py": "1234567\n"})
    assert lines_of_last(repository) == 2
    monkeypatch.setattr(module, name, 7)
    assert lines_of_last(repository) == TOO_MANY


@pytest.mark.parametrize("name", ["FILE_MAX", "CHANGE_MAX"])
def test_large_binary_files_count_no_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit({"a.py": "1\n", "c.bin": b"text" * 9})
    repository.commit({"a.py": "1\n2\n", "b.bin": b"\0" * 99, "c.bin": b"1\0" * 99})
    monkeypatch.setattr(module, name, 7)
    assert lines_of_last(repository) == 1
