"""The result of an arena: what each side scored on the same scenarios, and what it cost to get there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from pytest_tfgrpo.arena.bugs import OwnBugError
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import ARENA_RESULT, read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import AMOUNTS, SHARES, from_wire, to_wire

SCHEMA: Final = "tfgrpo.arena/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One contestant, and what its prompts scored."""

    name: str
    scores: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict, metadata=SHARES)
    """gt_score by scenario id; place i of every side ran together. None: an error, which is no result.

    Empty where the side did not compete, as `note` says."""
    same_as: str = ""
    """An earlier side whose prompts are all equal to its own, so that they ran once for both."""
    variant: str = ""
    """What it counts as among the variants that an eval split has seen; empty where it did not compete."""
    rollouts: int = field(default=0, metadata=AMOUNTS)
    """Spent on training; the final sweep is no part of it."""
    teacher_calls: int = field(default=0, metadata=AMOUNTS)
    teacher_limited: bool = False
    """Whether its training would have gone on with more teacher calls."""
    usd: float | None = field(default=None, metadata=AMOUNTS)
    """Cost of its training; None: not known."""
    tokens_added: float | None = None
    """Mean tokens that a prompt of the eval split has more than that of the start; None: not known."""
    wall_s: float = field(default=0.0, metadata=AMOUNTS)
    """Time that its training took, over all its processes."""
    note: str = ""
    """Such as "placebo not possible", or why its optimizer failed."""
    bug: str = ""
    """The traceback, where it is our code that failed."""
    files: tuple[str, ...] = ()
    """What it made, as paths in the folder of the arena."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArenaResult:
    """An arena that has ended."""

    arena_id: str
    task_id: str
    sides: tuple[Side, ...]
    """In the order of the command."""
    families: Mapping[str, str]
    """Family of each eval scenario by id, in the order of the suite."""
    budget_rollouts: int
    """That each side might spend."""
    budget_teacher_calls: int
    """That each side might make."""
    margin: float = field(metadata=SHARES)
    """Sides that differ by less are as good as equal: ``gate_margin``."""
    seed: int
    actor: str
    teacher: str | None
    suite_hash: str
    """Stamp of the eval scenarios."""
    started_at: str
    """ISO 8601 in UTC."""
    usd: float | None = field(default=None, metadata=AMOUNTS)
    """Cost of all of it, with the final sweep; None: not known."""
    sweep_rollouts: int = field(default=0, metadata=AMOUNTS)
    """Of the final sweep; a prompt that several sides share ran once."""
    earlier: int = field(default=0, metadata=AMOUNTS)
    """Runs and arenas of the task that swept the same eval scenarios before; a replay is none."""

    def side(self, name: str) -> Side:
        """Return the side of a name; raises KeyError."""
        for side in self.sides:
            if side.name == name:
                return side
        raise KeyError(name)


def require_no_bug(result: ArenaResult) -> None:
    """Raise OwnBugError where a side does not compete because our code failed."""
    if broken := [side for side in result.sides if side.bug]:
        raise OwnBugError("\n".join(f"{side.name} failed\n{side.bug}" for side in broken))


def write_result(folder: Path, result: ArenaResult) -> Path:
    """Write the result's file into the folder of the arena; raises JournalError."""
    path = folder / ARENA_RESULT
    write_json(path, {"schema": SCHEMA, **to_wire(result)})
    return path


def has_ended(folder: Path) -> bool:
    """Return whether an arena ended, and not by a failure of our code, after which it can go on."""
    path = folder / ARENA_RESULT
    if not path.is_file():
        return False
    try:
        return not any(side.bug for side in read_result(path).sides)
    except JournalError:
        return True


def read_result(path: Path) -> ArenaResult:
    """Return the result in a file; raises JournalError where it is none."""
    try:
        value = load_json(read_plain(path))
        if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA!r}")
        return from_wire(ArenaResult, value)
    except (OSError, ValueError) as error:
        raise JournalError(f"{path}: no result of an arena: {error}") from error
