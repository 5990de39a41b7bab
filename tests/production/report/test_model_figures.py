"""Which versions have figures, and from how many runs on a share of failures."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.loop_events import judged, publish, rewarded, trajectory

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.report.model_figures import LEAST, MOST_VERSIONS, ModelFigures, model_figures
from pytest_tfgrpo.production.view.view import LoopView


def figures(versions: list[str], previous: str | None, newest: list[str]) -> list[ModelFigures]:
    def rows(query: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        return [(LEAST, 2, 1, 0.5)] if values else [(name,) for name in newest]

    view: Any = SimpleNamespace(rows=rows)
    serving: Any = SimpleNamespace(versions=versions, previous=previous)
    return model_figures(view, serving)


def test_versions_that_are_served_come_first_each_once_and_not_too_many() -> None:
    found = figures(["v3", "v4"], "v2", ["v9", "v3", "v2", "v1"])
    assert [one.version for one in found] == ["v3", "v4", "v2", "v9", "v1"]
    assert [one.version for one in figures(["v1"], None, [])] == ["v1"]
    many = figures(["v1"], None, [f"n{n}" for n in range(2 * MOST_VERSIONS)])
    assert len(many) == MOST_VERSIONS
    assert many[0].version == "v1"


def test_few_runs_have_no_share_of_failures_and_no_reward_has_no_mean() -> None:
    (found,) = figures(["v1"], None, [])
    assert (found.error_rate, found.reward_mean) == (2 / LEAST, 0.5)
    assert found._replace(runs=LEAST - 1).error_rate is None
    view: Any = SimpleNamespace(rows=lambda *said: [(LEAST, 0, 0, 0.5)] if len(said) > 1 else [])
    serving: Any = SimpleNamespace(versions=["v1"], previous="")
    assert model_figures(view, serving) == [ModelFigures("v1", LEAST, 0, None)]


def test_the_figures_of_a_version_are_those_of_its_runs_by_their_newest_own_rewards(
    bus: Bus, tmp_path: Path
) -> None:
    versions = {"a": "v1", "b": "v1", "c": "v2", "d": "none"}
    events = [
        trajectory(
            name,
            metadata={"policy_version": version},
            task_status="failed" if name == "a" else "unknown",
        )
        for name, version in versions.items()
    ]
    unnamed = events[3].data.replace(b'"policy_version": "none", ', b"")
    events[3] = replace(events[3], data=unnamed)
    publish(bus, events, [judged("j", "b", style=1.0)])
    publish(bus, [rewarded("a", 0.2), rewarded("a", 0.4, revision=2), rewarded("b", 0.8)])
    with closing(LoopView(tmp_path / "view.db")) as view:
        view.catch_up(bus)
        found = model_figures(view, Serving())
    assert found == [
        ModelFigures("v1", 2, 1, pytest.approx(0.6)),
        ModelFigures("none", 1, 0, None),
        ModelFigures("v2", 1, 0, None),
    ]
