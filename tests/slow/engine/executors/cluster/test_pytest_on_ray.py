"""pytest itself with its agents on a cluster, in a process of its own as a user starts it."""

from __future__ import annotations

import json
import platform
import signal
import subprocess
import sys

import pytest
from support.executors import alive, wait_until
from support.project import Project
from support.projects_in_archives import write_archive
from support.ray_nodes import Nodes, load_ray
from support.tools import require_tool

from pytest_tfgrpo.sandbox.programs.environments import BUILT, Environment, cache_folder, stamp_of, to_file

STAYS = """
import os, time
from pathlib import Path

def stays(context):
    (Path({!r}) / f"{{time.monotonic_ns()}}-{{os.getpid()}}-{{context.task.id}}").touch()
    while True:
        time.sleep(0.01)
"""


@pytest.fixture(scope="module", autouse=True)
def _ray() -> None:
    load_ray()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code of a process, and what it printed."""
    try:
        output, _ = process.communicate(timeout=100)
    finally:
        process.kill()
    return process.returncode, output


def build(environment: str, says: str) -> None:
    """Put a built environment, with a program, into the cache of this process."""
    folder = cache_folder() / environment
    program = folder / "folder" / "node_modules" / ".bin" / "tool"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    (folder / BUILT).write_text("{}")


def test_an_environment_is_that_of_the_node_and_a_sandbox_hides_the_suite_there(
    project: Project, cluster: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tool("bwrap")
    root, environment = project.root, Environment(links=("node_modules",))
    archive = write_archive(root / "suite" / "archives" / "shop.tar.gz", {"shop.py": "1"})
    wanted = stamp_of(environment)
    project.write(f"suite/environments/{wanted}.json", json.dumps(to_file(environment)))
    project.write(
        "agent.py",
        f"#!{sys.executable}\nimport os, subprocess\n"
        "print(subprocess.run(['tool'], capture_output=True, text=True).stdout.strip(), end=' ')\n"
        "print(*sorted(os.listdir(os.path.dirname(__file__))), *sorted(os.listdir()), end=' ')\n"
        f"print(os.path.exists({str(root / 'suite')!r}))\n",
    )
    (root / "agent.py").chmod(0o755)
    sees = "node agent.py .git node_modules shop.py False"
    project.tasks(
        name="suite/shop",
        fields={
            "workspace": {"archive": "archives/shop.tar.gz", "sha256": archive.sha256},
            "environment": wanted,
            "checks": [{"kind": "exact", "value": sees}],
        },
        eval=2,
    )
    project.ini(actor="command:./agent.py", sandbox="bwrap", executor=cluster.executor, eval_rollouts=2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(root.parent / "driver"))
    build(wanted, "driver")
    code, output = ended(project.start())
    assert code == pytest.ExitCode.USAGE_ERROR, output
    assert (
        f"environments of the suite 'suite' are not built on the cluster's nodes {platform.node()}; "
        "run `tfgrpo harvest env suite` in a copy of the project there"
    ) in output
    assert not project.runs()
    with monkeypatch.context() as there:
        there.setenv("XDG_CACHE_HOME", str(cluster.cache))
        build(wanted, "node")
    code, output = ended(project.start())
    assert code == 0, [*output.splitlines(), *(one["answer"] for one in project.events("rollout"))]


def test_control_c_ends_pytest_and_all_agents(
    project: Project, cluster: Nodes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    told = tmp_path_factory.mktemp("told")
    project.agent(STAYS.format(str(told))).scenarios(train=0, sweep=3)
    project.ini(actor="python:agent2:stays", executor=cluster.executor, eval_rollouts=1)
    process = project.start()
    try:
        wait_until(lambda: len(alive(told)) == 1 and len(list(told.iterdir())) == 3)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not alive(told))
        code, output = ended(process)
    finally:
        process.kill()
    assert code == pytest.ExitCode.INTERRUPTED, output
    assert [one["status"] for one in project.events("finish")] == ["cancelled"]
