"""What the tests of metrics/test_costs.py share with the slow ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from pytest_tfgrpo.core.records import Frame, ModelCall, Run, Trajectory, Usage
from support.builders import make_frame

USAGE = Usage(prompt=100, completion=20, reasoning=5, cached=40)


def asked(name: str = "m-1", **changes: Any) -> Frame:
    fields: dict[str, Any] = {"kind": "model", "cost_usd": 0.01, "tokens": 120, "usage": USAGE}
    frame: Frame = make_frame(name, **fields | changes)
    return frame


def call(key: str = "e1.learn.t", **changes: Any) -> ModelCall:
    fields: dict[str, Any] = {"purpose": "learn", "epoch": 1, "subject": "t", "model": "openai:teacher"}
    fields |= {"fingerprint": "f", "prompt": "p", "usage": USAGE, "cost_usd": 0.02}
    return ModelCall(key=key, **fields | changes)


def with_rollouts(run: Run, *frames: Sequence[Frame]) -> Run:
    """Return a run whose first group consists of rollouts with these frames."""
    group = run.phases[0].groups[0]
    rollouts = tuple(
        replace(
            rollout,
            frames=tuple(own),
            tokens=sum(f.tokens for f in own),
            cost_usd=Trajectory(answer="", frames=tuple(own)).cost_usd,
        )
        for rollout, own in zip(group.rollouts, frames, strict=True)
    )
    return replace(run, phases=(replace(run.phases[0], groups=(replace(group, rollouts=rollouts),)),))


def with_calls(run: Run, *calls: ModelCall) -> Run:
    phases = [replace(p, calls=tuple(c for c in calls if c.epoch == p.phase.epoch)) for p in run.phases]
    return replace(run, phases=tuple(phases))


costs = st.none() | st.floats(0, 10)
frames = st.builds(
    asked,
    st.sampled_from(["m-1", "m-2"]),
    cost_usd=costs,
    tokens=st.integers(0, 10**6),
    error=st.none() | st.just("timeout"),
    usage=st.none() | st.just(USAGE),
)
calls = st.builds(
    call,
    st.uuids().map(str),
    purpose=st.sampled_from(["learn", "judge"]),
    epoch=st.integers(0, 2),
    cost_usd=costs,
    usage=st.none() | st.just(USAGE),
)
