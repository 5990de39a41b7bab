"""Fixtures that pytest does not know: said before anything is paid for, not when their test is set up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.plugin.items import markers


def require_known(items: Iterable[pytest.Item]) -> None:
    """Raise pytest.UsageError, in pytest's words, where test functions need fixtures that are not there."""
    unknown = {item: names for item in items if (names := [*_unknown(item)])}
    if not unknown:
        return
    lines = [
        f"{markers.base_id(item)}: fixture {few([repr(name) for name in names], 5)} not found"
        for item, names in unknown.items()
    ]
    raise pytest.UsageError("\n".join([*lines, "use `pytest --fixtures` for help on available fixtures"]))


def _unknown(item: pytest.Item) -> Iterator[str]:
    manager: Any = item.config.pluginmanager.get_plugin("funcmanage")
    find = getattr(manager, "getfixturedefs", None)
    if find is None:  # pytest says it when it sets the test up
        return
    names: list[str] = [*(markers.world_of(item, ()) or ()), *getattr(item, "fixturenames", ())]
    given = {"", "request", *getattr(getattr(item, "callspec", None), "params", ())}
    while names:  # and what these fixtures need themselves
        name = names.pop(0)
        if name in given:
            continue
        given.add(name)
        found = find(name, item)
        if not found:
            yield name
        for definition in found or ():
            names += definition.argnames
