"""What the tests of production/live/test_loop.py share with the slow ones."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_tfgrpo.production.live.records import LiveRollout
from pytest_tfgrpo.production.live.session import Live
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store

CONFIG = """
[settings]
enabled = true
inference = "{inference}"

[points.config]
default = "bare"
[points.config.arms.bare]
[points.config.arms.learned]
library = "library.json"
"""


def scored(folder: Path) -> Path:
    (folder / "live.toml").write_text(CONFIG.format(inference="outcome_v1"))
    return folder / "live.toml"


@contextmanager
def stored(folder: Path) -> Iterator[LiveStore]:
    with closing(open_live_store(folder / "live.db", "default")) as store:
        yield store


def runs_of(folder: Path) -> list[LiveRollout]:
    with stored(folder) as store:
        return list(store.rollouts())


def serve(live: Live, first: int, runs: int) -> None:
    """Serve tasks in which the learned arm is the right one."""
    for n in range(first, first + runs):
        with live.run(f"ticket-{n}", category="billing", prompt="p") as run:
            run.end("r", score=float(run.choose("config").name == "learned"))
        if n % 8 == 7:
            assert live.flush()


def wait(seen: Callable[[], bool]) -> None:
    until = time.monotonic() + 100
    while not seen():
        assert time.monotonic() < until
        time.sleep(0.01)
