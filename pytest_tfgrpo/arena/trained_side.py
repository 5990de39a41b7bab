"""What the training of one side came to, as it is kept on file and taken from there after a kill."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pytest_tfgrpo.arena.protocol import Trained
from pytest_tfgrpo.arena.teacher_limit import is_taught
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import ARENA_SIDES, LIBRARY, read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.learning.library.library import save_library
from pytest_tfgrpo.learning.placebo import PLACEBO
from pytest_tfgrpo.metrics.costs import Sums
from pytest_tfgrpo.suite.packs import MANIFEST, write_pack

SCHEMA: Final = "tfgrpo.arena-side/1"
TRAINED: Final = "trained.json"
PACKS: Final = "prompt-packs"


@dataclass(frozen=True, kw_only=True, slots=True)
class SideCost:
    """What a part of an arena used."""

    rollouts: int = 0
    teacher_calls: int = 0
    usd: float | None = 0.0
    """None: not known."""
    known_usd: float = 0.0
    """As far as it is known, for the budget."""
    tokens: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedSide:
    """One side that is ready for the final sweep."""

    trained: Trained
    spent: SideCost
    wall_s: float
    failed: str = ""
    """Why its optimizer made nothing: it does not compete."""
    bug: str = ""
    """The traceback, where it is our code that failed."""


def spending_of(runs: Iterable[Run], *, free: bool) -> SideCost:
    """Return what runs used; `free` says that their agent costs nothing."""
    sums, rollouts, calls = Sums(), 0, 0
    for result in (result for run in runs for result in run.phases):
        for group in result.with_dev:
            rollouts += len(group.rollouts)
            for rollout in group.rollouts:
                sums.add_rollout(rollout)
        for rollout in result.loose:
            sums.add_rollout(rollout)
        for call in result.calls:
            sums.add(call)
            calls += is_taught(call)
    known = sums.usd or 0.0
    unknown = sums.unknown and not free
    return SideCost(
        rollouts=rollouts,
        teacher_calls=calls,
        usd=None if unknown else known,
        known_usd=known,
        tokens=sums.tokens,
    )


def keep_side(folder: Path, name: str, side: TrainedSide) -> None:
    """Write what a side trained, with library and prompt packs as files to use; raises TfgrpoError.

    A placebo made none: its lessons are those of another side.
    """
    home = folder / ARENA_SIDES / name
    home.mkdir(parents=True, exist_ok=True)
    if side.trained.library is not None and name != PLACEBO:
        save_library(home / LIBRARY, side.trained.library)
    for pack in side.trained.packs.values():
        write_pack(home / PACKS, pack)
    write_json(home / TRAINED, {"schema": SCHEMA, **to_wire(side)})


def read_side(folder: Path, name: str) -> TrainedSide | None:
    """Return what a side trained; None where it has not ended. Raises JournalError."""
    path = folder / ARENA_SIDES / name / TRAINED
    try:
        value = load_json(read_plain(path))
        if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA!r}")
        return from_wire(TrainedSide, value)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise JournalError(f"{path}: {error}; start a new arena") from error


def files_of(folder: Path, name: str) -> tuple[str, ...]:
    """Return the files that a side made, as paths in the folder of the arena."""
    home = folder / ARENA_SIDES / name
    found = [home / LIBRARY, *sorted(home.glob(f"{PACKS}/*/{MANIFEST}"))]
    return tuple(path.relative_to(folder).as_posix() for path in found if path.is_file())
