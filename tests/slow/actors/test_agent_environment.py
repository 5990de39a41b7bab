"""An agent works with the environment of its scenario, in a sandbox too, and cannot change it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.projects_in_archives import write_archive
from support.tools import require_tool

from pytest_tfgrpo.core.scenarios import Check, Task
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult
from pytest_tfgrpo.sandbox.changes import changes_in
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS

AGENT = f"""#!{sys.executable}
import json, os, subprocess
def fails(path):
    try:
        open(path, "w").close()
    except OSError:
        return True
    return False
print(json.dumps([
    subprocess.run(["tool"], capture_output=True, text=True).stdout,
    [os.path.relpath(folder) for folder in os.environ["PYTHONPATH"].split(":")],
    os.environ["SHOP"], os.path.realpath("node_modules") == os.environ["MODULES"],
    open("node_modules/left.js").read(), fails("node_modules/new.js"),
    subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True).stdout,
]))
"""


@pytest.fixture
def built(tmp_path: Path) -> BuiltEnvironment:
    folder = tmp_path / "cache" / "a"
    modules = folder / "setup" / "node_modules"
    (folder / "bin").mkdir(parents=True)
    modules.mkdir(parents=True)
    (modules / "left.js").write_text("left")
    (folder / "bin" / "tool").write_text("#!/bin/sh\necho from the environment\n")
    (folder / "bin" / "tool").chmod(0o755)
    return BuiltEnvironment(
        stamp="a" * 64,
        folder=folder,
        python=None,
        programs=(folder / "bin",),
        imports=("src",),
        variables={"SHOP": "open", "MODULES": str(modules.resolve())},
        links={"node_modules": modules},
        readable=(folder,),
    )


@pytest.fixture
def workspace(tmp_path: Path, built: BuiltEnvironment) -> Workspace:
    archive = write_archive(tmp_path / "suite" / "archives" / "a.tar.gz", {"src/shop.py": "1"})
    return Workspace(tmp_path / "work", archive=archive, environment=built)


@pytest.mark.parametrize("sandbox", ["none", "bwrap"])
def test_an_agent_finds_the_programs_of_its_environment(
    ask: Callable[..., AttemptResult],
    tmp_path: Path,
    workspace: Workspace,
    sandbox: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_tool("git")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if sandbox == "bwrap":
        require_tool("bwrap")
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "agent.py").chmod(0o755)
    outcome = ask("command:./agent.py", settings={"sandbox": sandbox}, workspace=workspace)
    assert outcome.failure is None, outcome.failure
    assert json.loads(outcome.answer) == [
        "from the environment\n",
        ["src"],
        "open",
        True,
        "left",
        sandbox == "bwrap",
        "",
    ]
    assert changes_in(workspace) == ()


@pytest.mark.parametrize("sandbox", ["none", "bwrap"])
def test_a_command_check_finds_them_too(workspace: Workspace, sandbox: str) -> None:
    if sandbox == "bwrap":
        require_tool("bwrap")
    run = ["sh", "-c", 'test "$(tool)" = "from the environment" && test "$PYTHONPATH" = "$PWD/src"']
    context = CheckContext(
        answer="", frames=(), workspace=workspace, task=Task(id="a", domain="d", prompt="p"), sandbox=sandbox
    )
    check = Check(kind="command", params={"run": run})
    assert KINDS["command"].evaluate(check, context).credit == 1
