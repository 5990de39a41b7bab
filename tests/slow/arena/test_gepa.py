"""The contestant gepa in the scripted world: to its end on the budget, killed and resumed to one table."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from support.arena.scripted_agent import CLAUSE
from support.arena.scripted_world import PLACES, claims, table_of, write_world
from support.fake_model import FakeModel

pytest.importorskip("gepa")
AGENT = """
import os
from pathlib import Path

from support.arena import scripted_agent

ATTEMPTS = Path(__file__).with_name("attempts")


async def solve(context):
    with ATTEMPTS.open("a") as file:
        file.write(".")
    if ATTEMPTS.stat().st_size == int(os.environ.get("DIES_AT", "-1")):
        os.kill(os.getpid(), 9)
    return await scripted_agent.solve(context)
"""
BUDGET = 120
PERCENT = (5, 30, 60)
"""What the texts gain that the teacher proposes."""


def propose(request, attempt):
    """Return a text that depends on the question alone, as after a kill the same ones are put again."""
    percent = PERCENT[len(str(request["messages"])) % len(PERCENT)]
    clauses = [CLAUSE.format(place=place, percent=percent, maker="teacher") for place in PLACES]
    return "```\nSolve the task.\n{}\n```".format("\n".join(clauses))


def project(folder: Path) -> Path:
    settings = {"agent": "agent:solve", "teacher": "openai:toy", "concurrency": 1}
    write_world(folder, 3, train=12, dev=9, scenarios=30, eval_rollouts=2, **settings)
    (folder / "agent.py").write_text(AGENT)
    return folder


def arena(folder: Path, model: FakeModel, *arguments: str, **variables: str) -> int:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "tests"), str(folder)))
    start = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", start, "arena", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OPENAI_BASE_URL": model.base_url, **variables},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.parametrize("dies_at", [5, 40, 90, 130])
def test_killed_and_resumed_it_comes_to_the_same_table(tmp_path, dies_at):
    wanted = ("--optimizers", "none,gepa", "--budget-rollouts", str(BUDGET))
    whole, killed = project(tmp_path / "whole" / "post"), project(tmp_path / "killed" / "post")
    with FakeModel(propose) as model:
        assert arena(whole, model, *wanted) == 0
        assert arena(killed, model, *wanted, DIES_AT=str(dies_at)) == -signal.SIGKILL
        assert arena(killed, model, "--resume") == 0
    table = table_of(whole)
    assert table_of(killed) == table
    gepa = table["sides"][1]
    made = len((whole / "attempts").read_text())
    spent = made - table["sweep_rollouts"]
    assert abs(spent - BUDGET) <= 0.01 * BUDGET, "the agent was called so often in its training"
    assert gepa["rollouts"] == spent
    assert gepa["teacher_calls"] >= 3
    assert claims(table) == {("none", "gepa"): "better"}, gepa["note"]
    assert len(gepa["files"]) == 1, "a prompt pack"
    again = len((killed / "attempts").read_text()) - made
    assert again <= 2, "more ran again than what was in flight"
