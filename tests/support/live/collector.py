"""What the tests of production/live/test_collector.py share with the slow ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.intake.collector import Collector
from pytest_tfgrpo.production.live.records import LiveEvent
from pytest_tfgrpo.production.live.store.store import LiveStore

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
