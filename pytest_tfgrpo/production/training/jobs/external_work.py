"""A job of an external trainer: a command that gets the request's path and prints status lines."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.events import SCHEMAS, TRAINING_STATUS
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.wire.fitting import UnfitError, ValueScrubber, fit
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.dataset.said_rows import said_of_rows
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.process import (
    LOG,
    JobProcess,
    StartProcess,
    find_process,
    is_left,
    start_or_find,
)
from pytest_tfgrpo.production.training.jobs.pytest_work import MOST_DEATHS
from pytest_tfgrpo.production.training.jobs.run_end import end_of
from pytest_tfgrpo.production.training.jobs.status import JobErrorCode, JobOutcome, failed

REQUEST_FILE = "request.json"
MOST_BYTES = 64 << 20
"""Of what the command prints."""
_AT_ONCE = 1 << 20
_LONGEST = 100_000
"""Bytes of a status line."""
_OWN = ("training_job_id", "timestamp", "status")
_RELAYED = frozenset({"running", "completed", "failed"})


class ExternalWork:
    """The trainer's process, and what it says; see `JobWork`.

    Where the service died meanwhile it goes on with the process; where that died, it starts it again, unless
    the process said that it completed.
    """

    def __init__(
        self,
        job: TrainingJob,
        folder: Path,
        command: Sequence[str],
        start: StartProcess,
        scrubber: ValueScrubber,
    ) -> None:
        """Begin, or go on. Raises OSError, and SettingError where there is no command."""
        if not command:
            raise SettingError(
                f"no service here trains by {job.request.algorithm!r}; set [training] command to a program "
                "that does, or ask for the algorithm 'tfgrpo'"
            )
        self._job, self._folder, self._scrubber = job, folder.absolute(), scrubber
        self._start = partial(start_or_find, start, [*command, str(self._folder / REQUEST_FILE)])
        self._deaths = 0
        self._log = self._folder / LOG
        self._read, self._rest = 0, b""
        self._said: Mapping[str, Json] = {}
        """The newest status that it printed."""
        self._refused, self._first = 0, ""
        """Lines that are JSON objects and no status, and what is wrong with the first."""
        self._stopped = False
        found = find_process(self._folder)
        if found is None and self._log.exists():
            self._look()
        if found is None and self._said.get("status") not in ("completed", "failed"):
            found = self._begin()
        self._process: JobProcess | None = found

    def look(self) -> JobOutcome | None:
        """See `JobWork`."""
        over = self._process is None or self._process.ended()
        self._look()
        if self._read > MOST_BYTES and not over:
            self.kill()
            return failed("INFRA", f"the trainer printed more than {MOST_BYTES:,} bytes, and was ended")
        if not over:
            return None
        while self._look():
            pass
        code = None if self._process is None else self._process.code
        if self._was_killed(code):
            self._deaths += 1
            if self._deaths < MOST_DEATHS:
                self._process = self._begin()
                return None
        return self._outcome(code)

    def _begin(self) -> JobProcess:
        write_json(self._folder / REQUEST_FILE, self._job.request.payload)
        return self._start(self._folder, cwd=self._folder)

    def _was_killed(self, code: int | None) -> bool:
        """Return whether a signal ended it amid its work, which nobody here sent."""
        at_work = self._said.get("status") not in ("completed", "failed")
        return at_work and not self._stopped and code is not None and code < 0

    def parts(self) -> Mapping[str, Json]:
        """See `JobWork`."""
        known = {name: value for name, value in self._said.items() if name not in _OWN}
        if self._refused:
            more = {"refused_lines": self._refused, "first_refused": self._first}
            known["metadata"] = {**known.get("metadata", {}), **more}
        if rows := said_of_rows(self._folder):
            known["metadata"] = {**known.get("metadata", {}), "rows": list(rows)}
        known.pop("artifacts", None)
        known.pop("error", None)
        return known

    def interrupt(self) -> None:
        """See `JobWork`."""
        self._stopped = True
        if self._process is not None:
            self._process.interrupt()

    def kill(self) -> None:
        """See `JobWork`."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def leave(self) -> bool:
        """See `JobWork`."""
        return is_left(self._process)

    def _outcome(self, code: int | None) -> JobOutcome:
        said, parts = self._said.get("status"), self.parts()
        if said == "completed" and (code is None or code <= 0):  # a signal came when its work was done
            return JobOutcome(trigger="finish", parts={**parts, "artifacts": self._said["artifacts"]})
        if self._stopped:
            return JobOutcome(trigger="cancel", parts=parts)
        if said == "failed":
            return JobOutcome(trigger="fail", parts={**parts, "error": self._said["error"]})
        output = self._scrubber.text(end_of(self._log))
        ended = "is gone" if code is None else f"ended with code {code}"
        message = f"the trainer {ended}, and its last status was not 'completed'" + (
            f"; it printed {self._refused} lines that are no status, the first: {self._first}"
            if self._refused
            else ""
        )
        if said == "completed":
            message = f"the trainer said 'completed' and {ended}"
        kind: JobErrorCode = "UNKNOWN" if self._said else "INFRA"
        return failed("OOM" if code == -signal.SIGKILL else kind, message, output, parts)

    def _look(self) -> bool:
        """Read on in what it prints; return whether there was more."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                data = file.read(_AT_ONCE)
        except FileNotFoundError:
            return False
        self._read += len(data)
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-_LONGEST - 1 :]
        for line in lines:
            if line.lstrip().startswith(b"{") and len(line) <= _LONGEST:
                self._take(line)
        return bool(data)

    def _take(self, line: bytes) -> None:
        """Relay a line that is a status of this job."""
        try:
            value = fit(load_json(line), self._scrubber)
        except (ValueError, UnfitError) as error:
            self._refuse(str(error))
            return
        whole = {"training_job_id": self._job.id, "timestamp": self._job.started, **value}
        wrong = violations(SCHEMAS[TRAINING_STATUS], whole)
        if wrong:
            self._refuse(f"{wrong[0].pointer}: {wrong[0].message}")
        elif whole["training_job_id"].lower() != self._job.id:
            self._refuse(f"/training_job_id: is that of another job, {whole['training_job_id']}")
        elif whole["status"] not in _RELAYED:
            self._refuse(f"/status: {whole['status']!r} is not for a trainer to say")
        else:
            self._said = {**self._said, **value}

    def _refuse(self, why: str) -> None:
        self._refused += 1
        self._first = self._first or why[:200]
