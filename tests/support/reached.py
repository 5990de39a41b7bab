"""Branches that a property must reach: one that never does says nothing, whatever it asserts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec

import hypothesis

P = ParamSpec("P")

RUNS = 8
"""How often a property runs before it fails for a branch: chance alone may miss a rare one once."""
_reached: ContextVar[dict[str, bool]] = ContextVar("_reached")
"""The branches of the property that runs, and whether an example reached each."""


def reached(branch: str, condition: object = True) -> bool:
    """Note that an example reached a branch, where the condition holds; return whether it does."""
    branches = _reached.get({})
    if branch not in branches:
        raise LookupError(f"no @reaches of this property names {branch!r}")
    branches[branch] |= bool(condition)
    return bool(condition)


def reaches(*branches: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Fail a property, by name of the branch, where none of its examples reached each of `branches`.

    It stands above ``@given`` and ``@settings``; the property calls ``reached(branch)``.
    """

    def decorate(run: Callable[P, None]) -> Callable[P, None]:
        if not getattr(run, "is_hypothesis_test", False):
            raise TypeError("@reaches stands above @given")

        @functools.wraps(run)
        def checked(*args: P.args, **kwargs: P.kwargs) -> None:
            found = dict.fromkeys(branches, False)
            token = _reached.set(found)
            try:
                for turn in range(RUNS):
                    if hypothesis.settings().derandomize:
                        hypothesis.seed(turn)(run)  # else each run would draw the same
                    run(*args, **kwargs)
                    if all(found.values()):
                        return
            finally:
                _reached.reset(token)
            missed = ", ".join(repr(name) for name, hit in found.items() if not hit)
            raise AssertionError(f"no example reached {missed}: draw what does, and often")

        return checked

    return decorate
