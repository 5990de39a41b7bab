"""What the log says of jobs: how many ended how, and how long stalls took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median

from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.jobs.alerts import alert_counts
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import JobQueue


def queue_stats(queue: JobQueue) -> dict[str, Json]:
    """Return the figures of a queue, its pruned jobs included, and of its alerts; raises StoreError."""
    with queue.reading() as db:
        found = db.execute("SELECT entry FROM owed ORDER BY n").fetchall()
    return {**job_stats(load_json(entry) for (entry,) in found), "alerts": dict(alert_counts(queue))}


def job_stats(entries: Iterable[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the figures of jobs, from the lines of their log in their order.

    ``pass_rate`` is the share of the validated among those whose proof ended; null where none has.
    ``regressions_caught`` are jobs of which a proof found that tests fail which passed before the change.
    """
    last, caught, times = dict[str, Mapping[str, Json]](), set[str](), _StallTimes()
    skipped = lost = 0
    for entry in entries:
        skipped += entry["event"] == "skipped"
        lost += entry["event"] in ("lose", "give_up")
        if "to" in entry:
            last[entry["job"]] = entry
            times.see(entry)
            if entry.get("broken"):
                caught.add(entry["job"])
    statuses = Counter(entry["to"] for entry in last.values())
    ended = statuses[LearningStatus.VALIDATED] + statuses[LearningStatus.VALIDATION_FAILED]
    return {
        "jobs": dict(sorted(statuses.items())),
        "skipped": skipped,
        "causes": dict(sorted(Counter(e["root_cause"] for e in last.values() if "root_cause" in e).items())),
        "pass_rate": statuses[LearningStatus.VALIDATED] / ended if ended else None,
        "stalls": times.value(),
        "regressions_caught": len(caught),
        "leases_lost": lost,
    }


class _StallTimes:
    """How long jobs stood as ``stalled_snapshot`` until a person put them back."""

    def __init__(self) -> None:
        self._since: dict[str, str] = {}
        self._took_s: list[float] = []

    def see(self, entry: Mapping[str, Json]) -> None:
        if entry["to"] == LearningStatus.STALLED_SNAPSHOT:
            self._since[entry["job"]] = entry["time"]
        elif (since := self._since.pop(entry["job"], None)) is not None:
            took = datetime.fromisoformat(entry["time"]) - datetime.fromisoformat(since)
            self._took_s.append(max(0.0, took.total_seconds()))  # a clock may go back

    def value(self) -> dict[str, Json]:
        return {
            "resolved": len(self._took_s),
            "open": len(self._since),
            "median_s": median(self._took_s) if self._took_s else None,
        }
