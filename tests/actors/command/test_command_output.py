"""What a program printed: whatever is wrong with it, the calls in it were paid."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from pytest_tfgrpo.actors.command.command_output import trajectory_of
from pytest_tfgrpo.actors.command.running_program import RunningProgram
from pytest_tfgrpo.actors.events.claude import read_claude
from pytest_tfgrpo.actors.output import read_output
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError

FRAME = {"kind": "model", "name": "m", "tokens": 5, "cost_usd": 0.02}
LINE = json.dumps({"frame": FRAME})


def ended(stdout: str, status: int = 0, *, overflowed: bool = False) -> RunningProgram:
    fields = {"stdout": stdout.encode(), "stderr": b" why\n", "exit_code": status, "overflowed": overflowed}
    return cast("RunningProgram", type("Ended", (), {**fields, "stdout_max_bytes": 9000}))


@pytest.mark.parametrize(
    ("stdout", "status", "overflowed", "code", "message"),
    [
        (
            json.dumps({"answer": "x" * 1001}),
            0,
            False,
            "oversize",
            "the answer has 1001 bytes, more than 1000",
        ),
        (json.dumps({"answer": "x" * 1001}), 3, False, "crash", "the program ended with status 3; "),
        (json.dumps({"answer": 3}), 0, False, "garbage", "the answer must be a string, not 3"),
        (json.dumps({"answer": "3"}), 3, False, "crash", "the program ended with status 3; "),
        (json.dumps({"answer": "3"}), -9, False, "crash", "the program was killed by SIGKILL; "),
        (json.dumps({"answer": "3"}), 0, True, "oversize", "the program printed more than 9000 bytes"),
        ('{"frame": {"kind": "mo', 0, True, "oversize", "the program printed more than 9000 bytes"),
        ("", 0, False, "no_answer", "the program printed frames but no answer"),
        ("Traceback", 1, False, "crash", "the program ended with status 1; "),
        ("done", 0, False, "garbage", "line 2 is not "),
    ],
)
def test_an_output_that_cannot_be_used_keeps_the_calls_in_it(
    make_call: Any, stdout: str, status: int, overflowed: bool, code: str, message: str
) -> None:
    running = ended(f"{LINE}\n{stdout}\n", status, overflowed=overflowed)
    with pytest.raises(AgentFailure) as failed:
        trajectory_of(running, read_output, make_call(), 1.0)
    assert failed.value.code == code
    assert str(failed.value).startswith(message)
    assert overflowed or str(failed.value).endswith(" why")
    assert [(frame.name, frame.cost_usd) for frame in failed.value.frames] == [("m", 0.02)]


def test_a_program_that_was_not_set_up_says_what_it_printed_as_errors(make_call: Any) -> None:
    for status in (0, 3):
        with pytest.raises(ProviderError, match=r"why$") as failed:
            trajectory_of(ended("", status), read_claude, make_call(), 1.0)
        assert failed.value.code == "spawn"
