"""Usage errors: exit code 4 and one message, found in this process or by a worker of pytest-xdist."""

from __future__ import annotations

import json
from shutil import rmtree

import pytest
from support.campaign import Campaign
from support.plugin.usage_errors import (
    MISUSES,
    SUITE,
    TRAIN_AND_EVAL,
    Misuse,
    errors,
    use,
)
from support.project import Project


def differs(project: Project, misuse: Misuse) -> str | None:
    """Return how the runs with and without workers differ from one usage error, None if they do not."""
    alone = project.run(*misuse.args)
    if alone.ret != pytest.ExitCode.USAGE_ERROR:
        return f"alone: {alone.ret!r} {alone.stdout.str()}"
    together = project.run("-n", "1", *misuse.args)
    if together.ret != pytest.ExitCode.USAGE_ERROR:
        return f"with workers: {together.ret!r} {together.stdout.str()}"
    one, two = errors(alone), errors(together)
    return None if one == two and len(one) == 1 and misuse.says in one[0] else f"{one} and {two}"


def test_a_usage_error_found_by_a_worker_ends_the_run_with_its_message(project: Project) -> None:
    project.plugins("xdist").scenarios().write("test_x.py", "def test_x(): pass\n").conftest(
        "import time\n\n"
        "def pytest_xdist_node_collection_finished():\n"
        "    time.sleep(0.5)  # in which the worker would end before it is handed its items\n"
    )
    result = project.run("-n", "1", "--tfgrpo-baseline=main")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().count("there is no such baseline") == 1
    assert "INTERNALERROR" not in result.stdout.str()
    assert project.calls == []


@pytest.mark.faults
def test_every_misuse_is_the_same_error_with_workers(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    found = {}
    for name in campaign.sample(MISUSES, 3):
        with monkeypatch.context() as environ:
            project = Project(pytester, environ)
            use(project, MISUSES[name], environ)
            found[name] = differs(project, MISUSES[name])
        for path in pytester.path.iterdir():
            rmtree(path) if path.is_dir() else path.unlink()
    assert {name: problem for name, problem in found.items() if problem is not None} == {}


BROKEN = {
    "x1.scenario.yaml": "id: x\nprompt: a?\nchecks:\n- kind: exakt\n  value: 3\n",
    "x2.scenario.yaml": "id: [\n",
    "x3.scenario.json": json.dumps(TRAIN_AND_EVAL[0] | {"id": "x", "promt": "?"}),
    "x4.scenarios.csv": "prompt,anser\na?,3\n",
    "x5.scenario.json": json.dumps(TRAIN_AND_EVAL[0]),
    "test_x.py": "import nowhere\n",
}
"""Files with an unknown check, no YAML, an unknown key, an unknown column, an id that is taken; a module."""


def test_files_that_are_no_scenarios_end_the_collection_with_and_without_workers(project: Project) -> None:
    project.plugins("xdist").write("suite.scenario.json", SUITE)
    for file, text in BROKEN.items():
        project.write(file, text)
    alone, together = project.run(), project.run("-n", "1")
    assert alone.ret == together.ret == pytest.ExitCode.INTERRUPTED
    shown = [
        sorted(line for line in one.outlines if line.startswith(("x", "E  "))) for one in (alone, together)
    ]
    assert shown[0] == shown[1]
    for file in BROKEN:
        start = "E  " if file.startswith("test") else file
        assert any(line.startswith(start) for line in shown[0])
    for one in (alone, together):
        one.stdout.fnmatch_lines([f"*Interrupted: {len(BROKEN)} errors during collection*"])
    assert project.calls == []
