"""The command ``tfgrpo learn capture``: finished work as a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.learn.capture_work import capture_work
from pytest_tfgrpo.cli.learn.open_learning import open_learning
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.patterns.capture.capture import NOTHING
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus

TEXT_MAX = 1_000_000
"""Bytes of a prompt, and of its criteria."""


def capture(arguments: Arguments) -> Iterator[str]:
    """Capture finished work as a job: the change, what was asked for, and the commands that ran."""
    flags = {name: value for name in ("out", "task_id") if (value := getattr(arguments, name))}
    job = capture_work(
        arguments.approver,
        Path.cwd(),
        trigger=arguments.trigger,
        tests_by=arguments.tests_by,
        merge=arguments.merge,
        prompt=_text("--prompt", arguments.prompt),
        criteria=_text("--criteria", arguments.criteria),
        history=arguments.history or (),
        **flags,
    )
    with open_learning(arguments) as learning:
        yield from learning.settle()
    if job is None:
        yield f"skipped  {NOTHING}"
    elif job.snapshot is None:
        what = "refused" if job.status is LearningStatus.REFUSED else "failed three times"
        raise SnapshotError(
            f"the capture was {what}: {job.reason} (job {job.job_id})".replace("was failed", "failed")
        )
    else:
        yield f"captured  {job.job_id}: {plural(len(job.captured.files), 'changed file')}"


def _text(flag: str, name: str | None) -> str:
    """Return the text of a file; raises SettingError."""
    if name is None:
        return ""
    try:
        return read_plain(Path(name), TEXT_MAX).decode("utf-8", "replace")
    except OSError as error:
        raise SettingError(f"{flag} {name!r} cannot be read: {error.strerror or error}") from error
