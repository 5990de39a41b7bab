"""What all rollouts of a process share, environment variables and working folder: nobody changes it unseen.

Python tells its audit hooks before it changes them, so the change itself is refused, at its line.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pytest_tfgrpo.core.errors import ProviderError

PASSING = frozenset({"PYTEST_CURRENT_TEST", "OPENBLAS_MAIN_FREE", "GOTOBLAS_MAIN_FREE"})
"""What pytest sets for each test, and numpy while it is imported, by whomever: no fixture means that."""
CHANGES = frozenset({"os.putenv", "os.unsetenv", "os.chdir"})
_guarded: dict[int, str] = {}
"""Who is kept from it, by thread."""
_installed: list[bool] = []


@contextmanager
def unchanged(who: str) -> Iterator[None]:
    """Let this thread change neither environment variables nor the working folder meanwhile.

    What tries raises ProviderError, which names `who`; nothing has changed then.
    """
    if not _installed:  # a hook stays as long as the process
        sys.addaudithook(_refuse)
        _installed.append(True)
    thread = threading.get_ident()
    _guarded[thread] = who
    try:
        yield
    finally:
        _guarded.pop(thread, None)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if not _guarded or event not in CHANGES:
        return
    who = _guarded.get(threading.get_ident())
    what = "the working folder" if event == "os.chdir" else os.fsdecode(args[0])
    if who is not None and what not in PASSING:
        raise ProviderError(
            f"the fixtures of {who} change {what}, which agents that run beside it would see; select these "
            "tests alone, or give the value to the agent instead",
            "fixture",
        )
