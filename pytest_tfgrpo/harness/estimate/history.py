"""History: what earlier runs of a task used, read from their journals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Json, ModelCall, Rollout, Run
from pytest_tfgrpo.harness.estimate.ranges import Use
from pytest_tfgrpo.harness.job import Job
from pytest_tfgrpo.harness.journal import read
from pytest_tfgrpo.harness.runs import load_run
from pytest_tfgrpo.llm.prices import Price

RUNS = 3
"""The newest runs with the same actor are read."""
LOOKED_AT = 50
MAX_BYTES = 200_000_000
"""A larger journal takes too long to read for an estimate."""


@dataclass(kw_only=True, slots=True)
class History:
    """What earlier runs used, in units of work."""

    runs: list[str] = field(default_factory=list)
    """Their ids, newest first."""
    rollouts: dict[str, list[Use]] = field(default_factory=dict)
    """Use of each rollout, by domain."""
    learning: list[Use] = field(default_factory=list)
    """Use of each training epoch, by group of it."""
    judge: list[Use] = field(default_factory=list)
    """Use of the judge on each phase, by rollout judged."""


def history_of(job: Job, folder: Path | None) -> History:
    """Return what the runs in `folder` used whose actor has the same name.

    Journals that cannot be read are passed over. Learning and judging count where the same models did it.
    Costs are at the prices of today where tokens by kind and a price are known.
    """
    history = History()
    prices = {name: getattr(model, "price", None) for name, model in job.models.items()}
    for run in _runs(job, folder):
        history.runs.append(run.run_id)
        _take_rollouts(history, run, prices.get(job.actor.name))
        if _same(run.identities, job.identities, "optimizer"):
            _take_learning(history, run, prices)
        if _same(run.identities, job.identities, "judge"):
            _take_judging(history, run, prices)
    return history


def _runs(job: Job, folder: Path | None) -> Iterator[Run]:
    if folder is None:
        return
    found = 0
    paths = sorted(folder.glob(f"*/{JOURNAL}"), reverse=True)[:LOOKED_AT]
    for path in paths:
        try:
            first = next(read(path), None)
            known = {} if first is None else first.data.get("identities", {})
            if not _same(known, job.identities, "actor") or path.stat().st_size > MAX_BYTES:
                continue
            run = load_run(path.parent)
        except (TfgrpoError, OSError, AttributeError):
            continue
        if any(result.groups for result in run.phases):
            yield run
            found += 1
        if found == RUNS:
            return


def _same(one: Json, other: Json, role: str) -> bool:
    """Return whether a role is taken by the same one, and its model the same, by name."""
    mine, theirs = one.get(role), other.get(role)
    if not isinstance(mine, dict) or not isinstance(theirs, dict):
        return False
    models = [who.get("identity", {}).get("model") for who in (mine, theirs)]
    return mine.get("name") == theirs.get("name") and (role == "actor" or models[0] == models[1])


def _take_rollouts(history: History, run: Run, price: Price | None) -> None:
    for group in (group for result in run.phases for group in result.groups):
        for rollout in group.rollouts:
            if rollout.tokens or rollout.status != "error":  # else the provider was away
                history.rollouts.setdefault(group.domain, []).append(_use(rollout, price))


def _use(rollout: Rollout, price: Price | None) -> Use:
    calls = [frame for frame in rollout.frames if frame.kind == "model"]
    usages = [frame.usage for frame in calls if frame.usage is not None]
    usd = rollout.cost_usd
    if price is not None and calls and len(usages) == len(calls):
        usd = sum(price.cost(usage) for usage in usages)
    return Use(max(1, len(calls)), rollout.tokens, usd)


def _take_learning(history: History, run: Run, prices: dict[str, Price | None]) -> None:
    for result in run.phases:
        if result.revision is not None and result.groups:
            calls = [call for call in result.calls if call.purpose != "judge"]
            history.learning.append(_share(calls, len(result.groups), prices))


def _take_judging(history: History, run: Run, prices: dict[str, Price | None]) -> None:
    for result in run.phases:
        judged = sum(r.opinion is not None for group in result.groups for r in group.rollouts)
        if judged and result.status == "complete":
            calls = [call for call in result.calls if call.purpose == "judge"]
            history.judge.append(_share(calls, judged, prices))


def _share(calls: list[ModelCall], units: int, prices: dict[str, Price | None]) -> Use:
    """Return what the calls used, divided among units of work; one of unknown cost leaves it unknown."""
    costs = [_cost(call, prices.get(call.model)) for call in calls]
    known = [cost for cost in costs if cost is not None]
    return Use(
        len(calls) / units,
        sum(call.tokens for call in calls) / units,
        sum(known) / units if len(known) == len(costs) else None,
    )


def _cost(call: ModelCall, price: Price | None) -> float | None:
    if price is not None and call.usage is not None:
        return price.cost(call.usage)
    return 0.0 if call.error is not None and call.cost_usd is None else call.cost_usd
