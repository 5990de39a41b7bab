"""Pytest runs inside tests: spare each of them what is the same in all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import pytest
from _pytest.fixtures import FixtureManager


class Installed:
    """A distribution whose files are read once."""

    def __init__(self, distribution: metadata.Distribution) -> None:
        self._distribution = distribution

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._distribution, name)
        setattr(self, name, value)
        return value


@contextmanager
def lean() -> Iterator[None]:
    """Look once for what is installed, and for no fixture behind a decorator: that is a third of a small run.

    Versions of pytest that do not look for one have no such method.
    """
    find = metadata.distributions
    installed = [Installed(one) for one in find()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "distributions", lambda **at: find(**at) if at else installed)
        patch.setattr(FixtureManager, "_check_for_wrapped_fixture", lambda *_: None, raising=False)
        yield
