"""Policy versions as those who deploy them see them."""

from __future__ import annotations

from uuid import UUID

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.deployment.candidate import NO_JOB, DeployCandidate, NextCandidate
from pytest_tfgrpo.production.deployment.serving import FIRST, Serving
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.policy import PolicyVersion


def candidate_of(policies: Policies, name: str) -> DeployCandidate:
    """Return a version with what its validation found; v1 may be known by name alone.

    Raises StoreError and BusError.
    """
    rows = {row.name: row for row in policies.listed()}
    if name == FIRST and name not in rows:
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
        job=_uuid(version.job),
        model_info=_model_info(version, policies.place(name)),
        **said,
    )


def next_candidate(policies: Policies, serving: Serving, *, automatic: bool) -> DeployCandidate | None:
    """Return the newest version that may begin a ramp: approved, or validated where that is `automatic`.

    Older ones than the live version, and those that met users, wait for a person. Raises StoreError and
    BusError.
    """
    wanted = {"approved", "validated"} if automatic else {"approved"}
    for row in reversed(policies.whole()):
        newer = int(row.name[1:]) > int(serving.live[1:])
        if row.state in wanted and newer and row.name not in serving.states:
            candidate = candidate_of(policies, row.name)
            if candidate.deployable:
                return candidate
    return None


def deployable_pairs(policies: Policies, *, automatic: bool) -> NextCandidate:
    """Return what finds the version that may begin a ramp, together with the live one."""

    def found(serving: Serving) -> tuple[DeployCandidate, DeployCandidate] | None:
        candidate = next_candidate(policies, serving, automatic=automatic)
        return None if candidate is None else (candidate, candidate_of(policies, serving.live))

    return found


def _uuid(job: str) -> str:
    try:
        return str(UUID(job))
    except ValueError:
        return NO_JOB


def _model_info(version: PolicyVersion, place: str) -> dict[str, Json]:
    info: dict[str, Json] = {
        "base_model": version.model,
        "checkpoint_path": version.checkpoint or place,
        "training_date": version.created_at,
    }
    samples = version.dataset.get("counts", {}).get("attempts")
    if samples is not None:
        info["training_samples"] = samples
    if version.validation is not None and version.validation.holdout_reward is not None:
        info["final_reward"] = version.validation.holdout_reward
    return info
