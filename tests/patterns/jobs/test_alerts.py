"""The command of alerts: what it gets, how long it has, and what is said of its end."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.patterns.jobs import job_id, manifest, queue_with

from pytest_tfgrpo.patterns.jobs import alerts
from pytest_tfgrpo.patterns.jobs.alerts import NEEDED, AlertCommand, alert_data, call_owed
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import JobQueue


class Started:
    """A process of a command, which ends as it is told; None: it does not end by itself."""

    pid = 77

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int | None = 0, said: bytes = b"") -> None:
        self.code, self.said, self.given = code, said, dict[str, Any]()
        self.waits, self.killed = list[float | None](), list[tuple[int, int]]()
        monkeypatch.setattr(alerts.subprocess, "Popen", self)
        monkeypatch.setattr(alerts.os, "killpg", lambda *group: self.killed.append(group))

    def __call__(self, argv: tuple[str, ...], **given: Any) -> Started:
        self.given = {"argv": argv, "data": given["stdin"].read(), **given}
        given["stderr"].write(self.said)
        return self

    def wait(self, timeout: float | None = None) -> int:
        self.waits.append(timeout)
        if self.code is None and timeout is not None:
            raise subprocess.TimeoutExpired("x", timeout)
        return self.code or 0


def test_a_command_gets_its_data_in_its_folder_and_has_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Started(monkeypatch, 0, b"nobody reads this")
    assert AlertCommand(["mail", "ann"], tmp_path)(b"data\n") == ""
    assert (started.given["argv"], started.given["data"]) == (("mail", "ann"), b"data\n")
    assert (started.given["cwd"], started.given["start_new_session"]) == (tmp_path, True)
    assert (started.waits, started.killed) == ([10.0, None], [(77, signal.SIGKILL)])


def test_what_a_command_wrote_last_is_said_where_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Started(monkeypatch, 3, b"x" * 100 + b"y" * 296 + b"end\n")
    assert AlertCommand(["mail"], tmp_path)(b"") == f"it ended with code 3: {'y' * 296}end"
    Started(monkeypatch, -9, b" \n")
    assert AlertCommand(["mail"], tmp_path)(b"") == "it ended with code -9"


def test_a_command_that_does_not_end_or_start_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Started(monkeypatch, None)
    said = AlertCommand(["mail"], tmp_path, 2.5)(b"")
    assert said == "it took longer than 2.5 s, and was ended"
    assert (started.waits, started.killed) == ([2.5, None], [(77, signal.SIGKILL)])

    def fails(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "mail")

    monkeypatch.setattr(alerts.subprocess, "Popen", fails)
    said = AlertCommand(["mail"], tmp_path)(b"")
    assert said == "it does not start: [Errno 2] No such file or directory: 'mail'"


@pytest.fixture
def queue(tmp_path: Path) -> JobQueue:
    missed = {"status": LearningStatus.SNAPSHOT_FAILED, "snapshot": None}
    return queue_with(tmp_path, manifest(0), *(manifest(n, **missed) for n in (2, 1)))


def test_the_oldest_is_told_first_and_a_failure_is_kept_with_its_words(queue: JobQueue) -> None:
    with queue:
        told = list[Any]()

        def call(data: bytes) -> str:
            with queue.reading() as db:
                rows = db.execute("SELECT alert, failure FROM owed WHERE alert != '' ORDER BY n").fetchall()
            told.append((json.loads(data)["job"], rows[len(told)]))
            if len(told) == 1:
                return "z" * 400
            raise LookupError("no mail")

        warnings = call_owed(queue, call)
        during = ("failed", "the process ended during the call")
        assert told == [(job_id(2), during), (job_id(1), during)]
        assert warnings[0] == f"alert_command failed: {'z' * 297}..."
        assert warnings[1] == "alert_command failed: LookupError: no mail"
        with queue.reading() as db:
            kept = db.execute("SELECT alert, failure FROM owed ORDER BY n").fetchall()
        assert kept == [("", ""), ("failed", "z" * 400), ("failed", "LookupError: no mail")]


def test_without_a_command_no_failure_is_kept(queue: JobQueue) -> None:
    with queue:
        assert call_owed(queue, None) == []
        with queue.reading() as db:
            kept = db.execute("SELECT alert, failure FROM owed ORDER BY n").fetchall()
        assert kept == [("", ""), ("unset", ""), ("unset", "")]


@pytest.mark.parametrize("status", NEEDED)
def test_an_alert_says_what_a_person_has_to_do(status: LearningStatus, tmp_path: Path) -> None:
    entry = {"id": "x", "event": "y", "job": "1234", "to": status.value, "reason": "z"}
    data = alert_data(entry, tmp_path)
    found = json.loads(data)
    assert data.endswith(b"}\n")
    assert found.pop("needed") == NEEDED[status].format(job="1234")
    assert found == {"schema": "tfgrpo.learning-alert/1", **entry, "folder": str(tmp_path / "1234")}
