"""Checks that ask a program: what is asked, and what its end comes to, with the program scripted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.scoring.checks import command, math
from pytest_tfgrpo.scoring.checks.command import Ending, words_of
from pytest_tfgrpo.scoring.checks.protocol import BadParam, Undecided
from pytest_tfgrpo.scoring.runners.isolation import IsolatedRun


def ends(monkeypatch: pytest.MonkeyPatch, ending: Ending | OSError) -> list[Any]:
    seen: list[Any] = []

    def run(*given: Any) -> Ending:
        seen.append(given)
        if isinstance(ending, OSError):
            raise ending
        return ending

    monkeypatch.setattr(command, "run_limited", run)
    return seen


def test_a_command_is_right_where_it_ends_as_expected(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = ends(monkeypatch, Ending(0, "fine"))
    assert judge("command", run="sh -c 'exit 0'").passed
    assert (seen[0][0], seen[0][2]) == (["sh", "-c", "exit 0"], 30)
    assert judge("command", run=["sh"], timeout_s=2).passed
    assert (seen[1][0], seen[1][2]) == (["sh"], 2)
    wrong = judge("command", run=["sh"], exit_code=3)
    assert (wrong.passed, wrong.credit) == (False, 0.0)
    assert wrong.reason == "'sh' ended with 0, expected 3; output ends 'fine'"
    ends(monkeypatch, Ending(3, "a" * 400 + "end"))
    assert judge("command", run=["sh"], exit_code=3).passed
    assert judge("command", run=["sh"]).reason.endswith(f"output ends {'a' * 297 + 'end'!r}")


def test_a_command_that_takes_too_long_has_no_credit_either_way(
    judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(monkeypatch, Ending(None, ""))
    for changes in ({}, {"not": True}):
        found = judge("command", run=["sh"], timeout_s=1.5, **changes)
        assert (found.passed, found.reason) == (False, "'sh' took more than 1.5 s")


def test_a_program_of_the_workspace_that_cannot_start_is_the_agents_fault_and_another_ours(
    judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(monkeypatch, FileNotFoundError(2, "No such file or directory", "go"))
    assert judge("command", run=["./go"]).reason == "'./go' cannot be started: No such file or directory"
    assert judge("command", run=["bin/go"]).credit == 0.0
    for argv in (["go"], ["/bin/go"]):
        with pytest.raises(
            CheckError, match="cannot be started: No such file or directory; install the program"
        ):
            judge("command", run=argv)


def test_in_a_sandbox_a_command_sees_the_workspace_and_may_fill_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def run(program: Any, *, timeout_s: float, output_max: int) -> IsolatedRun:
        seen.append((program, timeout_s, output_max))
        return IsolatedRun(code=5, output="x", elapsed_s=0.1, stopped="disk" if timeout_s == 1 else "")

    monkeypatch.setattr(command, "run_isolated", run)
    assert command._run_isolated(["sh", "a b"], tmp_path, 2) == Ending(5, "x")
    program, timeout_s, kept = seen[0]
    assert (program.argv, program.tree, timeout_s, kept) == (["sh", "a b"], tmp_path, 2, command.TAIL_BYTES)
    assert program.environment["HOME"] == str(tmp_path)
    with pytest.raises(Undecided, match="filled the disk"):
        command._run_isolated(["sh"], tmp_path, 1)


@pytest.mark.parametrize("line", ["", "a 'b", [], [""], ["a", "b\0"]])
def test_what_is_no_command_line_is_refused_by_its_key(line: Any) -> None:
    with pytest.raises(BadParam) as raised:
        words_of("run", line)
    assert raised.value.key == "run"
    assert words_of("run", "a 'b c'") == ["a", "b c"]
    assert words_of("run", ["a", ""]) == ["a", ""]


# mathematics


@pytest.mark.parametrize(
    ("reply", "negated", "passed", "reason"),
    [
        ({"found": True, "equal": True, "written": "5"}, False, True, ""),
        ({"found": True, "equal": False, "written": "6"}, False, False, "expected 5, got '6'"),
        ({"found": True, "equal": False, "written": "6"}, True, True, ""),
        ({"found": False}, False, False, "expected 5, found no mathematics in 'it is 5'"),
        ({"found": False}, True, True, ""),
        (math._Slow(), False, False, f"expected 5; reading 'it is 5' took more than {math.LIMIT_S:g} s"),
        (math._Slow(), True, False, f"expected 5; reading 'it is 5' took more than {math.LIMIT_S:g} s"),
        (math._Died(), True, False, "expected 5; reading 'it is 5' was too much for the reader"),
    ],
)
def test_what_the_reader_of_mathematics_replies_decides(
    judge: Any, monkeypatch: pytest.MonkeyPatch, reply: Any, negated: bool, passed: bool, reason: str
) -> None:
    def compare(params: Any, answer: str) -> Any:
        assert (params["value"], answer) == (5, "it is 5")
        if isinstance(reply, Exception):
            raise reply
        return reply

    monkeypatch.setattr(math, "_compare", compare)
    found = judge("math", "it is 5", value=5, **({"not": True} if negated else {}))
    assert found.passed is passed
    if reason:
        assert found.reason == reason


def test_a_value_that_kills_the_reader_is_the_fault_of_the_suite(
    judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(*_: Any) -> Any:
        raise math._DiedOfValue

    monkeypatch.setattr(math, "_compare", compare)
    with pytest.raises(CheckError, match="cannot use the value '9': it is too much for the reader"):
        judge("math", "1", value="9")


class Worker:
    """Stands in for a process that reads and compares."""

    made: list[Worker] = []  # noqa: RUF012 - each test begins with a new list
    faults: list[Exception | None] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.asked, self.ended, self.left = 0, False, 2
        self.fault = Worker.faults.pop(0) if Worker.faults else None
        Worker.made.append(self)

    @property
    def is_fit(self) -> bool:
        return self.left > 0

    def compare(self, params: Any, answer: str) -> Any:
        self.asked, self.left = self.asked + 1, self.left - 1
        if self.fault is not None:
            raise self.fault
        return {"found": True, "worker": Worker.made.index(self)}

    def end(self) -> None:
        self.ended = True


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> type[Worker]:
    monkeypatch.setattr(math, "_Worker", Worker)
    monkeypatch.setattr(math, "_idle", type(math._idle)())
    monkeypatch.setattr(Worker, "made", [])
    monkeypatch.setattr(Worker, "faults", [])
    return Worker


def test_a_reader_is_used_again_until_it_is_worn(workers: type[Worker]) -> None:
    assert [math._compare({}, "x")["worker"] for _ in range(3)] == [0, 0, 1]
    assert [worker.ended for worker in workers.made] == [True, False]
    assert list(math._idle) == [workers.made[1]]


def test_where_a_reader_dies_a_fresh_one_is_asked_once(workers: type[Worker]) -> None:
    workers.faults[:] = [math._Died(), None]
    assert math._compare({}, "x") == {"found": True, "worker": 1}
    assert [worker.ended for worker in workers.made] == [True, False]
    assert math._compare({}, "x")["worker"] == 1


@pytest.mark.parametrize("fault", [math._Slow(), CheckError("no value")])
def test_a_reader_that_is_slow_or_has_a_bad_value_is_asked_once(
    workers: type[Worker], fault: Exception
) -> None:
    workers.faults[:] = [fault]
    with pytest.raises(type(fault)):
        math._compare({}, "x")
    assert [(worker.asked, worker.ended) for worker in workers.made] == [(1, True)]
    assert not math._idle


def test_a_fresh_reader_is_no_one_that_lay_idle(workers: type[Worker]) -> None:
    math._idle.extend([Worker(), Worker()])
    workers.made[1].fault = math._Died()
    assert math._compare({}, "x")["worker"] == 2
    assert [worker.ended for worker in workers.made] == [True, True, False]


def test_values_in_latex_are_known_as_they_are_written_and_plain() -> None:
    def texts(value: Any) -> tuple[str, ...]:
        return math._texts(Check(kind="math", params={"value": value}))

    assert texts(r" $\boxed{\frac{1}{2}}$ ") == (r"$\boxed{\frac{1}{2}}$", r"\boxed{\frac{1}{2}}", "1/2")
    assert texts("x+1") == ("x+1",)
    assert texts(r"\left(\pi\right)")[-1] == "(pi)"
    assert "0.5" in texts(0.5)
