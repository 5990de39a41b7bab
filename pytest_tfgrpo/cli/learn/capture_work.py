"""Capture finished work from Python or the command line: the only reader of its environment and files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.cli.learn.open_learning import alert_call
from pytest_tfgrpo.cli.project import open_project
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.history.git_shadow import locate
from pytest_tfgrpo.patterns.capture.capture import CaptureRequest, capture
from pytest_tfgrpo.patterns.capture.history import WorkHistory, history_of, read_history
from pytest_tfgrpo.patterns.jobs.manifest import LEARNING, CaptureTrigger, JobManifest, TestAuthor
from pytest_tfgrpo.patterns.jobs.queue import JobQueue
from pytest_tfgrpo.patterns.jobs.settle import settle
from pytest_tfgrpo.patterns.learn_file import load_learn_settings


def capture_work(
    approver: str,
    repository: str | Path = ".",
    *,
    trigger: CaptureTrigger = "approval",
    tests_by: TestAuthor = "unknown",
    merge: str | None = None,
    prompt: str = "",
    criteria: str = "",
    history: str | Path | Iterable[Mapping[str, Json]] = (),
    **settings: Any,
) -> JobManifest | None:
    """Capture the finished work in a repository as a job, and return it; None where nothing has changed.

    `repository` is any folder of the working tree; `merge` names a commit or merge to capture instead.
    `history` is a file, or rows with ``command`` and ``exit_code``; `settings` are ``out``,
    below the root of the repository, and ``task_id``.
    A job with a secret or a file that is too large is ``refused``, one whose snapshot failed three times is
    ``snapshot_failed``. Raises SettingError with advice where the work is not finished, and JournalError,
    StoreError and OSError where the job cannot be written.
    """
    root = locate(Path(repository)).root
    project = open_project(root, settings, os.environ)
    request = CaptureRequest(
        repository=root,
        learning=project.out / project.task_id / LEARNING,
        task_id=project.task_id,
        approver=approver,
        trigger=trigger,
        tests_by=tests_by,
        merge=merge,
        prompt=prompt,
        criteria=criteria,
        history=_history(history, root),
    )
    alert = alert_call(root, load_learn_settings(root, os.environ))
    with JobQueue(request.learning) as queue:
        job = capture(request, os.environ, queue)
        settle(queue, alert)
    return job


def _history(given: str | Path | Iterable[Mapping[str, Json]], root: Path) -> WorkHistory:
    if isinstance(given, (str, Path)):
        return read_history(Path(given), root)
    return history_of((json.dumps(row).encode() for row in given), root)
