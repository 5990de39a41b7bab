"""What users meet now: the live version, and the one that a share of their sessions meets instead.

One row of the table ``state`` holds it, so that whoever serves reads it, and whoever changes it changes all
of it or nothing.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.production.deployment.states import DeployState

ROW = "serving"
"""Key of the row in the table ``state``, to read or to watch."""
FIRST = "v1"
"""The agent without lessons, which is live before anything was deployed."""
HOLD_OUT = 0.05
"""Share of the sessions that stay with the version before until the new one is live."""
_NAME = re.compile(r"v[1-9][0-9]{0,8}")
Strategy: TypeAlias = Literal["canary", "blue_green", "immediate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ramp:
    """A version on its way to all users."""

    deployment: str
    """A UUID; another deployment of the same version draws other sessions."""
    version: str
    strategy: Strategy
    shares: tuple[float, ...]
    """Planned share of each step; the last one is 1."""
    waits_min: tuple[float, ...]
    """Minutes that each step takes at least."""
    began: tuple[str, ...]
    """When each step up to the present one began, ISO 8601 in UTC."""
    since: str
    """When the present step, or hold, began."""
    by: str
    """Who approved it; empty where no approval was needed."""
    held_by: str = ""
    """Who holds it; empty for the monitor."""
    held_for: str = ""
    """Why it is held; empty where it is not."""
    step_positions: tuple[int, ...] = ()
    """Sequence of the newest run on the bus when each step began; empty in rows of earlier releases."""
    since_position: int = 0
    """That when the present step, or hold, began."""
    said_positions: tuple[int, int] = (0, 0)
    """Sequences of the newest feedback and reward on the bus when it began."""

    @property
    def step(self) -> int:
        """The present step, from 0."""
        return len(self.began) - 1

    @property
    def share(self) -> float:
        """The share of new sessions that meet the version."""
        return self.share_of(self.step)

    def share_of(self, step: int) -> float:
        """Return the share of new sessions that meet the version in a step."""
        return min(self.shares[step], 1.0 - HOLD_OUT)

    def share_at(self, sequence: int) -> float:
        """Return the share of the sessions whose first run has a sequence on the bus; 0 before the ramp."""
        return self.share_of(step - 1) if (step := bisect_left(self.step_positions, sequence)) else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving:
    """Which versions are served, and where each that ever was stands."""

    live: str = FIRST
    """Of all sessions, or of those that the ramp leaves."""
    since: str = ""
    """When it became live."""
    previous: str = ""
    """Live before it, and ready to come back; empty where there was none."""
    deployed: Ramp | None = None
    """How the live version came to be it; None for v1, and for one that a rollback brought back."""
    ramp: Ramp | None = None
    states: Mapping[str, DeployState] = field(default_factory=lambda: {FIRST: "live"})
    """By version; one that never met a user is not among them."""
    payloads: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """What the events of a version say of it, for those that are served or ready."""

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that are served: the live one, then that of the ramp."""
        return (self.live,) if self.ramp is None else (self.live, self.ramp.version)

    @property
    def used(self) -> frozenset[str]:
        """Versions whose files must stay."""
        return frozenset({*self.versions, self.previous} - {""})

    def encode(self) -> bytes:
        """Return the value of the row."""
        return json.dumps(to_wire(self), separators=(",", ":")).encode()


def serving_of(value: bytes | None) -> Serving:
    """Return what the row's value says; v1 is live where there is no row. Raises StoreError."""
    if value is None:
        return Serving()
    try:
        found = from_wire(Serving, load_json(value))
        _check(found)
    except ValueError as error:
        raise StoreError(
            f"the row {ROW!r} of the table state does not hold what is served: {error}; "
            "put the bus back from a copy of its data; RL_DEPLOYMENTS says what was served"
        ) from error
    return found


def _check(serving: Serving) -> None:
    """Raise ValueError for what no transition leaves."""
    for name in sorted(serving.used | serving.states.keys()):
        if name not in serving.states:
            raise ValueError(f"{name} is served and has no state")
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a version")
    for ramp in (serving.ramp, serving.deployed):
        if ramp is None:
            continue
        fits = len(ramp.shares) == len(ramp.waits_min) >= len(ramp.began) > 0
        fits = fits and len(ramp.step_positions) in (0, len(ramp.began))
        if not (fits and all(0.0 < share <= 1.0 for share in ramp.shares)):
            raise ValueError(f"the steps of {ramp.version} do not fit each other")
        for time in (*ramp.began, ramp.since):
            if utc_time(time) is None:
                raise ValueError(f"{time!r} is no time")
