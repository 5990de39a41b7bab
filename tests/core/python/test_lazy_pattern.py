"""Regular expressions that are compiled when they first search."""

import re
from importlib import import_module

import pytest
from support import ROOT
from support.syntax_trees import PACKAGE, name_of

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern


def test_a_pattern_is_compiled_at_its_first_search(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = lazy_pattern("a+", re.IGNORECASE)
    monkeypatch.setattr(re, "compile", lambda *_: pytest.fail("compiled too early"))
    assert pattern.pattern == "a+"
    monkeypatch.undo()
    assert pattern.findall("xAAya") == ["AA", "a"]
    monkeypatch.setattr(re, "compile", lambda *_: pytest.fail("compiled again"))
    assert pattern.findall("aa") == ["aa"]


def test_a_broken_pattern_says_so_when_it_searches() -> None:
    pattern = lazy_pattern("(")
    with pytest.raises(re.error):
        pattern.search("")


USERS = sorted(
    name_of(file)
    for file in (ROOT / PACKAGE).rglob("*.py")
    if b"lazy_pattern import lazy_pattern" in file.read_bytes()
)


@pytest.mark.parametrize("name", USERS)
def test_the_patterns_of_each_module_can_be_compiled(name: str) -> None:
    kind = type(lazy_pattern(""))
    held = list[object](vars(import_module(name)).values())
    found = list[re.Pattern[str]]()
    while held:
        match held.pop():
            case one if type(one) is kind:
                found.append(one)  # type: ignore[arg-type]
            case dict() as table:
                held += table.values()
            case list() | tuple() as rows:
                held += rows
    assert found
    for pattern in found:
        pattern.search("")
