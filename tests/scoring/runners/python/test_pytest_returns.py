"""Which functions of tests returned, with a `sys.monitoring` that is made."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.scoring.runners.python.pytest_returns import TOOL, Returns


class Monitoring:
    """What Python has from 3.12 on, as far as it is used."""

    events = SimpleNamespace(PY_RETURN=4)

    def __init__(self) -> None:
        self.told: Callable[..., object] | None = None
        self.codes: list[CodeType] = []

    def use_tool_id(self, tool: int, _name: str) -> None:
        assert tool == TOOL

    def register_callback(self, tool: int, event: int, told: Callable[..., object]) -> None:
        assert (tool, event) == (TOOL, 4)
        self.told = told

    def set_local_events(self, tool: int, code: CodeType, event: int) -> None:
        assert (tool, event) == (TOOL, 4)
        self.codes.append(code)


@pytest.fixture
def monitoring(monkeypatch: pytest.MonkeyPatch) -> Monitoring:
    made = Monitoring()
    monkeypatch.setattr(sys, "monitoring", made, raising=False)
    return made


def a_test(tell: Callable[..., object]) -> None:
    tell(a_test.__code__, 0, None)


def begun(came: bool = True, **more: Any) -> Returns:
    returns = Returns()
    returns.expect({id(one): one for one in (a_test, print)}, lambda frame: came)
    returns.begin(more.get("item", a_test))
    return returns


def test_a_test_that_returned_to_pytest_may_have_passed(monitoring: Monitoring) -> None:
    returns = begun()
    a_test(monitoring.told)  # type: ignore[arg-type]
    returns.begin(a_test)  # it is shown again after its call
    assert monitoring.codes == [a_test.__code__]
    assert returns.fault() == ""


@pytest.mark.parametrize(
    "way", ["none", "another caller", "another code", "other globals", "before its call"]
)
def test_a_test_that_did_not_return_to_pytest_has_not_passed(monitoring: Monitoring, way: str) -> None:
    returns = begun(came=way != "another caller")
    tell = monitoring.told
    assert tell is not None
    if way == "another caller":
        a_test(tell)
    elif way == "another code":
        tell(begun.__code__, 0, None)
    elif way == "other globals":
        exec("tell(code, 0, None)", {"tell": tell, "code": a_test.__code__})
    elif way == "before its call":
        a_test(tell)
        returns.fault()
        returns.begin(a_test)
    assert returns.fault() == "a test passed that did not return"
    assert returns.fault() == ""  # of no test


def test_what_is_no_function_or_was_not_shown_is_not_looked_for(monitoring: Monitoring) -> None:
    assert begun(item=print).fault() == ""
    returns = begun()
    returns.fault()
    assert returns.fault() == ""


def test_an_older_python_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "monitoring", raising=False)
    assert begun().fault() == ""
