"""A smaller fix as a job of its own: the approved tests with an agent's source, proposed to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.records import FileChange
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.patterns.capture.capture import CaptureRequest, JobSink, capture
from pytest_tfgrpo.patterns.capture.git_writer import GitWriter, object_id
from pytest_tfgrpo.patterns.capture.history import history_of
from pytest_tfgrpo.patterns.capture.job_folder import HISTORY, PROMPT
from pytest_tfgrpo.patterns.capture.snapshot import MadeTree, changed_files
from pytest_tfgrpo.patterns.optimise.fix_size import ProvenFix, content_of

if TYPE_CHECKING:
    from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, WorkSnapshot

_GONE = "0"
"""Mode of a file that goes from an index."""
_NO_OBJECT = "0" * 40


def propose(
    job: JobManifest,
    folder: Path,
    source: Sequence[FileChange],
    *,
    fix: ProvenFix,
    agent: str,
    environ: Mapping[str, str],
    queue: JobSink,
) -> JobManifest | None:
    """Put an agent's fix of a proven job into the queue, where it waits for a person, and return the job.

    `source` is what it changed besides protected files. It has the prompt, the history and the tests of the
    job; None where it is no change. Raises SettingError, JournalError, StoreError, OSError.
    """
    snapshot, captured = job.snapshot, job.captured
    assert snapshot is not None  # or it would not be proven
    root = Path(captured.repository)
    request = CaptureRequest(
        repository=root,
        learning=folder.parent,
        task_id=captured.task_id,
        approver=agent,
        trigger="self",
        tests_by=captured.tests_by,
        made=MadeTree(base=snapshot.base, write=lambda git: _write_tree(git, snapshot, fix, source)),
        improves=job.job_id,
        prompt=read_plain(folder / PROMPT).decode("utf-8", "replace"),
        history=history_of(read_plain(folder / HISTORY).splitlines(), root),
    )
    return capture(request, environ, queue)


def _write_tree(git: GitWriter, snapshot: WorkSnapshot, fix: ProvenFix, source: Sequence[FileChange]) -> str:
    """Write the approved tree, its source as it was before the fix but for what the agent changed."""
    rows = dict[str, tuple[str, str]]()
    with GitObjects(git.place.root) as objects:
        for file in changed_files(objects, snapshot.base_tree, snapshot.tree):
            if file.path in fix.fixed:
                rows[file.path] = (file.old_mode, file.old_id) if file.old_id else (_GONE, _NO_OBJECT)
    for change in source:
        rows[change.name] = _object(git, change)
    git.run("read-tree", snapshot.tree)
    given = "".join(f"{mode} {name}\t{path}\0" for path, (mode, name) in rows.items())
    git.run("update-index", "-z", "--replace", "--index-info", given=given.encode("utf-8", "surrogateescape"))
    return object_id(git.run("write-tree"))


def _object(git: GitWriter, change: FileChange) -> tuple[str, str]:
    """Return mode and id of a changed file, whose content is written."""
    content = content_of(change)
    if content is None:
        return _GONE, _NO_OBJECT
    name = object_id(git.run("hash-object", "-w", "--stdin", given=content))
    return "120000" if change.link is not None else "100755" if change.executable else "100644", name
