"""What of a folder differs from the files that it was made of, and what is left out."""

from __future__ import annotations

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
