"""Files of a project: what can be read of a folder, each once; what is broken says nothing."""

from __future__ import annotations

import pytest
from support.project_trees import project_files

from pytest_tfgrpo.harvest.recipe import project_files as module
from pytest_tfgrpo.harvest.recipe.project_files import within, words


def test_the_files_of_a_folder_are_those_below_it_sorted() -> None:
    tree = {f"api/{name}": "" for name in ("z.py", "b/c.py", "a.py", "b/a.py")} | {"apia.py": "", "x.py": ""}
    files = project_files(tree, "api")
    assert list(files.inside()) == ["a.py", "b/a.py", "b/c.py", "z.py"]
    assert (files.has("a.py"), files.has("x.py"), files.path("x.py")) == (True, False, "api/x.py")
    assert len(list(project_files(tree).inside())) == len(tree)


def test_a_mark_of_byte_order_is_no_text_and_too_large_a_file_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = project_files({"a.json": '\ufeff{"a": 1}', "b.toml": "\ufeffa = 1", "c.json": "{", "d.json": ""})
    assert [files.json(name) for name in ("a.json", "c.json", "d.json", "none")] == [{"a": 1}, {}, {}, {}]
    assert files.toml("b.toml") == {"a": 1}
    monkeypatch.setattr(module, "LARGEST", 3)
    sized = project_files({"a": "abc", "b": "abcd"})
    assert (sized.text("a"), sized.text("b")) == ("abc", "")


def test_what_is_broken_says_nothing_and_what_is_odd_is_no_table() -> None:
    files = project_files(
        {"a.ini": "no section", "b.ini": "[x]\nFlag\ny = 1\n[x]\nz", "c.py": "def", "d.json": "[1]"}
    )
    assert (files.ini("a.ini"), files.ini("b.ini")) == ({}, {"x": {"flag": "", "y": "1", "z": ""}})
    assert (files.python("c.py").body, files.json("d.json")) == ([], {})
    assert within({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert within({"a": {"b": 1}}, "a", "b") == within([], "a") == {}
    assert words(" a \r\n\n b") == ["a", "b"]
    assert (words(["a", 1, "b"]), words(3)) == (["a", "b"], [])
