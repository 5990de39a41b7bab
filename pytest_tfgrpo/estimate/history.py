"""History: what earlier runs of a task used, read from their journals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.estimate.ranges import UnitUse
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.journal import Event, read

RUNS = 3
"""The newest runs with the same actor are read."""
ENOUGH = 2_000
"""No further run is read once so many rollouts are known."""
LOOKED_AT = 50
MAX_BYTES = 100_000_000
"""A larger journal takes too long to read for an estimate."""
Prices: TypeAlias = Mapping[str, Price | None]


@dataclass(kw_only=True, slots=True)
class History:
    """What earlier runs used, in units of work."""

    runs: int = 0
    rollouts: dict[str, list[UnitUse]] = field(default_factory=dict)
    """Use of each rollout, by domain."""
    learning: list[UnitUse] = field(default_factory=list)
    """Use of each training epoch, by group of it."""
    judge: list[UnitUse] = field(default_factory=list)
    """Use of the judge on each phase, by rollout judged."""
    user: list[UnitUse] = field(default_factory=list)
    """Use of the model that plays users in each conversation."""


@dataclass(kw_only=True, slots=True)
class _Log:
    """What of one journal an estimate is made from."""

    rollouts: list[Json] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    groups: Counter[int] = field(default_factory=Counter)
    """By epoch."""
    judged: set[str] = field(default_factory=set)
    """Ids of rollouts."""
    learned: set[int] = field(default_factory=set)
    """Epochs."""


def history_of(job: Job, folder: Path | None) -> History:
    """Return what the runs in `folder` used whose actor has the same name.

    Journals that cannot be read are passed over. Learning, judge and user count where their models did it.
    Costs are at the prices of today where tokens by kind and a price are known.
    """
    history = History()
    prices = {name: model.price for name, model in job.models.items()}
    for path in _newest(folder):
        try:
            found = _read(path, job.identities)
            if found is None or not found[1].rollouts:
                continue
            _take(history, *found, job, prices)
        except (TfgrpoError, OSError, AttributeError, KeyError, TypeError, ValueError):
            continue
        history.runs += 1
        if history.runs == RUNS or sum(map(len, history.rollouts.values())) >= ENOUGH:
            break
    return history


def _newest(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    return sorted(folder.glob(f"*/{JOURNAL}"), reverse=True)[:LOOKED_AT]


def _read(path: Path, identities: Mapping[str, Json]) -> tuple[Json, _Log] | None:
    """Return the header and the log of a journal; None when its actor is another one, or it is too large."""
    events = read(path)
    first = next(events, None)
    if first is None or path.stat().st_size > MAX_BYTES:
        return None
    if not _same(first.data.get("identities", {}), identities, "actor"):
        return None
    return first.data, _log(events)


def _log(events: Iterable[Event]) -> _Log:
    log = _Log()
    for event in events:
        match event.event:
            case "rollout":
                log.rollouts.append(event.data)
            case "call":
                log.calls.append(event.data)
            case "group":
                log.groups[event.data["epoch"]] += event.data["mode"] != "dev"
            case "opinion":
                log.judged.add(event.data["rollout_id"])
            case "revision":
                log.learned.add(event.data["epoch"])
    return log


def _same(one: Json, other: Json, role: str) -> bool:
    """Return whether a role is taken by the same one, and its model the same, by name."""
    mine, theirs = one.get(role), other.get(role)
    if not isinstance(mine, dict) or not isinstance(theirs, dict):
        return False
    models = [who.get("identity", {}).get("model") for who in (mine, theirs)]
    return mine.get("name") == theirs.get("name") and (role == "actor" or models[0] == models[1])


def _take(history: History, header: Json, log: _Log, job: Job, prices: Prices) -> None:
    """Add what one run used, all of it or, when something of it is malformed, nothing."""
    domains = {scenario["id"]: scenario["domain"] for scenario in header["scenarios"]}
    price = prices.get(job.actor.name)
    rollouts = [
        (domains[rollout["scenario_id"]], _use(rollout, price))
        for rollout in log.rollouts
        if rollout["tokens"] or rollout["status"] != "error"  # else the provider was away
    ]
    known = header["identities"]
    learning = list(_learning(log, prices)) if _same(known, job.identities, "optimizer") else []
    judge = list(_judging(log, prices)) if _same(known, job.identities, "judge") else []
    user = list(_playing(header, log, prices)) if _same(known, job.identities, "user") else []
    for domain, use in rollouts:
        history.rollouts.setdefault(domain, []).append(use)
    history.learning += learning
    history.judge += judge
    history.user += user


def _use(rollout: Json, price: Price | None) -> UnitUse:
    calls = [frame for frame in rollout["frames"] if frame["kind"] == "model"]
    usages = [frame["usage"] for frame in calls if frame.get("usage") is not None]
    usd = rollout["cost_usd"]
    if price is not None and calls and len(usages) == len(calls):
        usd = sum(price.cost(Usage(**usage)) for usage in usages)
    return UnitUse(max(1, len(calls)), rollout["tokens"], usd)


def _learning(log: _Log, prices: Prices) -> Iterator[UnitUse]:
    for epoch in sorted(log.learned):
        if log.groups[epoch]:
            others = ("judge", "user")
            calls = [c for c in log.calls if c["epoch"] == epoch and c["purpose"] not in others]
            yield _share(calls, log.groups[epoch], prices)


def _judging(log: _Log, prices: Prices) -> Iterator[UnitUse]:
    judged = Counter(r["epoch"] for r in log.rollouts if r["rollout_id"] in log.judged)
    for epoch, number in sorted(judged.items()):
        calls = [c for c in log.calls if c["epoch"] == epoch and c["purpose"] == "judge"]
        yield _share(calls, number, prices)


def _playing(header: Json, log: _Log, prices: Prices) -> Iterator[UnitUse]:
    played = {scenario["id"] for scenario in header["scenarios"] if scenario.get("user") is not None}
    calls: dict[str, list[Json]] = defaultdict(list)
    for call in log.calls:
        if call["purpose"] == "user":
            calls[call["key"].partition(".user.")[0]].append(call)
    for rollout in log.rollouts:
        if rollout["scenario_id"] in played and rollout["frames"]:
            name = rollout["rollout_id"].removeprefix(f"{rollout['run_id']}.")
            yield _share(calls[name], 1, prices)


def _share(calls: list[Json], units: int, prices: Prices) -> UnitUse:
    """Return what the calls used, divided among units of work; one of unknown cost leaves it unknown."""
    costs = [_cost(call, prices.get(call["model"])) for call in calls]
    known = [cost for cost in costs if cost is not None]
    usages = [call["usage"] for call in calls if call["usage"] is not None]
    tokens: int = sum(usage["prompt"] + usage["completion"] for usage in usages)
    return UnitUse(
        len(calls) / units, tokens / units, sum(known) / units if len(known) == len(costs) else None
    )


def _cost(call: Any, price: Price | None) -> float | None:
    if price is not None and call["usage"] is not None:
        return price.cost(Usage(**call["usage"]))
    usd: float | None = call["cost_usd"]
    return 0.0 if usd is None and call["error"] is not None else usd
