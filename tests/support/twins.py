"""The same tests with other fixtures: what holds for each bus and each executor."""

from __future__ import annotations

import importlib
import inspect


def same_tests(module: str, *fixtures: str) -> dict[str, object]:
    """Return the names of a module of tests, without its tests that take none of some fixtures.

    A slow module takes them into its own names, and then names what it runs them with.
    """
    found = vars(importlib.import_module(module))
    takes = set(fixtures)
    while True:  # fixtures of the module that take one of those
        more = {
            name
            for name, value in found.items()
            if hasattr(value, "_get_wrapped_function") and takes & _arguments(value._get_wrapped_function())
        }
        if more <= takes:
            break
        takes |= more
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("__") and (not name.startswith("test_") or takes & _arguments(value))
    }


def _arguments(function: object) -> set[str]:
    return set(inspect.signature(function).parameters) if callable(function) else set()
