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


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (None, "the program was lost: the process that watched it was killed; "),
        (1, "the program ended with status 1; "),
        (-15, "the program was killed by SIGTERM; "),
        (-250, "the program was killed by signal 250; "),
    ],
)
def test_how_a_program_ended_is_said_though_it_answered(
    make_call: Any, status: int | None, said: str
) -> None:
    running = ended(f'{LINE}\n{{"answer": "3"}}\n', cast("int", status))
    with pytest.raises(AgentFailure) as failed:
        trajectory_of(running, read_output, make_call(), 1.0)
    assert str(failed.value) == f"{said}its stderr ends: why"
    assert (failed.value.code, len(failed.value.frames)) == ("crash", 1)


def test_a_program_that_printed_nothing_as_errors_has_no_such_end(make_call: Any) -> None:
    running = ended("")
    running.stderr = bytearray(b" \n")
    with pytest.raises(AgentFailure, match=r"printed no answer$") as failed:
        trajectory_of(running, read_output, make_call(), 1.0)
    assert failed.value.code == "no_answer"


def test_what_a_program_reports_of_its_provider_is_told_as_it_is(make_call: Any) -> None:
    for status in (0, 3):
        with pytest.raises(ProviderError, match=r"^the program reported: out of quota$") as failed:
            trajectory_of(
                ended(f'{LINE}\n{{"error": "out of quota"}}\n', status), read_output, make_call(), 1.0
            )
        assert failed.value.code == "provider"
        assert len(failed.value.frames) == 1
