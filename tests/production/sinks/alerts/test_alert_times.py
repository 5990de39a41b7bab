"""Alerts and time: what is too old, what lasts, and what comes again; on a bus whose clock the test moves."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from support.buses import Clock
from support.feedback.alerting import Alerting
from support.feedback.metrics import dead, deployed
from support.loop_events import publish, trajectory

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.sinks.alerts.alert_caller import EVERY_S, TOO_OLD_S
from pytest_tfgrpo.production.sinks.alerts.command import TIMEOUT_S

HOUR_S = 3600.0


@pytest.fixture
def alerting(local: Bus, tmp_path: Path, clock: Clock) -> Iterator[Alerting]:
    found = Alerting(local, tmp_path, clock, clock)
    yield found
    found.view.close()


def test_what_is_a_day_old_is_no_alert(alerting: Alerting) -> None:
    publish(alerting.bus, [deployed("v2", "rolled_back")])
    assert alerting.look(TOO_OLD_S + 1.0) == []
    assert alerting.state == (0, 0, "")
    publish(alerting.bus, [deployed("v3", "rolled_back")])
    assert alerting.look(TOO_OLD_S - 1.0) == ["rolled_back"]
    publish(alerting.bus, [deployed("v4", "rolled_back")])
    assert alerting.look(TOO_OLD_S) == ["rolled_back"]


def test_a_look_comes_5_seconds_after_one_that_found_nothing(alerting: Alerting) -> None:
    publish(alerting.bus, [deployed("v2", "rolled_back")])
    alerting.clock.now += EVERY_S - 0.1
    assert alerting.caller.step() == 0
    alerting.clock.now += 0.1
    assert alerting.caller.step() == 1


def test_nobody_else_calls_while_a_call_may_still_run(alerting: Alerting) -> None:
    alerting.start()
    alerting.caller.step()
    publish(alerting.bus, [deployed("v2", "rolled_back")])
    assert alerting.look(3 * TIMEOUT_S - 1.0) == []
    assert alerting.look(1.0) == ["rolled_back"]


def test_dead_letters_alert_at_most_once_an_hour_with_all_that_came(alerting: Alerting) -> None:
    publish(alerting.bus, [dead(1)])
    alerting.look()
    publish(alerting.bus, [dead(2), dead(3)])
    assert alerting.look() == ["dead_letters"]
    assert alerting.look(HOUR_S) == ["dead_letters"] * 2
    assert [one["details"]["codes"] for one in alerting.called.alerts] == [{"schema": 1}, {"schema": 2}]
    assert alerting.look(2 * HOUR_S) == ["dead_letters"] * 2


def test_an_hour_after_an_alert_the_next_one_comes(alerting: Alerting) -> None:
    publish(alerting.bus, [dead(1)])
    alerting.look()
    publish(alerting.bus, [dead(2)])
    assert alerting.look(HOUR_S - EVERY_S) == ["dead_letters"]
    assert alerting.look(EVERY_S) == ["dead_letters"] * 2


def test_each_version_of_which_too_many_runs_failed_is_named(alerting: Alerting) -> None:
    for version, failed in (("v1", 10), ("v2", 5), ("v3", 20)):
        runs = [
            trajectory(
                f"{version} {n}",
                task_status="failed" if n < failed else "unknown",
                metadata={"policy_version": version},
            )
            for n in range(100)
        ]
        publish(alerting.bus, runs)
    assert alerting.look() == ["errors"]
    assert alerting.called.alerts[0]["details"] == {"error_rate": {"v1": 0.1, "v3": 0.2}}


def test_errors_alert_once_as_long_as_they_last(alerting: Alerting) -> None:
    publish(alerting.bus, [trajectory(f"a{n}", task_status="failed") for n in range(100)])
    assert alerting.look() == ["errors"]
    assert alerting.called.alerts[0]["details"] == {"error_rate": {"v1": 1.0}}
    assert alerting.look(2 * HOUR_S) == ["errors"]
    publish(alerting.bus, [trajectory(f"b{n}") for n in range(500)])
    assert alerting.look() == ["errors"]
    publish(alerting.bus, [trajectory(f"c{n}", task_status="failed") for n in range(50)])
    assert alerting.look() == ["errors"] * 2


def test_trajectories_that_stop_alert_once_until_they_come_again(alerting: Alerting) -> None:
    assert alerting.look(90_000.0) == []
    publish(alerting.bus, [trajectory("a")])
    assert alerting.look(80_000.0) == []
    stopped = alerting.clock.now - 80_000.0
    assert alerting.look(10_000.0) == ["trajectories_stalled"]
    since = alerting.called.alerts[0]["details"]["since"]
    assert datetime.fromisoformat(since).timestamp() == stopped
    assert alerting.called.alerts[0]["summary"] == f"no trajectory has come since {since}"
    assert alerting.look(1e6) == ["trajectories_stalled"]
    publish(alerting.bus, [trajectory("b")])
    alerting.look()
    assert alerting.look(90_000.0) == ["trajectories_stalled"] * 2


def test_a_clock_that_goes_back_repeats_no_alert(alerting: Alerting) -> None:
    publish(alerting.bus, [deployed("v2", "rolled_back"), dead(1)])
    alerting.look()
    alerting.clock.now -= 10 * HOUR_S
    alerting.start()
    alerting.caller.step()
    alerting.look()
    alerting.look(1e3)
    assert alerting.called.names == ["rolled_back", "dead_letters"]
    publish(alerting.bus, [dead(2)])
    assert alerting.look() == ["rolled_back", "dead_letters", "dead_letters"]
