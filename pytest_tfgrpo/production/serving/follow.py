"""What is served, followed on the bus by a thread of its own; without the bus it stays as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.core.errors import BusError, StoreError, describe
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.serving import ROW, Serving, serving_of
from pytest_tfgrpo.production.serving.last_known import ServedState, read_last_known, write_last_known
from pytest_tfgrpo.production.serving.served_version import ServedVersion
from pytest_tfgrpo.storage.event_store import STATE

LOOK_S = 2.0
"""Between two looks."""
FIRST_S = 5.0
"""How long the start waits for the first one."""
LoadVersion: TypeAlias = Callable[[Bus, str], ServedVersion]
"""Returns a version by its name; raises StoreError, SettingError and BusError."""


class ServingFollower:
    """Follows what is served; any thread may read `state`."""

    def __init__(
        self,
        open_bus: Callable[[], Bus],
        load: LoadVersion,
        last_known: Path,
        report: Callable[[str], None],
        identity: Callable[[], object] = lambda: None,
    ) -> None:
        """`last_known` is a file that keeps what is served; any thread calls `report`.

        The bus is opened again where `identity` returns another value than before.
        """
        self._open_bus, self._load = open_bus, load
        self._file, self._report = last_known, report
        self._identity, self._opened = identity, identity()
        self._bus: Bus | None = None
        self._seen: tuple[int, bool] | None = None
        """Revision of the row, and whether all versions were read."""
        self._read: dict[str, ServedVersion] = {}
        """Versions that this process read; what the file keeps may be of another bus."""
        self._stop, self._looked = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.state: ServedState | None = None
        """What is served; None as long as nobody knows it."""

    def start(self) -> None:
        """Begin with what was served last, and wait for a first look at the bus, for a while."""
        try:
            self.state = read_last_known(self._file)
        except (OSError, ValueError, StoreError) as error:
            self._report(f"cannot read {self._file}, which keeps what was served last: {error}")
        self.go_on(self.state)
        self._looked.wait(FIRST_S)

    def go_on(self, state: ServedState | None) -> None:
        """Follow from what is known, without waiting for anything."""
        self.state = state
        self._thread = threading.Thread(target=self._follow, name="tfgrpo-serving", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow no longer."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(FIRST_S)

    def look(self) -> None:
        """Look once; raises BusError, StoreError and SettingError where it cannot."""
        if (identity := self._identity()) != self._opened:
            self._leave()
            self._opened = identity
        bus = self._bus = self._bus or self._open_bus()
        value, revision = bus.table(STATE).get(ROW)
        if self._seen == (revision, True):
            return
        serving = serving_of(value)
        versions = self._versions(bus, serving)
        self._seen = revision, self._read.keys() >= serving.used
        before, self.state = self.state, ServedState(serving=serving, versions=versions)
        if before is None or before.serving != serving or before.versions.keys() != versions.keys():
            self._keep(self.state)

    def _leave(self) -> None:
        """Close the bus, and forget what is known of it, but not what is served."""
        bus, self._bus = self._bus, None
        self._seen, self._read = None, {}
        if bus is not None:
            bus.close()

    def _versions(self, bus: Bus, serving: Serving) -> dict[str, ServedVersion]:
        """Return the versions that are served or may come back; one that cannot be read is reported."""
        last = {} if self.state is None else dict(self.state.versions)
        for name in sorted(serving.used - self._read.keys()):
            try:
                self._read[name] = self._load(bus, name)
            except BusError:
                raise
            except (OSError, ValueError) as error:
                kept = "is served as it was" if name in last else "cannot be served"
                self._report(f"version {name} {kept}: {error}")
        return {name: one for name, one in (last | self._read).items() if name in serving.used}

    def _keep(self, state: ServedState) -> None:
        try:
            write_last_known(self._file, state)
        except OSError as error:
            self._report(f"cannot write {self._file}, which keeps what is served: {error}")

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                self._report(f"what is served stays as it was: {describe(error)}")
            self._looked.set()
            self._stop.wait(LOOK_S)
        self._leave()


def usable(state: ServedState) -> Serving | None:
    """Return what is served as far as its versions are here; None where even the live one is not."""
    serving = state.serving
    if serving.live not in state.versions:
        return None
    if serving.ramp is not None and serving.ramp.version not in state.versions:
        return replace(serving, ramp=None)
    return serving
