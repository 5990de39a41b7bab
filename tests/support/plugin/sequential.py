"""What the tests of plugin/test_sequential.py share with the slow ones."""

from support.project import Project

FORGETFUL = """
import asyncio
from pathlib import Path


async def solve(context):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.scenario.id} {context.seed}\\n")
    await asyncio.sleep(0)
    return "4"
"""


def save(project: Project) -> None:
    project.scenarios(train=0, sweep=58).scenarios("kept", train=0, sweep=2, min_score=0.5)
    assert project.run("--tfgrpo-out", "out").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    (project.root / "calls.log").unlink()
    project.agent(FORGETFUL).ini(
        actor="python:agent2:solve", baseline="main", gate_sequential="true", concurrency=2, out="out"
    )
