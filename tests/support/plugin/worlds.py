"""What the tests of plugin/test_worlds.py share with the slow ones."""

from support.project import Project

STEPS = """
import os
import time
from pathlib import Path

LOG = Path(__file__).with_name("steps.log")


def note(word, context):
    with LOG.open("a") as file:
        file.write(f"{word} {context.rollout_id}\\n")


def up(context):
    note("up", context)
    (context.workspace / "stock.txt").write_text(context.task.id)


def down(context):
    left = (context.workspace / "sold.txt").is_file()
    note("down-sold" if left else "down", context)


def breaks(context):
    note("breaks", context)
    raise SystemExit("no room for a database")


def hangs(context):
    note("hangs", context)
    while not Path(__file__).with_name("quick").exists():
        time.sleep(0.01)


async def later(context): ...
"""
AGENT = """
import asyncio
from pathlib import Path

import steps

CHECKED = []


def sell(context):
    assert "setup" not in repr(context.task) and "steps:" not in str(context.prompt)
    with steps.LOG.open("a") as file:
        file.write("asked\\n")
    (context.workspace / "sold.txt").write_text((context.workspace / "stock.txt").read_text())
    return "3"


def crash(context):
    raise RuntimeError("the agent fell over")


async def sleep(context):
    with steps.LOG.open("a") as file:
        file.write("asked\\n")
    while not Path(__file__).with_name("quick").exists():
        await asyncio.sleep(0.01)
    return "3"


def sold(context):
    with steps.LOG.open("a") as file:
        file.write("checked\\n")
    return (context.workspace.path / "sold.txt").read_text() == context.task.id
"""
WORLD = {"setup": {"python": "steps:up"}, "teardown": {"python": "steps:down"}}


def ini(project: Project, actor: str, **settings: object) -> Project:
    lines = "".join(f"tfgrpo_{name} = {value}\n" for name, value in settings.items())
    return project.write("pytest.ini", f"[pytest]\npythonpath = .\ntfgrpo_actor = {actor}\n{lines}")


def log(project: Project) -> list[str]:
    path = project.root / "steps.log"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def one(project: Project, **fields: object) -> Project:
    return project.tasks(eval=1, fields=fields)


def ended(project: Project) -> dict[str, object]:
    (rollout,) = project.events("rollout")
    return rollout
