"""What becomes of a trajectory that is too long to learn from whole."""

from typing import Any

from pytest_tfgrpo.core.evidence import EvidenceAttempt
from pytest_tfgrpo.production.training.dataset.attempt_texts import attempt_of


def test_of_many_steps_the_first_and_the_last_are_kept() -> None:
    def turn(n: int) -> dict[str, Any]:
        return {"action": {"type": "tool_call", "tool_name": "look"}, "result": {"output": f"seen {n}"}}

    payload = {"turns": [turn(n) for n in range(1, 1001)], "trajectory_id": "A", "end_timestamp": None}
    steps = attempt_of(payload, 1.0).steps
    assert (steps[0].output, steps[-1].output) == ("seen 1", "seen 1000")
    half = len(steps) // 2
    assert steps[half - 1].output == f"seen {half}\n(... {1000 - 2 * half} steps left out ...)"
    assert steps[half].output == f"seen {1001 - half}"


def test_a_step_has_a_name_and_a_time_even_where_its_turn_has_none() -> None:
    turns = [
        {"action": {"type": "tool_call", "tool_name": "n" * 300}, "result": {"execution_time_ms": 7}},
        {"action": {"type": "tool_call"}, "result": {"execution_time_ms": -1, "error": "gone"}},
        {"action": "odd", "result": {"execution_time_ms": "3"}},
        {"action": {"type": "response"}, "result": {"output": "so far"}},
        "no turn",
        {"action": {"type": "response", "raw_response": "42"}, "result": None},
    ]
    found = attempt_of(
        {"turns": turns, "trajectory_id": "A", "end_timestamp": None, "metadata": {"model": "m"}}, 1.0
    )
    assert [(one.kind, one.name, one.latency_ms, one.error) for one in found.steps] == [
        ("tool", "n" * 256, 7.0, None),
        ("tool", "tool", 0.0, "gone"),
        ("tool", "tool", 0.0, None),
        ("model", "m", 0.0, None),
    ]
    assert (found.answer, found.steps[3].output, found.trajectory_id) == ("42", "so far", "a")


def test_an_attempt_that_is_too_long_has_shorter_texts() -> None:
    def attempt(calls: int, length: int) -> EvidenceAttempt:
        call = {"action": {"type": "tool_call", "tool_name": "t"}, "result": {"output": "x" * length}}
        return attempt_of({"turns": [call] * calls, "trajectory_id": "A", "end_timestamp": None}, 1.0)

    assert {len(one.output) for one in attempt(3, 16_384).steps} == {16_384}
    for calls, most in ((5, 4096), (20, 1024), (90, 256)):
        assert {len(one.output.encode()) <= most for one in attempt(calls, 20_000).steps} == {True}
        assert max(len(one.output) for one in attempt(calls, 20_000).steps) > most // 2
