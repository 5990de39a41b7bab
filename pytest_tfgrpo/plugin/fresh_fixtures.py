"""Fixtures of an item that are set up anew, as an agent that is asked again must not find what it left."""

from __future__ import annotations

from typing import Any

import pytest

KEPT = ("tfgrpo_slot", "rollout", "rollout_workspace")
"""Fixtures that say which rollout it is, or wait for it."""


class FreshFixtures:
    """Remembers what is set up for the present item, in order."""

    def __init__(self) -> None:
        self._made: list[tuple[pytest.FixtureDef[Any], Any]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Begin with a new item."""
        self._made.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> None:
        """Note a fixture of function scope."""
        if fixturedef.scope == "function" and fixturedef.argname not in KEPT:
            self._made.append((fixturedef, request))

    def renew(self, item: pytest.Item) -> None:
        """Tear down and set up again what the item has of function scope; raises what fixtures raise."""
        made = list(self._made)
        self._made.clear()
        # a tear-down may read what became of the set-up, as that of tmp_path does
        done = pytest.CallInfo.from_call(lambda: None, "setup")
        item.ihook.pytest_runtest_makereport(item=item, call=done)
        for fixture, request in reversed(made):
            fixture.finish(request)
        arguments: dict[str, Any] = getattr(item, "funcargs", {})
        for fixture, request in made:
            value = fixture.execute(request)
            if fixture.argname in arguments:
                arguments[fixture.argname] = value
