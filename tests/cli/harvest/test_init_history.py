"""``tfgrpo init --example history``: a real repository, whose twelve changes are of all kinds."""

import shutil
from pathlib import Path

import pytest
from support.repositories import everything, git
from support.tools import tfgrpo

from pytest_tfgrpo.cli.suite.example_repository import make_repository
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harvest.fixes import FixCandidate, HarvestRow
from pytest_tfgrpo.harvest.history.candidates import candidates
from pytest_tfgrpo.harvest.history.changes import changes, range_of
from pytest_tfgrpo.harvest.history.git_objects import GitObjects


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    said = tfgrpo("init", "--example", "history", str(folder))
    assert said.endswith("tfgrpo harvest --repo shop --from-git FIRST..main --into suite\n")
    return folder


def test_the_repository_is_checked_out_and_clean(made: Path) -> None:
    assert git(made / "shop", "status", "--porcelain") == ""
    assert (made / "shop" / "shop" / "cart.py").is_file()
    assert git(made / "shop", "rev-list", "--count", "FIRST..main") == "12"
    assert not list(made.rglob("*.fast-import"))
    assert not list(made.rglob("*.sample"))


def test_the_repository_is_the_same_wherever_it_is_made(made: Path, tmp_path: Path) -> None:
    tfgrpo("init", "--example", "history", str(tmp_path))
    assert git(tmp_path / "shop", "rev-parse", "main") == git(made / "shop", "rev-parse", "main")


def test_what_becomes_of_its_changes_is_what_the_example_says(made: Path) -> None:
    with GitObjects(made / "shop") as objects:
        found = list(candidates(changes(objects, range_of(objects, "FIRST..main"))))
    reasons = [one.reason for one in found if isinstance(one, HarvestRow)]
    assert [reason.partition(" by ")[0] for reason in reasons] == [
        "it reverts another change",
        "it is reverted",
        "no test changed",
        "no test changed",
    ]
    assert sum(isinstance(one, FixCandidate) for one in found) == 8, "six fixes, one proven before, one flaky"


def test_a_repository_that_exists_is_kept_even_by_force(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    shutil.copytree(made, folder, symlinks=True)
    before = everything(folder / "shop")
    assert "kept   shop" in tfgrpo("init", "--example", "history", str(folder))
    assert "kept   shop" in tfgrpo("init", "--example", "history", str(folder), "--force")
    assert everything(folder / "shop") == before


def test_a_stream_that_git_refuses_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="git fast-import"):
        make_repository(b"commit nonsense\n", tmp_path / "shop")
    assert list(tmp_path.iterdir()) == []


def test_without_git_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = tfgrpo("init", "--example", "history", str(tmp_path), code=1)
    assert "git is not installed" in said
    assert list(tmp_path.iterdir()) == []
