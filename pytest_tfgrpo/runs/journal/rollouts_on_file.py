"""Rollouts that a journal has: the first stay in memory, the others are read again when somebody looks."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import open_plain
from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.core.wire.wire import from_wire
from pytest_tfgrpo.runs.journal.journal import damage, decode
from pytest_tfgrpo.runs.journal.placed import PlacedValues

HELD = 8_000
"""Rollouts that stay in memory."""


class RolloutsOnFile(PlacedValues[Rollout, Rollout | int]):
    """Rollouts by id, in the order of the journal; of most it holds where their lines begin."""

    def __init__(self, path: Path) -> None:
        """Have none yet of the journal at `path`."""
        super().__init__({})
        self._path = path

    def put(self, rollout: Rollout, offset: int) -> None:
        """Take a rollout whose line begins at an offset."""
        held = len(self._places) < HELD
        self._places[rollout.rollout_id] = rollout if held else offset

    def __getitem__(self, id_: str) -> Rollout:
        """Return a rollout; raises JournalError when its line has changed."""
        place = self._places[id_]
        return place if isinstance(place, Rollout) else self._read(place)

    def _read(self, offset: int) -> Rollout:
        try:
            with open_plain(self._path) as file:
                file.seek(offset)
                event = decode(file.readline()[:-1])
        except OSError as error:
            raise JournalError(f"cannot read the journal {self._path}: {error}") from error
        if event is None or event.event not in ("rollout", "abandoned"):
            raise damage(self._path, 0 if event is None else event.n, "it has changed since it was read")
        return from_wire(Rollout, event.data)

    def __setitem__(self, id_: str, rollout: Rollout) -> None:
        """Take a rollout that is nowhere on file."""
        self._places[id_] = rollout
