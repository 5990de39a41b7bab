"""The command ``tfgrpo loop approve``: a version may meet users."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.deployment.decisions import decided_version
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.report.serving_lines import serving_lines
from pytest_tfgrpo.production.training.versions.deployable import candidate_of, live_version
from pytest_tfgrpo.production.training.versions.policies import Policies


def approve(arguments: Arguments) -> Iterator[str]:
    """Let a version meet users: a share of the sessions at first, or after the ramp that is on."""
    override = arguments.emergency_override
    if arguments.at_once and not override:
        raise StoreError("--at-once skips the ramp, which takes --emergency-override")
    with decided_version(arguments) as (name, policies, deployments, decision):
        serving = deployments.serving()
        if name == serving.live or name in serving.versions:
            raise StoreError(f"version {name} is served already")
        against = not candidate_of(policies, name).deployable
        if against and not override:
            raise StoreError(_refusal(policies, name))
        if override or policies.row(name).state != "approved":
            said = {"by": decision.by, "reason": decision.reason, "at": decision.at}
            policies.decide(name, "approved", **said, override=override)
        if serving.ramp is not None:
            again = "; approve it again then" if override or name in serving.states else ""
            yield f"{name} approved; it waits until the ramp of {serving.ramp.version} ends{again}"
            return
        candidate, live = candidate_of(policies, name), live_version(policies, serving.live)
        if not candidate.approved_by:
            raise StoreError(f"version {name} was rejected meanwhile; nothing is changed")
        after = deployments.start(candidate, live, decision, override=override, at_once=arguments.at_once)
        yield from serving_lines(after)


def _refusal(policies: Policies, name: str) -> str:
    """Return why a version may not be deployed, and what a person may do about it."""
    found = policies.read(name).judged
    why = "it was not validated" if found is None else "; ".join(found.reasons)
    anyhow = "--emergency-override does it anyhow"
    if found and found.open_safety and found.benchmark_passed and not found.performance_regression:
        verdict = f"tfgrpo loop versions verdict {name} --safety passed --by NAME --reason TEXT"
        anyhow = f"say whether what is open is safe: {verdict}; {anyhow}"
    return f"version {name} may not be deployed: {why}; {anyhow}"
