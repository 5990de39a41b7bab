"""The shelf that a command works on, what its patterns are screened with, and the jobs they come from."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.patterns.jobs.manifest import LEARNING, JobManifest
from pytest_tfgrpo.patterns.jobs.queue import QUEUE_FILE, JobQueue, reviewers_of_tests
from pytest_tfgrpo.patterns.jobs.queue_file import QueuedJob
from pytest_tfgrpo.patterns.learn_file import load_learn_settings
from pytest_tfgrpo.patterns.shelf.pattern import FOLDER, Pattern
from pytest_tfgrpo.patterns.shelf.promotion import PatternJob, PatternReview
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf
from pytest_tfgrpo.patterns.shelf.sync import SyncPlaces
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect
from pytest_tfgrpo.suite.contamination.answers import expected_answers


def open_shelf(arguments: Arguments) -> Shelf:
    """Return the shelf of the repository that is named, or that the current folder is part of."""
    start = Path(arguments.repo or ".").resolve()
    if not start.is_dir():
        raise SettingError(f"there is no folder {str(start)!r}; name a repository with --repo")
    around = (start, *start.parents)
    marked = (one for one in around if (one / FOLDER).is_dir() or (one / ".git").exists())
    return Shelf(next(marked, start))


def screens_of(arguments: Arguments) -> PatternScreens:
    """Return the screens, with the answers of a suite if one is named; raises ScenarioError."""
    if arguments.suite is None:
        return PatternScreens()
    folder = Path(arguments.suite).resolve()
    return PatternScreens(collect(folder, [folder], KINDS), partial(expected_answers, KINDS))


def review_of(arguments: Arguments, shelf: Shelf, pattern: Pattern) -> PatternReview:
    """Return what a decision about a pattern rests on."""
    folder, jobs = _jobs(arguments)
    wanted = pattern.evidence.job if pattern.evidence else ""
    found = next((job for job in jobs if job.id == wanted), None)
    return replace(
        reviewers_of(arguments, shelf, screens_of(arguments)),
        job=None if found is None else _job(found.manifest, reviewers_of_tests(folder, found.id)),
        untested=arguments.untested,
    )


def reviewers_of(arguments: Arguments, shelf: Shelf, screens: PatternScreens) -> PatternReview:
    """Return what says who may decide about any pattern."""
    return PatternReview(
        screens=screens,
        approvers=load_learn_settings(shelf.root, os.environ).approvers,
        agents={
            job.manifest.captured.approver
            for job in _jobs(arguments)[1]
            if job.manifest.captured.trigger == "self"
        },
    )


def places_of(arguments: Arguments, shelf: Shelf) -> SyncPlaces:
    """Return what learn.toml wants to be kept up to date."""
    settings = load_learn_settings(shelf.root, os.environ)
    return SyncPlaces(skills=settings.skills, agents_md=settings.agents_md, docs=arguments.docs)


def _jobs(arguments: Arguments) -> tuple[Path, list[QueuedJob]]:
    project = project_of(arguments)
    folder = project.out / project.task_id / LEARNING
    if not (folder / QUEUE_FILE).is_file():
        return folder, []
    with JobQueue(folder) as queue:
        return folder, queue.jobs()


def _job(manifest: JobManifest, seen_by: tuple[str, ...]) -> PatternJob:
    snapshot = manifest.snapshot
    return PatternJob(
        job=manifest.job_id,
        status=manifest.status.value,
        commit=snapshot.commit if snapshot else "",
        diff_sha256=snapshot.diff_sha256 if snapshot else "",
        tests_seen_by=seen_by,
    )
