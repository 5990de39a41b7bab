"""What the tests of production/live/test_spans.py share with the slow ones."""

from pathlib import Path

from pytest_tfgrpo.production.live.records import LiveRollout
from pytest_tfgrpo.production.live.store.store import open_live_store
from support.tools import tfgrpo


def ingest(*files: Path) -> str:
    return tfgrpo("live", "ingest", *map(str, files))


def rollouts(folder: Path) -> list[LiveRollout]:
    store = open_live_store(folder / "live.db", "default")
    try:
        return list(store.rollouts())
    finally:
        store.close()
