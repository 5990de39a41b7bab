"""The command ``tfgrpo loop approve``: a version may meet users."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.deployment.decisions import decided_version
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.report.serving_lines import serving_lines
from pytest_tfgrpo.production.training.versions.deployable import candidate_of


def approve(arguments: Arguments) -> Iterator[str]:
    """Let a version meet users: a share of the sessions at first, or after the ramp that is on."""
    override = arguments.emergency_override
    if arguments.at_once and not override:
        raise StoreError("--at-once skips the ramp, which takes --emergency-override")
    with decided_version(arguments) as (name, policies, deployments, decision):
        serving = deployments.serving()
        if name == serving.live or name in serving.versions:
            raise StoreError(f"version {name} is served already")
        if not candidate_of(policies, name).deployable and not override:
            reasons = policies.read(name).judged
            why = "; ".join(reasons.reasons) if reasons is not None else "it was not validated"
            raise StoreError(
                f"version {name} may not be deployed: {why}; --emergency-override does it anyhow"
            )
        if policies.row(name).state != "approved":
            policies.decide(name, "approved", by=decision.by, reason=decision.reason, at=decision.at)
        if serving.ramp is not None:
            again = "; approve it again then" if override or name in serving.states else ""
            yield f"{name} approved; it waits until the ramp of {serving.ramp.version} ends{again}"
            return
        candidate, live = candidate_of(policies, name), candidate_of(policies, serving.live)
        after = deployments.start(candidate, live, decision, override=override, at_once=arguments.at_once)
        yield from serving_lines(after)
