"""The collector of a scenario file: light, as pytest calls it for every file of a folder, wanted or not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.python.collector import collecting_seldom


class ScenarioFile(pytest.File):
    """A file of scenarios; the session is made when the first one is read."""

    @collecting_seldom()  # what is loaded here stays
    def collect(self) -> Iterable[pytest.Item]:
        """Load the file and return one item per scenario and phase; raises ScenarioError."""
        from pytest_tfgrpo.plugin.items.items import items_of
        from pytest_tfgrpo.plugin.session import session_of

        session = session_of(self.config)
        return items_of(self, session.load(self.path), session)

    def repr_failure(  # type: ignore[override]
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> object:
        """Return the problems of the file, without a traceback."""
        if isinstance(excinfo.value, ScenarioError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)
