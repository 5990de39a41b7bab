"""What the tests of plugin/test_hostile_workspaces.py share with the slow ones."""

from __future__ import annotations

AGENT = """\
import os
import shutil
from pathlib import Path
from support.hostile_trees import TREES, deep


def solve(context):
    workspace, victim = context.workspace, Path(__file__).parent / "victim"
    kind = os.environ["KIND"]
    if kind in TREES:
        TREES[kind](workspace, victim)
    elif kind == "very deep":
        deep(workspace, 20_000)
    elif kind == "very many files":
        for n in range(100_000):
            os.close(os.open(workspace / str(n), os.O_WRONLY | os.O_CREAT))
    elif kind == "unreadable itself":
        workspace.chmod(0)
    else:
        shutil.rmtree(workspace)
    if kind == "a link out":
        workspace.symlink_to(victim)
    elif kind == "a link to all":
        workspace.symlink_to("..")
    elif kind == "a loop":
        workspace.symlink_to(workspace)
    elif kind == "a file":
        workspace.touch()
    elif kind == "a pipe":
        os.mkfifo(workspace)
    elif kind == "nothing at all":
        shutil.rmtree(workspace.parent)
    return "3"
"""
CHECKS = [
    {"kind": "exact", "value": "3"},
    {"kind": "file", "path": "made.txt", "contains": "made"},
    {"kind": "command", "run": ["test", "!", "-e", "precious.txt"]},
]
