"""The command ``tfgrpo learn prune``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from pytest_tfgrpo.cli.learn.open_learning import open_learning
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.patterns.capture.snapshot_git import RepositoryGit
from pytest_tfgrpo.patterns.jobs.prune import prune as pruned
from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus
from pytest_tfgrpo.patterns.shelf.shelf import Shelf


def prune(arguments: Arguments) -> Iterator[str]:
    """Remove jobs that ended long ago; the log keeps their lines."""
    with open_learning(arguments) as learning:
        yield from learning.settle()
        files = Shelf(learning.root).files(PatternStatus.CANDIDATE, PatternStatus.ACTIVE)
        used = {file.pattern.evidence.job for file in files if file.pattern and file.pattern.evidence}
        lines = list(
            pruned(learning.queue, RepositoryGit(os.environ), arguments.days, used, datetime.now(UTC))
        )
        yield from lines or [f"no job ended more than {arguments.days} days ago"]
        yield from learning.settle()
