"""What was not used of the spans of agents, counted over a run."""

from __future__ import annotations

from collections import Counter
from threading import RLock

UNREADABLE_SPAN = "malformed"
NO_PROVIDER = "no_provider"
WHY = {
    "late": "had not ended when the agent had answered",
    "lost": "in no rollout's context, such as a thread of the agent's own",
    NO_PROVIDER: "calls that installed their tracer provider themselves, with all their spans",
    "too_many": "beyond what is kept of one rollout",
    "too_large": "beyond the bytes that frames may have",
    "duplicate": "seen twice",
    UNREADABLE_SPAN: "unreadable",
    "loop": "its own ancestor",
    "other_rollout": "of a trace that another rollout has",
    "foreign_request": "sent to no rollout's address",
    "no_protobuf": "in protobuf, which needs: pip install 'pytest-tfgrpo[otel]'",
    "media_type": "neither JSON nor protobuf, or compressed",
    "no_length": "without a Content-Length",
    "cut_off": "sent by half",
}
"""What is said of a reason; one that is not here says enough."""


class SpanCounts:
    """Counts by reason, from whatever thread, for a run whose agent reports no frames itself."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = RLock()  # garbage collection may end a span while its own thread counts
        self.wanted = False
        """An agent has answered without frames, so that those of its spans were looked for."""

    def count(self, reason: str, times: int = 1) -> None:
        """Count spans that are no frames."""
        with self._lock:
            self._counts.setdefault(reason, 0)  # nothing can come between the parts of the next line
            self._counts[reason] += times

    @property
    def counted(self) -> dict[str, int]:
        """What was counted, by reason."""
        with self._lock:
            return dict(self._counts)

    @property
    def warnings(self) -> list[str]:
        """What was not used, as one sentence, if anything was."""
        found = Counter(self.counted).most_common()
        if not found or not self.wanted:
            return []
        parts = (f"{n} {reason}" + (f" ({WHY[reason]})" if reason in WHY else "") for reason, n in found)
        return [f"spans of the agent that became no frames: {', '.join(parts)}"]
