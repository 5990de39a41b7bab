"""What of a folder differs from the files that it was made of, and what is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox import differences as module
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.differences import differences, is_left_out


def base(*names: str) -> dict[str, ArchiveEntry]:
    return {name: ArchiveEntry(name=name, data=b"x") for name in names}


def written(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


INSTALLED = (
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".venv",
    ".tox",
    ".nox",
    "node_modules",
)


@pytest.mark.parametrize("name", INSTALLED)
def test_what_can_be_installed_again_is_left_out_unless_the_project_itself_has_it(
    name: str, tmp_path: Path
) -> None:
    given = base("a.py", f"old/{name}/x")
    assert not is_left_out(given, {})(f"lib/{name}")
    assert is_left_out(base("a.py"), {})(f"lib/{name}")
    written(tmp_path, "a.py", f"lib/{name}/y")
    assert list(differences(tmp_path, base("a.py"), is_left_out(base("a.py"), {}), 10)) == []


def test_the_repository_and_what_lies_beside_the_project_are_no_part_of_it(tmp_path: Path) -> None:
    skipped = is_left_out({}, {"data": tmp_path})
    assert [name for name in (".git", "data", "sub/data", "sub/.git") if skipped(name)] == [".git", "data"]


def test_what_lies_below_something_left_out_is_not_gone(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(tmp_path.parent)
    given = base("data/a", "gone/b")
    found = differences(tmp_path, given, is_left_out(given, {"data": tmp_path.parent}), 10)
    assert [(one.name, one.entry) for one in found] == [("gone/b", None)]


def test_a_large_project_may_have_more_files_than_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WALKED", 2)
    names = [f"f{n}" for n in range(4)]
    written(tmp_path, *names)
    assert list(differences(tmp_path, base(*names), lambda _: False, 10)) == []
    with pytest.raises(ValueError, match="more than 2"):
        list(differences(tmp_path, {}, lambda _: False, 10))


def found_in(folder: Path, given: dict[str, ArchiveEntry], most: int = 10) -> dict[str, str]:
    """Return what is found of each difference: its problem, or what it is now."""
    return {
        one.name: one.problem or ("gone" if one.entry is None else str(one.entry.data))
        for one in differences(folder, given, is_left_out(given, {}), most)
    }


def test_a_file_of_the_project_may_be_large_while_it_is_as_it_was(tmp_path: Path) -> None:
    large = {"big": ArchiveEntry(name="big", data=b"x" * 20)}
    (tmp_path / "big").write_bytes(b"x" * 20)
    (tmp_path / "new").write_bytes(b"y" * 10)
    assert found_in(tmp_path, large) == {"new": str(b"y" * 10)}
    (tmp_path / "big").write_bytes(b"z" * 20)
    assert found_in(tmp_path, large)["big"] == "'big' has 20 bytes, more than 10"
    (tmp_path / "big").write_bytes(b"z" * 21)
    assert found_in(tmp_path, large)["big"] == "'big' has 21 bytes, more than 20"
    (tmp_path / "new").write_bytes(b"y" * 11)
    assert found_in(tmp_path, large)["new"] == "'new' has 11 bytes, more than 10"


def test_the_right_of_the_owner_alone_says_whether_a_file_runs(tmp_path: Path) -> None:
    for name, mode in (("own", 0o700), ("others", 0o677)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    found = differences(tmp_path, {}, lambda _: False, 10)
    assert {one.name: one.entry is not None and one.entry.executable for one in found} == {
        "own": True,
        "others": False,
    }


def test_a_file_at_the_top_is_left_out_by_its_name_and_below_it_is_not(tmp_path: Path) -> None:
    written(tmp_path, ".git", "sub/.git", ".gitignore", "sub/node_modules", "node_modules")
    assert sorted(one.name for one in differences(tmp_path, {}, is_left_out({}, {}), 10)) == [
        ".gitignore",
        "sub/.git",
        "sub/node_modules",
    ]


def test_a_folder_may_have_three_times_as_many_entries_as_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WALKED", 1)
    given = base("a", "b")
    written(tmp_path, *"abcde")
    assert len([*differences(tmp_path, given, lambda _: False, 10)]) == 3
    written(tmp_path, "f")
    with pytest.raises(ValueError, match="more than 5 files"):
        [*differences(tmp_path, given, lambda _: False, 10)]


def test_what_is_no_file_and_what_leads_out_has_a_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "out").symlink_to("../x")
    found = found_in(tmp_path, base("pipe"))
    assert found["pipe"] == "'pipe' is not a regular file"
    assert found["out"] == "the link 'out' leads out of the tree, to '../x'"


def test_a_file_that_shrinks_while_it_is_read_has_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("12345")
    read = os.read
    monkeypatch.setattr("os.read", lambda handle, size: read(handle, size - 1))
    assert found_in(tmp_path, {}) == {"a.py": "'a.py' changed while it was read"}
