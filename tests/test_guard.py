"""The rule of the default tier, as its guard tells it."""

from collections import Counter

import pytest
from support import guard
from support.guard import Counts, broken_rules, over_budget, read_budget, room


@pytest.mark.parametrize(
    ("counts", "cpu_s", "says"),
    [
        (Counts(), 0.4, []),
        (Counts(runs=4, sleep_s=0.04), 5.9, []),
        (Counts(children=["python", "node", "python"]), 0.0, ["starts a process (node, python)"]),
        (Counts(sleep_s=0.06), 0.0, ["sleeps 0.06 s"]),
        (Counts(runs=5), 0.0, ["runs pytest 5 times"]),
        (Counts(runs=9, shared_runs=5), 0.0, []),
        (Counts(), 6.1, ["takes 6.1 s of processor time"]),
    ],
)
def test_what_a_default_test_may_do_is_counted(
    monkeypatch: pytest.MonkeyPatch, counts: Counts, cpu_s: float, says: list[str]
) -> None:
    monkeypatch.setattr(guard, "slowness", lambda: 1.0)
    assert broken_rules(counts, cpu_s) == says


def test_a_processor_that_is_slow_at_the_time_gives_a_test_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guard.slowness() >= 1.0
    monkeypatch.setattr(guard, "PACE_S", 1e-9)
    assert broken_rules(Counts(), 6.1) == []


def test_a_folder_with_more_runs_than_its_budget_is_named_and_one_without_a_row_has_none() -> None:
    runs = Counter({"plugin": 3, "cli": 2, "core": 1})
    assert over_budget(runs, {"plugin": 3, "cli": 1}) == [
        "tests/cli: 2 inner pytest runs, 1 allowed by budget.tsv",
        "tests/core: 1 inner pytest runs, 0 allowed by budget.tsv",
    ]


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/test_api.py::test_x", "."),
        ("tests/plugin/test_gate.py::test_x[a/b]", "plugin"),
        ("tests/engine/executors/test_x.py::test_x", "engine"),
    ],
)
def test_a_test_counts_for_its_room(nodeid: str, name: str) -> None:
    assert room(nodeid) == name


def test_the_budget_can_be_read() -> None:
    assert read_budget()["plugin"] > 0
