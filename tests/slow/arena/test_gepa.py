"""The contestant gepa in an arena of its own process: to its end on the budget, and after a kill alike."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from support.fake_model import FakeModel

pytest.importorskip("gepa")
AGENT = """
import os
from pathlib import Path

ATTEMPTS = Path(__file__).with_name("attempts")


def solve(call):
    with ATTEMPTS.open("a") as file:
        file.write(".")
    if ATTEMPTS.stat().st_size == int(os.environ.get("DIES_AT", "-1")):
        os.kill(os.getpid(), 9)
    number = call.task.prompt.split("parcel ")[1].split()[0]
    return f"{number} kg" if "bring the unit" in call.prompt.system else number
"""
TEXTS = ("Try to be brief.", "Weigh it twice.", "Answer with the figure, and bring the unit.")
TEXT = """\
id: s{n}
domain: post
split: {split}
family: f{family}
prompt: How much is parcel {n} ?
checks:
  - kind: exact
    value: '{n} kg'
"""


def propose(request, attempt):
    """Return a text that depends on the question alone, as after a kill the same ones are put again."""
    return f"```\n{TEXTS[len(str(request['messages'])) % len(TEXTS)]}\n```"


def project(folder: Path) -> Path:
    splits = ["train"] * 12 + ["dev"] * 8 + ["eval"] * 20
    (folder / "fixtures").mkdir(parents=True)
    for n, split in enumerate(splits, 1):
        text = TEXT.format(n=n, split=split, family=n % 5)
        (folder / "fixtures" / f"s{n}.scenario.yaml").write_text(text)
    (folder / "agent.py").write_text(AGENT)
    settings = "tfgrpo_actor = python:agent:solve\ntfgrpo_teacher = openai:toy\ntfgrpo_concurrency = 1\n"
    (folder / "pytest.ini").write_text(f"[pytest]\n{settings}")
    return folder


def arena(folder: Path, model: FakeModel, *arguments: str, **variables: str) -> int:
    paths = os.pathsep.join((str(ROOT), str(folder)))
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


def result(folder: Path) -> dict[str, dict]:
    (path,) = folder.glob("out/*/arenas/*/arena.json")
    keys = ("scores", "rollouts", "teacher_calls", "note", "files", "tokens_added")
    return {side["name"]: {key: side[key] for key in keys} for side in json.loads(path.read_text())["sides"]}


@pytest.mark.parametrize("dies_at", [5, 40, 90, 130])
def test_killed_and_resumed_it_comes_to_the_same_table(tmp_path, dies_at):
    wanted = ("--optimizers", "none,gepa", "--budget-rollouts", "120")
    whole, killed = project(tmp_path / "whole" / "post"), project(tmp_path / "killed" / "post")
    with FakeModel(propose) as model:
        assert arena(whole, model, *wanted) == 0
        assert arena(killed, model, *wanted, DIES_AT=str(dies_at)) == -signal.SIGKILL
        assert arena(killed, model, "--resume") == 0
    table = result(whole)
    assert result(killed) == table
    assert table["gepa"]["rollouts"] == 120
    assert {score for place in table["gepa"]["scores"].values() for score in place} == {1.0}
    assert {score for place in table["none"]["scores"].values() for score in place} == {0.0}
    made = len((killed / "attempts").read_text()) - len((whole / "attempts").read_text())
    assert made <= 2, "more ran again than what was in flight"
