"""Processes that deploy and roll back at once, and are killed: each transition has its events, once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count, islice

import pytest
from support import ROOT
from support.buses import BusPlace, EmbeddedPlace
from support.campaign import Campaign
from support.loop_events import payloads

from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.deployment.states import DEPLOYMENTS

WORKER = """
import random, sys
from pathlib import Path
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments

deployments, draw = Deployments(open_embedded(Path(sys.argv[1]))), random.Random(sys.argv[2])
print("ready", flush=True)
while True:
    serving, word = deployments.serving(), DeployDecision(at=utc_now(), by="ada", reason="x")
    version = f"v{draw.randint(2, 9)}" if serving.ramp is None else serving.ramp.version
    good = DeployCandidate(version=version, benchmark_passed=True, safety_checks_passed=True)
    try:
        if serving.ramp is None and draw.random() < 0.9:
            deployments.start(good, DeployCandidate(version=serving.live), word)
        elif serving.ramp is None:
            deployments.roll_back(serving.live, word)
        else:
            act = draw.choice(["advance"] * 6 + ["hold", "roll_back"])
            getattr(deployments, act)(version, word, serving.ramp)
    except StoreError:  # the other one was faster
        pass
"""


ADVANCE = """
import sys
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments

deployments, left = Deployments(open_bus(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
while left:
    serving, word = deployments.serving(), DeployDecision(at=utc_now(), by="ada", reason="x")
    version = f"v{int(serving.live[1:]) + 1}" if serving.ramp is None else serving.ramp.version
    good = DeployCandidate(version=version, benchmark_passed=True, safety_checks_passed=True)
    try:
        if serving.ramp is None:
            deployments.start(good, DeployCandidate(version=serving.live), word)
        else:
            deployments.advance(version, word, serving.ramp)
    except StoreError:  # the other one was faster
        pass
    left -= 1
"""


def worker(*argv: str, program: str = WORKER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *argv],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_leaves_what_is_served_with_its_events(
    embedded: EmbeddedPlace, campaign: Campaign
) -> None:
    chance = campaign.random("deployments")
    for attempt in range(campaign.count(3, 50)):
        pair = [worker(str(embedded.path), f"{attempt}-{name}") for name in "ab"]
        end(pair, chance.uniform(0.01, 0.3))
    bus = embedded.open()
    serving, told = Deployments(bus).serving(), payloads(bus, "RL_DEPLOYMENTS")
    assert len(told) > 20
    assert followed(told) == dict(serving.states)
    assert [name for name, state in serving.states.items() if state == "live"] == [serving.live]
    ramping = [name for name, state in serving.states.items() if state in ("canary", "held")]
    assert ramping == ([serving.ramp.version] if serving.ramp else [])
    audit = [one for one in payloads(bus, "RL_AUDIT") if one["action"].startswith("deployment_")]
    assert [(one["what"], one["evidence"]) for one in audit] == [
        (one["model_info"]["model_id"], one["metadata"]["evidence"]) for one in told
    ]


def end(children: list[subprocess.Popen[str]], after_s: float) -> None:
    """Kill processes a while after they are ready."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    time.sleep(after_s)
    for child in children:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_whoever_takes_a_killed_transition_again_loses_and_doubles_nothing(
    place: BusPlace, campaign: Campaign
) -> None:
    bus, chance = place.open(), campaign.random("retaken")
    spec = f"embedded:{place.path}" if isinstance(place, EmbeddedPlace) else f"nats:{place.server.url}"  # type: ignore[attr-defined]
    for _ in range(campaign.count(4, 40)):
        end([worker(spec, "100000", program=ADVANCE) for _ in "ab"], chance.uniform(0.01, 0.3))
    last = worker(spec, "1", program=ADVANCE)  # takes again what was not finished
    assert last.wait(60) == 0
    assert last.stdout is not None
    last.stdout.close()
    serving, told = Deployments(bus).serving(), payloads(bus, "RL_DEPLOYMENTS")
    found = [(one["model_info"]["model_id"], one["metadata"]["state"]) for one in told]
    assert len(found) > 10
    assert found == [*islice(expected(), len(found))]
    assert followed(told) == dict(serving.states)
    audit = [one for one in payloads(bus, "RL_AUDIT") if one["action"].startswith("deployment_")]
    assert [one["what"] for one in audit] == [version for version, _ in found]


def expected() -> Iterator[tuple[str, str]]:
    """Yield version and state of each event where one version after the other becomes live."""
    for n in count(2):
        yield from [(f"v{n}", "canary")] * 5
        yield from ((f"v{n}", "live"), (f"v{n - 1}", "retired"))


def followed(told: list[dict[str, dict[str, str]]]) -> dict[str, str]:
    """Return where the events lead, each by a transition that there is."""
    states = dict(Serving().states)
    for one in told:
        version, state = one["model_info"]["model_id"], one["metadata"]["state"]
        before = states.get(version, "validated")
        assert state in {to for (was, _), (to, _) in DEPLOYMENTS.rows.items() if was == before}, (
            version,
            state,
        )
        states[version] = state  # type: ignore[assignment]
    return {**states}
