"""The command ``tfgrpo learn requeue``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.learn.open_learning import open_learning
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.patterns.capture.snapshot_git import RepositoryGit
from pytest_tfgrpo.patterns.jobs.manifest import JobRequeue
from pytest_tfgrpo.patterns.jobs.requeue import requeue as put_back


def requeue(arguments: Arguments) -> Iterator[str]:
    """Put a job that failed or waits for a person back into the queue."""
    with open_learning(arguments) as learning:
        yield from learning.settle()
        job = learning.queue.find(arguments.job)
        how = put_back(
            learning.queue,
            job,
            RepositoryGit(os.environ),
            JobRequeue(approver=arguments.approver, reason=arguments.reason, at=""),
            rebuild=arguments.rebuild,
            scenario=Path(arguments.scenario) if arguments.scenario else None,
        )
        yield from learning.settle()
        yield f"queued  {job.id} by {how.approver}"
        if how.tarball_sha256:
            snapshot = learning.queue.find(job.id).manifest.snapshot
            commit = snapshot.commit if snapshot else ""
            yield f"  snapshot of commit {commit}, tarball sha256 {how.tarball_sha256}"
        if how.scenario_sha256:
            yield f"  signed file, sha256 {how.scenario_sha256}"
