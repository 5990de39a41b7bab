"""The file of flags as OpenFeature's provider of flagd reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.flagd import FlagdProvider
from openfeature.contrib.provider.flagd.config import ResolverType
from openfeature.evaluation_context import EvaluationContext
from support.buses import EmbeddedPlace

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.serving.foreign.flag_file import FLAG, FlagFile

GOOD = DeployCandidate(version="v2", benchmark_passed=True, safety_checks_passed=True, improvement=0.1)
AT = DeployDecision(at="2026-01-01T00:00:00Z", by="ada", reason="x")
SESSIONS = [f"chat-{number}" for number in range(4000)]


@pytest.fixture
def bus(embedded: EmbeddedPlace) -> Bus:
    return embedded.open()


@pytest.fixture
def write(bus: Bus, tmp_path: Path) -> Callable[[], None]:
    """Return what writes the file as the service does."""

    def now() -> None:
        FlagFile(bus, tmp_path / "flags.json").step()

    now()
    return now


@pytest.fixture
def client(write: Callable[[], None], tmp_path: Path) -> Iterator[OpenFeatureClient]:
    assert write is not None
    provider = FlagdProvider(
        resolver_type=ResolverType.FILE,
        offline_flag_source_path=str(tmp_path / "flags.json"),
        deadline_ms=100,
    )
    api.set_provider_and_wait(provider)
    yield api.get_client()
    api.shutdown()
    api.clear_providers()


def version_of(client: OpenFeatureClient, session: str) -> str:
    return client.get_string_value(FLAG, "none", EvaluationContext(targeting_key=session))


def new_version(client: OpenFeatureClient) -> set[str]:
    """Return the sessions that get v2; all others get v1."""
    drawn = {session: version_of(client, session) for session in SESSIONS}
    assert set(drawn.values()) <= {"v1", "v2"}
    return {session for session, version in drawn.items() if version == "v2"}


def until(client: OpenFeatureClient, seen: Callable[[set[str]], bool]) -> set[str]:
    """Return the sessions of v2 once the provider has read the file."""
    end = time.monotonic() + 60
    while not seen(new_version(client)):
        assert time.monotonic() < end
        time.sleep(0.1)
    return new_version(client)  # the file may have been read in between


def test_a_growing_share_only_adds_sessions_and_a_rollback_takes_all_back(
    bus: Bus, client: OpenFeatureClient, write: Callable[[], None]
) -> None:
    deployments = Deployments(bus)
    assert new_version(client) == set()
    serving = deployments.start(GOOD, DeployCandidate(version="v1"), AT)
    before: set[str] = set()
    first: set[str] = set()
    while serving.ramp is not None:
        write()
        drawn = until(client, lambda found: len(found) > len(before))  # noqa: B023 - used at once
        assert before < drawn
        assert len(drawn) / len(SESSIONS) == pytest.approx(serving.ramp.share, abs=0.03)
        first, before = first or drawn, drawn
        assert version_of(client, "") == "v1"
        assert client.get_string_value(FLAG, "none") == "v1", "without a session"
        serving = deployments.advance("v2", AT)
    write()
    until(client, lambda found: len(found) == len(SESSIONS))
    deployments.roll_back("v2", AT)
    write()
    until(client, lambda found: not found)
    deployments.start(GOOD, DeployCandidate(version="v1"), AT)
    write()
    other = until(client, lambda found: len(found) > 0)
    assert len(other & first) < len(first) / 2, "another deployment draws other sessions"
