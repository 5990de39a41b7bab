"""The version that an external trainer's checkpoint is: the project's suite is run with it and without it.

Both runs have the deployed library, the same scenarios and seeds, so that their answers pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.learning.library.library import load_library
from pytest_tfgrpo.production.deployment.serving import FIRST
from pytest_tfgrpo.production.training.jobs.run_end import read_report
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.production.training.jobs.versioned.trials import HOW_TO_RUN, START, VersionTrials
from pytest_tfgrpo.production.training.versions.artifacts import CHECKPOINTS, PACKS
from pytest_tfgrpo.production.training.versions.paired_report import paired_report
from pytest_tfgrpo.production.training.versions.policy import PolicyVersion
from pytest_tfgrpo.production.training.versions.safety_run import SafetyFinding, safe, safety_reasons
from pytest_tfgrpo.production.training.versions.validation import Validation, validate
from pytest_tfgrpo.runs.journal.journal_contents import load_run

DEPLOYED, CHECKPOINT = "deployed", "checkpoint"
"""Names of the two runs."""
UNKNOWN = "unknown"
"""Actor of a version that no run of the project met."""


class _Pair(NamedTuple):
    deployed: Run
    checkpoint: Run
    report: Mapping[str, Json]
    """Of the run of the checkpoint."""


def keep_checkpoint(outcome: JobOutcome, trials: VersionTrials) -> JobOutcome | None:
    """Return the outcome of a trainer with the version that its checkpoint is; see `KeepVersion`."""
    policies, said = trials.plan.policies, outcome.parts["artifacts"]
    checkpoint = str(said["final_checkpoint"])
    pair = _pair(trials, checkpoint)
    if isinstance(pair, str):
        validation = _untried(pair)
    else:
        findings = trials.safety(pair.checkpoint, trials.model_args(checkpoint))
        validation = _validated(pair, findings)
    if trials.stopped:
        return None
    if isinstance(pair, str):
        version = _keep_untried(trials, checkpoint, validation)
    else:
        policies.add_first(pair.deployed)
        version = policies.add(
            pair.checkpoint,
            job=trials.job_id,
            parent=trials.parent,
            validation=validation,
            dataset=trials.dataset,
            attempts={},
            checkpoint=checkpoint,
        )
    logs = {"tensorboard_logs": trials.log({})} if not isinstance(pair, str) else {}
    card = {"model_card": f"{policies.place(version.name)}/README.md"}
    kept = outcome.added(
        {**logs, **card, **said}, {"policy_version": version.name, "validation": to_wire(validation)}
    )
    results = {**kept.parts.get("evaluation_results", {}), **_measured(validation)}
    return replace(kept, parts={**kept.parts, **({"evaluation_results": results} if results else {})})


def _pair(trials: VersionTrials, checkpoint: str) -> _Pair | str:
    """Return the runs of both sides, or why there are none."""
    if trials.plan.project is None or not trials.plan.checkpoint_args:
        return f"nothing says how to run the checkpoint: {HOW_TO_RUN}"
    runs = list[Path]()
    for name, weights in ((DEPLOYED, trials.checkpoint), (CHECKPOINT, checkpoint)):
        found = trials.evaluated(name, trials.folder / START, trials.model_args(weights))
        if isinstance(found, str):
            of = f"version {trials.parent}" if name == DEPLOYED else "the checkpoint"
            return f"the suite did not run with {of}: {line(found, 500)}"
        runs.append(found)
    report = read_report(runs[1])
    assert report is not None, "the run is complete"
    return _Pair(load_run(runs[0]), load_run(runs[1]), report)


def _validated(pair: _Pair, findings: tuple[SafetyFinding, ...]) -> Validation:
    report = paired_report(pair.report, pair.deployed, pair.checkpoint)
    return validate(report, safe=safe(findings), safety=safety_reasons(findings))


def _untried(why: str) -> Validation:
    return Validation(
        outcome="needs_approval",
        reasons=(why, "no safety suite was tried"),
        benchmark_passed=False,
        safety_checks_passed=False,
        performance_regression=False,
        open_safety=("no safety suite was tried",),
    )


def _keep_untried(trials: VersionTrials, checkpoint: str, validation: Validation) -> PolicyVersion:
    """Keep a version that was not run: the deployed one with other weights."""
    policies, parent = trials.plan.policies, trials.parent
    library = load_library(trials.folder / START)
    known = parent != FIRST or any(row.name == FIRST for row in policies.whole())
    before = policies.read(parent) if known else None
    version = PolicyVersion(
        name="",
        model=checkpoint,
        actor=UNKNOWN if before is None else before.actor,
        packs={} if before is None else before.packs,
        library=library.hash,
        lessons=len(library.experiences),
        parents=(parent,),
        job=trials.job_id,
        dataset=trials.dataset,
        validation=validation,
        checkpoint=checkpoint,
        created_at=utc_now(),
    )
    file = policies.files.read(f"{CHECKPOINTS}/{parent}/{PACKS}")
    packs = () if file is None else from_wire(tuple[PromptPack, ...], load_json(file))
    return policies.keep(version, packs, library, policies.sources(parent))


def _measured(found: Validation) -> dict[str, Json]:
    """Return what the runs say, which a trainer's own figures give way to."""
    names = ("holdout_reward", "improvement_over_baseline")
    values = {name: value for name in names if (value := getattr(found, name)) is not None}
    return {**values, **({"benchmark_scores": found.benchmark_scores} if found.benchmark_scores else {})}
