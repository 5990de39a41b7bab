"""Pytest runs inside tests: spare each of them what is the same in all."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from types import ModuleType
from typing import Any

import pytest
from _pytest.fixtures import FixtureManager

PARSE = FixtureManager.parsefactories
"""Looks for fixtures in all names of a plugin."""


class Installed:
    """A distribution whose files are read once."""

    def __init__(self, distribution: metadata.Distribution) -> None:
        self._distribution = distribution

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._distribution, name)
        setattr(self, name, value)
        return value


_find = metadata.distribution


@cache
def _distribution(name: str) -> Installed:
    return Installed(_find(name))


@cache
def _has_fixtures(module: ModuleType) -> bool:
    return any(type(value).__name__ == "FixtureFunctionDefinition" for value in vars(module).values())


def _parse(manager: FixtureManager, *args: Any, **options: Any) -> None:
    """Skip modules of pytest without fixtures; versions that name no holder mark fixtures in another way."""
    holder = options.get("holder")
    own = isinstance(holder, ModuleType) and holder.__name__.startswith("_pytest.")
    if not own or _has_fixtures(holder):
        PARSE(manager, *args, **options)


@contextmanager
def lean() -> Iterator[None]:
    """Spare runs of pytest and of our command line what is the same in all.

    Look once for what is installed and for fixtures of pytest itself, for none behind a decorator, and for
    no translation of a parser's words. Versions of pytest that look behind no decorator have no such method.
    """
    find = metadata.distributions
    installed = [Installed(one) for one in find()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "distributions", lambda **at: find(**at) if at else installed)
        patch.setattr(metadata, "distribution", _distribution)
        patch.setattr(argparse, "_", str)
        patch.setattr(FixtureManager, "parsefactories", _parse)
        patch.setattr(FixtureManager, "_check_for_wrapped_fixture", lambda *_: None, raising=False)
        yield
