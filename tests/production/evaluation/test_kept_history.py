"""The kept history of rewards: which one counts, and what is read after it."""

import json
import zlib
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.production.evaluation import kept_history
from pytest_tfgrpo.production.evaluation.kept_history import forget_history, load_history, save_history

Kept = dict[str, Any]


class Memory:
    """Stands for the history: what it was restored from, and what was added."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def restore(self, kept: Kept) -> None:
        self.seen = [kept["name"]]

    def rebuild(self, rows: Any) -> None:
        self.seen += [row["id"] for row in rows]

    def dump(self) -> Kept:
        return {"name": "saved"}


class Table:
    """The one key of a bus that matters here; `conflicts` writes fail first."""

    def __init__(self, value: Kept | None = None, conflicts: int = 0) -> None:
        self.value = None if value is None else zlib.compress(json.dumps(value).encode())
        self.revision, self.conflicts = 7, conflicts

    def get(self, key: str) -> tuple[bytes | None, int]:
        return self.value, self.revision

    def _change(self, value: bytes | None, revision: int) -> None:
        assert revision == self.revision
        if self.conflicts:
            self.conflicts -= 1
            self.revision += 1
            raise RevisionConflict("somebody else was first")
        self.value = value

    def put(self, key: str, value: bytes, revision: int) -> None:
        self._change(value, revision)

    def remove(self, key: str, revision: int) -> None:
        self._change(None, revision)


class View:
    """Has six rewards, and what was kept of them."""

    def __init__(self, kept: Kept | None = None, forgets: int = 2) -> None:
        self.kept, self.forgets, self.generation = None if kept is None else json.dumps(kept), forgets, 5

    def meta(self, key: str) -> str | None:
        return self.kept

    def set_meta(self, key: str, text: str) -> None:
        self.kept = text

    def transaction(self) -> Any:
        return nullcontext()

    def rows(self, query: str, values: tuple[int, int, int]) -> list[tuple[int, str]]:
        after, last, most = values
        rows = [(n, json.dumps({"id": f"r{n}"})) for n in range(1, 7) if after < n <= last]
        return rows[:most]


def kept(name: str, ordinal: int, forgets: int = 2) -> Kept:
    return {"name": name, "ordinal": ordinal, "forgets": forgets}


def bus_of(table: Table) -> Any:
    return SimpleNamespace(table=lambda _: table)


@pytest.fixture(autouse=True)
def _memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_history, "RewardHistory", Memory)


@pytest.mark.parametrize(
    ("in_view", "on_bus", "seen", "saved"),
    [
        (None, None, ["r1", "r2", "r3", "r4"], 0),
        (kept("view", 2), None, ["view", "r3", "r4"], 2),
        (None, kept("bus", 3), ["bus", "r4"], 3),
        (kept("view", 2), kept("bus", 3), ["bus", "r4"], 3),
        (kept("view", 4), kept("bus", 3), ["view"], 4),
        (kept("view", 5), kept("bus", 3), ["bus", "r4"], 3),
        (kept("view", 3, forgets=1), kept("bus", 2), ["bus", "r3", "r4"], 2),
        (kept("view", 2, forgets=3), None, ["view", "r3", "r4"], 2),
        ({"name": "old", "ordinal": 3}, None, ["r1", "r2", "r3", "r4"], 0),
    ],
    ids=[
        "none",
        "view",
        "bus",
        "bus-newer",
        "view-newer",
        "ahead",
        "before-forgetting",
        "later",
        "older-form",
    ],
)
def test_the_newest_history_that_names_nothing_forgotten_counts(
    in_view: Kept | None, on_bus: Kept | None, seen: list[str], saved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_history, "_PAGE", 2)
    table = Table(on_bus)
    history: Any
    history, found = load_history(bus_of(table), View(in_view), 4)  # type: ignore[arg-type]
    assert (history.seen, found) == (seen, saved)
    assert (table.value is None) == (on_bus is None)


@pytest.mark.parametrize(("forgets", "stays"), [(1, False), (2, True), (3, True)])
def test_a_history_on_the_bus_that_names_what_is_forgotten_is_removed(forgets: int, stays: bool) -> None:
    table = Table(kept("bus", 3, forgets), conflicts=2)
    history: Any
    history, found = load_history(bus_of(table), View(), 3)  # type: ignore[arg-type]
    assert (history.seen[0], found) == (("bus", 3) if stays else ("r1", 0))
    assert (table.value is not None) is stays


def test_without_any_forgetting_a_history_of_an_older_form_counts() -> None:
    view = View({"name": "old", "ordinal": 3}, forgets=0)
    history: Any
    history, found = load_history(bus_of(Table({"name": "bus", "ordinal": 2})), view, 3)  # type: ignore[arg-type]
    assert (history.seen, found) == (["old"], 3)


def test_a_history_is_kept_in_the_view_and_on_the_bus() -> None:
    view, table = View(), Table()
    save_history(bus_of(table), view, Memory(), 4, 5)  # type: ignore[arg-type]
    assert table.value is not None
    assert json.loads(zlib.decompress(table.value)) == json.loads(view.kept or "") == kept("saved", 4)


def test_nothing_is_kept_where_something_was_taken_out_of_the_view_since() -> None:
    view, table = View(), Table()
    save_history(bus_of(table), view, Memory(), 4, 4)  # type: ignore[arg-type]
    assert (view.kept, table.value) == (None, None)


@pytest.mark.parametrize(("room", "on_bus"), [(0, True), (-1, False)])
def test_a_history_too_large_for_a_message_is_kept_in_the_view_alone(
    room: int, on_bus: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(zlib.compress(json.dumps(kept("saved", 4)).encode()))
    monkeypatch.setattr(kept_history, "MAX_EVENT_BYTES", size + room)
    view, table = View(), Table()
    save_history(bus_of(table), view, Memory(), 4, 5)  # type: ignore[arg-type]
    assert (view.kept is not None, table.value is not None) == (True, on_bus)


def test_what_another_process_keeps_meanwhile_stays() -> None:
    table = Table(kept("theirs", 9), conflicts=1)
    before = table.value
    save_history(bus_of(table), View(), Memory(), 4, 5)  # type: ignore[arg-type]
    assert table.value == before
    forget_history(bus_of(table))
    assert table.value is None
