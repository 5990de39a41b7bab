"""Deployments as their events tell them, with what each step rested on, and decisions of people.

Events may come from anyone who may publish: what is not as expected is unknown, and fails nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.tallies import ArmPair
from pytest_tfgrpo.production.view.view import DEPLOYMENTS
from pytest_tfgrpo.storage.event_store import BusEvent

AUDIT = "RL_AUDIT"
MOST = 2000
"""Transitions that are shown, the newest ones; so many decisions too."""
_DEPLOYED, _DECIDED = "deployment_", "policy_"
"""How the actions of the audit start that speak of versions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepEvidence:
    """Both arms when a step was decided; None where the event does not say."""

    sessions: ArmPair | None = None
    """With a reward, since the ramp began."""
    since_step: ArmPair | None = None
    difference: float | None = None
    """Mean reward, canary minus control."""
    low: float | None = None
    high: float | None = None
    missed_drop: float | None = None
    """The drop of the mean reward that would still have been missed."""
    error_rate: ArmPair | None = None
    blocked: ArmPair | None = None
    violations: float | None = None
    p95_s: ArmPair | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeployStep:
    """One transition of a version."""

    at: str
    version: str
    state: str
    share: float | None
    """Percent of new sessions."""
    by: str
    """The person, or the loop."""
    reason: str
    action: str
    """What led to it, as the audit has it: start, override, advance, ...; empty where it does not."""
    evidence: StepEvidence | None
    """None where the event has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownDeployment:
    """The way of one version, and what its start rested on."""

    id: str
    version: str
    strategy: str
    previous: str
    """What it was to replace."""
    approval: str
    checks: Mapping[str, bool]
    """What its validation found, by name."""
    samples: float | None
    final_reward: float | None
    job: str
    by_hand: bool
    steps: tuple[DeployStep, ...]
    """Oldest first."""

    @property
    def state(self) -> str:
        """Where its version stands after it."""
        return [step.state for step in self.steps if step.version == self.version][-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonDecision:
    """What a person decided of a version beside its deployment."""

    at: str
    action: str
    version: str
    by: str
    reason: str
    was: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Transitions:
    """All that the streams say of deployments."""

    deployments: tuple[ShownDeployment, ...] = ()
    """In the order in which they began."""
    decisions: tuple[PersonDecision, ...] = ()
    """Oldest first."""
    older: int = 0
    """Transitions that are not shown."""
    unreadable: int = 0
    """Events that are none."""

    @property
    def steps(self) -> list[DeployStep]:
        """All transitions of versions on their way, oldest first."""
        return sorted(
            (step for one in self.deployments for step in one.steps if step.version == one.version),
            key=lambda step: step.at,
        )


def transitions_of(bus: Bus) -> Transitions:
    """Return what the streams say of deployments; raises BusError."""
    unreadable, total = 0, 0
    newest: deque[tuple[BusEvent, Mapping[str, Json]]] = deque(maxlen=MOST)
    for event in bus.replay(DEPLOYMENTS):
        data = _read(event)
        if text_of(table_of(data.get("model_info")).get("model_id")):
            total += 1
            newest.append((event, data))
        else:
            unreadable += 1
    actions: dict[tuple[str, str], deque[str]] = defaultdict(deque)
    decisions: deque[PersonDecision] = deque(maxlen=MOST)
    for event in bus.replay(AUDIT):
        said = _read(event)
        action, version = text_of(said.get("action")), text_of(said.get("what"))
        if action.startswith(_DEPLOYED):
            actions[event.time, version].append(action.removeprefix(_DEPLOYED))
        elif action.startswith(_DECIDED):
            decisions.append(_decision(event.time, action.removeprefix(_DECIDED), version, said))
    return Transitions(
        deployments=tuple(_deployments(newest, actions)),
        decisions=tuple(decisions),
        older=total - len(newest),
        unreadable=unreadable,
    )


def _read(event: BusEvent) -> Mapping[str, Json]:
    try:
        return table_of(load_json(event.data))
    except ValueError:
        return {}


def _decision(at: str, action: str, version: str, said: Mapping[str, Json]) -> PersonDecision:
    more = [f"safety {'passed' if said['safe'] else 'failed'}"] if isinstance(said.get("safe"), bool) else []
    score = number_of(said.get("score"))
    more += [] if score is None else [f"human evaluation {score:g}"]
    return PersonDecision(
        at=at,
        action=", ".join([action.replace("_", " "), *more]),
        version=version,
        by=text_of(said.get("actor")) or text_of(said.get("ref")),  # of records before they had an actor
        reason=text_of(said.get("reason")),
        was=text_of(said.get("was")).replace("_", " "),
    )


def _deployments(
    events: Iterable[tuple[BusEvent, Mapping[str, Json]]], actions: Mapping[tuple[str, str], deque[str]]
) -> Iterator[ShownDeployment]:
    parts: dict[str, list[Mapping[str, Json]]] = defaultdict(list)
    steps: dict[str, list[DeployStep]] = defaultdict(list)
    for event, data in events:
        key = text_of(data.get("deployment_id"))
        parts[key].append(data)
        steps[key].append(_step(event, data, actions))
    for key, found in parts.items():
        first = found[0]
        info, metadata = table_of(first.get("model_info")), table_of(first.get("metadata"))
        checks = table_of(first.get("validation_results"))
        yield ShownDeployment(
            id=key,
            version=steps[key][0].version,
            strategy=text_of(table_of(first.get("deployment_config")).get("rollout_strategy")),
            previous=text_of(metadata.get("previous_model")),
            approval=text_of(metadata.get("approval_status")).replace("_", " "),
            checks={name: value for name, value in checks.items() if isinstance(value, bool)},
            samples=number_of(info.get("training_samples")),
            final_reward=number_of(info.get("final_reward")),
            job=text_of(first.get("training_job_id")),
            by_hand=metadata.get("made_by_hand") is True,
            steps=tuple(steps[key]),
        )


def _step(
    event: BusEvent, data: Mapping[str, Json], actions: Mapping[tuple[str, str], deque[str]]
) -> DeployStep:
    version = text_of(table_of(data.get("model_info")).get("model_id"))
    metadata = table_of(data.get("metadata"))
    known = actions.get((event.time, version))
    return DeployStep(
        at=utc_time(data.get("timestamp")) or event.time,
        version=version,
        state=text_of(metadata.get("state")),
        share=number_of(table_of(data.get("deployment_config")).get("traffic_percentage")),
        by=text_of(metadata.get("deployed_by")),
        reason=text_of(metadata.get("reason")),
        action=known.popleft() if known else "",
        evidence=_evidence(table_of(metadata.get("evidence"))),
    )


def _evidence(found: Mapping[str, Json]) -> StepEvidence | None:
    if not found:
        return None
    reward = table_of(found.get("reward"))
    return StepEvidence(
        sessions=_pair(found.get("sessions")),
        since_step=_pair(found.get("since_step")),
        difference=number_of(reward.get("difference")),
        low=number_of(reward.get("low")),
        high=number_of(reward.get("high")),
        missed_drop=number_of(reward.get("missed_drop")),
        error_rate=_pair(found.get("error_rate")),
        blocked=_pair(found.get("blocked")),
        violations=number_of(found.get("violations")),
        p95_s=_pair(found.get("p95_s")),
    )


def _pair(value: Json) -> ArmPair | None:
    """Return a figure of both arms; None where one is missing."""
    canary, control = (number_of(table_of(value).get(arm)) for arm in ArmPair._fields)
    return None if canary is None or control is None else ArmPair(canary, control)


def number_of(value: Json) -> float | None:
    """Return a finite number; None for anything else."""
    try:
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return float(value) if good else None
    except OverflowError:
        return None


def text_of(value: Json) -> str:
    """Return a text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def table_of(value: Json) -> Mapping[str, Json]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}
