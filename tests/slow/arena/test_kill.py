"""An arena whose process is killed, again and again, comes to the result of one that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from pytest_tfgrpo import cli

SLOW_AGENT = """
import asyncio

async def solve(context):
    await asyncio.sleep(0.03)
    told = "swing" in context.prompt.system
    return {"answer": str(8 if told and context.seed % 2 else context.seed % 9)}
"""
COMMAND = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())"
WORDS = ("--optimizers", "none,heuristic,few-shot,placebo", "--budget-rollouts", "48")


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())",
            "arena",
            *words,
        ],
        cwd=folder,
        env={**os.environ, "TFGRPO_CONCURRENCY": "2", "TFGRPO_EVAL_ROLLOUTS": "2", "TFGRPO_TASK_ID": "task"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def table(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("out/task/arenas/*/arena.json")
    sides: list[dict[str, Any]] = json.loads(path.read_text())["sides"]
    return [{key: value for key, value in side.items() if key != "wall_s"} for side in sides]


def test_a_killed_arena_comes_to_the_same_table(tmp_path: Path) -> None:
    folders = [tmp_path / "left", tmp_path / "killed"]
    for folder in folders:
        assert cli.main(["init", str(folder)]) == 0
        (folder / "slow_agent.py").write_text(SLOW_AGENT)
        ini = folder / "pyproject.toml"
        ini.write_text(ini.read_text().replace('"offline"', '"python:slow_agent:solve"'))
    left, killed = folders
    assert started(left, *WORDS).wait(100) == 0
    kills, words = 0, WORDS
    for n in range(1, 60):
        process = started(killed, *words)
        try:
            process.wait(0.6 + 0.1 * n)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        if list(killed.glob("out/task/arenas/*/arena.json")):
            break
        if list(killed.glob("out/task/arenas/*/plan.json")):
            kills, words = kills + 1, ("--resume",)
    assert kills >= 1
    assert table(killed) == table(left)
