"""What is counted on a bus, and what a scrape answers."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.buses import Clock
from support.feedback.metrics import (
    CountedLoop,
    dead,
    deployed,
    job_request,
    job_status,
    run_of,
    values,
)
from support.loop_events import judged, publish, rewarded, trajectory

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.report import model_figures
from pytest_tfgrpo.production.sinks.prometheus import counting
from pytest_tfgrpo.production.sinks.prometheus.exposition import STALE_S, metrics_page
from pytest_tfgrpo.production.sinks.prometheus.families import FAMILIES, OF_SOURCE
from pytest_tfgrpo.production.sinks.prometheus.metrics import EVERY_S, LEASE
from pytest_tfgrpo.production.sinks.prometheus.totals import MetricTotals
from pytest_tfgrpo.storage.event_store import STATE, BusEvent

SOURCE: list[tuple[str, str, tuple[str, ...], tuple[float, ...]]] = [
    ("Counter", "agent_rl_training_jobs_total", ("status",), ()),
    ("Histogram", "agent_rl_training_duration_seconds", (), (300, 600, 1800, 3600, 7200, 14400)),
    ("Histogram", "agent_rl_training_samples", (), (1000, 5000, 10000, 50000, 100000)),
    ("Gauge", "agent_rl_model_reward_mean", ("model_version",), ()),
    ("Gauge", "agent_rl_model_benchmark_score", ("model_version", "task_type"), ()),
    ("Counter", "agent_rl_trajectories_collected_total", ("agent_type", "task_domain"), ()),
    ("Histogram", "agent_rl_trajectory_length", (), (1, 3, 5, 10, 20, 50)),
    ("Histogram", "agent_rl_trajectory_reward", (), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    ("Counter", "agent_rl_model_deployments_total", ("status",), ()),
    ("Gauge", "agent_rl_model_traffic_percentage", ("model_version",), ()),
    ("Gauge", "agent_rl_model_error_rate", ("model_version",), ()),
]
"""What the specification of the loop declares."""
TRAJECTORIES = "agent_rl_trajectories_collected_total"


@pytest.fixture
def start(bus: Bus, tmp_path: Path) -> Iterator[Callable[..., CountedLoop]]:
    made, clock = [], Clock()

    def started(name: str = "one") -> CountedLoop:
        made.append(CountedLoop(bus, tmp_path, clock, name))
        return made[-1]

    yield started
    for loop in made:
        loop.view.close()


def test_names_labels_and_buckets_are_those_of_the_specification() -> None:
    declared = [(one.kind.title(), one.name, one.labels, one.buckets) for one in OF_SOURCE]
    assert declared == SOURCE
    assert all(family.name.startswith("agent_rl_") for family in FAMILIES)


def test_a_scrape_says_what_is_on_file(
    start: Callable[..., CountedLoop], golden: Callable[[str, str], None]
) -> None:
    loop = start()
    publish(
        loop.bus,
        [trajectory("a"), trajectory("b", turns=7, domain="research"), run_of('say "hi"\n\\o/', "c")],
        [rewarded("a", 0.9), rewarded("b", 0.2), rewarded("a", 0.5, revision=2), judged("j", "c", style=1.0)],
        [job_request("one"), job_status("one", "queued"), job_status("one", "running")],
        [job_status("one", "running", "2026-01-01T12:01:00.000Z")],
        [
            job_status(
                "one",
                "completed",
                "2026-01-01T12:20:00.000Z",
                evaluation_results={"benchmark_scores": {"coding": 0.8}},
                metadata={"samples": 4000, "policy_version": "v1"},
            )
        ],
        [deployed("v2", "canary", 10), deployed("v2", "canary", 25), deployed("v2", "held", 25)],
        [deployed("v2", "canary", 26), deployed("v2", "live", 100), deployed("v1", "retired")],
        [dead(1), dead(2)],
    )
    text = re.sub(r"(?<=_timestamp_seconds )[0-9.e+]+", "1.8e+09", loop.scrape())
    golden("loop-metrics.txt", text)


def test_an_empty_loop_has_every_counter_at_zero(start: Callable[..., CountedLoop]) -> None:
    text = start().scrape()
    found = values(text)
    assert {name.partition("{")[0] for name in found} >= {
        f"{one.name}_count" if one.kind == "histogram" else one.name
        for one in FAMILIES
        if one.kind != "gauge" and one.name != TRAJECTORIES
    }
    assert set(found.values()) <= {0.0, 100.0}
    assert found['agent_rl_training_jobs_total{status="failed"}'] == 0.0


def test_a_restart_loses_nothing_and_counts_nothing_twice(start: Callable[..., CountedLoop]) -> None:
    first = start()
    publish(first.bus, [trajectory("a"), trajectory("b")], [rewarded("a", 0.5)])
    before = values(first.scrape())
    first.end()
    second = start()
    publish(second.bus, [trajectory("c")])
    after = values(second.scrape())
    name = f'{TRAJECTORIES}{{agent_type="developer",task_domain="coding"}}'
    assert (before[name], after[name], after["agent_rl_trajectory_reward_count"]) == (2.0, 3.0, 1.0)


def test_a_deleted_view_changes_no_counter(start: Callable[..., CountedLoop]) -> None:
    loop = start()
    publish(loop.bus, [trajectory("a"), trajectory("b")], [rewarded("a", 0.5)])
    before = loop.scrape()
    other = start("fresh")
    loop.metrics.close()
    assert values(other.scrape()) == values(before)


def test_two_services_answer_the_same_and_one_counts(start: Callable[..., CountedLoop]) -> None:
    one, two = start(), start("two")
    publish(one.bus, [trajectory("a")])
    found = values(one.scrape(), TRAJECTORIES)
    assert values(two.scrape(), TRAJECTORIES) == found
    assert list(found.values()) == [1.0]
    publish(one.bus, [trajectory("b")])
    two.scrape()
    assert list(values(one.scrape(), TRAJECTORIES).values()) == [2.0]
    one.metrics.close()
    publish(one.bus, [trajectory("c")])
    assert list(values(two.scrape(), TRAJECTORIES).values()) == [3.0]


def test_a_service_that_loses_its_lease_while_it_counts_counts_nothing_twice(
    start: Callable[..., CountedLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = start(), start("two")
    one.scrape()
    two.scrape()
    publish(one.bus, [trajectory("a")])
    catch_up = one.view.catch_up

    def slow(bus: Bus) -> int:
        monkeypatch.setattr(one.view, "catch_up", catch_up)
        two.metrics.step()
        one.clock.now += 10 * EVERY_S
        assert two.metrics.step() == 1
        return catch_up(bus)

    monkeypatch.setattr(one.view, "catch_up", slow)
    one.scrape()
    assert list(values(one.scrape(), TRAJECTORIES).values()) == [1.0]
    assert list(values(two.scrape(), TRAJECTORIES).values()) == [1.0]


def test_a_trajectory_counts_once_however_often_it_is_revised(start: Callable[..., CountedLoop]) -> None:
    loop = start()
    for revision, turns in ((1, 2), (2, 4), (3, 60)):
        event = trajectory("a", turns=turns, metadata={"revision": revision})
        publish(loop.bus, [_as_new(event, revision)])
        if revision != 2:
            loop.scrape()
    found = values(loop.scrape(), "agent_rl_trajectory_length")
    assert found["agent_rl_trajectory_length_sum"] == 2.0
    assert found["agent_rl_trajectory_length_count"] == 1.0


def _as_new(event: BusEvent, number: int) -> BusEvent:
    return replace(event, id=f"00000000-0000-4000-8000-{number:012}")


def test_the_newest_trajectory_is_that_of_the_newest_kind_whatever_the_order() -> None:
    kinds: list[tuple[Any, ...]] = [("a", "d", 1, 2, 9.0), ("a", "d", 7, 1, 5.0), ("b", "d", 1, 1, None)]
    first = counting._with_trajectories(MetricTotals(), kinds)
    assert first.newest == 9.0
    assert counting._with_trajectories(first, kinds[1:]).newest == 9.0


def test_a_thousand_agents_are_twenty_and_the_others(start: Callable[..., CountedLoop]) -> None:
    loop = start()
    publish(loop.bus, [run_of(f'bot {n}\n"{"x" * 150}', f"a{n}") for n in range(1000)])
    found = values(loop.scrape(), TRAJECTORIES)
    assert (len(found), sum(found.values())) == (21, 1000.0)
    assert found[f'{TRAJECTORIES}{{agent_type="other",task_domain="coding"}}'] == 980.0
    assert max(map(len, found)) < 200
    publish(loop.bus, [run_of("bot 999", "b")])
    assert set(values(loop.scrape(), TRAJECTORIES)) == set(found)


def test_five_versions_are_shown_those_that_are_served_first(start: Callable[..., CountedLoop]) -> None:
    loop = start()
    old = [trajectory("old", metadata={"policy_version": "v1"})]
    publish(loop.bus, old, [trajectory(f"t{n}", metadata={"policy_version": f"r{n}"}) for n in range(9)])
    publish(loop.bus, [rewarded("old", 0.25), *(rewarded(f"t{n}", 0.5) for n in range(9))])
    found = values(loop.scrape(), "agent_rl_model_reward_mean")
    named = [name.split('"')[1] for name in found]
    assert sorted(named) == ["r5", "r6", "r7", "r8", "v1"]
    assert found['agent_rl_model_reward_mean{model_version="v1"}'] == 0.25


def test_means_are_of_the_newest_revisions_and_histograms_of_the_first(
    start: Callable[..., CountedLoop],
) -> None:
    loop = start()
    publish(loop.bus, [trajectory("a")], [rewarded("a", 0.1), rewarded("a", 0.9, revision=2)])
    found = values(loop.scrape())
    assert found['agent_rl_model_reward_mean{model_version="v1"}'] == 0.9
    assert found["agent_rl_trajectory_reward_sum"] == pytest.approx(0.1)
    assert found['agent_rl_trajectory_reward_bucket{le="0.2"}'] == 1.0


def test_errors_are_a_share_of_the_newest_runs_once_there_are_enough(
    start: Callable[..., CountedLoop],
) -> None:
    loop, rate = start(), "agent_rl_model_error_rate"
    publish(loop.bus, [trajectory(f"a{n}", task_status="failed") for n in range(99)])
    assert values(loop.scrape(), rate) == {}
    publish(loop.bus, [trajectory(f"b{n}", task_status="unknown") for n in range(401)])
    assert values(loop.scrape(), rate) == {f'{rate}{{model_version="v1"}}': 99 / 500}
    publish(loop.bus, [trajectory(f"c{n}", task_status="failed") for n in range(101)])
    assert values(loop.scrape(), rate) == {f'{rate}{{model_version="v1"}}': 101 / 500}


def test_traffic_and_holds_are_those_that_are_served(start: Callable[..., CountedLoop]) -> None:
    loop, live = start(), DeployCandidate(version="v1")
    canary = DeployCandidate(
        version="v2", benchmark_passed=True, safety_checks_passed=True, improvement=0.08, approved_by="ada"
    )
    deployments, decision = Deployments(loop.bus), DeployDecision(at="2026-01-01T12:00:00.000Z", by="ada")
    deployments.start(canary, live, decision)
    deployments.hold("v2", decision)
    found = values(loop.scrape())
    traffic = "agent_rl_model_traffic_percentage"
    assert [found[f'{traffic}{{model_version="{name}"}}'] for name in ("v1", "v2")] == [90.0, 10.0]
    assert found["agent_rl_deployment_held"] == 1.0
    assert found['agent_rl_model_deployments_total{status="held"}'] == 1.0


def test_damaged_rows_break_no_scrape(start: Callable[..., CountedLoop]) -> None:
    loop = start()
    publish(loop.bus, [trajectory(name) for name in "abc"], [rewarded("a", 0.5), rewarded("b", 0.7)])
    loop.view.catch_up(loop.bus)
    with loop.view.transaction() as db:
        db.execute("UPDATE trajectories SET slim = '{', turns = 'many', at = 'soon' WHERE seq = 1")
        db.execute("DELETE FROM superseded")  # where a revision leaves the row as it was
        db.execute("UPDATE rewards SET total = 'good' WHERE seq = 2")
    found = values(loop.scrape())
    assert found["agent_rl_trajectory_length_count"] == 2.0
    assert found["agent_rl_trajectory_reward_sum"] == 0.5
    assert found['agent_rl_model_reward_mean{model_version="v1"}'] == 0.5


@pytest.mark.parametrize(
    "kept", [7, {"positions": {"RL_TRAJECTORIES": "x"}}, {"histograms": {"agent_rl_x": {}}}]
)
def test_totals_that_cannot_be_read_are_counted_again(start: Callable[..., CountedLoop], kept: Any) -> None:
    loop = start()
    publish(loop.bus, [trajectory("a")])
    loop.scrape()
    loop.end()
    table = loop.bus.table(STATE)
    value, revision = table.get(f"lease.{LEASE}")
    assert value is not None
    table.put(f"lease.{LEASE}", json.dumps({"owner": "", "state": kept}).encode(), revision)
    assert list(values(start("two").scrape(), TRAJECTORIES).values()) == [1.0]


def test_a_stream_that_begins_anew_is_added_to_what_was_counted(start: Callable[..., CountedLoop]) -> None:
    loop = start()
    publish(loop.bus, [trajectory("a")])
    loop.scrape()
    loop.end()
    table, key = loop.bus.table(STATE), f"lease.{LEASE}"
    value, revision = table.get(key)
    row = json.loads(value or b"")
    row["state"]["positions"]["RL_TRAJECTORIES"] = 500
    table.put(key, json.dumps(row).encode(), revision)
    assert list(values(start("two").scrape(), TRAJECTORIES).values()) == [2.0]


def test_a_view_that_is_emptied_during_a_page_is_counted_the_next_time(
    start: Callable[..., CountedLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = start()
    publish(loop.bus, [trajectory("a"), trajectory("b")])
    rows = loop.view.rows

    def emptied(query: str, given: Any = ()) -> Any:
        if "WITH new" in query:
            monkeypatch.setattr(loop.view, "rows", rows)
            loop.view.reset()
        return rows(query, given)

    monkeypatch.setattr(loop.view, "rows", emptied)
    assert values(loop.scrape(), TRAJECTORIES) == {}
    assert sum(values(loop.scrape(), TRAJECTORIES).values()) == 2.0


def test_pages_add_up(start: Callable[..., CountedLoop], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PAGE", 3)
    loop = start()
    publish(loop.bus, [trajectory(f"a{n}", turns=n) for n in range(10)])
    found = values(loop.scrape(), "agent_rl_trajectory_length")
    assert found["agent_rl_trajectory_length_sum"] == 45.0
    assert found['agent_rl_trajectory_length_bucket{le="3.0"}'] == 4.0
    assert found['agent_rl_trajectory_length_bucket{le="+Inf"}'] == 10.0


def test_a_job_counts_when_it_ends_with_the_time_since_its_first_start(
    start: Callable[..., CountedLoop],
) -> None:
    loop = start()
    publish(loop.bus, [job_status("a", "queued"), job_status("a", "running"), job_status("b", "queued")])
    assert sum(values(loop.scrape(), "agent_rl_training_jobs_total").values()) == 0.0
    later = "2026-01-01T14:00:00.000Z"
    publish(loop.bus, [job_status("a", "running", later), job_status("a", "failed", later)])
    publish(loop.bus, [job_status("b", "cancelled", later)])
    found = values(loop.scrape(), "agent_rl_training_")
    assert found['agent_rl_training_jobs_total{status="failed"}'] == 1.0
    assert found['agent_rl_training_jobs_total{status="cancelled"}'] == 1.0
    assert found["agent_rl_training_duration_seconds_sum"] == 7200.0
    assert found["agent_rl_training_duration_seconds_count"] == 1.0
    assert found["agent_rl_training_samples_count"] == 0.0


def test_figures_that_are_missing_or_old_are_an_error(start: Callable[..., CountedLoop]) -> None:
    loop = start()
    page = metrics_page(loop.metrics.samples)
    assert page().status == 503
    loop.scrape()
    assert page().status == 200
    loop.clock.now += STALE_S + 1
    answer = page()
    assert answer.status == 503
    assert "are 301 s old" in answer.body.decode()


def test_what_a_scrape_looks_at_is_bounded(
    start: Callable[..., CountedLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = start()
    publish(loop.bus, [trajectory(f"a{n}", metadata={"policy_version": f"r{n % 7}"}) for n in range(30)])
    loop.scrape()
    asked: list[str] = []
    rows = loop.view.rows
    monkeypatch.setattr(loop.view, "rows", lambda query, given=(): asked.append(query) or rows(query, given))
    loop.scrape()
    heavy = [query for query in asked if "FROM trajectories" in query]
    assert len(heavy) == 1 + model_figures.MOST_VERSIONS
    assert all(f"LIMIT {model_figures.LOOKED_AT}" in query for query in heavy)
    assert not math.isnan(loop.metrics.samples()[1])  # type: ignore[index]
