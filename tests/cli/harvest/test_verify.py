"""What ``tfgrpo harvest verify`` says of each scenario, and when it fails."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.cli.harvest import verify
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.harvest.job.tools import find_environment, run_tests
from pytest_tfgrpo.harvest.job.verify import VerifiedScenario

CAUSE = next(iter(RootCause))


def one(n: int, cause: RootCause | None = None, total: int = 2, **more: Any) -> VerifiedScenario:
    known: dict[str, Any] = {"reason": "" if cause is None else "why", "tests": 1, "elapsed_s": 2.04}
    return VerifiedScenario(id=f"s{n}", cause=cause, done=n, total=total, **known | more)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (one(1), "1/2  proven        1 test     2.0 s  s1"),
        (one(3, total=12, tests=0), " 3/12  proven       0 tests     2.0 s  s3"),
        (one(1, CAUSE), f"1/2  not proven    1 test     2.0 s  s1  {CAUSE.value}: why"),
        (
            one(1, edited=("a", "b")),
            "1/2  proven        1 test     2.0 s  s1  (edited since it was proven: a; b)",
        ),
        (
            one(1, CAUSE, edited=("a",)),
            f"1/2  not proven    1 test     2.0 s  s1  {CAUSE.value}: why  (edited since it was proven: a)",
        ),
    ],
)
def test_a_scenario_is_a_line(found: VerifiedScenario, line: str) -> None:
    assert verify.verified_line(found) == line


@pytest.mark.parametrize(
    ("causes", "last", "error"),
    [
        ([None], "1 scenario proven", None),
        ([None, None], "2 scenarios proven", None),
        ([CAUSE, None], None, "1 of 2 scenarios not proven: s1"),
        ([CAUSE], None, "1 of 1 scenario not proven: s1"),
    ],
)
def test_it_fails_where_a_scenario_is_not_proven(
    causes: list[RootCause | None], last: str | None, error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    every = [one(n, cause, len(causes)) for n, cause in enumerate(causes, 1)]

    def proven(*args: Any, **more: Any) -> Any:
        asked.append((args, more))
        return iter(every)

    monkeypatch.setattr(verify, "proven", proven)
    monkeypatch.setattr(verify, "require_sandbox", asked.append)
    arguments: Any = SimpleNamespace(suite="suite", check_sandbox="bwrap")
    lines = verify.verify(arguments)
    assert [next(lines) for _ in every] == [verify.verified_line(row) for row in every]
    with pytest.raises(StoreError, match=f"^{error}$") if error else nullcontext():
        assert [*lines] == [last]
    assert asked[:2] == ["bwrap", ((Path("suite"), run_tests, find_environment), {"isolation": "bwrap"})]
