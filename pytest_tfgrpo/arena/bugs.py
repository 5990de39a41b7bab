"""Errors of our own code inside a contestant: the arena goes on without it, and ends as a bug of ours."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import TfgrpoError, describe
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import LearningContext, Optimizer, Proposal

SAID = "a bug in pytest-tfgrpo, please report it"
_OWN = Path(__file__).resolve().parents[1]
_STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
_INSTALLED = ("site-packages", "dist-packages")


class OwnBugError(Exception):
    """A contestant broke by an error of our own; its traceback is the message."""


class Watched:
    """An optimizer whose error is kept, as a run ends with the words of it alone."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.name: str = optimizer.name
        self.identity: Mapping[str, Json] = optimizer.identity
        self.error: Exception | None = None

    async def propose(self, context: LearningContext) -> Proposal:
        """Propose as the optimizer does."""
        try:
            return await self._optimizer.propose(context)
        except Exception as error:
            self.error = error
            raise


def failure_of(error: Exception, *, by_hook: bool) -> tuple[str, str]:
    """Return what a table says of a contestant's error, and its traceback if it is a bug of ours."""
    said = redact(describe(error))
    if not _is_bug(error, by_hook=by_hook):
        return said, ""
    return f"{SAID}: {said}", redact("".join(traceback.format_exception(error)))


def _is_bug(error: BaseException, *, by_hook: bool) -> bool:
    """Return whether our own code raised what nobody meant to: neither a library nor an optimizer by hook."""
    while isinstance(error, TfgrpoError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, TfgrpoError | OSError):
        return False
    files = [Path(frame.filename).resolve() for frame in traceback.extract_tb(error.__traceback__)]
    called = [path for path in files if not _of_python(path)]
    asked = called if by_hook else called[-1:]  # what an optimizer by hook calls may break by its arguments
    return bool(called) and all(path.is_relative_to(_OWN) for path in asked)


def _of_python(path: Path) -> bool:
    """Return whether a file is of the standard library, which only does as it is told."""
    frozen = not path.suffix
    return frozen or (path.is_relative_to(_STDLIB) and not set(_INSTALLED) & set(path.parts))
