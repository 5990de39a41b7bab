"""The import path is as it was once a folder is no longer looked in, whatever a module did to it."""

import sys
from pathlib import Path

import pytest

from pytest_tfgrpo.core.python.import_path import importable


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["one", "two"])


@pytest.mark.parametrize("first", [True, False])
def test_what_a_module_adds_to_the_path_stays_and_the_folder_goes(first: bool) -> None:
    with importable(Path("here"), first=first):
        assert sys.path[0 if first else -1] == "here"
        sys.path.insert(0, "front")
        sys.path.append("back")
    assert sys.path == ["front", "one", "two", "back"]


@pytest.mark.parametrize(("entry", "first"), [("one", False), ("two", True), ("one", True), ("two", False)])
def test_a_folder_that_was_on_the_path_stays_in_its_place(entry: str, first: bool) -> None:
    with importable(Path(entry), first=first):
        sys.path.append("back")
    assert sys.path == ["one", "two", "back"]


@pytest.mark.parametrize("first", [True, False])
def test_a_folder_that_a_module_took_from_the_path_takes_no_other_with_it(first: bool) -> None:
    with importable(Path("one"), first=first):
        sys.path.remove("one")
    assert sys.path.count("one") == 1
