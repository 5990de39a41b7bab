"""What a cohort tells of rollouts that it does not make."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.engine.observers import RefusedRollout
from pytest_tfgrpo.engine.phases.cohort import Cohort


@pytest.mark.parametrize(
    ("spent", "away", "reason"),
    [("max_usd is used up", "", "max_usd is used up"), ("", "5 errors in a row", "5 errors in a row")],
)
def test_a_refused_rollout_says_what_refused_it(spent: str, away: str, reason: str) -> None:
    told: list[Any] = []
    cohort: Any = Cohort.__new__(Cohort)
    cohort._context = SimpleNamespace(
        job=SimpleNamespace(budget=SimpleNamespace(exhausted=spent)),
        breaker=SimpleNamespace(reason=away),
        observe=told.append,
    )
    for checker in ("test_a.py::test_x", None):
        scenario = SimpleNamespace(checker=checker)
        cohort._refuse(SimpleNamespace(rollout_id="r", question=SimpleNamespace(scenario=scenario)))
    assert told == [RefusedRollout(rollout_id="r", reason=reason)]
