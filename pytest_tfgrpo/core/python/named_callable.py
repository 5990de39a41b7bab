"""Callables that a scenario names: of checks, mocks and steps of its world."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def plain_callable(target: str) -> Callable[..., Any]:
    """Return the callable that `target` names as module:callable; what its import raises is not caught.

    Raises TypeError where it is none, or async.
    """
    module, _, names = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise TypeError(f"{target!r} is not a plain callable")
    return found  # type: ignore[no-any-return]


def require_callable(target: str) -> None:
    """Raise ValueError, which says why, unless `target` names a plain callable."""
    try:
        plain_callable(target)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is imported
        hint = "; is its folder on pytest's pythonpath?" if isinstance(error, ModuleNotFoundError) else ""
        raise ValueError(f"{target!r} cannot be used: {error!r}{hint}") from error


def home_of(function: object) -> ModuleType | None:
    """Return the module that defines a function, or the class of another callable."""
    while isinstance(function, functools.partial):
        function = function.func
    return sys.modules.get(getattr(function, "__module__", None) or "")
