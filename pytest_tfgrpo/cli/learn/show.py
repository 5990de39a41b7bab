"""The command ``tfgrpo learn show``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.learn.open_learning import OpenLearning, open_learning
from pytest_tfgrpo.cli.learn.optimise import rollouts_line
from pytest_tfgrpo.cli.learn.status import job_line
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.texts.text import block, line
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.patterns.jobs.attempt_folder import LOGS
from pytest_tfgrpo.patterns.jobs.integrity import DIFF
from pytest_tfgrpo.patterns.jobs.queue_file import QueuedJob
from pytest_tfgrpo.patterns.optimise.rollouts import read_rollouts
from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected, is_test

SHOWN = 5000
"""Characters of a file of logs."""
_HEAD = re.compile(rb"^diff --git ", re.MULTILINE)


def show(arguments: Arguments) -> Iterator[str]:
    """Print a job with its attempts and logs, or the diff of its tests."""
    if arguments.tests != bool(arguments.reviewer):
        arguments.parser.error("--tests and --reviewer belong together: who has seen the diff of the tests")
    with open_learning(arguments) as learning:
        warnings = learning.settle()
        job = learning.queue.find(arguments.job)
        folder = learning.queue.folder_of(job.id)
        if arguments.json:
            yield json.dumps(to_wire(job.manifest), indent=1)
        elif arguments.tests:
            yield from _tests(learning, job, arguments.reviewer)
        else:
            yield from warnings
            yield from _job(job, folder)
            seen = learning.queue.tests_seen_by(job.id)
            yield f"diff of the tests seen by {', '.join(seen) or 'nobody'}"


def _job(job: QueuedJob, folder: Path) -> Iterator[str]:
    manifest = job.manifest
    work = manifest.captured
    yield job_line(job)
    yield f"captured {work.created_at}, {work.trigger} by {line(work.approver)}; tests by {work.tests_by}"
    if work.improves:
        yield f"a smaller fix of job {work.improves}"
    if manifest.released_by:
        yield f"approved by {line(manifest.released_by)}"
    yield f"files: {line(', '.join(work.files), 500)}"
    if manifest.snapshot is not None:
        yield f"snapshot: commit {manifest.snapshot.commit}, ref {manifest.snapshot.ref}"
    for attempt in manifest.attempts:
        ended = "running" if job.holder == attempt.worker else "its worker was lost"
        yield f"attempt {attempt.started_at}: {attempt.status or ended}  {line(attempt.reason, 300)}".rstrip()
    for how in manifest.requeues:
        signed = f", signed {how.scenario_sha256}" if how.scenario_sha256 else ""
        yield f"requeued {how.at} by {line(how.approver)}: {line(how.reason, 300)}{signed}"
    yield f"folder: {folder}"
    for path in sorted(folder.glob("*.manual.md")):
        yield f"what to do: {path}"
    if (found := read_rollouts(folder)) is not None:
        yield f"optimised: {rollouts_line(found)}"
    for path in sorted((folder / LOGS).glob("*")):
        yield f"--- {LOGS}/{path.name}"
        yield block(_read(path).decode("utf-8", "replace"), SHOWN)


def _tests(learning: OpenLearning, job: QueuedJob, reviewer: str) -> Iterator[str]:
    """Print the diff of a job's tests, all of it, and keep who has seen it."""
    if job.manifest.captured.trigger == "self" and reviewer == job.manifest.captured.approver:
        raise SettingError(f"{reviewer!r} proposed job {job.id}; a person sees its tests")
    diff = _read(learning.queue.folder_of(job.id) / DIFF)
    if job.manifest.snapshot is None or stamp_bytes(diff) != job.manifest.snapshot.diff_sha256:
        raise StoreError(
            f"{DIFF} of job {job.id} is not what was captured; `tfgrpo learn requeue` rebuilds it"
        )
    parts = [part for part in _parts(diff) if _is_of_tests(part)]
    yield from (block(part.decode("utf-8", "replace").rstrip("\n")) for part in parts)
    if not parts:
        yield "the change touches no tests: what proves it was there before"
    learning.queue.note_seen(job.id, reviewer)
    yield from learning.settle()
    yield f"seen by {reviewer}"


def _parts(diff: bytes) -> list[bytes]:
    """Return the part of each file of a diff."""
    starts = [found.start() for found in _HEAD.finditer(diff)]
    return [diff[start:end] for start, end in zip(starts, [*starts[1:], len(diff)], strict=True)]


def _is_of_tests(part: bytes) -> bool:
    """Return whether a part is of a file that a check takes from the fix."""
    head = part.partition(b"\n")[0].decode("utf-8", "surrogateescape")
    path = head.rpartition(" b/")[2].rstrip('"')
    return is_test(path) or is_protected(path)


def _read(path: Path) -> bytes:
    try:
        return read_plain(path)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
