"""How far a run is, from its journal, of which each look reads what is new."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import TRAINING
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.runs.journal.journal import Event, scan
from pytest_tfgrpo.runs.journal.journal_contents import list_runs


def newest_run(out: Path) -> Path | None:
    """Return the folder of the newest run under an output folder that has one task at most."""
    tasks = sorted(path for path in out.glob("*") if path.is_dir())
    runs = [run for task in tasks for run in list_runs(out, task.name)]
    return max(runs, key=lambda run: run.name, default=None)


class RunProgress:
    """Counts of one run; raises JournalError only where the journal cannot be relied on."""

    def __init__(self, run: Path) -> None:
        self._path = run / JOURNAL
        self._lines = self._end = 0
        self._planned: dict[tuple[int, str], int] = {}
        """Rollouts by phase."""
        self._made: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        self._ended: set[tuple[int, str]] = set()
        self._rewards: dict[str, tuple[int, str, Sequence[float]]] = {}
        """By group: epoch, mode, and the rewards of its rollouts."""
        self._epochs = 0
        self.cost_usd = 0.0

    def look(self) -> None:
        """Read on; raises JournalError."""
        for event, end in scan(self._path, self._lines, self._end):
            self._lines, self._end = event.n, end
            try:
                self._take(event)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise JournalError(
                    f"{self._path}:{event.n}: event {event.event!r} cannot be read: {error!r}"
                ) from error

    def _take(self, event: Event) -> None:
        data = event.data
        if event.event == "run":
            for phase in data["phases"]:
                whole = sum(phase.get("sizes", {}).values()) or len(phase["scenarios"]) * phase["rollouts"]
                self._planned[phase["epoch"], phase["mode"]] = whole
            self._epochs = max((epoch for epoch, _ in self._planned), default=0)
        elif event.event in ("rollout", "abandoned"):
            if event.event == "rollout":
                self._made[data["epoch"], data["mode"]].add(data["rollout_id"])
            self.cost_usd += data.get("cost_usd") or 0.0
        elif event.event == "call":
            self.cost_usd += data.get("cost_usd") or 0.0
        elif event.event == "group":
            rewards = [one["reward"] for one in data["scores"] if one["reward"] is not None]
            self._rewards[data["group_id"]] = (data["epoch"], data["mode"], rewards)
        elif event.event == "phase" and data["status"] == "complete":
            self._ended.add((data["phase"]["epoch"], data["phase"]["mode"]))

    @property
    def steps(self) -> int:
        """Rollouts that are made, those of phases that ended all."""
        return sum(
            planned if phase in self._ended else min(planned, len(self._made[phase]))
            for phase, planned in self._planned.items()
        )

    def progress(self, per_s: float | None = None) -> dict[str, Json]:
        """Return the block ``progress`` of a status; `per_s` is how many rollouts are made in a second."""
        total = sum(self._planned.values())
        begun = [epoch for epoch, mode in self._planned if self._made.get((epoch, mode))]
        found: dict[str, Json] = {
            "current_epoch": max(0, *begun, 0),
            "total_epochs": self._epochs,
            "current_step": self.steps,
            "total_steps": total,
            "percent_complete": round(100 * self.steps / total, 2) if total else 0.0,
        }
        if per_s:
            found["eta_seconds"] = round((total - self.steps) / per_s, 1)
        return found

    def metrics(self) -> dict[str, Json]:
        """Return the block ``metrics``: rewards of the newest epoch, and which one trained best."""
        by_epoch: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
        for epoch, mode, rewards in self._rewards.values():
            by_epoch[epoch, mode] += rewards
        known = {phase: rewards for phase, rewards in by_epoch.items() if rewards and phase[1] != "baseline"}
        if not known:
            return {}
        current = known[max(known)]
        trained = {epoch: _mean(rewards) for (epoch, mode), rewards in known.items() if mode in TRAINING}
        metrics: dict[str, Json] = {"current": {"reward_mean": _mean(current), "reward_std": _std(current)}}
        if trained:
            best = max(trained, key=lambda epoch: (trained[epoch], -epoch))
            metrics["best"] = {"epoch": best, "reward_mean": trained[best]}
        return metrics


def parts_of(progress: RunProgress, per_s: float | None) -> Mapping[str, Json]:
    """Return what a status says of a run that is not over."""
    return {
        "progress": progress.progress(per_s),
        "metrics": progress.metrics(),
        "resource_usage": {"cost_usd": round(progress.cost_usd, 6)},
    }


def _mean(values: Sequence[float]) -> float:
    return round(math.fsum(values) / len(values), 6)


def _std(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return round(math.sqrt(math.fsum((one - mean) ** 2 for one in values) / len(values)), 6)
