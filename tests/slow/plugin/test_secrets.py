"""A key that comes into a run by any road stands in no file, page or output of it."""

import pytest
from support.plugin.secrets import KEY, found
from support.project import Project


@pytest.fixture
def watched(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    return project.scenarios(train=3, sweep=2)


def test_a_key_on_the_standard_error_of_a_program_is_nowhere(watched: Project) -> None:
    watched.write("agent.sh", f"echo 'Authorization: Bearer {KEY}' >&2; exit 3\n")
    watched.ini(actor="command:sh agent.sh", group_size=2)
    assert found(watched) == []
