"""Whole arenas in the scripted world: many, one of optimizers by hook, and two that start at one moment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from support import ROOT
from support.arena.scripted_world import claims, means, table_of, whole_outcomes, write_world

ARENAS = 100
HOOK = """
from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.protocols import Proposal
from pytest_tfgrpo.suite.packs import pack_for
from support.arena.scripted_agent import CLAUSE
from support.builders import make_experience


class Planted:
    def __init__(self, name, percent):
        self.name, self.percent, self.identity = name, percent, {"percent": percent}

    async def propose(self, context):
        return Proposal(operations=tuple(self.lessons(context)))

    def lessons(self, context):
        groups = {group.domain: group for group in context.groups}
        for n, (place, group) in enumerate(sorted(groups.items())):
            text = CLAUSE.format(place=place, percent=self.percent, maker=self.name)
            lesson = make_experience(
                n,
                run_id=context.run_id,
                task_id=context.task_id,
                domain=place,
                group_id=group.group_id,
                summary32=text,
                stamp_signature=pack_for(context.packs, place).stamp,
            )
            yield Operation(kind="add", experience=lesson)


def pytest_tfgrpo_optimizer(config, spec):
    percent = {"little": 20, "much": 60, "nothing": 0}.get(spec)
    return None if percent is None else Planted(spec, percent)
"""
COMMAND = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())"


def test_whole_arenas_order_planted_optimizers_and_do_not_call_equal_ones_different() -> None:
    found = Counter[str]()
    for seed in range(ARENAS):
        found.update(whole_outcomes(seed))
    assert found["equal"] >= 0.95 * ARENAS
    assert found["wrong way"] == 0
    assert found["ordered"] >= 0.85 * ARENAS
    assert found["best"] >= 0.9 * ARENAS
    assert found["claimed 0.2"] >= 0.7 * found["pairs 0.2"]
    assert found["claimed 0.3"] >= 0.95 * found["pairs 0.3"]


def begun(folder: Path, *words: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "arena", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_planted_optimizers_by_hook_learn_in_runs_and_are_ordered(tmp_path: Path) -> None:
    folder = write_world(tmp_path / "world", 5, train=12, scenarios=60, acceptance="off", group_size=3)
    (folder / "conftest.py").write_text(HOOK)
    with (folder / "pytest.ini").open("a") as ini:
        ini.write("addopts = -p tfgrpo\n")
    names = "none,little,much,nothing,placebo"
    process = begun(folder, "--optimizers", names, "--budget-rollouts", "36")
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 0, told
    table = table_of(folder)
    score, claim = means(table), claims(table)
    assert score["none"] < score["little"] < score["much"]
    assert (claim["none", "little"], claim["little", "much"]) == ("better", "better")
    assert (claim["none", "nothing"], claim["none", "placebo"]) == (None, None)
    assert [side["rollouts"] for side in table["sides"]] == [0, 36, 36, 36, 0]


def test_two_arenas_that_start_at_one_moment_are_two(tmp_path: Path) -> None:
    folder = write_world(tmp_path / "world", 0, train=12, scenarios=30, task_id="task")
    words = ("--optimizers", "none,few-shot,heuristic", "--budget-rollouts", "36")
    both = [begun(folder, *words) for _ in range(2)]
    told = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    arenas = sorted(folder.glob("out/task/arenas/*"))
    assert len(arenas) == 2
    one, other = (table_of(folder, arena.name) for arena in arenas)
    assert {one.pop("earlier"), other.pop("earlier")} <= {0, 1}
    assert one == other
