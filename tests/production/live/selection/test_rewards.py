"""What runs were worth: decision 28, word by word."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import RewarderError, SettingError
from pytest_tfgrpo.production.live.records import RewardBreakdown, RunTrace
from pytest_tfgrpo.production.live.selection.rewards import (
    BUILT_IN,
    FAILURE,
    LEAST,
    FailureReward,
    ModuleReward,
    open_inference,
)

traces = st.builds(
    RunTrace,
    prompt_chars=st.integers(0, 400),
    reply_chars=st.integers(0, 2000),
    completed=st.booleans(),
    turns=st.integers(0, 9),
    tool_errors=st.integers(0, 5),
    blocked=st.booleans(),
    score=st.none() | st.floats(0, 1),
    cost_usd=st.none() | st.floats(0, 10),
    latency_ms=st.none() | st.floats(0, 1e6),
)


def run(**given: object) -> RunTrace:
    usual = {"prompt_chars": 10, "reply_chars": 10, "completed": True, "turns": 1, "tool_errors": 0}
    return RunTrace(**{**usual, "blocked": False, **given})  # type: ignore[arg-type]


def infer(spec: str, trace: RunTrace) -> RewardBreakdown:
    found = open_inference(spec).infer(trace)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("given", "components", "composite", "confidence"),
    [
        ({}, (0.5, 0, 0, 0.5, 0.25, 0), 1.0, 1.0),
        ({"turns": 3, "reply_chars": 20}, (0.5, 0, 0, 0.25, 0, 0), 0.75, 1.0),
        ({"turns": 4, "reply_chars": 25}, (0.5, 0, 0, 0.25, -0.125, 0), 0.625, 1.0),
        ({"turns": 5, "reply_chars": 90, "tool_errors": 1}, (0.5, 0, -0.25, 0, -0.25, 0), 0.0, 1.0),
        ({"completed": False, "tool_errors": 7, "turns": 9}, (0.5, -0.25, -0.5, 0, 0.25, 0), 0.0, 0.75),
        ({"prompt_chars": 0, "turns": 0}, (0.5, 0, 0, 0.5, 0, 0), 1.0, 0.75),
        ({"blocked": True}, (0.5, 0, 0, 0.5, 0.25, -1), -1.0, 1.0),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_c01_components_and_the_composite_are_those_of_the_table(
    version: int, given: dict[str, object], components: tuple[float, ...], composite: float, confidence: float
) -> None:
    found = infer(f"trace_v{version}", run(**given))
    names = ("completion", "session_completion", "reliability", "efficiency", "token_efficiency", "safety")
    assert dict(found.components) == dict(zip(names, components, strict=True))
    assert (found.composite, found.confidence) == (composite, confidence)
    assert found.strategy == f"trace_v{version}"


@pytest.mark.parametrize(("turns", "worth"), [(0, 0.5), (2, 0.5), (3, 0.25), (4, 0.25), (5, 0.0)])
def test_c01_few_turns_are_efficient(turns: int, worth: float) -> None:
    assert infer("trace_v2", run(turns=turns)).components["efficiency"] == worth


def test_c01_a_run_without_a_reply_is_efficient_only_in_the_first_version() -> None:
    empty = run(reply_chars=0, turns=0, completed=False, tool_errors=2)
    assert infer("trace_v1", empty).composite == pytest.approx(-0.25)
    assert infer("trace_v2", empty).composite == pytest.approx(-0.75)
    assert infer("trace_v2", empty).components["token_efficiency"] == 0
    assert infer("trace_v2", empty).confidence == 0.25


@reaches("no reward", "blocked", "a reward")
@given(traces, st.sampled_from(sorted(BUILT_IN)) | st.just("outcome_v1"))
def test_c01_unblocked_composites_are_bounded_and_equal_traces_get_equal_rewards(
    trace: RunTrace, spec: str
) -> None:
    found = open_inference(spec).infer(trace)
    assert found == open_inference(spec).infer(trace)
    if found is None:
        reached("no reward")
        assert spec == "outcome_v1"
        assert trace.score is None
        return
    reached("blocked" if trace.blocked else "a reward")
    assert trace.blocked or -0.75 <= found.composite <= 1
    assert all(math.isfinite(value) for value in found.components.values())
    assert 0 <= found.confidence <= 1
    assert 0 <= found.q <= 1


@reaches("blocked", "not blocked", "no score", "python")
@given(
    traces | traces.map(lambda trace: replace(trace, blocked=True)),
    st.sampled_from(["outcome_v1", "python"]) | st.sampled_from(sorted(BUILT_IN)),
)
def test_c02_the_composite_is_minus_1_if_and_only_if_safety_blocked(trace: RunTrace, spec: str) -> None:
    own = ModuleReward("python:m:f", lambda trace: {"speed": -0.75 if trace.turns else 1.0})
    found = (own if spec == "python" else open_inference(spec)).infer(trace)
    reached("blocked" if trace.blocked else "not blocked")
    reached("no score", trace.score is None)
    reached("python", spec == "python")
    assert found is not None or (not trace.blocked and trace.score is None)
    if found is not None:
        assert (found.composite == -1) == trace.blocked == found.hard_gate


@pytest.mark.parametrize(("score", "composite"), [(0.0, -0.75), (1.0, 1.0), (0.5, 0.125)])
def test_a_score_maps_onto_the_range_of_unblocked_runs(score: float, composite: float) -> None:
    assert infer("outcome_v1", run(score=score)).composite == composite
    assert infer("outcome_v1", run(score=score, blocked=True)).composite == -1


def test_a_run_without_score_has_no_outcome_which_is_not_0() -> None:
    assert open_inference("outcome_v1").infer(run()) is None
    blocked = infer("outcome_v1", run(blocked=True))
    assert (blocked.composite, blocked.confidence, blocked.components) == (-1, 1, {"safety": -1})


@pytest.mark.parametrize("wrong", [{"reply_chars": -1}, {"turns": -1}, {"score": 1.5}, {"score": math.nan}])
@pytest.mark.parametrize("spec", sorted(BUILT_IN))
def test_a_trace_that_no_run_has_is_refused(spec: str, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
        open_inference(spec).infer(run(**wrong))


def test_a_function_of_yours_sees_cost_and_latency(tmp_path: Path) -> None:
    (tmp_path / "worth_of_runs.py").write_text(
        "def worth(trace):\n    return {'cheap': 0.5 - trace.cost_usd, 'quick': -trace.latency_ms / 1e4}\n"
    )
    found = open_inference("python:worth_of_runs:worth", tmp_path).infer(run(cost_usd=0.25, latency_ms=500.0))
    assert found is not None
    assert found.strategy == "python:worth_of_runs:worth"
    assert found.components == {"cheap": 0.25, "quick": -0.05, "safety": 0.0}
    assert found.composite == pytest.approx(0.2)


def test_a_function_that_says_nothing_of_a_run_leaves_it_without_a_reward_unless_it_was_blocked() -> None:
    own = ModuleReward("python:m:f", lambda _: None)
    assert own.infer(run()) is None
    blocked = own.infer(run(blocked=True))
    assert blocked is not None
    assert (blocked.composite, blocked.components) == (-1.0, {"safety": -1.0})


@pytest.mark.parametrize("wrong", [2.0, -1.0, math.nan, "good", True, {"a": 0.5, "b": 0.6}])
def test_a_function_that_gives_no_reward_is_named(wrong: object) -> None:
    own = ModuleReward("python:m:f", lambda _trace: wrong)  # type: ignore[arg-type, return-value]
    with pytest.raises(RewarderError, match="'python:m:f' returned"):
        own.infer(run())


def test_a_function_that_raises_is_named_with_what_it_raised() -> None:
    own = ModuleReward("python:m:f", lambda trace: 1 / trace.turns)
    with pytest.raises(RewarderError, match="'python:m:f' failed: ZeroDivisionError: division by zero"):
        own.infer(run(turns=0))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("trace_v3", "no reward inference 'trace_v3'; .*did you mean 'trace_v"),
        ("python:worth", "no reward inference 'python:worth'"),
        ("python:no_such_module:worth", "cannot be used: .*no module 'no_such_module'"),
        ("python:math:no_such", "cannot be used"),
        ("python:math:pi", "which is no function"),
    ],
)
def test_a_strategy_that_there_is_not_is_a_setting_error(spec: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=message):
        open_inference(spec, tmp_path)


def failure_of(spec: str, trace: RunTrace) -> RewardBreakdown:
    found = FailureReward(open_inference(spec)).infer(trace)
    assert found is not None
    return found


@pytest.mark.parametrize("spec", sorted(BUILT_IN))
@pytest.mark.parametrize("given", [{}, {"reply_chars": 0, "turns": 0}, {"turns": 9, "tool_errors": 3}])
def test_a_run_that_failed_is_worth_its_score_and_the_least_without_one(
    spec: str, given: dict[str, object]
) -> None:
    failed = run(completed=False, **given)
    assert failure_of(spec, failed).composite == LEAST
    assert failure_of(spec, replace(failed, score=0.0)).composite == LEAST
    assert failure_of(spec, replace(failed, score=0.6)).composite == pytest.approx(0.3)
    parts = failure_of(spec, failed).components
    assert math.fsum(parts.values()) == pytest.approx(LEAST), "the components still say what makes the sum"
    assert FAILURE in parts
    blocked = failure_of(spec, replace(failed, blocked=True))
    assert (blocked.composite, blocked.hard_gate) == (-1, True)
    rest = [value for name, value in blocked.components.items() if name != "safety"]
    assert math.fsum(rest) == pytest.approx(LEAST), "what it was worth but for that"


def test_components_of_a_failed_run_are_still_told() -> None:
    failed = run(completed=False)
    inner = infer("trace_v2", failed)
    found = failure_of("trace_v2", failed).components
    assert {name: found[name] for name in inner.components} == inner.components
    assert found[FAILURE] == pytest.approx(LEAST - inner.composite)


@pytest.mark.parametrize("spec", sorted(BUILT_IN))
def test_a_run_that_came_to_its_end_has_the_reward_of_the_strategy(spec: str) -> None:
    inner = open_inference(spec)
    assert FailureReward(inner).name == inner.name
    for trace in (run(), run(score=0.4), run(blocked=True)):
        assert FailureReward(inner).infer(trace) == inner.infer(trace)


def test_a_function_of_yours_is_not_asked_for_a_run_that_failed() -> None:
    own = FailureReward(ModuleReward("python:m:f", lambda trace: 1 / trace.turns))
    found = own.infer(run(turns=0, completed=False))
    assert found is not None
    assert found.composite == LEAST
