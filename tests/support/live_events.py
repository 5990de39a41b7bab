"""Live runs as an application reports them, and rules that are simple enough to foresee what they do."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.production.live.records import (
    ArmChoice,
    EventKind,
    GateState,
    LiveEvent,
    LiveRollout,
    LiveRules,
    LiveUpdate,
    RewardBreakdown,
    RunTrace,
)

Json = Any
ARMS = {"bare": "a" * 64, "learned": "b" * 64}


class Reporter:
    """Makes the events of one run, in order."""

    def __init__(self, run: str, *, owner: str = "", attempt: int = 1, at: float = 1000.0) -> None:
        self.run, self.owner, self.attempt, self.at = run, owner or f"{run}-owner", attempt, at
        self._seq = itertools.count()

    def event(self, kind: EventKind, seq: int | None = None, **data: Json) -> LiveEvent:
        number = next(self._seq) if seq is None else seq
        return LiveEvent(kind, self.run, self.owner, self.attempt, number, self.at + number, data)

    def start(self, **data: Json) -> LiveEvent:
        return self.event("start", **{"category": "billing", "control": False, "prompt": "Pay 7", **data})

    def choice(self, arm: str = "learned", **fields: Json) -> LiveEvent:
        choice = ArmChoice(
            point="config",
            place=0,
            arm=arm,
            arms=ARMS,
            probabilities={"bare": 0.25, "learned": 0.75},
            selector=0,
        )
        return self.event("choice", **to_wire(replace(choice, **fields)))

    def turn(self) -> LiveEvent:
        return self.event("turn")

    def tool(self, error: str | None = None) -> LiveEvent:
        return self.event("tool", name="search", error=error)

    def end(self, **data: Json) -> LiveEvent:
        known = {"status": "succeeded", "reason": "", "reply": "Paid", "score": None, "completed": True}
        sizes = {"prompt_chars": 5, "reply_chars": 4, "cost_usd": None, "latency_ms": 12.5}
        return self.event("end", **{**known, **sizes, **data})

    def whole(self, **end: Json) -> list[LiveEvent]:
        """Return a run with two turns, a choice and a tool that fails."""
        first = [self.start(), self.choice(), self.turn()]
        return [*first, self.tool("TimeoutError"), self.turn(), self.end(**end)]


def outcome(run: str, score: object, owner: str = "") -> LiveEvent:
    return LiveEvent("outcome", run, owner, 1, -1, 2000.0, {"score": score})


def runs(*names: str, **end: Json) -> list[LiveEvent]:
    """Return the events of whole runs, one run after the other."""
    return [event for name in names for event in Reporter(name).whole(**end)]


def by_turns(trace: RunTrace) -> RewardBreakdown | None:
    """Return .5 less .1 for each failure of a tool; -1 if blocked."""
    components = {"completion": 0.5 if trace.reply_chars else 0.0, "reliability": -0.1 * trace.tool_errors}
    composite = -1.0 if trace.blocked else sum(components.values())
    return RewardBreakdown(
        strategy="by_turns",
        composite=composite,
        components=components,
        confidence=0.75,
        hard_gate=trace.blocked,
    )


def by_score(trace: RunTrace) -> RewardBreakdown | None:
    """Return the score as a reward; None without one."""
    if trace.score is None:
        return None
    return RewardBreakdown(
        strategy="by_score",
        composite=1.75 * trace.score - 0.75,
        components={"score": 1.75 * trace.score - 0.75},
        confidence=1.0,
        hard_gate=False,
    )


def counting(rollouts: Sequence[LiveRollout], number: int, document: Json) -> tuple[LiveUpdate, Json]:
    """Use every rollout that has a reward, and learn their ids."""
    used = tuple(rollout.id for rollout in rollouts if rollout.reward is not None)
    report = LiveUpdate(
        number=0,
        at=0.0,
        executed=bool(used),
        reason="" if used else "no_trajectories",
        algorithm="ppo",
        strategy="by_turns",
        selector_before=number,
        selector_after=number,
        trajectories=len(used),
        samples=len(used),
        metrics={},
        probabilities_before={},
        probabilities_after={},
        left_out={"no_outcome": len(rollouts) - len(used)},
        used=used,
        spent=tuple(rollout.id for rollout in rollouts) if used else (),
    )
    return report, {"learned": (document or {"learned": 0})["learned"] + len(used)} if used else document


def failed(state: GateState, error: str, now: float) -> GateState:
    """Hold at the third failure in a row."""
    after = replace(state, streak=state.streak + 1, last_error=error)
    return replace(after, state="hold", reason="failures", since=now) if after.streak >= 3 else after


def ended(state: GateState, rollout: LiveRollout) -> GateState:
    """Remember whether the last runs were blocked, and hold at the third."""
    assert rollout.trace is not None
    blocked = (*state.blocked, rollout.trace.blocked)[-32:]
    if sum(blocked) >= 3:
        return replace(state, blocked=blocked, state="hold", reason="max_blocked")
    return replace(state, blocked=blocked)


def rewarded(state: GateState, rollout: LiveRollout) -> GateState:
    """Count the runs whose reward came late."""
    return replace(state, control={"late": state.control.get("late", 0.0) + 1})


def reset(state: GateState) -> GateState:
    return GateState(by="ada", since=5000.0)


RULES = LiveRules(
    infer=by_turns,
    ended=ended,
    rewarded=rewarded,
    failed=failed,
    succeeded=lambda state: replace(state, streak=0),
    update=counting,
)


def rules(**replaced: Callable[..., Any]) -> LiveRules:
    return replace(RULES, **replaced)


def until(condition: Callable[[], object], timeout_s: float = 100.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not become so"
        time.sleep(0.005)


def attributes(spans: Sequence[Any], name: str) -> Iterator[Mapping[str, Json]]:
    """Yield the data of the spans with this name."""
    return (span.data for span in spans if span.name == name)
