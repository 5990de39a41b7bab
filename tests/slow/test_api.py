"""``pytest_tfgrpo.run`` and ``arun``: a run without pytest, with the same results."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from support import ROOT
from support.api import SMALL, SUITE, Counter
from support.project import Project

import pytest_tfgrpo as tfgrpo


def comparable(report: dict[str, Any]) -> Any:
    """Return a report without what differs between equal runs: times, and ids made from the run's."""
    ids: dict[str, str] = {}
    text = json.dumps(report).replace(report["run_id"], "RUN").replace(report["task_id"], "TASK")
    text = re.sub(
        r"(?<![\w.])(?:[0-9a-f]{64}|[0-9a-f]{16})\b", lambda m: ids.setdefault(m[0], f"id{len(ids)}"), text
    )

    def strip(part: Any, key: str = "") -> Any:
        if key in ("latency_ms", "started_at", "finished_at"):
            return None
        if isinstance(part, dict):
            return {name: strip(one, name) for name, one in part.items()}
        return [strip(one) for one in part] if isinstance(part, list) else part

    return strip(json.loads(text))


def test_a_run_has_the_report_that_pytest_gives_for_the_same_settings_and_seed(project: Project) -> None:
    for name in ("fixtures", "prompt-packs"):
        shutil.copytree(ROOT / name, project.root / name)
    flags = ("--tfgrpo-actor=offline", "--tfgrpo-group-size=3", "--tfgrpo-seed=7", "--tfgrpo-sample-size=12")
    project.learn(*flags, "--tfgrpo-task-id=from-pytest", "fixtures")
    own = tfgrpo.run(
        project.root, "fixtures", actor="offline", group_size=3, seed=7, sample_size=12, task_id="from-python"
    )
    theirs = project.report()
    assert own.report["gain"] == theirs["gain"]
    assert comparable(own.report) == comparable(theirs)
    assert own.folder is not None
    assert {path.name for path in own.folder.iterdir()} == {
        path.name for path in project.runs()[-1].iterdir()
    }


def test_several_runs_at_once_in_one_loop_keep_apart(tmp_path: Path) -> None:
    async def both() -> list[tfgrpo.RunResult]:
        runs = (
            tfgrpo.arun(tmp_path, SUITE, actor=Counter(0.01), task_id=f"t{n}", seed=n, **SMALL)
            for n in range(4)
        )
        return await asyncio.gather(*runs)

    results = asyncio.run(both())
    assert [result.run.settings["seed"] for result in results] == [0, 1, 2, 3]
    assert len({result.folder for result in results}) == 4
    for n, result in enumerate(results):
        alone = tfgrpo.run(tmp_path, SUITE, actor=Counter(), task_id=f"alone{n}", seed=n, **SMALL)
        means = [[row["gt_score"] for row in each.report["epochs"]] for each in (alone, result)]
        assert means[0] == means[1]


def test_ctrl_c_ends_the_run_with_its_files(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time, pytest_tfgrpo\n"
        "def slow(context):\n    time.sleep(0.2)\n    return '3'\n"
        "checks = [{'kind': 'exact', 'value': '3'}]\n"
        "suite = [{'id': f's{n}', 'split': 'eval', 'prompt': f'p{n}', 'checks': checks} for n in range(99)]\n"
        "def told(record):\n    print(type(record).__name__, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    try:\n"
        "        pytest_tfgrpo.run('.', suite, actor='python:program:slow', concurrency=2, observe=told)\n"
        "    except KeyboardInterrupt:\n        print('interrupted')\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(program)], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Rollout\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().split()
    assert rest[-2:] == ["Run", "interrupted"]
    (report,) = tmp_path.glob("out/*/runs/*/report.json")
    ended = json.loads(report.read_text())
    assert (ended["status"], ended["reason"]) == ("cancelled", "interrupted")


def test_runs_of_one_task_at_once_share_its_store_and_library(tmp_path: Path) -> None:
    class Learner(Counter):
        async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
            tool = tfgrpo.Frame(kind="tool", name="count" if call.seed % 2 else "guess")
            return tfgrpo.Trajectory(answer="3" if call.seed % 2 else "4", frames=(tool,))

    async def several() -> list[tfgrpo.RunResult]:
        arguments: dict[str, Any] = {**SMALL, "group_size": 4, "lesson_dropout": 0}
        runs = (tfgrpo.arun(tmp_path, SUITE, actor=Learner(), seed=seed, **arguments) for seed in range(6))
        return await asyncio.gather(*runs)

    results = asyncio.run(several())
    assert {result.run.status for result in results} == {"complete"}
    assert any(result.run.library.experiences for result in results)
