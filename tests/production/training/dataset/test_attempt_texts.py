"""What becomes of a trajectory that is too long to learn from whole."""

from typing import Any

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
