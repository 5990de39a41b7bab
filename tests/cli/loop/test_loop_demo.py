"""`tfgrpo loop demo`: what it says last of the files that its commands need."""

from argparse import Namespace
from pathlib import Path

import pytest

from pytest_tfgrpo.cli.demo.demo_library import demo_folder
from pytest_tfgrpo.cli.loop import loop_demo


@pytest.mark.parametrize("kept", [True, False])
def test_its_last_line_says_where_its_commands_find_their_files(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_demo, "demo", lambda *_: iter(["done"]))
    into = tmp_path / "demo"
    given = Namespace(into=str(into) if kept else None, seed=0, tasks=9, bus="")
    (*_, last) = loop_demo.demo_command(given)
    assert ("tfgrpo loop demo --into DIR" in last) is not kept
    assert (str(into / "killed" / "loop.toml") in last) is kept


def test_a_relative_folder_is_found_from_any_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with demo_folder("here") as folder:
        assert folder == tmp_path / "here"
