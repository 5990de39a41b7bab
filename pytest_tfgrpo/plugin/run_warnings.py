"""Warnings of a run as pytest's: its summary shows them, and filters ignore them or make them errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import pytest


class TfgrpoWarning(pytest.PytestWarning):
    """What a reader of a run must know: ``-W error::pytest_tfgrpo.TfgrpoWarning`` makes it fail the run."""

    __module__ = "pytest_tfgrpo"


def are_shown(config: pytest.Config) -> bool:
    """Return whether pytest shows warnings at its end."""
    return _are_known(config) and not config.getoption("disable_warnings", False)


def _are_known(config: pytest.Config) -> bool:
    return config.pluginmanager.hasplugin("warnings")


def issue(config: pytest.Config, texts: Iterable[str]) -> list[str]:
    """Issue warnings where pytest records them; returns those that its filters make errors.

    A filter that does so ends nothing: by now the run is paid for.
    """
    refused = list[str]()
    place = str(config.inipath or config.rootpath)
    for text in texts if _are_known(config) else ():
        try:
            warnings.warn_explicit(TfgrpoWarning(text), None, place, 0)
        except TfgrpoWarning:
            refused.append(text)
    return refused
