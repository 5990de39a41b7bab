"""Runs of which nothing is kept: what is said of them later is not taken either.

What somebody says of an answer names its trajectory alone. Which trajectories there would have been stands
in RL_AUDIT, as pseudonyms, so that every process knows, and a restart forgets nothing.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT, AUDIT_SUBJECT, DAY_S
from pytest_tfgrpo.production.door.opt_outs import owe_sweep
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.storage.event_store import STATE, BusEvent
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.turns import UNREADABLE, TraceSpan

DROPPED_RUNS = "left_out"
"""The action of an audit event that names the trajectories that are not to be."""
DROPPED_ACTIONS = (DROPPED_RUNS, "drop_claims")
"""That action, and its name in records written before."""
SWEPT = "sweep"
"""The action of an audit event that names rewards that were overwritten, whose trajectories never came."""
_SINCE_S = 30 * DAY_S
"""How long what is said of a run is kept at all."""
_AT_ONCE = 5000
"""Runs of one event."""
_MOST = 1_000_000
"""Runs that are remembered; the oldest go."""


class DroppedRuns:
    """The runs that RL_AUDIT names; may be shared by threads."""

    def __init__(self, bus: Bus, scrubber: LoopScrubber) -> None:
        self._bus = bus
        self._scrubber = scrubber
        self._refs: dict[str, None] = {}
        self._seen: int | None = None
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Read what RL_AUDIT says since the last look; raises BusError."""
        with self._lock:
            if self._seen is not None and self._bus.last(AUDIT) <= self._seen:
                return
            found = (
                self._bus.replay(AUDIT, since_time=time.time() - _SINCE_S)
                if self._seen is None
                else self._bus.replay(AUDIT, since_sequence=self._seen + 1)
            )
            self._seen = self._seen or 0
            for event in found:
                self._refs.update(dict.fromkeys(_refs(event.data)))
                self._seen = max(self._seen, event.sequence)
            for ref in list(self._refs)[: max(0, len(self._refs) - _MOST)]:
                del self._refs[ref]

    def __contains__(self, trajectory: object) -> bool:
        if not self._refs or not isinstance(trajectory, str):
            return False
        return self._scrubber.ref("trajectory", trajectory.lower()) in self._refs

    def forgo(self, trajectories: Sequence[str]) -> None:
        """Have nothing taken that is said of these trajectories; raises BusError."""
        now = utc_now()
        events = [
            self.event(trajectories[n : n + _AT_ONCE], now) for n in range(0, len(trajectories), _AT_ONCE)
        ]
        if events:
            self._bus.publish(events)
            owe_sweep(self._bus.table(STATE))

    def event(self, trajectories: Iterable[str], at: str) -> BusEvent:
        """Return the event that nothing said of these trajectories is to be taken."""
        refs = sorted(self._scrubber.ref("trajectory", one.lower()) for one in set(trajectories))
        value = {"action": DROPPED_RUNS, "what": "trajectory", "refs": refs}
        data = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
        return BusEvent(id=derived_id(DROPPED_RUNS, *refs), subject=AUDIT_SUBJECT, time=at, data=data)


def trajectories_of(trace: str, spans: Iterable[TraceSpan]) -> Iterator[str]:
    """Yield the ids of the trajectories that spans of a trace may become, or those above them."""
    yield derived_id("trajectory", trace, "")
    for span in spans:
        try:
            step = read_span(span).step
            may = not span.parent or (step is not None and step.kind == "agent")
        except UNREADABLE:
            may = True
        if may:
            yield derived_id("trajectory", trace, span.key[1])
        if span.parent:
            yield derived_id("trajectory", trace, span.parent)


def _refs(data: bytes) -> list[str]:
    """Return the trajectories that an audit event names; others may write there too."""
    try:
        found = json.loads(data)
        if found["action"] in DROPPED_ACTIONS:
            return [str(ref) for ref in found["refs"]]
        dropped = found["action"] == "opt_out" and found["what"] == "trajectory"
        return [str(found["ref"])] if dropped else []
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
