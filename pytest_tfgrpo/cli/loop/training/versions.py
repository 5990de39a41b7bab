"""The commands ``tfgrpo loop versions ...``: what was learned, where it stands, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.open_loop import existing_bus
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.texts.text import line, table
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.rows import VersionRow
from pytest_tfgrpo.production.training.versions.trace import trace_lines


def list_versions(arguments: Arguments) -> Iterator[str]:
    """Print all versions: state, score on the eval split, who decided."""
    with existing_bus(arguments.config) as (config, bus):
        policies, served = Policies(bus, open_artifacts(config.store)), Deployments(bus).serving().states
        rows = [_row(policies, row, row.shown(served.get(row.name))) for row in policies.listed()]
    head = ["version", "state", "lessons", "score", "against live", "decided by"]
    yield from table(head, rows, left=2) if rows else ["no job has made a version yet"]


def trace(arguments: Arguments) -> Iterator[str]:
    """Print the evidence, lessons and versions behind a version, lesson or trajectory."""
    with existing_bus(arguments.config) as (config, bus):
        policies = Policies(bus, open_artifacts(config.store))
        yield from list(trace_lines(policies, arguments.id))


def verdict(arguments: Arguments) -> Iterator[str]:
    """Keep what a person says of a version: safe where nobody could judge that, or a score.

    One that users meet is rolled back at once where it is unsafe.
    """
    unsafe = arguments.safety == "failed"
    with existing_bus(arguments.config) as (config, bus):
        policies, at = Policies(bus, open_artifacts(config.store)), utc_now()
        if unsafe:
            yield from _withdraw(bus, arguments)  # first: users come before the files, whatever these are
        row = policies.judge(
            arguments.version,
            safe=None if arguments.safety is None else not unsafe,
            score=arguments.human_eval_score,
            by=arguments.by,
            reason=redact(arguments.reason),
            at=at,
        )
        if unsafe:
            yield from _withdraw(bus, arguments)  # it may have begun its ramp meanwhile
        found = policies.read(row.name).judged
        TrainingJobs(bus, "").restate(row.job, {"validation": to_wire(found)}, at)
    yield f"{row.name}: {line(row.verdict.said[-1]) if row.verdict else ''}"
    yield f"{row.name} {row.state.replace('_', ' ')}"
    yield from (f"  {line(reason)}" for reason in (found.reasons if found else ()))


def _withdraw(bus: Bus, arguments: Arguments) -> Iterator[str]:
    """Roll a version back that users meet, and say so."""
    deployments, version = Deployments(bus), arguments.version
    reason = f"safety: a person found it unsafe: {redact(arguments.reason)}"
    before = deployments.serving()
    if version not in before.versions:
        return
    after = deployments.withdraw(version, DeployDecision(at=utc_now(), by=arguments.by, reason=reason))
    if version in after.versions:
        yield f"{version} stays live, since none was before it: approve a safe version, or stop your agent"
    else:
        yield f"{version} rolled back; live is {after.live}"


def _row(policies: Policies, row: VersionRow, state: str) -> list[str]:
    if row.state == "removed":
        return [row.name, "removed", *[""] * 4]
    try:
        if not policies.is_whole(row.name):
            return [row.name, "not whole yet", *[""] * 4]
        version = policies.read(row.name)
    except StoreError:
        return [row.name, f"{state.replace('_', ' ')}, cannot be read", *[""] * 3, line(row.by)]
    found = version.judged
    score, gain = (found.holdout_reward, found.improvement_over_baseline) if found else (None, None)
    return [
        row.name,
        state.replace("_", " "),
        str(version.lessons),
        "" if score is None else f"{score:.3f}",
        "" if gain is None else f"{gain:+.3f}",
        line(row.by),
    ]
