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
        self._item: pytest.Item | None = None
        """What is set up now."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin with a new item."""
        self._made.clear()
        self._item = item

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        """Note that the set-up is over."""
        self._item = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Let the fixtures of a set-up that is interrupted be torn down: an agent works during its set-up."""
        if self._item is not None:
            _report_set_up(self._item)

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
        _report_set_up(item)
        for fixture, request in reversed(made):
            fixture.finish(request)
        arguments: dict[str, Any] = getattr(item, "funcargs", {})
        for fixture, request in made:
            value = fixture.execute(request)
            if fixture.argname in arguments:
                arguments[fixture.argname] = value


def _report_set_up(item: pytest.Item) -> None:
    """Make the report of a set-up, which a tear-down may read, as that of tmp_path does."""
    done = pytest.CallInfo.from_call(lambda: None, "setup")
    item.ihook.pytest_runtest_makereport(item=item, call=done)
