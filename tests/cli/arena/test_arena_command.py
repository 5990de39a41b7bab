"""``tfgrpo arena``: misuse before any call, optimizers by hook, a recording and its replay, an interrupt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tfgrpo import cli
from pytest_tfgrpo.arena.arena import Arena
from pytest_tfgrpo.arena.contestants import few_shot

HOOK = """
from pytest_tfgrpo.protocols import Proposal

class Mine:
    name, identity = "mine", {}

    async def propose(self, context):
        return Proposal(note="nothing")

def pytest_tfgrpo_optimizer(config, spec):
    return Mine() if spec == "mine" else None
"""
Said = Callable[..., str]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """Return what runs the command in a new project, and returns what it prints."""
    assert cli.main(["init", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFGRPO_EVAL_ROLLOUTS", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    capsys.readouterr()

    def run(*words: str, code: int = 0) -> str:
        assert cli.main(["arena", *words]) == code
        told = capsys.readouterr()
        return told.out + told.err

    return run


def test_misuse_is_said_before_any_call(said: Said, tmp_path: Path) -> None:
    budget = ("--budget-rollouts", "60")
    for names, words in {
        "none,heuristic,none": "names 'none' twice; leave one out",
        "none,llm": "llm needs a language model that teaches; set tfgrpo_teacher",
        "none,placebo": "none of them learns lessons; add heuristic or llm",
        "none": "needs two names or more",
    }.items():
        assert words in said("--optimizers", names, *budget, code=1)
    few = said("--optimizers", "none,heuristic", "--budget-rollouts", "23", code=1)
    assert (
        "--budget-rollouts 23 is too small: heuristic needs at least 24, a group of 2 for each of 12" in few
    )
    assert "--budget-rollouts is missing" in said("--optimizers", "none,heuristic", code=1)
    assert "no interrupted arena" in said("--resume", code=1)
    assert "no arena 'x'" in said("--resume", "x", code=1)
    for file in (tmp_path / "fixtures").iterdir():
        file.write_text(file.read_text().replace("split: eval", "split: train"))
    none = said("--optimizers", "none,heuristic", "--budget-rollouts", "200", code=1)
    assert "there are no eval scenarios to compare on" in none
    assert not (tmp_path / "out" / tmp_path.name).exists()


def test_a_dry_run_needs_no_key_and_the_arena_does(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("TFGRPO_TEACHER", "openai:m")
    words = ("--optimizers", "none,llm", "--budget-rollouts", "60")
    assert "dry run: the actor offline was not called" in said(*words, "--dry-run")
    assert "OPENAI_API_KEY is not set" in said(*words, code=1)
    assert not (tmp_path / "out" / tmp_path.name).exists()


def test_an_arena_is_recorded_and_replayed(said: Said, tmp_path: Path) -> None:
    words = ("--optimizers", "few-shot,heuristic", "--budget-rollouts", "24")
    assert "recorded 24 rollouts and 0 model calls in all.jsonl" in said(*words, "--record", "all.jsonl")
    said(*words, "--replay", "all.jsonl")
    files = sorted((tmp_path / "out").glob("*/arenas/*/arena.json"))
    results = [json.loads(path.read_text()) for path in files]
    assert [result["actor"] for result in results] == ["offline", "offline"]
    scores = [[side["scores"] for side in result["sides"]] for result in results]
    assert scores[0] == scores[1]
    more = said("--optimizers", "none,heuristic", "--budget-rollouts", "48", "--replay", "all.jsonl", code=1)
    assert "the recording lacks 24 of 48 answers: record an arena with these arguments" in more


def test_an_optimizer_by_hook_competes(said: Said, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOK)
    ini = tmp_path / "pyproject.toml"
    ini.write_text(ini.read_text() + 'addopts = "-p tfgrpo"\n')
    told = said("--optimizers", "none,mine", "--budget-rollouts", "24")
    assert "mine: 24 rollouts, 0 lessons" in told


def test_an_interrupted_arena_says_how_it_goes_on_and_does(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(arena: Arena) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Arena, "finish", interrupted)
        words = ("--optimizers", "none,heuristic", "--budget-rollouts", "24")
        told = said(*words, code=130)
    assert "interrupted; go on with: tfgrpo arena --resume 2" in told
    assert "leave --budget-rollouts out" in said("--resume", "--budget-rollouts", "25", code=1)
    assert "lessons (on file)" in said("--resume")
    assert "no interrupted arena" in said("--resume", code=1)


def test_a_bug_of_our_own_is_loud_and_leaves_the_result(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_shot, "Trained", None)
    told = said("--optimizers", "none,few-shot", "--budget-rollouts", "24", code=3)
    assert "few-shot: a bug in pytest-tfgrpo, please report it: TypeError: " in told
    assert "tfgrpo: this is a bug in pytest-tfgrpo; please report it" in told
    assert "few_shot.py" in next(tmp_path.glob("out/*/arenas/*/arena.json")).read_text()
