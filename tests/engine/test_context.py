"""What the phases of a run share."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.engine.context import RunContext


@pytest.mark.parametrize(
    ("exhausted", "broken", "closed"),
    [("", "", []), ("budget_usd", "", [""]), ("", "no worker is left", [""])],
)
def test_fixtures_are_waited_for_until_no_agent_may_run(
    exhausted: str, broken: str, closed: list[str]
) -> None:
    reasons: list[str] = []
    context: Any = SimpleNamespace(
        job=SimpleNamespace(budget=SimpleNamespace(exhausted=exhausted)),
        breaker=SimpleNamespace(reason=broken),
        tests=SimpleNamespace(agents=SimpleNamespace(close=reasons.append)),
    )
    RunContext.let_go(context)
    assert reasons == closed
