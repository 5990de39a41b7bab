"""Alerts: a command gets each transition after which nothing happens without a person, once.

A call is kept as failed before it is made, so that a process that dies in it is counted and no call is made
twice; no failure stops anything.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import JobQueue

AlertCall: TypeAlias = Callable[[bytes], str]
"""Runs a program with data on its standard input; returns why it failed, or an empty text."""
TIMEOUT_S = 10.0
_SHOWN = 300
"""Bytes of what the command wrote to its standard error last."""
SCHEMA = "tfgrpo.learning-alert/1"
NEEDED = {
    LearningStatus.QUEUED: "an agent proposed it: `tfgrpo learn approve {job} --approver ID` lets it run",
    LearningStatus.SNAPSHOT_FAILED: "the snapshot failed three times: `tfgrpo learn show {job}` says why",
    LearningStatus.STALLED_SNAPSHOT: "the snapshot does not hold: `tfgrpo learn show {job}` says what",
    LearningStatus.NEEDS_MANUAL: "say how its tests run: `tfgrpo learn show {job}` names the template",
    LearningStatus.VALIDATION_FAILED: "three workers were lost with it: `tfgrpo learn show {job}` says which",
}
"""What a person has to do, by status."""


def call_owed(queue: JobQueue, call: AlertCall | None) -> list[str]:
    """Call the command for each alert that is owed, the oldest first; returns warnings of those that failed.

    Raises StoreError where the queue cannot be changed.
    """
    warnings = list[str]()
    while (alert := _take(queue, "unset" if call is None else "failed")) is not None:
        number, entry = alert
        if call is None:
            continue
        try:
            failure = call(alert_data(load_json(entry), queue.folder))
        except Exception as error:  # noqa: BLE001 - whatever a command does, the queue goes on
            failure = describe(error)
        _end(queue, number, line(failure, 500))
        if failure:
            warnings.append(f"alert_command failed: {line(failure, 300)}")
    return warnings


def alert_data(entry: Mapping[str, Json], folder: Path) -> bytes:
    """Return what the command gets: a line of the log as JSON, and what a person has to do."""
    needed = NEEDED[LearningStatus(entry["to"])].format(job=entry["job"])
    value = {"schema": SCHEMA, **entry, "needed": needed, "folder": str(folder / str(entry["job"]))}
    return json.dumps(value, ensure_ascii=True).encode() + b"\n"


def alert_counts(queue: JobQueue) -> Counter[str]:
    """Return how many alerts are owed, called, failed, and unset as there was no command.

    Raises StoreError.
    """
    with queue.reading() as db:
        found = db.execute("SELECT alert, count(*) FROM owed WHERE alert != '' GROUP BY alert")
        return Counter(dict(found.fetchall()))


def _take(queue: JobQueue, meanwhile: str) -> tuple[int, str] | None:
    """Return number and JSON of the oldest alert that is owed, and keep it as `meanwhile` from now on."""
    with queue.changing() as db:
        owed = db.execute("SELECT n, entry FROM owed WHERE alert = 'owed' ORDER BY n LIMIT 1")
        found = owed.fetchone()
        if found is None:
            return None
        failure = "the process ended during the call" if meanwhile == "failed" else ""
        db.execute("UPDATE owed SET alert = ?, failure = ? WHERE n = ?", (meanwhile, failure, found[0]))
        return int(found[0]), str(found[1])


def _end(queue: JobQueue, number: int, failure: str) -> None:
    """Keep how the call of an alert ended; an empty text: well."""
    with queue.changing() as db:
        values = ("failed" if failure else "called", failure, number)
        db.execute("UPDATE owed SET alert = ?, failure = ? WHERE n = ?", values)


class AlertCommand:
    """A program with arguments, in a process group of its own; a `AlertCall`."""

    def __init__(self, command: Sequence[str], folder: Path, timeout_s: float = TIMEOUT_S) -> None:
        """`folder` is where it runs."""
        self._command, self._folder, self._timeout_s = tuple(command), folder, timeout_s

    def __call__(self, data: bytes) -> str:
        """Run it; returns why it failed."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(data)
            given.seek(0)
            try:
                process = subprocess.Popen(
                    self._command, cwd=self._folder, stdin=given, stdout=subprocess.DEVNULL, stderr=said,
                    start_new_session=True,
                )  # fmt: skip
            except (OSError, ValueError) as error:
                return f"it does not start: {error}"
            try:
                code = process.wait(self._timeout_s)
            except subprocess.TimeoutExpired:
                return f"it took longer than {self._timeout_s:g} s, and was ended"
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if not code:
                return ""
            said.seek(max(0, said.seek(0, os.SEEK_END) - _SHOWN))
            text = said.read().decode(errors="replace").strip()
        return f"it ended with code {code}" + (f": {text}" if text else "")
