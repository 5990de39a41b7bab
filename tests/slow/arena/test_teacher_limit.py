"""A limit of teacher calls: killed within a call, resumed and replayed, an arena comes to one table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import ROOT
from support.arena.scripted_agent import CLAUSE
from support.arena.scripted_world import PLACES, table_of, write_world
from support.fake_model import Body, FakeModel, Reply, text
from support.teachers import asked, operation, says

pytest.importorskip("gepa")
LIMIT = 5
WORDS = ("--optimizers", "none,llm,gepa", "--budget-rollouts", "144", "--budget-teacher-calls", str(LIMIT))


def teach(request: Body) -> str:
    """Answer by what the question is alone; one of three critiques is no list, and is repaired."""
    question = asked(request)
    percent = (5, 30, 60)[len(question) % 3]
    if "You improve the instructions" in str(request["messages"][0]):
        lines = [CLAUSE.format(place=place, percent=percent, maker="gepa") for place in PLACES]
        return "```\nSolve the task.\n{}\n```".format("\n".join(lines))
    if "cannot be used" not in question and len(question) % 3 == 0:
        return "no list"
    (place,) = [place for place in PLACES if f"the {place} depot" in str(request["messages"])]
    several = {"sources": ["P1", "P2"]} if "Several tasks of one domain" in question else {}
    return says(operation(lesson=CLAUSE.format(place=place, percent=percent, maker="llm"), **several))


def project(folder: Path) -> Path:
    settings = {"teacher": "openai:toy", "concurrency": 3, "acceptance": "off"}
    return write_world(folder, 3, train=12, dev=6, scenarios=12, eval_rollouts=1, task_id="task", **settings)


class Played:
    """A teacher that counts the arena's calls, and may kill the arena as one of them arrives."""

    def __init__(self, slow: Callable[[int], float], kill_at: int = 0) -> None:
        self.made, self._slow, self._kill_at = 0, slow, kill_at
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, request: Body, attempt: int) -> Reply:
        self.made += 1
        if self.made == self._kill_at and self.process is not None:
            self.process.send_signal(signal.SIGKILL)
        said = text(teach(request))
        return Reply(body=said.body, delay_s=self._slow(self.made))


def arena(folder: Path, played: Played, *words: str) -> int:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    start = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())"
    with FakeModel(played) as model:
        played.process = subprocess.Popen(
            [sys.executable, "-c", start, "arena", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths, "OPENAI_BASE_URL": model.base_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        told, _ = played.process.communicate(timeout=200)
    assert played.process.returncode in (0, -signal.SIGKILL), told
    return played.process.returncode


def test_killed_within_calls_and_resumed_or_replayed_it_comes_to_the_same_table(tmp_path: Path) -> None:
    whole, killed, replayed = (project(tmp_path / name / "post") for name in ("whole", "killed", "again"))
    played = Played(lambda n: 0.0)
    assert arena(whole, played, *WORDS, "--record", str(tmp_path / "all.jsonl")) == 0
    table = table_of(whole)
    calls = {side["name"]: side["teacher_calls"] for side in table["sides"]}
    assert calls["none"] == 0
    assert LIMIT - 2 <= calls["llm"] <= LIMIT
    assert calls["gepa"] == LIMIT
    assert [side["teacher_limited"] for side in table["sides"]] == [False, True, True]
    assert played.made == sum(calls.values())

    ended, words, made = -signal.SIGKILL, WORDS, 0
    for kill_at in (2, 4, 3, 2, 0):
        again = Played(lambda n: 0.02 * (n % 3), kill_at)
        ended = arena(killed, again, *words)
        made += again.made
        words = ("--resume",)
        if not ended:
            break
    assert ended == 0
    assert table_of(killed) == table
    assert made - sum(calls.values()) <= 4 * 3, "more was asked again than what was in flight"

    silent = Played(lambda n: 0.0)
    assert arena(replayed, silent, *WORDS, "--replay", str(tmp_path / "all.jsonl")) == 0
    assert silent.made == 0
    assert table_of(replayed) == table


@pytest.mark.parametrize("limit", [0, 1])
def test_with_one_call_or_none_it_runs_to_its_end(tmp_path: Path, limit: int) -> None:
    folder, played = project(tmp_path / "post"), Played(lambda n: 0.0)
    assert arena(folder, played, *WORDS[:-1], str(limit)) == 0
    calls = [side["teacher_calls"] for side in table_of(folder)["sides"]]
    assert calls == [0, limit, limit]
    assert played.made == 2 * limit
