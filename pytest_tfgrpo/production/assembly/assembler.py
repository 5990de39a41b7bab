"""Makes trajectories of the spans that the door let in; one process at a time does.

A trace is published once nothing came for a while: a short one if its root and all spans between are here.
Spans that come later open it again, and what they change is published as the next revision. What
becomes of it follows from the stream, so that whoever takes over after a crash publishes the same: it reads
the stream again from the oldest trace that is open, and knows by RL_TRAJECTORIES what is published.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pytest_tfgrpo.production.assembly.assembly import Assembly, AssemblyContext
from pytest_tfgrpo.production.assembly.trace_events import ASSEMBLER
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.lease import TTL_S, Lease

IDLE_S = 60.0
"""Without a new span, after which a trace is taken as it stands."""


class Assembler:
    """A worker: its steps are to be called by one thread, again and again."""

    def __init__(
        self,
        bus: Bus,
        owner: str,
        *,
        idle_s: float = IDLE_S,
        settle_s: float = 0.0,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        refuses: Callable[[str, str, float], bool] = lambda *_: False,
        forgo: Callable[[Sequence[str]], object] = lambda _: None,
    ) -> None:
        """`owner` names this process alone, never the one before a restart.

        A trace of which all is here is complete after `settle_s` without a span, any other after `idle_s`.
        `refuses` says whether nothing is kept of a session or user, by the pseudonym of the user and seconds
        since 1970 when it happened; `forgo` takes the ids of trajectories that are not to be for that.
        """
        self._lease = Lease(bus, ASSEMBLER, owner, ttl_s=ttl_s, clock=clock)
        self._context = AssemblyContext(
            bus=bus,
            lease=self._lease,
            idle_s=idle_s,
            settle_s=min(settle_s, idle_s),
            clock=clock,
            refuses=refuses,
            forgo=forgo,
        )
        self._assembly: Assembly | None = None
        """None while another process holds the lease, and after a step that failed."""

    def step(self) -> int:
        """Read what is new and publish what it completes; return how many events were read.

        Raises BusError; the next step begins from what is published.
        """
        if not self._lease.hold():
            self._assembly = None
            return 0
        before, self._assembly = self._assembly, None
        assembly = before or Assembly(self._context)
        count = assembly.read()
        if assembly.commit():
            self._assembly = assembly
        return count

    def close(self) -> None:
        """Let another process go on at once; raises BusError."""
        if self._assembly is not None and self._lease.hold():
            self._assembly.flush()
        self._lease.release()
        self._assembly = None
