"""The order in which marked test functions become scenarios, and the fixtures that they need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.plugin.items import catalog, markers, selection
from pytest_tfgrpo.plugin.items.known_fixtures import require_known


class Item(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


def item(path: str, line: int | None, name: str, **more: Any) -> Any:
    return Item(location=(path, line, name), nodeid=f"{path}::{name}", **more)


def test_marked_functions_are_in_the_order_of_their_files_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "base_id", lambda one: one.nodeid)
    items = [
        item("test_b.py", 0, "test_a"),
        item("test_a.py", 12, "test_a"),
        item("test_a.py", 3, "test_z"),
        item("test_a.py", None, "test_y"),
        item("test_a.py", 3, "test_b"),
    ]
    assert [one.nodeid for one in sorted(items, key=catalog._place)] == [
        "test_a.py::test_y",
        "test_a.py::test_b",
        "test_a.py::test_z",
        "test_a.py::test_a",
        "test_b.py::test_a",
    ]


def test_a_fixture_that_only_another_one_needs_is_missed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "base_id", lambda one: one.nodeid)
    monkeypatch.setattr(markers, "world_of", lambda *_: None)
    known = {"shop": ("till", "request", "n"), "till": ("drawer", "shop")}

    def find(name: str, _: object) -> Any:
        return [SimpleNamespace(argnames=known[name])] if name in known else None

    manager = SimpleNamespace(get_plugin=lambda _: SimpleNamespace(getfixturedefs=find))
    config = SimpleNamespace(pluginmanager=manager)
    callspec = SimpleNamespace(params={"n": 1})
    one = item("test_a.py", 1, "test_a", config=config, fixturenames=["shop"], callspec=callspec)
    with pytest.raises(pytest.UsageError, match=r"test_a\.py::test_a: fixture 'drawer' not found"):
        require_known([one])
    known["drawer"] = ()
    require_known([one])


def test_in_plain_mode_the_functions_of_the_eval_split_alone_belong_to_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "base_id", lambda one: one.nodeid)
    monkeypatch.setattr(selection, "slot_of", lambda one: one.slot)
    monkeypatch.setattr(selection, "split_of", lambda one: one.split)
    items = [
        item("a.py", 1, name, slot=slot, split=split)
        for name, slot, split in (("e", 1, "eval"), ("t", 1, "train"), ("other", None, "eval"))
    ]
    assert selection.functions_of(items, learning=True) == {"a.py::e", "a.py::t"}
    assert selection.functions_of(items, learning=False) == {"a.py::e"}
