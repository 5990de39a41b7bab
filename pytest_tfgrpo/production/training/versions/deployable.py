"""Policy versions as those who deploy them see them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.deployment.candidate import NO_JOB, DeployCandidate, FindNext, NextRamp
from pytest_tfgrpo.production.deployment.serving import FIRST, Serving
from pytest_tfgrpo.production.training.versions.artifacts import URL
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.policy import PolicyVersion


def candidate_of(policies: Policies, name: str) -> DeployCandidate:
    """Return a version with what its validation found; v1 may be known by name alone.

    Raises StoreError and BusError.
    """
    put = policies.put_of(name)
    if put is None and name == FIRST:
        return DeployCandidate(version=FIRST)
    row, version = policies.row(name), policies.read(name)
    found = version.judged
    said = (
        {}
        if found is None
        else {
            "benchmark_passed": found.benchmark_passed,
            "safety_checks_passed": found.safety_checks_passed,
            "performance_regression": found.performance_regression,
        }
    )
    return DeployCandidate(
        version=name,
        approved_by=row.by if row.state == "approved" else "",
        validated=row.state == "validated",
        improvement=None if found is None else found.improvement_over_baseline,
        improvement_low=None if found is None else found.improvement_low,
        human_eval_score=None if found is None else found.human_eval_score,
        job=_uuid(version.job),
        model_info=_model_info(version, policies.place(name)),
        row=put,
        **said,
    )


def next_ramp(policies: Policies, serving: Serving, *, automatic: bool) -> NextRamp:
    """Return the newest version that may begin a ramp: approved, or validated where that is `automatic`.

    Older ones than the live version, and those that met users, wait for a person. One that cannot be read,
    or that its validation is against, is left out with the reason. Raises StoreError and BusError.
    """
    skipped: dict[str, str] = {}
    for row in reversed(policies.listed()):
        newer = int(row.name[1:]) > int(serving.live[1:])
        if row.state not in ("approved", "validated") or not newer or row.name in serving.states:
            continue
        if row.state == "validated" and not automatic:
            continue
        try:
            if not policies.is_whole(row.name):
                continue  # its job writes it just now, or again
            candidate = candidate_of(policies, row.name)
        except StoreError as error:
            skipped[row.name] = str(error)
            continue
        if not candidate.deployable:
            skipped[row.name] = "its validation is against it: approve it again with --emergency-override"
        elif candidate.approved_by or (automatic and candidate.validated):
            return NextRamp(candidate, live_version(policies, serving.live), skipped)
    return NextRamp(skipped=skipped)


def live_version(policies: Policies, name: str) -> DeployCandidate:
    """Return the live version, of which nothing but its name is needed."""
    try:
        return candidate_of(policies, name)
    except StoreError:
        return DeployCandidate(version=name)


def ramps(policies: Policies, *, automatic: bool) -> FindNext:
    """Return what finds the version that may begin a ramp."""
    return lambda serving: next_ramp(policies, serving, automatic=automatic)


def _uuid(job: str) -> str:
    try:
        return str(UUID(job))
    except ValueError:
        return NO_JOB


def _model_info(version: PolicyVersion, place: str) -> dict[str, Json]:
    info: dict[str, Json] = {
        "base_model": version.model,
        "checkpoint_path": version.checkpoint or (place if URL in place else Path(place).as_uri()),
        "training_date": version.created_at,
    }
    samples = version.dataset.get("counts", {}).get("attempts")
    if samples is not None:
        info["training_samples"] = samples
    if version.validation is not None and version.validation.holdout_reward is not None:
        info["final_reward"] = version.validation.holdout_reward
    return info
