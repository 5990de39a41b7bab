"""A bus with rewarded attempts for tests of datasets, and what is cut from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pytest_tfgrpo.core.evidence import EvidenceHeader
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.report.dataset_lines import REASONS
from pytest_tfgrpo.production.training.dataset.cut import cut
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent
from support.loop_events import publish, rewarded, trajectory


class Cut(NamedTuple):
    """A dataset as it is in its file."""

    header: dict[str, Json]
    groups: list[dict[str, Json]]
    text: str

    @property
    def attempts(self) -> list[dict[str, Json]]:
        return [attempt for group in self.groups for attempt in group["attempts"]]

    @property
    def left_out(self) -> dict[str, int]:
        found: dict[str, int] = self.header["counts"]["left_out"]
        return found


class Cutter:
    """A bus and a view, from which a test cuts."""

    def __init__(self, bus: Bus, view: LoopView, folder: Path) -> None:
        self.bus, self.view, self.folder = bus, view, folder

    def add(self, name: str, total: float | None, **said: Any) -> str:
        """Publish an attempt, which a user of its own made unless said otherwise, with its reward."""
        publish(self.bus, self.attempt(name, total, **said))
        return name

    @staticmethod
    def attempt(
        name: str, total: float | None, *, prompt: str = "Where is order 17?", **said: Any
    ) -> list[BusEvent]:
        """Return the events of an attempt."""
        task = {"domain": said.pop("domain", "general"), "instructions": prompt, **said.pop("task", {})}
        metadata = {"model": "small-model", **said.pop("metadata", {})}
        said = {"user": f"u-{name}", "session": f"chat-{name}", **said}
        run = trajectory(name, task=task, metadata=metadata, **said)
        return [run, *([] if total is None else [rewarded(name, total)])]

    def cut(
        self, suite: Mapping[str, str] | None = None, *, name: str = "evidence.jsonl", **asked: Any
    ) -> Cut:
        """Return what the file says that a request gives; every line of it fits its schema."""
        watermark = asked.pop("watermark", None)
        path = self.folder / name
        request = DatasetRequest(**asked)
        header = cut(self.bus, self.view, request, path, domains=suite or {}, watermark=watermark)
        assert isinstance(header, EvidenceHeader)
        text = path.read_text("utf-8")
        first, *groups = map(json.loads, text.split("\n")[:-1])
        assert not violations("evidence-header", first)
        assert not [one for group in groups for one in violations("evidence-group", group)]
        counts = first["counts"]
        assert counts["left_out"].keys() <= REASONS.keys()
        assert counts["trajectories"] == counts["attempts"] + sum(counts["left_out"].values()), counts
        assert counts["attempts"] == sum(len(group["attempts"]) for group in groups)
        assert counts["groups"] == len(groups)
        return Cut(first, groups, text.replace(first["created_at"], ""))


@contextmanager
def cutter_on(bus: Bus, folder: Path) -> Iterator[Cutter]:
    """Yield what cuts from a bus."""
    view = LoopView(folder / "cut-view.db")
    try:
        yield Cutter(bus, view, folder)
    finally:
        view.close()
