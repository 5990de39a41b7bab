"""The command of alerts: called once for each, whatever it does."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.buses import Clock
from support.feedback.metrics import dead, deployed, job_request, job_status
from support.loop_events import publish, trajectory

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.sinks.alerts.alert_caller import EVERY_S, TOO_OLD_S, AlertCaller
from pytest_tfgrpo.production.sinks.alerts.alert_lines import alert_lines
from pytest_tfgrpo.production.sinks.alerts.alert_state import alert_state
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE

HOUR_S = 3600.0


class Called:
    """A command that keeps what it got, and says how it ended."""

    def __init__(self) -> None:
        self.alerts: list[dict[str, Any]] = []
        self.then: Callable[[], str] = str

    def __call__(self, command: Sequence[str], data: bytes) -> str:
        assert command == ("page", "me")
        self.alerts.append(json.loads(data))
        return self.then()

    @property
    def names(self) -> list[str]:
        return [one["alert"] for one in self.alerts]


class Alerting:
    """A bus whose alerts one service calls, one process after the other."""

    def __init__(self, bus: Bus, folder: Path, clock: Clock) -> None:
        self.bus, self.clock, self.called = bus, clock, Called()
        self.view = LoopView(folder / "view.db")
        self._started = 0
        self.start()
        self.look()  # what is there before is no alert

    def start(self) -> None:
        """Have another process, as after a kill."""
        self._started += 1
        self.caller = AlertCaller(
            self.bus,
            self.view,
            f"process-{self._started}",
            command=("page", "me"),
            run=self.called,
            scrub=lambda text: text.replace("secret", "[redacted]"),
            clock=self.clock,
            wall=self.clock,
        )

    def look(self, later_s: float = EVERY_S) -> list[str]:
        """Call what is new, and return the names of all alerts so far."""
        self.clock.now += later_s
        while self.caller.step():
            pass
        return self.called.names

    @property
    def state(self) -> tuple[int, int, str]:
        found = alert_state(self.bus.table(STATE))
        return found.ok, found.failed, found.last_failure


@pytest.fixture
def alerting(local: Bus, tmp_path: Path, clock: Clock) -> Iterator[Alerting]:
    publish(local, [deployed("v9", "rolled_back"), job_status("old", "failed"), dead(0)])
    found = Alerting(local, tmp_path, clock)
    yield found
    found.view.close()


def test_each_alert_is_called_once_with_what_happened(alerting: Alerting) -> None:
    publish(
        alerting.bus,
        [deployed("v2", "canary"), deployed("v2", "held", reason="errors in both arms")],
        [deployed("v2", "rolled_back", reason="reward", evidence={"violations": 0})],
        [job_request("a"), job_request("b", "performance_degradation"), job_status("a", "failed")],
        [dead(1), dead(2, "duplicate_data")],
    )
    names = ["canary_held", "rolled_back", "model_degraded", "training_failed", "dead_letters"]
    assert alerting.look() == names
    assert alerting.look() == names
    assert alerting.state == (5, 0, "")
    held, rolled, degraded, failed, letters = alerting.called.alerts
    assert (held["what"], held["summary"]) == ("v2", "v2 is held by ada: errors in both arms")
    assert rolled["details"]["evidence"] == {"violations": 0}
    assert failed["summary"].endswith("failed: DATA, no evidence")
    assert letters["details"]["codes"] == {"duplicate_data": 1, "schema": 1}
    assert all(set(one) == {"id", "alert", "time", "what", "summary", "details"} for one in (degraded, held))
    assert len({one["id"] for one in alerting.called.alerts}) == 5


def test_a_restart_repeats_nothing_and_goes_on(alerting: Alerting) -> None:
    publish(alerting.bus, [deployed("v2", "rolled_back")])
    alerting.look()
    publish(alerting.bus, [job_status("a", "failed")])
    alerting.caller.close()
    alerting.start()
    assert alerting.look() == ["rolled_back", "training_failed"]


def test_a_service_that_dies_during_a_call_has_it_counted_and_not_repeated(alerting: Alerting) -> None:
    def die() -> str:
        raise SystemExit

    alerting.called.then = die
    publish(alerting.bus, [deployed("v2", "rolled_back"), deployed("v3", "rolled_back")])
    with pytest.raises(SystemExit):
        alerting.look()
    alerting.called.then = str
    alerting.start()
    alerting.look()
    alerting.look(1e3)
    assert [one["what"] for one in alerting.called.alerts] == ["v2", "v3"]
    ok, failed, last = alerting.state
    assert (ok, failed) == (1, 1)
    assert last.startswith("the service ended during the call: v2 was rolled back")


def test_a_command_that_fails_is_counted_and_the_next_alert_is_called(alerting: Alerting) -> None:
    alerting.called.then = lambda: "it ended with code 3: the secret is wrong"
    publish(alerting.bus, [deployed("v2", "rolled_back"), job_status("a", "failed")])
    assert alerting.look() == ["rolled_back", "training_failed"]
    assert alerting.state == (0, 2, "it ended with code 3: the [redacted] is wrong")
    text = " ".join(alert_lines(alert_state(alerting.bus.table(STATE))))
    assert text.startswith("alerts     2 calls of [alerts] command, 2 failed; the last: it ended")


def test_an_error_of_the_runner_is_a_failure_too(alerting: Alerting) -> None:
    def broken() -> str:
        raise OSError(12, "no memory")

    alerting.called.then = broken
    publish(alerting.bus, [deployed("v2", "rolled_back")])
    alerting.look()
    assert alerting.state[1] == 1
    assert "no memory" in alerting.state[2]


def test_one_of_two_services_calls(alerting: Alerting, tmp_path: Path) -> None:
    first = alerting.caller
    alerting.start()
    publish(alerting.bus, [deployed("v2", "rolled_back")])
    assert alerting.look() == []
    first.step()
    assert alerting.called.names == ["rolled_back"]


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


def test_texts_of_others_are_one_line_of_bounded_length(alerting: Alerting) -> None:
    publish(alerting.bus, [deployed("v2\n" + "x" * 200, "held", reason="\x1b[31m" + "y" * 5000)])
    alerting.look()
    (one,) = alerting.called.alerts
    assert max(len(one["what"]), len(one["summary"])) <= 500
    assert not any(ord(character) < 32 for character in one["what"] + one["summary"])
