"""Recordings as a source of estimates: what the recorded answers of an actor used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.estimate.ranges import UnitUse
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.recording.entries import RolloutEntry
from pytest_tfgrpo.recording.file import Recording

MOST = 2_000
"""Entries that are read."""
MAX_BYTES = 100_000_000
"""A larger recording takes too long to read for an estimate."""


def uses_in(
    path: Path | None, actor: str, domains: Mapping[str, str], price: Price | None
) -> dict[str, list[UnitUse]]:
    """Return what each recorded rollout of `actor` used, by domain; `domains` are those of scenarios by id.

    A file that is missing, damaged or too large says nothing. Costs are at `price` where tokens are known by
    kind.
    """
    uses: dict[str, list[UnitUse]] = {}
    try:
        if path is not None and path.is_file() and path.stat().st_size <= MAX_BYTES:
            for entry in _rollouts(path, actor):
                tokens = sum(frame.tokens for frame in entry.frames)
                if entry.scenario in domains and (tokens or entry.settled):
                    uses.setdefault(domains[entry.scenario], []).append(_use(entry.frames, tokens, price))
    except (RecordingError, OSError):
        return {}
    return uses


def _rollouts(path: Path, actor: str) -> Iterator[RolloutEntry]:
    recording = Recording.open(path)
    stamps = (
        {row.stamp for row in recording.header.actors if row.name == actor} if recording.header else set()
    )
    keys = [key for key in recording.lines if key[1] == "rollout"]
    for key in keys[:: len(keys) // MOST + 1]:
        entry = recording.entry(key)
        if isinstance(entry, RolloutEntry) and entry.actor in stamps:
            yield entry


def _use(frames: tuple[Frame, ...], tokens: int, price: Price | None) -> UnitUse:
    calls = [frame for frame in frames if frame.kind == "model"]
    usages = [frame.usage for frame in calls if frame.usage is not None]
    if price is not None and calls and len(usages) == len(calls):
        return UnitUse(len(calls), tokens, sum(map(price.cost, usages)))
    costs = [frame.cost_usd for frame in frames]
    known = [cost for cost in costs if cost is not None]
    return UnitUse(max(1, len(calls)), tokens, sum(known) if known and len(known) == len(costs) else None)
