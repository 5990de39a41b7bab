"""Lines of the live report where little or nothing is known."""

import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.live_events import RULES, Reporter, counting
from support.live_runs import rollout

from pytest_tfgrpo.production.live import report
from pytest_tfgrpo.production.live.config import load_live_config
from pytest_tfgrpo.production.live.records import ArmChoice, GateState
from pytest_tfgrpo.production.live.report import (
    _trend_lines,
    _update_lines,
    difference_lines,
    probability_lines,
    report_lines,
    status_lines,
    status_of,
)
from pytest_tfgrpo.production.live.selection.trends import CategoryTrend
from pytest_tfgrpo.production.live.store.store import open_live_store

CHOICE = ArmChoice(
    point="config", place=0, arm="warm", arms={"warm": "1"}, probabilities={"warm": 1.0}, selector=1
)


def test_probabilities_are_by_category_and_one_without_a_name_says_so() -> None:
    categories = {"sea": {"x": 0.25, "y": 0.75}, "": {"y": 1.0}, "air": {"x": 1.0}}
    rows = [row.split() for row in probability_lines("config", categories)]
    assert rows[0] == ["config", "x", "y"]
    assert rows[-3:] == [["(none)", "0.00", "1.00"], ["air", "1.00", "0.00"], ["sea", "0.25", "0.75"]]


def test_a_difference_takes_two_runs_of_each() -> None:
    runs = [rollout(n, [CHOICE], 0.5 + n / 10, control=n == 0) for n in range(3)]
    told = [*difference_lines(runs)]
    assert told
    assert all(text.endswith("; a difference takes 2 runs of each") for text in told)
    more = [*runs, rollout(3, [CHOICE], 0.7, control=True)]
    assert all("; difference " in text for text in difference_lines(more))
    assert [*difference_lines([])] == []


def test_a_trend_is_shown_with_its_alert_and_what_is_not_known() -> None:
    known = {"runs": 40, "success": 0.5, "calibration": ()}
    found = [
        CategoryTrend(**known, category="sea", change=-0.25, direction="regressing", p=0.0012, alert=True),
        CategoryTrend(**known, category="", change=None, direction="unknown", p=None, alert=False),
        CategoryTrend(**known, category="air", change=0.1, direction="improving", p=0.2, alert=False),
    ]
    assert [row.split() for row in _trend_lines(found)][-3:] == [
        ["sea", "40", "0.50", "-0.25", "0.001", "regressing:", "ALERT"],
        ["(none)", "40", "0.50", "-", "-", "unknown"],
        ["air", "40", "0.50", "+0.10", "0.200", "improving"],
    ]


def test_a_reward_that_says_nothing_of_the_score_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [rollout(n, [CHOICE], n / 40) for n in range(40)]
    rewards = [replace(one.reward, composite=1.0, strategy="trace_v2") for one in found if one.reward]
    flat = [replace(one, reward=reward) for one, reward in zip(found, rewards, strict=True)]
    store: Any = SimpleNamespace(updates=lambda after: [], update_counts=lambda: (0, 0))
    for runs, warned in ((flat, True), (found, False)):
        monkeypatch.setattr(report, "newest", lambda _store, _runs, runs=runs: runs)
        told = [text for text in report_lines(store, 40) if text.startswith("warning: the inferred reward")]
        assert bool(told) == warned


STATUS = {
    "gate": {"state": "pass", "streak": 0, "reason": "", "last_error": None, "since": 0.0, "by": ""},
    "rollouts": {"succeeded": 5, "failed": 2, "cancelled": 1, "running": 3, "used": 4, "control": 6},
    "left_out": {},
    "refused": {},
    "selector": 2,
    "updates": {"all": 3, "executed": 2},
    "last_update": None,
    "probabilities": {},
}


def test_a_status_says_what_the_gate_does_and_why_and_why_nothing_was_learned() -> None:
    plain = list(status_lines(STATUS))
    assert plain == [
        "gate       passes",
        "runs       5 succeeded, 2 failed, 1 cancelled, 3 running; 4 used, 6 control",
        "selector   2, after 3 updates, 2 executed; the model stays as it is",
    ]
    held = {"state": "hold", "streak": 3, "reason": "failures", "last_error": "disk", "since": 60.0}
    told = list(status_lines(STATUS | {"gate": STATUS["gate"] | held}))
    assert told[0].startswith("gate       holds: failures since ")
    assert told[0].endswith("; 3 failures in a row")
    assert told[1:3] == [
        "last error disk",
        "           runs take the default arms; `tfgrpo live reset` releases it",
    ]
    by = STATUS["gate"] | {"by": "ann", "reason": "mended"}
    assert next(status_lines(STATUS | {"gate": by})) == "gate       passes, reset by ann: mended"
    counts = {"left_out": {"stale": 2}, "refused": {"bad_event": 7}}
    update = {"executed": False, "reason": "zero_variance", "left_out": {"stale": 1}}
    more = list(status_lines(STATUS | counts | {"last_update": update}))
    assert [row[:10].strip() for row in more] == ["gate", "runs", "left out", "refused", "selector", ""]
    assert "stale" in more[2]
    assert "bad_event" in more[3]
    assert "learned nothing: all rewards were equal (zero_variance); left out: " in more[5]
    done = STATUS | {"last_update": update | {"executed": True}}
    assert list(status_lines(done)) == plain


def test_an_update_has_its_selectors_or_why_there_is_no_new_one() -> None:
    made = counting([rollout(1, [CHOICE], 1.0)], 4, None)[0]
    done = replace(made, number=7, selector_after=5, metrics={"mean_reward": 0.25}, left_out={"stale": 2})
    rows = [*_update_lines([done, counting([], 5, None)[0]])]
    assert [row.split() for row in rows[-2:]] == [
        ["7", "4", "to", "5", "1", "0.250", "-", "-", "stale", "2"],
        ["0", "no_trajectories", "0", "-", "-", "-", "no_outcome", "0"],
    ]
    assert rows[0].index("selector") == rows[-2].index("4 to 5")
    assert rows[0].index("runs") > rows[0].index("selector") + len("no_trajectories")


def test_a_status_has_what_a_store_knows(tmp_path: Path) -> None:
    config = load_live_config(None, {"config": str(tmp_path / "live.toml"), "store": None}, {})
    with closing(open_live_store(None, "shop")) as store:
        store.write(Reporter("a").whole(), rules=RULES, now=5000.0)
        known = GateState(control={"log_wealth": 0.0}, failures={"log_wealth": 1.0})
        found = status_of(config, store, known)
    assert (found["against_control"], found["failures_against_control"]) == (1.0, math.e)
    assert (found["rollouts"]["succeeded"], found["last_update"], found["selector"]) == (1, None, 0)
    assert (found["updates"], found["gate"]["state"]) == ({"executed": 0, "all": 0}, "pass")


@pytest.mark.parametrize(
    ("runs", "keys", "warned"), [(19, 1, False), (20, 9, True), (20, 10, False), (21, 10, True)]
)
def test_runs_that_share_their_keys_are_warned_of(
    runs: int, keys: int, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [replace(rollout(n, [CHOICE], 0.5), run=f"k{n % keys}") for n in range(runs)]
    monkeypatch.setattr(report, "newest", lambda _store, _runs: found)
    store: Any = SimpleNamespace(updates=lambda after: [], update_counts=lambda: (0, 0))
    told = [text for text in report_lines(store, 40) if text.startswith(f"warning: {runs} runs have only")]
    assert bool(told) is warned


def test_a_report_shows_twenty_categories_and_that_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["", *(f"c{n:02}" for n in range(21))]
    found = [rollout(n, [CHOICE], 0.5, category=name) for n, name in enumerate([*names, *names[:20]])]
    monkeypatch.setattr(report, "newest", lambda _store, _runs: found)
    store: Any = SimpleNamespace(updates=lambda after: [], update_counts=lambda: (0, 0))
    told = list(report_lines(store, 40))
    assert told[-1] == "... 2 more categories, with fewer runs and no alert"
    assert sum(text.startswith("(none)") for text in told) == 2
    assert not [text for text in told if text.startswith(("c19", "c20"))]
