"""Roles in threads."""

import threading
from collections.abc import Callable

import pytest

from pytest_tfgrpo.production.service import workers as module
from pytest_tfgrpo.production.service.reports import FirstReports
from pytest_tfgrpo.production.service.workers import Workers


class Evaluator:
    """Does what the next of its `steps` does, and after the last one nothing."""

    def __init__(self, *steps: Callable[[], int]) -> None:
        self._steps = list(steps)
        self.rests = threading.Event()
        self.closed = 0

    def step(self) -> int:
        if self._steps:
            return self._steps.pop(0)()
        self.rests.set()
        return 0

    def close(self) -> None:
        self.closed += 1


class Broken(Evaluator):
    def close(self) -> None:
        raise RuntimeError("cannot close")


def fail(message: str) -> int:
    raise RuntimeError(message)


def test_steps_follow_one_another_until_the_role_is_closed() -> None:
    role, done = Evaluator(), []
    role = Evaluator(lambda: done.append(1) or 1, lambda: done.append(2) or 1)
    workers = Workers([role], print)
    workers.start()
    assert role.rests.wait(100)
    assert workers.states() == {"evaluator": "ok"}
    workers.close()
    assert (done, role.closed) == ([1, 2], 1)


def test_a_step_that_raises_is_reported_once_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "backoff_s", lambda before: 0.001)
    said: list[str] = []
    role = Evaluator(lambda: fail("row 7"), lambda: fail("row 8"), lambda: fail("disk"), lambda: 1)
    workers = Workers([role], FirstReports(said.append).say)
    workers.start()
    assert role.rests.wait(100)
    workers.close()
    assert [text.rpartition(": ")[2] for text in said] == ["row 7", "disk"]


def test_a_role_waits_longer_after_each_failure_and_rests_once_nothing_is_left() -> None:
    waits: list[float] = []

    class Stop(threading.Event):
        def is_set(self) -> bool:
            return len(waits) == 5

        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    fails = [lambda: fail("no")] * 3
    workers = Workers([Evaluator(*fails, lambda: 1, lambda: fail("no"))], [].append)
    workers._stop = Stop()
    workers._work(workers._workers[0])
    assert waits == [0.5, 1.0, 2.0, 0.5, module.REST_S]


def test_a_role_that_fails_is_known_to_fail_and_stops_in_its_backoff() -> None:
    failed = threading.Event()
    role = Evaluator(*[lambda: fail("always")] * 9)
    workers = Workers([role], lambda text: failed.set())
    workers.start()
    assert failed.wait(100)
    assert workers.states() == {"evaluator": "failing"}
    workers.close()


def test_roles_that_were_not_started_or_cannot_close_do_not_keep_others_from_closing() -> None:
    said: list[str] = []
    role = Evaluator()
    Workers([Broken(), role], said.append).close()
    assert role.closed == 1
    assert said == ["the broken did not close: RuntimeError: cannot close"]


def test_a_role_whose_thread_does_not_run_is_not_ok_and_may_have_a_name_of_its_own() -> None:
    role = Evaluator()
    role.name = "judge"  # type: ignore[attr-defined]
    assert Workers([role, Broken()], print).states() == {"judge": "failing", "broken": "failing"}


def test_a_step_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STOP_S", 0.05)
    said: list[str] = []
    going, begun = threading.Event(), threading.Event()
    role = Evaluator(lambda: begun.set() or int(going.wait(100)))
    workers = Workers([role], said.append)
    workers.start()
    assert begun.wait(100)
    workers.close()
    going.set()
    assert (role.closed, said) == (0, ["the evaluator did not stop within 0.05 s, and is left"])


def test_errors_without_end_are_reported_so_often_at_most() -> None:
    said: list[str] = []
    reports = FirstReports(said.append)
    for number in range(300):
        reports.say("".join(chr(ord("g") + int(digit)) for digit in str(number)))
    assert len(said) == 101
    assert said[-1] == "further errors of other kinds are not reported"


def test_a_report_that_fails_is_no_further_error() -> None:
    FirstReports(fail).say("the disk is full")
