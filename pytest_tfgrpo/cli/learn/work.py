"""The command ``tfgrpo learn work``: jobs are proven, one after another or several at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pytest_tfgrpo.cli.harvest.sandbox_choice import require_sandbox
from pytest_tfgrpo.cli.learn.open_learning import OpenLearning, open_learning
from pytest_tfgrpo.cli.learn.optimise import optimise
from pytest_tfgrpo.cli.learn.status import WIDTH
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_author import open_author
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.harvest.environment.builder import EnvironmentBuilder
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.tree_files import read_file
from pytest_tfgrpo.harvest.job.tools import domain_of, open_builder, open_tools
from pytest_tfgrpo.harvest.recipe.recipe import RecipeKnowledge
from pytest_tfgrpo.harvest.recipe.recipe_file import RECIPE_FILE, FolderRecipe, parse_recipes
from pytest_tfgrpo.launch.running import arun_launch
from pytest_tfgrpo.patterns.authoring.job_author import JobAuthor
from pytest_tfgrpo.patterns.capture.snapshot_git import RepositoryGit
from pytest_tfgrpo.patterns.jobs.crew import CrewPlan, work_queue
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.jobs.worker import LearningWorker, WorkedJob, WorkTools
from pytest_tfgrpo.patterns.optimise.rollouts import FixGroup
from pytest_tfgrpo.patterns.synthesis.join_suite import join_suite
from pytest_tfgrpo.patterns.synthesis.prove import JobProof, ProofTools, prove
from pytest_tfgrpo.scoring.runners.protocol import Isolation

MOST_JOBS = 64


def work(arguments: Arguments) -> Iterator[str]:
    """Work the jobs that wait: check the snapshot, prove the change."""
    if arguments.jobs > MOST_JOBS:
        arguments.parser.error(f"--jobs must be from 1 to {MOST_JOBS}, not {arguments.jobs}")
    if arguments.once and arguments.jobs > 1:
        arguments.parser.error("--once works one job; leave out --jobs")
    if arguments.check_sandbox == "none":
        yield "warning: the tests run without isolation; what they do, they do to this machine"
    require_sandbox(arguments.check_sandbox)
    with open_learning(arguments) as learning:
        yield from learning.settle()
        group = _group(learning, arguments)
        into = arguments.into or (
            learning.root / learning.settings.suite if learning.settings.suite else None
        )
        notes = list[str]()
        with open_author(learning.project, learning.settings, notes.append) as author:
            suite = Path(into) if into else None
            yield from _work(learning, arguments, author, notes, suite, group)


def _group(learning: OpenLearning, arguments: Arguments) -> FixGroup | None:
    """Return the agent that tries proven jobs again, None where none does; raises TfgrpoError."""
    if arguments.rollouts is None:
        return None
    project = learning.project
    settings = project.settings.with_values(check_sandbox=arguments.check_sandbox)
    return FixGroup(project.root, settings, os.environ, arguments.rollouts, arun_launch)


def _work(
    learning: OpenLearning,
    arguments: Arguments,
    author: JobAuthor,
    notes: list[str],
    suite: Path | None,
    group: FixGroup | None,
) -> Iterator[str]:
    """Work until nothing is left; `notes` gets what the author says."""
    builder, counts = open_builder(os.environ, arguments.check_sandbox), Counter[str]()
    tools = WorkTools(
        git=RepositoryGit(os.environ),
        prove=lambda job, folder: _prove(job, folder, builder, arguments.check_sandbox),
        author=author,
    )
    yield from LearningWorker(learning.queue, tools).add_patterns()
    plan = CrewPlan(workers=arguments.jobs, once=arguments.once)
    try:
        with closing(work_queue(learning.queue.folder, tools, plan)) as worked:
            for done in worked:
                counts[done.manifest.status] += not done.lost
                yield from learning.settle()
                yield work_line(done)
                while notes:
                    yield f"          {notes.pop(0)}"
                yield from _join(learning, suite)
                if group is not None and done.manifest.status is LearningStatus.VALIDATED:
                    yield from (f"          {said}" for said in optimise(learning, group, done.manifest))
    except KeyboardInterrupt:
        yield "interrupted: a job under way is back in the queue; the same command goes on"
        raise
    finally:
        learning.settle()
    yield from _join(learning, suite)
    listed = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()) if count)
    yield listed or "no job waits for a worker; `tfgrpo learn status` lists them"


def work_line(done: WorkedJob) -> str:
    """Return the line of a job that a worker is done with: id, status, seconds, and scenario or why."""
    manifest = done.manifest
    status = (
        "lease lost" if done.lost and manifest.status is LearningStatus.RUNNING else manifest.status.value
    )
    cause = f"{manifest.root_cause.value}: " if manifest.root_cause else ""
    named = ", ".join(filter(None, (manifest.scenario, manifest.pattern)))
    what = "  ".join(filter(None, (named, cause + line(manifest.reason, 300))))
    return f"{manifest.job_id[:8]}  {status:<{WIDTH}}  {done.elapsed_s:>6.1f} s  {what}".rstrip()


def _join(learning: OpenLearning, suite: Path | None) -> Iterator[str]:
    """Have the scenarios of proven jobs in the suite, and yield a line for each that is new there."""
    if suite is None:
        return
    for job in learning.queue.jobs():
        if job.status is LearningStatus.VALIDATED:
            try:
                if join_suite(learning.queue.folder_of(job.id), job.manifest.scenario, suite):
                    yield f"          {job.manifest.scenario} joined {suite}"
            except StoreError as error:
                yield f"warning: {job.manifest.scenario} did not join {suite}: {error}"


def _prove(job: JobManifest, folder: Path, builder: EnvironmentBuilder, isolation: Isolation) -> JobProof:
    """Prove a job by the recipe that stood before the change, so that nothing that it says itself counts."""
    snapshot, repository = job.snapshot, Path(job.captured.repository)
    assert snapshot is not None  # or it would have stalled
    reviewed = _reviewed(repository, snapshot.base)
    tools = ProofTools(
        harvest=open_tools(reviewed, builder),
        domain=domain_of(repository, f"{snapshot.base}..{snapshot.commit}"),
        knowledge=RecipeKnowledge(reviewed=reviewed, interpreters=builder.interpreters),
        isolation=isolation,
    )
    return prove(job, folder, tools)


def _reviewed(repository: Path, commit: str) -> tuple[FolderRecipe, ...]:
    """Return how tests run as ``harvest.toml`` of a commit says; raises SettingError, SnapshotError."""
    with GitObjects(repository) as objects:
        data = read_file(objects, commit, RECIPE_FILE)
    return (
        () if data is None else parse_recipes(data.decode("utf-8", "replace"), f"{RECIPE_FILE} of {commit}")
    )
