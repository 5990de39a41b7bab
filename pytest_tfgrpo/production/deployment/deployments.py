"""Transitions of what is served: each is one change of one row, with the events that it owes.

Where several processes change it at once, each change starts from what the one before left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import RevisionConflict, StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import (
    DeployDecision,
    Transition,
    transition_events,
)
from pytest_tfgrpo.production.deployment.plan import AT_ONCE, ramp_plan
from pytest_tfgrpo.production.deployment.serving import ROW, Ramp, Serving, serving_of
from pytest_tfgrpo.production.deployment.states import DeployTrigger
from pytest_tfgrpo.production.view.view import FEEDBACKS, REWARDS, TRAJECTORIES
from pytest_tfgrpo.storage.event_store import STATE, TablePut


class ServingChange(NamedTuple):
    """What a change leads to; without transitions nothing changes."""

    serving: Serving
    transitions: Sequence[Transition] = ()
    ramp: Ramp | None = None
    """The deployment that the transitions belong to."""


class ChangeTime(NamedTuple):
    """When a change is made."""

    decision: DeployDecision
    unique: str
    """What no other change has."""
    run: int
    """Sequence of the newest run on the bus."""
    said: tuple[int, int]
    """Sequences of the newest feedback and reward."""


BuildChange: TypeAlias = Callable[[Serving, ChangeTime], ServingChange]
"""From what is served; raises StoreError."""


class Deployments:
    """What is served, for several processes. Every method raises BusError and StoreError."""

    def __init__(self, bus: Bus, endpoint: str = "") -> None:
        """`endpoint` is the URL where users meet the versions, for the events; empty: nobody knows it."""
        self._bus, self._rows, self._endpoint = bus, bus.table(STATE), endpoint

    def serving(self) -> Serving:
        """Return what is served."""
        return serving_of(self._rows.get(ROW)[0])

    def unchanged(self) -> tuple[Serving, TablePut]:
        """Return what is served, and what fails, beside what is published, once that is something else."""
        value, revision = self._rows.get(ROW)
        serving = serving_of(value)
        return serving, TablePut(key=ROW, value=value or serving.encode(), revision=revision)

    def start(
        self,
        candidate: DeployCandidate,
        live: DeployCandidate,
        decision: DeployDecision,
        *,
        override: bool = False,
        at_once: bool = False,
    ) -> Serving:
        """Begin the ramp of a version; `live` describes the one that it is to replace.

        `override` is a person's word that it starts though decision 35 does not hold, and `at_once` that it
        takes all sessions but the hold-out. Raises StoreError where another ramp is on, it may not start, or
        somebody decided of it since it was read.
        """

        def build(serving: Serving, now: ChangeTime) -> ServingChange:
            return _started(serving, candidate, live, now, override, at_once)

        return self._change(build, decision, candidate.row)

    def advance(self, version: str, decision: DeployDecision, seen: Ramp | None = None) -> Serving:
        """Take the next step of a ramp, after the last of which its version is live; or end its hold.

        With `seen` nothing changes where the ramp is not that one any more. Raises StoreError without a ramp.
        """

        def build(serving: Serving, now: ChangeTime) -> ServingChange:
            ramp = _ramp_of(serving, version)
            return ServingChange(serving) if seen not in (None, ramp) else _advanced(serving, ramp, now)

        return self._change(build, decision)

    def hold(self, version: str, decision: DeployDecision, seen: Ramp | None = None) -> Serving:
        """Stop a ramp at its share, until someone lets it go on; see `advance`."""

        def build(serving: Serving, now: ChangeTime) -> ServingChange:
            ramp, by, reason = _ramp_of(serving, version), now.decision.by, now.decision.reason
            if seen not in (None, ramp):
                return ServingChange(serving)
            held = replace(_since(ramp, now), held_by=by, held_for=reason)
            return _moved(replace(serving, ramp=held), (version, "hold"), ramp=held)

        return self._change(build, decision)

    def roll_back(self, version: str, decision: DeployDecision, seen: Ramp | None = None) -> Serving:
        """Take a version back at once; one that was rolled back already stays so.

        With `seen` nothing changes where another deployment is on. Raises StoreError where the version is not
        served, or there was none before it.
        """

        def build(serving: Serving, now: ChangeTime) -> ServingChange:
            on = serving.ramp or serving.deployed
            if seen is not None and (on is None or on.deployment != seen.deployment):
                return ServingChange(serving)
            return _rolled_back(serving, version, now.decision)

        return self._change(build, decision)

    def withdraw(self, version: str, decision: DeployDecision) -> Serving:
        """Roll an unsafe version back; where it is live, first the ramp that is measured against it.

        Nothing changes where it is not served, or is live and none was before it.
        """
        serving = self.serving()
        ramp = serving.ramp
        if ramp is not None and ramp.version == version:
            return self.roll_back(version, decision, ramp)
        deployed = serving.deployed
        if version != serving.live or deployed is None or not serving.previous:
            return serving
        if ramp is not None:
            reason = f"{version}, which it is measured against, is rolled back: {decision.reason}"
            self.roll_back(ramp.version, replace(decision, reason=reason, evidence={}), ramp)
        return self.roll_back(version, decision, deployed)

    def _change(
        self, build: BuildChange, decision: DeployDecision, beside: TablePut | None = None
    ) -> Serving:
        """Make a change; `beside` is a row that it rests on, which must be as it was read."""
        while True:
            value, revision = self._rows.get(ROW)
            before = serving_of(value)
            begun = before.since if before.ramp is None else before.ramp.since
            decision = replace(decision, at=max(decision.at, begun))  # a clock may go back
            run, *said = (self._bus.last(name) for name in (TRAJECTORIES, FEEDBACKS, REWARDS))
            change = build(before, ChangeTime(decision, str(revision), run, (said[0], said[1])))
            if not change.transitions or change.ramp is None:
                return before
            events = [
                event
                for transition in change.transitions
                for event in transition_events(
                    change.serving, transition, change.ramp, decision, revision, self._endpoint
                )
            ]
            kept = {
                name: known for name, known in change.serving.payloads.items() if name in change.serving.used
            }
            after = replace(change.serving, payloads=kept)
            rows = [beside] if beside is not None else []  # first, as who rejects it writes it last
            try:
                self._bus.publish(events, [*rows, TablePut(key=ROW, value=after.encode(), revision=revision)])
            except RevisionConflict as error:
                if beside is not None and self._rows.get(beside.key)[1] != beside.revision:
                    raise StoreError(
                        f"somebody decided of {beside.key.removeprefix('policy.')} meanwhile; nothing is "
                        "changed: look at it again with `tfgrpo loop versions list`"
                    ) from error
                continue
            return after


def _moved(after: Serving, *moves: tuple[str, DeployTrigger], ramp: Ramp) -> ServingChange:
    """Return the change in which versions take transitions, one after the other; raises StoreError."""
    states, transitions = dict(after.states), []
    for version, trigger in moves:
        transition = Transition(version, states[version], trigger)
        state = transition.state
        if state is None:
            raise StoreError(f"version {version} is {states[version].replace('_', ' ')}; nothing is changed")
        states[version] = state
        transitions.append(transition)
    return ServingChange(replace(after, states=states), transitions, ramp)


def _ramp_of(serving: Serving, version: str) -> Ramp:
    ramp = serving.ramp
    if ramp is None or ramp.version != version:
        state = serving.states.get(version)
        there = f"version {version} {f'is {state}' if state else 'was never deployed'}".replace("_", " ")
        now = f"the ramp is that of {ramp.version}" if ramp else "no version ramps now"
        raise StoreError(f"{there}; {now}")
    return ramp


def _started(
    serving: Serving,
    candidate: DeployCandidate,
    live: DeployCandidate,
    now: ChangeTime,
    override: bool,
    at_once: bool,
) -> ServingChange:
    version, decision = candidate.version, now.decision
    if serving.ramp is not None or version == serving.live:
        on = f"version {serving.ramp.version} ramps" if serving.ramp else f"version {version} is live already"
        raise StoreError(f"{on}; nothing is changed")
    if not candidate.deployable and not override:
        raise StoreError(
            f"version {version} has not passed its validation; only a person's emergency override deploys it"
        )
    if serving.states.get(version) == "rolled_back" and not decision.by:
        raise StoreError(f"version {version} was rolled back; only a person lets it ramp again")
    plan = AT_ONCE if at_once else ramp_plan(candidate)
    ramp = Ramp(
        deployment=derived_id("deployment", candidate.job, version, now.unique),
        version=version,
        strategy=plan.strategy,
        shares=plan.shares,
        waits_min=plan.waits_min,
        began=(decision.at,),
        since=decision.at,
        by=decision.by or candidate.approved_by,
        step_positions=(now.run,),
        since_position=now.run,
        said_positions=now.said,
    )
    payloads = {**serving.payloads, version: candidate.payload()}
    if live.model_info or live.version not in payloads:  # its files may not be readable any more
        payloads[live.version] = live.payload()
    begun = replace(
        serving,
        ramp=ramp,
        states={version: candidate.start, **serving.states},
        payloads=payloads,
    )
    return _moved(begun, (version, "override" if override else "start"), ramp=ramp)


def _since(ramp: Ramp, now: ChangeTime) -> Ramp:
    return replace(ramp, since=now.decision.at, since_position=now.run)


def _advanced(serving: Serving, ramp: Ramp, now: ChangeTime) -> ServingChange:
    version, at = ramp.version, now.decision.at
    if serving.states[version] == "held":
        freed = replace(_since(ramp, now), held_by="", held_for="")
        return _moved(replace(serving, ramp=freed), (version, "resume"), ramp=freed)
    if ramp.step + 1 < len(ramp.shares):
        positions = (*ramp.step_positions, now.run) if ramp.step_positions else ()
        further = replace(_since(ramp, now), began=(*ramp.began, at), step_positions=positions)
        return _moved(replace(serving, ramp=further), (version, "advance"), ramp=further)
    after = replace(serving, live=version, deployed=ramp, since=at, previous=serving.live, ramp=None)
    return _moved(after, (version, "finish"), (serving.live, "retire"), ramp=ramp)


def _rolled_back(serving: Serving, version: str, decision: DeployDecision) -> ServingChange:
    if serving.states.get(version) == "rolled_back":
        return ServingChange(serving)
    ramp = serving.ramp
    if ramp is not None and ramp.version == version:
        return _moved(replace(serving, ramp=None), (version, "roll_back"), ramp=ramp)
    if version != serving.live or serving.deployed is None or not serving.previous:
        raise StoreError(
            f"version {version} is not one that can be rolled back: live is {serving.live}, "
            f"{f'and before it was {serving.previous}' if serving.previous else 'and none was before it'}"
        )
    if ramp is not None:
        raise StoreError(f"version {ramp.version} ramps against {version}; roll that back first")
    after = replace(serving, live=serving.previous, since=decision.at, previous="", deployed=None)
    moves: tuple[tuple[str, DeployTrigger], ...] = ((version, "roll_back"), (serving.previous, "restore"))
    return _moved(after, *moves, ramp=serving.deployed)
