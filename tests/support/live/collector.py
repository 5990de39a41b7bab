"""What the tests of the collector share with the slow ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.intake import collector as module
from pytest_tfgrpo.production.live.intake import event_buffer
from pytest_tfgrpo.production.live.intake.collector import Collector
from pytest_tfgrpo.production.live.records import LiveEvent
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store
from support.live_events import RULES

Start = Callable[..., Collector]


def put(collector: Collector, events: Iterable[LiveEvent]) -> None:
    for event in events:
        assert collector.put(event)


class Broken:
    """Makes methods of a store fail, as a full disk would."""

    def __init__(self, store: LiveStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.patch, self.left = store, monkeypatch, 0

    def fails(self, times: int, *names: str) -> None:
        self.left = times
        for name in names:
            self.patch.setattr(self.store, name, self._broken(getattr(self.store, name)))

    def _broken(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.left:
                self.left -= 1
                raise StoreError("live store: database or disk is full")
            return method(*args, **kwargs)

        return call


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LiveStore]:
    with closing(open_live_store(tmp_path / "live.db", "shop")) as opened:
        yield opened


@pytest.fixture
def start(store: LiveStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(event_buffer, "POLL_S", 0.02)
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    started: list[Collector] = []

    def begin(with_rules: Any = RULES, **options: Any) -> Collector:
        started.append(Collector(store, with_rules, **options))
        return started[-1]

    yield begin
    for one in started:
        one.close()


@pytest.fixture
def broken(store: LiveStore, monkeypatch: pytest.MonkeyPatch) -> Broken:
    return Broken(store, monkeypatch)
