"""The proof of a captured job: harvest's validation of its change, and what becomes of the job by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.core.files import write_atomic
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.harvest.environment.builder import MadeEnvironment
from pytest_tfgrpo.harvest.fixes import FixCandidate, HarvestRow, HarvestStatus, RecipePart, RootCause
from pytest_tfgrpo.harvest.history.candidates import CandidateRules
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.job.plan import HarvestPlan, HarvestTools
from pytest_tfgrpo.harvest.job.progress import WorkerProgress
from pytest_tfgrpo.harvest.job.worker import HarvestWorker
from pytest_tfgrpo.harvest.locked_folder import WORK, locked_folder
from pytest_tfgrpo.harvest.recipe.recipe import RecipeKnowledge
from pytest_tfgrpo.harvest.recipe.recipe_file import read_recipes
from pytest_tfgrpo.harvest.suite.provenance import FixOrigin
from pytest_tfgrpo.harvest.suite.suite_files import SuitePaths
from pytest_tfgrpo.patterns.jobs.integrity import RECIPE
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.synthesis.captured_fix import (
    captured_candidate,
    captured_change,
    captured_statement,
    read_prompt,
)
from pytest_tfgrpo.patterns.synthesis.own_tests import judge_own_tests
from pytest_tfgrpo.patterns.synthesis.recipe_sources import CapturedRecipes, found_commands
from pytest_tfgrpo.patterns.synthesis.surfaces import RunnableSurface
from pytest_tfgrpo.scoring.runners.protocol import Isolation

STATUSES = {
    HarvestStatus.VALIDATED: LearningStatus.VALIDATED,
    HarvestStatus.NEEDS_MANUAL: LearningStatus.NEEDS_MANUAL,
}
"""What a harvest's status is for a job; every other one is a validation that failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofTools:
    """What a proof works with; tests hand in others."""

    harvest: HarvestTools
    domain: str
    """Of the scenario."""
    knowledge: RecipeKnowledge = RecipeKnowledge()
    """The project's ``harvest.toml``, and the Pythons of this machine."""
    isolation: Isolation = "bwrap"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobProof:
    """What came of the proof of a job."""

    status: LearningStatus
    """``validated``, ``validation_failed`` or ``needs_manual_scenario``."""
    root_cause: RootCause | None = None
    reason: str = ""
    scenario: str = ""
    """Id of the scenario, also where only a partial one is there."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each value of the recipe that was tried last is from."""
    broken: int = 0
    """Tests that passed before the change and fail after it."""


def prove(job: JobManifest, folder: Path, tools: ProofTools) -> JobProof:
    """Prove the change of a job, whose scenario is written into its folder.

    Raises StoreError and OSError where nothing can be written, and Cancelled.
    """
    if job.snapshot is None:
        return _failed(RootCause.SNAPSHOT_INTEGRITY, "the job has no snapshot")
    prompt = read_prompt(folder)
    found = found_commands(job, folder, prompt)
    signed = read_recipes(folder / RECIPE) if (folder / RECIPE).is_file() else ()
    reviewed = (*signed, *tools.knowledge.reviewed)
    rules = CandidateRules(
        tests=tuple(glob for recipe in reviewed for glob in recipe.tests or ()),
        protected=tuple(glob for recipe in reviewed for glob in recipe.protected or ()),
    )
    try:
        with GitObjects(Path(job.captured.repository)) as objects:
            change = captured_change(job.snapshot, prompt, objects)
            candidate, tests = captured_candidate(change, rules, found, objects)
    except (SnapshotError, SettingError) as error:
        return _failed(RootCause.SNAPSHOT_INTEGRITY, line(str(error), 300))
    if isinstance(candidate, HarvestRow):
        return _of_row(candidate, {})
    own = tools.harvest.recipes
    recipes = CapturedRecipes(found, tools.knowledge, own, tests, signed)
    proof = _prove(candidate, _plan(job, folder, tools, rules), replace(tools.harvest, recipes=recipes))
    if proof.status is LearningStatus.NEEDS_MANUAL and recipes.surface is not None:
        return _with_surface(proof, folder, recipes.surface)
    return proof


def _with_surface(proof: JobProof, folder: Path, surface: RunnableSurface) -> JobProof:
    """Return the proof of a change without tests, with what a person could run of it."""
    where = f"`{surface.command}` ({surface.source})"
    said = f"there is no test of it; nearest to it {where} can be run"
    path = SuitePaths(suite=folder, id=proof.scenario).manual
    text = path.read_text("utf-8").rstrip()
    advice = f"Nearest to them {where} can be run: write a test of it, or a command that does."
    write_atomic(path, [f"{text}\n\n{advice}\n".encode()])
    return replace(proof, reason=said, sources={**proof.sources, "surface": surface.source})


def _plan(job: JobManifest, folder: Path, tools: ProofTools, rules: CandidateRules) -> HarvestPlan:
    captured = job.captured
    return HarvestPlan(
        repository=Path(captured.repository),
        commits=job.snapshot.commit if job.snapshot else "",
        suite=folder,
        domain=tools.domain,
        tests=rules.tests,
        protected=rules.protected,
        isolation=tools.isolation,
        origin=FixOrigin(source="capture", job=job.job_id, approver=captured.approver),
    )


def _prove(candidate: FixCandidate, plan: HarvestPlan, tools: HarvestTools) -> JobProof:
    sources: dict[str, str] = {}

    def environment(part: RecipePart, date: int) -> MadeEnvironment:
        sources.clear()
        sources.update(part.sources)
        return tools.environment(part, date)

    own = replace(tools, environment=environment, statement=captured_statement, judge=judge_own_tests)
    with locked_folder(WORK) as work:
        worker = HarvestWorker(plan, own, work / "tree", (), WorkerProgress())
        try:
            found = worker.harvest(candidate)
        finally:
            worker.close()
    return _of_row(found.row, sources)


def _of_row(row: HarvestRow, sources: Mapping[str, str]) -> JobProof:
    status = STATUSES.get(row.status, LearningStatus.VALIDATION_FAILED)
    cause = row.cause
    if status is LearningStatus.VALIDATION_FAILED:
        cause = cause or RootCause.SCENARIO_SYNTHESIS  # skipped, or refused for a secret
    written = row.id if status is not LearningStatus.VALIDATION_FAILED else ""
    return JobProof(
        status=status,
        root_cause=cause,
        reason=row.reason,
        scenario=written,
        sources=sources,
        broken=row.broken,
    )


def _failed(cause: RootCause, reason: str) -> JobProof:
    return JobProof(status=LearningStatus.VALIDATION_FAILED, root_cause=cause, reason=reason)
