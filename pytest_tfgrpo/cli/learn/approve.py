"""The command ``tfgrpo learn approve``."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.learn.open_learning import open_learning
from pytest_tfgrpo.cli.parsers import Arguments


def approve(arguments: Arguments) -> Iterator[str]:
    """Let a job that an agent proposed be worked."""
    with open_learning(arguments) as learning:
        yield from learning.settle()
        job = learning.queue.find(arguments.job)
        learning.queue.release(job.id, arguments.approver)
        yield from learning.settle()
        yield f"approved  {job.id} by {arguments.approver}"
