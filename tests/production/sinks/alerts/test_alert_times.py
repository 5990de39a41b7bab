"""Alerts and time: what is too old, what lasts, and what comes again; on a bus whose clock the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.buses import Clock
from support.feedback.alerting import Alerting
from support.feedback.metrics import dead, deployed
from support.loop_events import publish, trajectory

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.sinks.alerts.alert_caller import TOO_OLD_S

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


def test_dead_letters_alert_at_most_once_an_hour_with_all_that_came(alerting: Alerting) -> None:
    publish(alerting.bus, [dead(1)])
    alerting.look()
    publish(alerting.bus, [dead(2), dead(3)])
    assert alerting.look() == ["dead_letters"]
    assert alerting.look(HOUR_S) == ["dead_letters"] * 2
    assert [one["details"]["codes"] for one in alerting.called.alerts] == [{"schema": 1}, {"schema": 2}]
    assert alerting.look(2 * HOUR_S) == ["dead_letters"] * 2


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
    assert alerting.look(10_000.0) == ["trajectories_stalled"]
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
