"""What the queue owes, done: manifests, lines of the log, alerts; whatever a killed process left open too."""

from __future__ import annotations

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import MANIFEST
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.patterns.chained_log import ChainedLog
from pytest_tfgrpo.patterns.jobs.alerts import AlertCall, call_owed
from pytest_tfgrpo.patterns.jobs.manifest_file import read_manifest, write_manifest
from pytest_tfgrpo.patterns.jobs.queue import LOG_FILE, JobQueue
from pytest_tfgrpo.patterns.jobs.queue_file import rows


def settle(queue: JobQueue, call: AlertCall | None) -> list[str]:
    """Write what the queue owes and call people; returns warnings, and raises nothing of theirs.

    `call` is the command of alerts; None: there is none. Raises StoreError where the queue itself fails.
    """
    warnings = list[str]()
    for work in (_adopt, _write_manifests, _complete_log):
        try:
            warnings += work(queue)
        except StoreError as error:
            warnings.append(str(error))
    return warnings + call_owed(queue, call)


def _adopt(queue: JobQueue) -> list[str]:
    """Put jobs into the queue whose capture was killed just before."""
    warnings, known = list[str](), {job.id for job in queue.jobs()}
    for path in queue.folder.glob(f"*/{MANIFEST}"):
        name = path.parent.name
        if name in known or name.startswith("."):
            continue
        try:
            queue.add(read_manifest(path.parent))
        except (StoreError, ValueError) as error:
            warnings.append(f"{path} is of no job in the queue: {error}; put {queue.path.name} back")
    return warnings


def _write_manifests(queue: JobQueue) -> list[str]:
    """Make the manifests equal to the rows that have changed since they were written."""
    with queue.changing() as db:
        for job in rows(db, "WHERE written < revision"):
            write_manifest(queue.folder_of(job.id), job.manifest)
            db.execute("UPDATE jobs SET written = ? WHERE id = ?", (job.revision, job.id))
    return []


def _complete_log(queue: JobQueue) -> list[str]:
    """Append to the log what it lacks; a line that was there and is gone is written again."""
    with queue.reading() as db:
        owed = db.execute("SELECT n, entry, logged FROM owed ORDER BY n").fetchall()
    log = ChainedLog(queue.folder / LOG_FILE)
    new = [n for n, _, logged in owed if not logged]
    try:
        added = log.complete([load_json(entry) for _, entry, _ in owed], "id")
    except StoreError as error:
        return [
            f"{plural(len(new), 'line')} owed to the log: {error}; or move it away: all that this queue "
            "knows is written again"
        ]
    if new:
        with queue.changing() as db:
            db.executemany("UPDATE owed SET logged = 1 WHERE n = ?", [(n,) for n in new])
    if added > len(new):
        gone = plural(added - len(new), "line")
        return [f"{log.path}: {gone} had gone, and stand at its end again; look at who cut them out"]
    return []
