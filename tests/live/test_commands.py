"""The commands ``tfgrpo live ...``, on a store that an application has filled."""

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.tools import tfgrpo

from pytest_tfgrpo.cli.open_live import open_live

CONFIG = """
[settings]
enabled = true
namespace = "shop"
inference = "outcome_v1"

[points.config]
default = "bare"
[points.config.arms.bare]
[points.config.arms.warm]
temperature = 0.7
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which warm answers to refunds are good, and bare ones to questions."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "live.toml").write_text(CONFIG)
    with open_live(folder / "live.toml") as live:
        for n in range(160):
            category = ("refund", "question")[n % 2]
            with live.run(f"ticket-{n}", category=category, prompt=f"My {category}, order {n}") as run:
                arm = run.choose("config")
                run.turn()
                run.end(f"done {n}", score=float((arm.name == "warm") == (category == "refund")))
            if n % 8 == 7:
                live.flush()
        with suppress(OSError), live.run("ticket-bad", category="refund", prompt="x") as run:
            run.choose("config")
            raise OSError("the model is away")
    return folder


@pytest.fixture
def project(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(served, folder)
    monkeypatch.chdir(folder)
    return folder


def test_the_status_says_what_was_learned(project: Path) -> None:
    out = tfgrpo("live", "status")
    assert "gate       passes" in out
    assert "160 succeeded, 1 failed, 0 cancelled, 0 running" in out
    assert "the model stays as it is" in out
    status = json.loads(tfgrpo("live", "status", "--json"))
    assert status["weights_applied"] is False
    assert status["last_update"]["weights_applied"] is False
    learned = status["probabilities"]["config"]
    assert learned["refund"]["warm"] > 0.7
    assert learned["question"]["bare"] > 0.7
    assert status["updates"]["executed"] == status["selector"] >= 4


def test_the_status_of_a_process_is_that_of_the_command(project: Path) -> None:
    with open_live() as live:
        own = live.status()
    printed = json.loads(tfgrpo("live", "status", "--json"))
    assert {key: own[key] for key in printed} == printed


def test_a_reset_needs_an_actor_and_a_reason_and_is_kept(project: Path) -> None:
    assert "required: --reason" in tfgrpo("live", "reset", "--actor", "ada", code=2)
    assert "needs an actor and a reason" in tfgrpo("live", "reset", "--actor", " ", "--reason", "x", code=1)
    out = tfgrpo("live", "reset", "--actor", "ada", "--reason", "looked at it")
    assert out == "gate       passes, reset by ada: looked at it; it did not hold\n"
    assert "reset by ada: looked at it" in tfgrpo("live", "status")


def test_without_a_store_the_commands_say_how_one_comes_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no live store live.db yet; it is made by" in tfgrpo("live", "status", code=1)
    (tmp_path / "live.toml").write_text("[settings]\nstore = 'none'")
    assert "is kept in memory; call live.status()" in tfgrpo("live", "status", code=1)
    assert not (tmp_path / "live.db").exists()


def test_the_example_learns_which_configuration_suits_which_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFGRPO_LIVE_RL_ENABLED", "1")
    assert "wrote  live.toml\nwrote  service.py\nnext: TFGRPO" in tfgrpo("live", "init")
    assert "kept   service.py, which already exists" in tfgrpo("live", "init")
    subprocess.run([sys.executable, "service.py", "160"], check=True, timeout=60)
    learned = json.loads(tfgrpo("live", "status", "--json"))["probabilities"]["config"]
    assert learned["refund"]["thorough"] > 0.7
    assert learned["question"]["quick"] > 0.7
