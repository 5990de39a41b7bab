"""What the commands share with which a person decides about a version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pytest_tfgrpo.cli.loop.open_loop import existing_bus
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies


class DecidedVersion(NamedTuple):
    """A version that a person decides about."""

    name: str
    policies: Policies
    deployments: Deployments
    decision: DeployDecision


@contextmanager
def decided_version(arguments: Arguments) -> Iterator[DecidedVersion]:
    """Yield the version that the arguments name; raises StoreError and BusError."""
    with existing_bus(arguments.config) as (config, bus):
        policies = Policies(bus, open_artifacts(config.store))
        decision = DeployDecision(at=utc_now(), by=arguments.by, reason=redact(arguments.reason))
        deployments = Deployments(bus, config.settings.proxy.url)
        yield DecidedVersion(arguments.version, policies, deployments, decision)
