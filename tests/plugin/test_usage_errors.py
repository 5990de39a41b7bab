"""Usage errors: exit code 4 and one message, found in this process or by a worker of pytest-xdist."""

from __future__ import annotations

import pytest
from support.plugin.usage_errors import (
    MISUSES,
    errors,
    use,
)
from support.preparing import refusal
from support.project import Project

MARKS = ("an unknown keyword of a mark", "a mark with a value", "a mark of the dev split")
"""Misuse that is found where pytest collects test functions; the others are found without it too."""
PLACES = (
    *("a bad flag", "an unknown variable", "an unknown actor", "a teacher that is no model"),
    *("leaked answers", "nothing to resume", "a hook for actor that raises", "an unknown keyword of a mark"),
)
"""Of each place where misuse is found, one."""


@pytest.mark.parametrize("name", [name for name in MISUSES if name not in MARKS])
def test_misuse_is_an_error_that_says_what_it_is(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    misuse = MISUSES[name]
    use(project, misuse, monkeypatch)
    assert misuse.says in refusal(project, *misuse.args)


@pytest.mark.parametrize("name", PLACES)
def test_misuse_is_one_error_of_pytest(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    misuse = MISUSES[name]
    use(project, misuse, monkeypatch)
    result = project.run(*misuse.args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = errors(result)
    assert misuse.says in error
    assert "Traceback" not in error
    assert project.calls == []
