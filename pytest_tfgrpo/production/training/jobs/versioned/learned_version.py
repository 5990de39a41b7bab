"""The version that a run learned: validated by what the run itself measured, and by safety suites."""

from __future__ import annotations

from dataclasses import replace

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import JOURNAL, REPORT_HTML, REPORT_JSON
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.learning.attribution.untested import held_back
from pytest_tfgrpo.learning.library.library import without
from pytest_tfgrpo.production.training.jobs.pytest_work import OUT
from pytest_tfgrpo.production.training.jobs.run_end import read_report
from pytest_tfgrpo.production.training.jobs.run_progress import newest_run
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.production.training.jobs.versioned.trials import VersionTrials
from pytest_tfgrpo.production.training.versions.artifacts import CURVES
from pytest_tfgrpo.production.training.versions.curve import curve_svg
from pytest_tfgrpo.production.training.versions.safety_run import safe, safety_reasons
from pytest_tfgrpo.production.training.versions.validation import validate
from pytest_tfgrpo.runs.evidence_epoch import PREFIX
from pytest_tfgrpo.runs.journal.journal_contents import load_run


def keep_learned(outcome: JobOutcome, trials: VersionTrials) -> JobOutcome | None:
    """Return the outcome of a run with the version that it became; see `KeepVersion`."""
    policies, parent = trials.plan.policies, trials.parent
    folder = newest_run(trials.folder / OUT)
    report = None if folder is None else read_report(folder)
    if folder is None or report is None:
        raise StoreError(f"{trials.folder / OUT} has no complete run; ask for another job")
    run = _tested(load_run(folder))
    policies.add_first(run)
    if run.library.hash == run.library_start.hash:
        return outcome.added({"final_checkpoint": policies.place(parent)}, {"policy_version": parent})
    findings = trials.safety(run, trials.model_args(trials.checkpoint))
    if trials.stopped:
        return None
    validation = validate(report, safe=safe(findings), safety=safety_reasons(findings))
    version = policies.add(
        run,
        job=trials.job_id,
        parent=parent,
        validation=validation,
        dataset=trials.dataset,
        attempts=_attempts(run),
        checkpoint=trials.checkpoint,
    )
    logs = trials.log({name: folder / name for name in (JOURNAL, REPORT_JSON, REPORT_HTML)})
    curve = f"{CURVES}/{trials.job_id}/curve.svg"
    policies.files.write(curve, curve_svg(report).encode())
    places = {
        "final_checkpoint": policies.place(version.name),
        "tensorboard_logs": logs,
        "training_curves": policies.files.place(curve),
        "model_card": f"{policies.place(version.name)}/README.md",
    }
    return outcome.added(places, {"policy_version": version.name, "validation": to_wire(validation)})


def _tested(run: Run) -> Run:
    """Return a run without the lessons that it holds back."""
    held = held_back(run, run.library)
    return replace(run, library=without(run.library, {lesson.id for lesson in held})) if held else run


def _attempts(run: Run) -> dict[str, list[str]]:
    """Return the ids of trajectories by the key of the group of evidence that they are in."""
    return {
        group.scenario_id.removeprefix(PREFIX): [
            str(one.extra["trajectory_id"]) for one in group.rollouts if "trajectory_id" in one.extra
        ]
        for result in run.phases
        if result.phase.mode == "evidence"
        for group in result.groups
    }
