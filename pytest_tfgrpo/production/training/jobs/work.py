"""The work of a job: what a process does for it, however it trains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.status import JobOutcome

EVIDENCE_FILE = "evidence.jsonl"


class CutEvidence(Protocol):
    """Writes the evidence that a request asks for, and beside it what its trainer needs."""

    def __call__(self, request: Mapping[str, Json], file: Path) -> None:
        """Write what is not there yet, each file whole, or raise TfgrpoError.

        There is no evidence again where a run has begun with it.
        """
        ...


class JobWork(Protocol):
    """A process at work; its evidence is there."""

    def look(self) -> JobOutcome | None:
        """Go on; return how it ended once it did. Raises TfgrpoError."""
        ...

    def parts(self) -> Mapping[str, Json]:
        """Return what a status says of it now."""
        ...

    def interrupt(self) -> None:
        """Ask it to end in order."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...

    def leave(self) -> bool:
        """Go on with it no more, as another service does; return whether that one has it, or it is over.

        Only `kill` may follow, where nobody takes it up.
        """
        ...


class OpenWork(Protocol):
    """Begins or goes on with the work of a job."""

    def __call__(self, job: TrainingJob, folder: Path) -> JobWork:
        """Raises TfgrpoError and OSError where it cannot be started."""
        ...
