"""The command of alerts: called once for each, whatever it does."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.buses import Clock
from support.feedback.alerting import Alerting
from support.feedback.metrics import NOON, dead, deployed, job_request, job_status
from support.loop_events import publish

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.sinks.alerts.alert_lines import alert_lines
from pytest_tfgrpo.production.sinks.alerts.alert_state import LEASE, AlertState, alert_state
from pytest_tfgrpo.storage.event_store import STATE


@pytest.fixture
def alerting(bus: Bus, tmp_path: Path) -> Iterator[Alerting]:
    publish(bus, [deployed("v9", "rolled_back"), job_status("old", "failed"), dead(0)])
    found = Alerting(bus, tmp_path, Clock(), time.time)
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
    assert held["time"] == rolled["time"] == NOON
    assert degraded["what"] == derived_id("job", "b")
    assert failed["details"] == {"code": "DATA"}
    assert held["details"] == {"deployment_id": derived_id("deployment", "v2"), "evidence": {}}
    assert all(set(one) == {"id", "alert", "time", "what", "summary", "details"} for one in (degraded, held))
    assert len({one["id"] for one in alerting.called.alerts}) == 5


def test_of_dead_letters_all_are_counted_and_the_commonest_codes_named_first(alerting: Alerting) -> None:
    publish(alerting.bus, [dead(n, "odd") for n in range(1, 4)], [dead(n, "b") for n in range(5)])
    publish(alerting.bus, [dead(9, "a")], [dead(n, "third") for n in range(2)])
    alerting.look()
    (one,) = alerting.called.alerts
    assert one["summary"] == "11 dead letters: b, odd, third, a"
    assert one["details"] == {"stream": "RL_DEAD", "codes": {"b": 5, "odd": 3, "third": 2, "a": 1}}


def test_a_summary_says_what_is_not_known(alerting: Alerting) -> None:
    back = deployed("v2", "rolled_back")
    nobody = back.data.replace(b'"deployed_by": "ada", ', b"")
    publish(alerting.bus, [replace(back, data=nobody)])
    publish(alerting.bus, [job_status("a", "failed", error={"code": "DATA"})])
    alerting.look()
    job = derived_id("job", "a")
    assert [one["summary"] for one in alerting.called.alerts] == [
        "v2 was rolled back: no reason was given",
        f"training job {job} failed: DATA, nothing more is known",
    ]


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
    alerting.called.then = lambda: "x" * 5000
    publish(alerting.bus, [deployed("v3", "rolled_back")])
    alerting.look()
    assert alerting.state == (0, 3, "x" * 500)


def test_calls_are_told_of_once_there_is_one() -> None:
    said = [
        " ".join(" ".join(alert_lines(AlertState(ok=ok, failed=failed, last_failure="no"))).split())
        for ok, failed in ((0, 0), (1, 0), (0, 1), (1, 1))
    ]
    assert said == [
        "",
        "alerts 1 call of [alerts] command",
        "alerts 1 call of [alerts] command, 1 failed; the last: no",
        "alerts 2 calls of [alerts] command, 1 failed; the last: no",
    ]


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


@pytest.mark.parametrize("kept", [{"positions": {"RL_DEPLOYMENTS": 500, "RL_TRAINING": 0}}, {"ok": "many"}])
def test_streams_that_are_new_and_a_row_that_is_damaged_end_no_alerts(
    alerting: Alerting, kept: dict[str, Any]
) -> None:
    table, key = alerting.bus.table(STATE), f"lease.{LEASE}"
    alerting.caller.close()
    table.put(key, json.dumps({"owner": "", "state": kept}).encode(), table.get(key)[1])
    alerting.start()
    alerting.look()
    publish(alerting.bus, [deployed("v3", "rolled_back")])
    alerting.look()
    assert alerting.called.alerts[-1]["what"] == "v3"


def test_texts_of_others_are_one_line_of_bounded_length(alerting: Alerting) -> None:
    publish(alerting.bus, [deployed("v2\n" + "x" * 200, "held", reason="\x1b[31m" + "y" * 5000)])
    alerting.look()
    (one,) = alerting.called.alerts
    assert max(len(one["what"]), len(one["summary"])) <= 500
    assert not any(ord(character) < 32 for character in one["what"] + one["summary"])
