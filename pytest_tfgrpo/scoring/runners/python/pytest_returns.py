"""Which functions of tests returned, as Python itself saw it, whatever was made of the frames around them.

A part of the script `pytest_reporter`, loaded by `pytest_start`: for any Python from 3.8 on. From 3.12 on
Python says when a function returns, and from 3.13 on code can write the local variables of pytest's frames.
"""

# ruff: noqa: UP006, UP035 - Python 3.8

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Dict, Tuple

TOOL = 4
"""Number of a tool, of which Python gives none a meaning."""


class Returns:
    """Whether the function of the test that was called has returned to pytest."""

    def __init__(self) -> None:
        """It is made before anything of the workspace is imported, and kept where no code finds it."""
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._of: Dict[int, Tuple[Any, Any]] = {}
        self._wanted: Any = None
        self._returned = False
        self._came: Callable[[Any], bool] = bool
        if self._monitoring is not None:
            self._monitoring.use_tool_id(TOOL, "pytest_results")
            kind, get_frame = self._monitoring.events.PY_RETURN, sys._getframe

            def returned(code: Any, _offset: int, _value: Any) -> None:
                if self._wanted is not None and code is self._wanted[0]:
                    frame = get_frame(1)
                    if frame.f_globals is self._wanted[1] and self._came(frame.f_back):
                        self._returned = True

            self._monitoring.register_callback(TOOL, kind, returned)

    def expect(self, functions: Dict[int, Any], came: Callable[[Any], bool]) -> None:
        """Look at functions, each by the id of its test; `came` says whether pytest called from a frame."""
        self._came = came
        for key, function in functions.items() if self._monitoring is not None else ():
            if type(function) is types.FunctionType:
                code = function.__code__
                self._of[key] = (code, function.__globals__)
                self._monitoring.set_local_events(TOOL, code, self._monitoring.events.PY_RETURN)

    def begin(self, item: Any) -> None:
        """Note that a test is about to be called, or was."""
        if self._wanted is None:
            self._wanted, self._returned = self._of.get(id(item)), False

    def fault(self) -> str:
        """Return what is wrong with the call that ended, if it passed; another may begin."""
        wanted, self._wanted = self._wanted, None
        return "" if wanted is None or self._returned else "a test passed that did not return"
