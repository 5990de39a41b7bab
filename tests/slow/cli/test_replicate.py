"""``tfgrpo replicate``: the learning run with several seeds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

SMALL = {"actor": "python:agent:learner", "group_size": 2, "eval_rollouts": 2, "task_id": "demo"}


@pytest.fixture
def small(project: Project) -> Project:
    return project.scenarios(train=6, sweep=10).ini(**SMALL)


def replicate(project: Project, capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    capsys.readouterr()
    ended = project.cli("replicate", *args)
    said = capsys.readouterr()
    assert ended == code, said.out + said.err
    return " ".join((said.err if code else said.out).split())


def seeds(project: Project) -> dict[int, list[Path]]:
    """Return the folders of the runs of each seed in the latest replication."""
    latest = max((project.root / "out/demo/replications").iterdir())
    return {
        int(out.name.removeprefix("seed-")): sorted(out.glob("demo/runs/*"))
        for out in sorted(latest.glob("seed-*"))
    }


def report(run: Path) -> Any:
    return json.loads((run / "report.json").read_text())


def test_three_seeds_speak_of_the_method_and_asking_again_runs_nothing(
    small: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    said = replicate(small, capsys, "3")
    assert "0 of 3 seeds are complete" in said
    assert said.index("each of 3 runs takes: dry run: the actor python:agent:learner was not called") < (
        said.index("seed 0 runs;")
    )
    assert "over 3 seeds x 10 scenarios" in said
    assert "claim this method on this suite does better (level 0.05, 1 look at this eval split)" in said
    found = seeds(small)
    assert [report(runs[0])["settings"]["seed"] for runs in found.values()] == [0, 1, 2]
    assert [report(runs[0])["gain"]["claim"]["looks"] for runs in found.values()] == [1, 1, 1]
    (file,) = (small.root / "out").glob("demo/replications/*/replication.json")
    value = json.loads(file.read_text())
    gains = [report(runs[0])["gain"]["difference"] for runs in found.values()]
    assert [row["difference"] for row in value["seeds"]] == gains
    assert value["gain"]["difference"] == pytest.approx(sum(gains) / 3)
    asked = len(small.calls)
    again = replicate(small, capsys, "3")
    assert again.startswith("seed run gain")
    assert again.split("seed run")[1] == said.split("seed run")[1]
    assert len(small.calls) == asked
    more = replicate(small, capsys, "4", "--dry-run")
    assert "3 of 4 seeds are complete" in more
    assert len(small.calls) == asked
    replicate(small, capsys, "4")
    assert len(small.calls) == asked * 4 // 3
    assert all(len(runs) == 1 for runs in seeds(small).values())
    # whoever learns now has had its looks: one variant of these four at least
    small.learn("--tfgrpo-max-steps=3")
    assert small.report()["gain"]["claim"]["looks"] >= 2


def test_under_three_seeds_only_libraries_are_spoken_of(
    small: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    said = replicate(small, capsys, "1")
    assert "the run takes:" in said
    assert "no interval: it takes 3 seeds" in said
    assert "claim nothing about the method: each gain above speaks of its own library" in said


def test_a_budget_holds_for_all_seeds_together(small: Project, capsys: pytest.CaptureFixture[str]) -> None:
    replicate(small, capsys, "1")
    first = report(seeds(small)[0][0])["cost"]["tokens"]
    assert first > 0
    small.ini(**SMALL, budget_tokens=2 * first)
    said = replicate(small, capsys, "3", code=1)
    assert "tokens" in said, said
    found = seeds(small)
    assert report(found[1][0])["settings"]["budget_tokens"] == first
    spent = sum(report(run)["cost"]["tokens"] for runs in found.values() for run in runs)
    assert spent <= 2 * first
    small.ini(**SMALL, budget_tokens=10 * first)
    assert "over 3 seeds" in replicate(small, capsys, "3")
    assert all(len(runs) == 1 for runs in seeds(small).values())


def test_an_incomplete_run_is_told_and_resumed(small: Project, capsys: pytest.CaptureFixture[str]) -> None:
    said = replicate(small, capsys, "1", "--", "--tfgrpo-budget-s=0.001", code=1)
    assert "the run of seed 0 is not complete: " in said
    (run,) = seeds(small)[0]
    assert report(run)["status"] == "incomplete"
    replicate(small, capsys, "1")
    assert seeds(small)[0] == [run]
    assert report(run)["status"] == "complete"


def test_runs_that_differ_in_more_than_the_seed_replicate_nothing(
    small: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    replicate(small, capsys, "1")
    small.ini(**SMALL, lesson_dropout=0.5)
    said = replicate(small, capsys, "2", code=1)
    assert "seeds 0 and 1 do not replicate one method, as these differ: lesson_dropout; restore" in said
    assert "1 seed x 10 scenarios" in replicate(small, capsys, "1")
    replicate(small, capsys, "1", "--new")
    assert len(list((small.root / "out/demo/replications").iterdir())) == 2


def test_what_cannot_run_is_told_in_pytests_words(small: Project, capsys: pytest.CaptureFixture[str]) -> None:
    small.ini(**SMALL, epochs=0)
    assert "epochs must be an integer >= 1" in replicate(small, capsys, "3", code=1)
    small.ini(**SMALL, baseline_sweep="off")
    assert "has no gain to replicate" in replicate(small, capsys, "1", code=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_its_run_and_goes_on_later(
    small: Project, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    small.ini(**SMALL | {"actor": "python:agent:slow"}, concurrency=1)
    command = [sys.executable, "-c", "import sys; from pytest_tfgrpo.cli import main; sys.exit(main())"]
    process = subprocess.Popen([*command, "replicate", "1"], cwd=small.root, start_new_session=True)
    until = time.monotonic() + 100
    while len(small.calls) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    assert process.wait(100) == 130
    (run,) = seeds(small)[0]
    assert report(run)["status"] in ("cancelled", "incomplete")
    replicate(small, capsys, "1")
    assert seeds(small)[0] == [run]
    assert report(run)["status"] == "complete"
    assert len(small.calls) <= 2 * 64 + 2  # it logs each call twice; one was under way


def test_a_run_that_cannot_go_on_is_told_in_pytests_words(
    small: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    replicate(small, capsys, "1", "--", "--tfgrpo-budget-s=0.001", code=1)
    small.ini(**SMALL, lesson_dropout=0.5)
    assert "cannot be resumed: settings changed since" in replicate(small, capsys, "1", code=1)
