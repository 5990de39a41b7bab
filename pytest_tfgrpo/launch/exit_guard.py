"""The exit guard: an agent in this process that ends it does not make an unfinished run look like a success.

``os._exit(0)`` and ``os.exec*`` end a process at once: nothing is flushed, reported or judged.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from pytest_tfgrpo.core.texts.text import line

CODE = 3
"""Exit code of a process whose run was cut off so."""
ENDS = ("_exit", "execv", "execve")
"""What ends a process at once; the rest of the exec family calls these."""
_lock = threading.RLock()  # garbage collection may end a run that was given up, while its own thread holds it
_tellers: list[Callable[[str], None]] = []
"""Of the runs that go on, in any thread."""
_undo: list[Callable[[], None]] = []


def tell_stderr(text: str) -> None:
    """Write a line to standard error, past all buffers."""
    os.write(2, f"{text}\n".encode("utf-8", "backslashreplace"))


@contextmanager
def guard_exits(tell: Callable[[str], None] = tell_stderr) -> Iterator[None]:
    """Let nothing end this process quietly meanwhile: `tell` receives who tried, and it ends with CODE.

    Child processes end as they like. Modules that took a function by its name are guarded too, and all is as
    before at the end.
    """
    with _lock:
        _tellers.append(tell)  # at first: from here on no other run's end takes the guards away
        if not _undo:
            _replace({name: _guard(name, getattr(os, name), os.getpid()) for name in ENDS})
    try:
        yield
    finally:
        with _lock:
            _tellers.remove(tell)
            while not _tellers and _undo:
                _undo.pop()()


def _guard(name: str, really: Callable[..., Any], pid: int) -> Callable[..., Any]:
    def guard(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() == pid and _tellers:
            call = line(f"os.{name}({', '.join(map(repr, args))})", 200)
            text = f"{_caller()} called {call}"
            for tell in tuple(_tellers):
                with suppress(Exception):
                    tell(f"tfgrpo: {text} before the run had ended; leaving with exit code {CODE}")
            leave(CODE)
        return really(*args, **kwargs)

    end = vars(os)["_exit"]
    leave = getattr(end, "really", end)
    guard.really = really  # type: ignore[attr-defined]
    return guard


def _caller() -> str:
    """Return who called the guard: file, line and function."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") in (__name__, "os"):  # os.execvp and the like
        frame = frame.f_back
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"


def _replace(guards: Mapping[str, Callable[..., Any]]) -> None:
    for module in tuple(sys.modules.values()):  # thousands, so few steps for each
        space = getattr(module, "__dict__", {})
        if space.keys().isdisjoint(guards):
            continue
        for name, guard in guards.items():
            really = guard.really  # type: ignore[attr-defined]
            if space.get(name) is really:
                space[name] = guard
                _undo.append(partial(space.__setitem__, name, really))
