"""Agents that know nothing of a task and would solve whole suites of hidden tests: none scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fixes import SmallFix
from support.generic_agents import AGENTS, PROJECTS, Fix, Project
from support.runners.pytest_runner import run
from support.tools import require_tool

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.harvest.proof.proven_changes import proven_changes
from pytest_tfgrpo.scoring.runners.edits.changed_tests import LineChange
from pytest_tfgrpo.scoring.runners.protocol import SuiteRun

FIXES = [
    pytest.param(project, fix, id=f"{name}-{number}")
    for name, project in PROJECTS.items()
    for number, fix in enumerate(project.fixes)
]


def result(folder: Path, project: Project, fix: Fix, text: str, changes: list[object] | None) -> CheckResult:
    """Return what the check finds where the file of the fix has a text."""
    test = fix.fails[0].partition("::")[0]
    made = SmallFix(folder=folder, base={**project.files, fix.file: fix.broken}, hidden={test: fix.test})
    more = {} if changes is None else {"changes": changes}
    listed = {"fail_to_pass": list(fix.fails), "pass_to_pass": list(fix.passes)}
    folder.mkdir()
    return made.attempt({fix.file: text}, **listed, **more)


def changes_of(folder: Path, project: Project, fix: Fix) -> list[object]:
    """Return changes as harvest proves them."""
    name = fix.fails[0].partition("::")[0]

    def ran(texts: dict[str, bytes]) -> SuiteRun:
        tree = folder / str(len(list(folder.iterdir())))
        files = {**project.files, fix.file: fix.fixed, name: fix.test}
        for path, text in {**files, **{k: v.decode() for k, v in texts.items()}}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        return run(tree, name)

    folder.mkdir()
    found = proven_changes({name: fix.test.encode()}, {}, fix.fails, fix.passes, ran).changes  # type: ignore[arg-type]
    assert {id_ for change in found for id_ in change.fails} == {*fix.fails}
    return [_row(change) for change in found]


def _row(change: LineChange) -> object:
    lines = [
        {"row": one.row, "text": one.text, **({"last": one.last} if one.last else {})} for one in change.lines
    ]
    return {"file": change.file, "lines": lines, "fails": list(change.fails)}


@pytest.mark.parametrize("proven", [False, True], ids=["drawn", "proven"])
@pytest.mark.parametrize(("project", "fix"), FIXES)
def test_an_agent_that_knows_no_task_solves_none(
    tmp_path: Path, project: Project, fix: Fix, proven: bool
) -> None:
    require_tool("bwrap")
    changes = changes_of(tmp_path / "proof", project, fix) if proven else None
    assert result(tmp_path / "true", project, fix, fix.fixed, changes).credit == 1
    assert result(tmp_path / "nothing", project, fix, fix.broken, changes).credit == 0
    for number, (name, code) in enumerate(AGENTS.items()):
        found = result(tmp_path / str(number), project, fix, fix.broken + code, changes)
        assert found.credit == 0, name


def test_what_these_agents_do_passes_where_nothing_is_changed(tmp_path: Path) -> None:
    """So that it is the changes that stop them, and no slip in how they are written."""
    require_tool("bwrap")
    solved = [
        name
        for number, (name, code) in enumerate(AGENTS.items())
        if all(
            result(tmp_path / f"{number}.{at}", FLAT, fix, fix.broken + code, []).credit
            for at, fix in enumerate(FLAT.fixes)
        )
    ]
    assert solved == [
        "answers with what equals everything",
        "answers with what the line of its caller says",
        "has pytest forget what a test raises",
    ]


FLAT = PROJECTS["flat"]
