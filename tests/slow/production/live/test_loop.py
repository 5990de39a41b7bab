"""Live RL as an application uses it, over a real store."""

import random
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from support.builders import make_experience
from support.live.loop import CONFIG, runs_of, scored, serve, wait

from pytest_tfgrpo.cli.live.live_demo import open_failing
from pytest_tfgrpo.cli.live.open_live import open_live
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.production.live.records import LiveStatus


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_library(tmp_path / "library.json", of([make_experience()]))
    (tmp_path / "live.toml").write_text(CONFIG.format(inference="trace_v2"))
    return tmp_path


def test_processes_that_share_a_store_share_what_is_learned(folder: Path) -> None:
    config = scored(folder)
    with open_live(config) as one, open_live(config) as other:
        serve(one, 0, 64)
        one.flush()
        wait(lambda: other.backend is not None and other.backend.selector >= 4)


UNCLOSED = """
import os, sys, warnings
import pytest_tfgrpo as tfgrpo
warnings.simplefilter("ignore", DeprecationWarning)
live = tfgrpo.open_live()
def serve(keys):
    for key in keys:
        with live.run(key) as run:
            run.choose("config")
            run.end("done", score=0.5)
serve("abc")
child = os.fork()
serve("def" if child == 0 else "ghi")
if child:
    os.waitpid(child, 0)
raise RuntimeError("neither closes")
"""


def test_a_process_that_ends_without_closing_and_its_forked_child_lose_nothing(folder: Path) -> None:
    """As of a server that forks its workers after it has loaded the application."""
    done = subprocess.run([sys.executable, "-c", UNCLOSED], cwd=folder, capture_output=True, timeout=100)
    assert done.returncode == 1
    assert sorted(run.run for run in runs_of(folder)) == [*"abcdefghi"]
    assert {run.status for run in runs_of(folder)} == {LiveStatus.SUCCEEDED}


def test_failures_hold_the_gate_until_a_reset(folder: Path) -> None:
    """C-03."""
    live, store = open_failing(folder)
    with live:
        serve(live, 0, 8)
        store.failures = 3
        with live.run("unlucky") as run:
            run.choose("config")
        wait(lambda: live.status()["gate"]["state"] == "hold")
        assert live.status()["gate"]["last_error"].endswith("the disk is full")
        with live.run("held") as run:
            assert (run.choose("config").name, run.choose("config").propensity) == ("bare", 1.0)
        assert store.counts()["succeeded"] == 8


TWO_ARMS = """
[settings]
enabled = true
inference = "outcome_v1"
[points.config]
default = "a"
[points.config.arms.a]
[points.config.arms.b]
x = 2
"""


@pytest.mark.parametrize("seed", [3, 4, 5, 6, 7])
def test_an_arm_that_crashes_where_it_does_not_shine_is_avoided(tmp_path: Path, seed: int) -> None:
    """Arm b is worth .95 in the 40 % of its runs that do not raise, and a .7 in all of them."""
    (tmp_path / "live.toml").write_text(TWO_ARMS)
    rng, taken = random.Random(seed), Counter[str]()
    with open_live(tmp_path / "live.toml") as live:
        for n in range(700):
            with suppress(RuntimeError), live.run(f"k{n}", category="c", prompt="p") as run:
                arm = run.choose("config").name
                run.turn()
                taken[arm] += 1
                if arm == "b" and rng.random() < 0.6:
                    raise RuntimeError
                run.end("ok", score=0.7 if arm == "a" else 0.95)
            if n % 8 == 0:
                live.flush()
        live.flush()
        status = live.status()
    assert taken["b"] < 0.2 * 700
    assert status["probabilities"]["config"]["c"]["b"] < 0.2
    assert status["gate"]["state"] == "pass", "the selector avoids the arm before the guard has to"


def test_bursts_of_two_processes_are_learned_from(tmp_path: Path) -> None:
    """The runs of a burst have chosen many selectors ago when their update comes."""
    (tmp_path / "live.toml").write_text(TWO_ARMS)
    with open_live(tmp_path / "live.toml") as one, open_live(tmp_path / "live.toml") as other:
        for burst in range(3):
            for n in range(150):
                for who, live in enumerate((one, other)):
                    with live.run(f"{who}-{burst}-{n}", category="xyz"[n % 3], prompt="p") as run:
                        better = run.choose("config").name == "b"
                        run.end("ok", score=float((n * 7 + who) % 10 < (8 if better else 6)))
            assert one.flush(60)
            assert other.flush(60)
        status = one.status()
    eligible = 900 - status["rollouts"]["control"]
    assert status["left_out"].get("stale", 0) <= 0.02 * eligible
    assert status["rollouts"]["used"] >= 0.85 * eligible
    shares = [arms["b"] for arms in status["probabilities"]["config"].values()]
    assert sum(shares) / len(shares) > 0.6, "one category of few runs may still be open"
