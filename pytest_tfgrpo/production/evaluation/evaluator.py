"""Computes rewards: one process at a time, from the streams alone, so that a kill changes none of them.

Events count in the order of their arrival over all streams. Rewards are published together with how far the
evaluator is. Where the bus cannot do both at once, rewards that are ahead are known by their ids.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace

from pytest_tfgrpo.core.events import REWARD, derived_id
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.evaluation.inputs import (
    INPUTS,
    EvaluatorInput,
    EvaluatorState,
    claims_of,
    decode_state,
    newest_reward,
    next_inputs,
    refused_letter,
    trajectory_of,
    waited_enough,
)
from pytest_tfgrpo.production.evaluation.kept_history import KeptHistory
from pytest_tfgrpo.production.rewards.components import FurtherComponent, further_claims
from pytest_tfgrpo.production.rewards.evidence import RewardClaim, RewardEvidence, gather
from pytest_tfgrpo.production.rewards.rewards import WEIGHTS, TrajectoryReward, reward
from pytest_tfgrpo.production.view.rows import slim_reward
from pytest_tfgrpo.production.view.view import REWARDS, TRAJECTORIES, LoopView, event_at
from pytest_tfgrpo.storage.event_store import STATE, BusEvent
from pytest_tfgrpo.storage.lease import TTL_S, Lease, lease_state

JOB = "evaluator"
SETTLE_S = 1.0
"""How long an event waits for those before it on a bus whose streams are not stored in one order."""
WAIT_H = 24.0
"""How long feedback waits for its trajectory."""
MOST_COMPONENTS = 60
"""Components of one reward; what others claim beyond that does not count."""
_AT_ONCE = 512
"""Events whose rewards are published together."""
_RECENT = 4096
"""Rewards that are taken back where their trajectories were forgotten while they were in hand."""
_encoded = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardParts:
    """What a reward is made of."""

    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    """Of the components that count, by name."""
    further: Mapping[str, FurtherComponent] = field(default_factory=dict)
    """Components that a project adds, by name."""


class ArrivalWatermark:
    """Where streams are not stored in one order, an event waits for those that arrived before it."""

    def __init__(self, view: LoopView, settle_s: float, clock: Callable[[], float]) -> None:
        """An event waits `settle_s`."""
        self.settle_s = settle_s
        self._view, self._clock = view, clock
        self._seen: deque[tuple[float, float]] = deque()
        """When the newest arrival was seen, and which."""
        self._settled = float("-inf")

    def read(self) -> float:
        """Return the time of arrival up to which nothing can come any more that arrived before."""
        now = self._clock()
        marks = ", ".join("?" for _ in INPUTS)
        newest = self._view.rows(f"SELECT max(at) FROM streams WHERE name IN ({marks})", INPUTS)[0][0]
        if newest is not None and (not self._seen or self._seen[-1][1] < newest):
            self._seen.append((now, newest))
        while self._seen and self._seen[0][0] <= now - self.settle_s:
            self._settled = self._seen.popleft()[1]
        return self._settled


class Evaluator:
    """Publishes rewards, and their revisions, while it holds the lease; for one thread."""

    def __init__(
        self,
        bus: Bus,
        view: LoopView,
        owner: str,
        *,
        parts: RewardParts | None = None,
        settle_s: float | None = None,
        wait_h: float = WAIT_H,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`owner` names this process alone; `ttl_s` is how long another one waits once it is gone.

        An event waits `settle_s` for those of other streams that arrived before it and are not seen yet;
        by default as long as the bus needs.
        """
        self._bus, self._view = bus, view
        self._parts = parts or RewardParts()
        self._watermark = ArrivalWatermark(
            view, (0.0 if bus.atomic else SETTLE_S) if settle_s is None else settle_s, clock
        )
        self._wait_h, self._wall = wait_h, wall
        self._lease = Lease(bus, JOB, owner, ttl_s=ttl_s, clock=clock)
        self._generation = -1
        """Of the view, when the history was built; -1: it has to be."""
        self._loaded = -1
        """Of the view, when it was last built."""
        self._recent: deque[tuple[str, str]] = deque(maxlen=_RECENT)
        """Events with rewards, and their trajectories."""
        self._state = EvaluatorState()
        self._kept = KeptHistory(bus, view, clock=clock)
        self._ahead: dict[str, Json] = {}
        """Rewards on the bus that the state does not know, by id."""
        self._pending: dict[str, Mapping[str, Json]] = {}
        """Newest rewards that the view does not have yet, by trajectory."""

    def step(self) -> int:
        """Take some events into account; return how many. Raises BusError, after which it goes on."""
        if not self._lease.hold():
            self._generation = -1
            return 0
        self._view.catch_up(self._bus)
        upto = self._watermark.read()
        if not self._watermark.settle_s:
            self._view.catch_up(self._bus)  # streams are read in turn: now all of them are, up to then
        if self._view.generation != self._generation:
            self._load()
        try:
            inputs = next_inputs(self._view, self._state, upto, _AT_ONCE)
            events = self._evaluate(inputs)
            count = len(inputs)
            if count < _AT_ONCE:
                before = self._wall() - self._wait_h * 3600.0
                found = waited_enough(self._bus, self._view, self._state, before, _AT_ONCE, self._wait_h)
                events += found[0]
                count += found[1]
            if self._view.generation != self._generation:  # what was read may be half of it
                self._generation = -1
                return 0
            if count:
                self._publish(events)
        except BaseException:
            self._generation = -1  # the history is ahead of what is published
            raise
        return count

    def close(self) -> None:
        """Let another process go on at once."""
        if self._lease.held:
            self._kept.save(self._state.ordinal, self._generation)
        self._lease.release()
        self._generation = -1

    def _publish(self, events: list[BusEvent]) -> None:
        self._lease.publish(events, self._state.encode())
        if not self._lease.held:
            self._generation = -1
        self._ahead = {
            key: one for key, one in self._ahead.items() if one["metadata"]["ordinal"] > self._state.ordinal
        }
        self._kept.save_if_due(self._state.ordinal, self._generation)

    def _load(self) -> None:
        """Begin where the last evaluator was."""
        generation = self._view.generation
        self._state = decode_state(self._lease.state)
        if self._recent and generation != self._loaded and not self._take_back(generation):
            return
        self._loaded = generation
        self._pending = {}
        self._kept.load(self._state.ordinal)
        self._ahead = {
            key: json.loads(slim)
            for key, slim in self._view.rows(
                "SELECT id, slim FROM rewards WHERE own AND ordinal > ?", (self._state.ordinal,)
            )
        }
        self._generation = generation

    def _take_back(self, generation: int) -> bool:
        """Overwrite rewards that were published while somebody else forgot their trajectories.

        Returns False where another process is just filling the view.
        """
        whole = self._view.position(TRAJECTORIES) >= self._state.trajectories
        gone = {
            event_id: key
            for event_id, key in self._recent
            if not self._view.rows("SELECT 1 FROM trajectories WHERE id = ?", (key,))
        }
        if not whole or self._view.generation != generation:
            return False
        if gone:
            self._bus.delete(REWARDS, gone.keys())
            with self._view.transaction() as db:
                rows = [(key,) for key in gone.values()]
                db.executemany("DELETE FROM rewards WHERE own AND trajectory_id = ?", rows)
            self._view.shrink()
        self._recent.clear()
        return True

    def _evaluate(self, inputs: Sequence[EvaluatorInput]) -> list[BusEvent]:
        self._pending = {}
        further = self._said_of(inputs)
        events = []
        for cause in inputs:
            self._state.see(INPUTS[cause.place], cause.sequence)
            known = bool(cause.trajectory_id)
            event = self._reward(cause, further) if known else refused_letter(self._bus, cause)
            if event is not None:
                events.append(event)
        return events

    def _reward(self, cause: EvaluatorInput, further: dict[str, Json]) -> BusEvent | None:
        """Return the reward that follows from an event; None where that is none, or was published."""
        trajectory = trajectory_of(self._view, cause.trajectory_id, self._state)
        if trajectory is None:
            return None
        key = trajectory["trajectory_id"]
        previous = self._pending.get(key) or newest_reward(self._view, key, self._state)
        scored = reward(
            self._evidence(trajectory, further), self._kept.history, self._parts.weights, previous
        )
        if not isinstance(scored, TrajectoryReward) or (
            previous is not None and not scored.differs(previous)
        ):
            return None
        self._state.ordinal += 1
        payload = scored.payload(cause.time)
        payload["metadata"]["ordinal"] = self._state.ordinal
        stored = self._ahead.get(payload["reward_id"])
        self._pending[key] = slim_reward(payload) if stored is None else stored
        self._kept.history.join(self._pending[key])
        event = _event(payload)
        self._recent.append((event.id, key))
        return None if stored is not None else event

    def _evidence(self, trajectory: Json, further: dict[str, Json]) -> RewardEvidence:
        key = trajectory["trajectory_id"]
        claims, problems = [], {}
        if self._parts.further:
            said = further.get(key) or self._said(key, trajectory["sequence"])
            claims, problems = [RewardClaim(**claim) for claim in said["claims"]], said["problems"]
        feedback, judged = claims_of(self._view, key, self._state)
        known = gather(trajectory, feedback, judged, claims, problems)
        if len(known.claims) <= MOST_COMPONENTS:
            return known
        names = sorted(known.claims, key=lambda name: (name not in self._parts.weights, name))
        return replace(known, claims={name: known.claims[name] for name in names[:MOST_COMPONENTS]})

    def _said_of(self, inputs: Sequence[EvaluatorInput]) -> dict[str, Json]:
        """Return what the further components say of new trajectories."""
        new = {one.sequence for one in inputs if INPUTS[one.place] == TRAJECTORIES and one.trajectory_id}
        if not self._parts.further or not new:
            return {}
        found = {}
        for event in self._bus.replay(TRAJECTORIES, since_sequence=min(new)):
            if event.sequence in new:
                payload = json.loads(event.data)
                found[payload["trajectory_id"].lower()] = self._ask(payload)
            if event.sequence >= max(new):
                break
        with self._view.transaction() as db:
            rows = [(key, json.dumps(said)) for key, said in found.items()]
            db.executemany("INSERT OR REPLACE INTO further VALUES (?, ?)", rows)
        return found

    def _said(self, trajectory_id: str, sequence: int) -> Json:
        """Return what the further components said of a trajectory, or say now."""
        row = self._view.rows("SELECT said FROM further WHERE id = ?", (trajectory_id,))
        said: Json = json.loads(row[0][0]) if row else None
        if said is not None and said["names"] == sorted(self._parts.further):
            return said
        event = event_at(self._bus, TRAJECTORIES, sequence)
        if event is None:
            return {"claims": [], "problems": {}}
        said = self._ask(json.loads(event.data))
        with self._view.transaction() as db:
            db.execute("INSERT OR REPLACE INTO further VALUES (?, ?)", (trajectory_id, json.dumps(said)))
        return said

    def _ask(self, payload: Json) -> Json:
        claims, problems = further_claims(payload, self._parts.further)
        return {
            "names": sorted(self._parts.further),
            "claims": [asdict(claim) for claim in claims],
            "problems": problems,
        }


def _event(payload: dict[str, Json]) -> BusEvent:
    return BusEvent(
        id=derived_id("reward-event", payload["reward_id"]),
        subject=REWARD,
        time=payload["timestamp"],
        data=_encoded(payload).encode("ascii"),
    )


def evaluator_lag(bus: Bus, view: LoopView) -> int:
    """Return how many events that the view has are not taken into account by the evaluator."""
    state = decode_state(lease_state(bus.table(STATE), JOB))
    counts = (
        ("SELECT count(*) FROM trajectories WHERE seq > ?", state.trajectories),
        ("SELECT count(*) FROM feedback WHERE seq > ?", state.feedback),
        ("SELECT count(*) FROM rewards WHERE own = 0 AND seq > ?", state.rewards),
    )
    return sum(int(view.rows(query, (since,))[0][0]) for query, since in counts)
