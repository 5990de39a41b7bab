"""Live RL as an application uses it, over a real store."""

import asyncio
import atexit
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.builders import make_experience
from support.connections import is_closed
from support.live.loop import CONFIG, runs_of, scored, serve, stored, wait

from pytest_tfgrpo.cli.live.open_live import open_live
from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.production.live.loop import LiveLoop, rules_of
from pytest_tfgrpo.production.live.records import LiveStatus
from pytest_tfgrpo.production.live.selection.rewards import open_inference
from pytest_tfgrpo.production.live.session import Live


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_library(tmp_path / "library.json", of([make_experience()]))
    (tmp_path / "live.toml").write_text(CONFIG.format(inference="trace_v2"))
    return tmp_path


def test_a_run_is_persisted_with_spans_status_and_reward(folder: Path) -> None:
    """C-01, and of reward inference C-03."""
    with open_live(folder / "live.toml") as live:
        with live.run("ticket-17", category="billing", prompt="How much?") as run:
            run.choose("config")
            run.turn()
            run.tool("search", error="away")
            run.end("12 euros")
        with suppress(ZeroDivisionError), live.run("ticket-18") as run:
            run.choose("config")
            _ = 1 / 0
        with pytest.raises(KeyboardInterrupt), live.run("ticket-19"):
            raise KeyboardInterrupt
    with stored(folder) as store:
        done, failed, cancelled = store.rollouts()
        spans = store.spans(done.id)
    assert done.id == "live-rl-rollout-default-0000000001"
    assert [one.status for one in (done, failed, cancelled)] == [
        LiveStatus.SUCCEEDED, LiveStatus.FAILED, LiveStatus.CANCELLED
    ]  # fmt: skip
    assert (failed.reason, cancelled.reason) == ("ZeroDivisionError", "KeyboardInterrupt")
    names = [span.name.removeprefix("live.agent.") for span in spans]
    assert names == ["choice", "turn", "tool", "decision"]
    decision = spans[-1].data
    parts = {"completion": 0.5, "session_completion": 0.0, "reliability": -0.25, "efficiency": 0.5}
    parts |= {"token_efficiency": 0.25, "safety": 0.0}
    assert decision["reward"] == 1.0
    assert {name: decision[f"reward_{name}"] for name in parts} == parts
    assert (decision["reward_strategy"], decision["hard_gate"]) == ("trace_v2", False)


def ways_to_fail(live: Live) -> None:
    """Fail in each way that an application has, without a score."""
    with suppress(ZeroDivisionError), live.run("exception") as run:
        run.choose("config")
        _ = 1 / 0
    with live.run("limit") as run:
        run.choose("config")
        run.end("partly", completed=False)
    with suppress(asyncio.CancelledError), live.run("given up") as run:
        run.choose("config")
        raise asyncio.CancelledError
    live.run("left open").choose("config")  # or its process died
    live.flush()


@pytest.mark.parametrize("failed_runs", ["worst", "inferred"])
def test_a_run_that_fails_without_a_score_counts_as_the_worst_unless_told_otherwise(
    folder: Path, failed_runs: str
) -> None:
    with open_live(scored(folder), failed_runs=failed_runs) as live:
        ways_to_fail(live)
        assert isinstance(live.backend, LiveLoop)
        inference = open_inference("outcome_v1")
        rules, now = rules_of(live.config, inference), time.time()
        assert live.backend.store.expire(now + 100, rules=rules, now=now) == 1
        failed = list(live.backend.store.rollouts())
        with suppress(KeyboardInterrupt), live.run("ended by you") as run:
            run.choose("config")
            raise KeyboardInterrupt
        live.flush()
        live.outcome("ended by you", 0.9)
    assert [run.reason for run in failed] == ["ZeroDivisionError", "incomplete", "CancelledError", "timeout"]
    assert {run.status for run in failed} == {LiveStatus.FAILED}
    rewards = {run.reward and run.reward.composite for run in failed}
    assert rewards == ({-0.75} if failed_runs == "worst" else {None})
    with stored(folder) as store:
        gate, cancelled = store.gate(), list(store.rollouts())[-1]
    bets = 4.0 if failed_runs == "worst" else 0.0
    assert (gate.control.get("runs", 0.0), gate.failures.get("runs", 0.0)) == (bets, bets)
    assert (cancelled.status, cancelled.reward) == (LiveStatus.CANCELLED, None)


def test_a_score_that_comes_later_beats_the_failure(folder: Path) -> None:
    with open_live(scored(folder)) as live:
        ways_to_fail(live)
        live.outcome("limit", 0.6)
    run = next(run for run in runs_of(folder) if run.run == "limit")
    assert run.reward is not None
    assert run.reward.composite == pytest.approx(0.3)


def test_updates_are_made_on_schedule_and_a_restart_goes_on_with_what_was_learned(folder: Path) -> None:
    """C-02."""
    config = scored(folder)
    with open_live(config) as live:
        serve(live, 0, 96)
        wait(lambda: live.status()["selector"] >= 4)
    with stored(folder) as store:
        learned = store.selector_number()
    with open_live(config) as live:
        assert live.status()["selector"] == learned
        assert live.status()["probabilities"]["config"]["billing"]["learned"] > 0.7
        with live.run("again", category="billing") as run:
            run.choose("config")
        live.flush()
    last = runs_of(folder)[-1]
    assert (last.sequence, last.choices[0].selector) == (97, learned)
    with stored(folder) as store:
        used = [id_ for update in store.updates() for id_ in update.used]
    assert len(used) == len(set(used)) >= 40


def test_a_loop_that_nobody_closes_writes_and_closes_its_store_at_the_exit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    live = open_live(folder / "live.toml")
    assert isinstance(live.backend, LiveLoop)
    with live.run("unclosed") as run:
        run.end("done", score=0.5)
    for call in reversed(at_exit):
        call()
    assert is_closed(live.backend.store._db)
    assert [run.run for run in runs_of(folder)] == ["unclosed"]


def test_a_closed_loop_leaves_nothing_to_the_exit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_exit: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    monkeypatch.setattr(atexit, "unregister", at_exit.remove)
    with open_live(folder / "live.toml") as live:
        assert at_exit
    assert isinstance(live.backend, LiveLoop)
    assert is_closed(live.backend.store._db)
    assert at_exit == []


def test_neither_prompt_reply_nor_error_brings_a_secret_into_the_store(folder: Path) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    with open_live(folder / "live.toml") as live:
        with live.run(f"ticket {secret}", category=f"c {secret}", prompt=f"my key is {secret}") as run:
            run.tool("search", error=f"refused {secret}")
            run.end(f"do not use {secret}")
        live.outcome(f"ticket {secret}", 0.5)
        live.flush()
        files = b"".join(path.read_bytes() for path in folder.glob("live.db*"))
    (only,) = runs_of(folder)
    assert (only.prompt, only.reply) == ("my key is [redacted:api_key]", "do not use [redacted:api_key]")
    assert only.trace is not None
    assert only.trace.score == 0.5
    assert secret.encode() not in files


def test_what_is_refused_is_counted_and_not_raised(folder: Path) -> None:
    with open_live(folder / "live.toml") as live:
        with live.run("ticket") as run:
            run.end("r", score=0.5)
            run.end("r", score=0.7)
            run.turn()
        live.outcome("ticket", 0.9)
        live.outcome("ticket", float("nan"))
        live.outcome("ticket", "good")  # type: ignore[arg-type]
        live.outcome("nobody", 1.0)
        live.flush()
        assert live.status()["refused"] == {
            "after_end": 2, "reward_not_a_number": 2, "reward_twice": 1, "unknown_run": 1
        }  # fmt: skip
        assert live.status()["swallowed"] == {}


def test_a_changed_library_is_a_new_arm_that_starts_at_the_mean(folder: Path) -> None:
    config = scored(folder)
    with open_live(config) as live:
        serve(live, 0, 96)
        wait(lambda: live.status()["selector"] >= 4)
        before = live.status()
    save_library(folder / "library.json", of([make_experience(1)]))
    with open_live(config) as live:
        for n in range(10):  # one of which is no control
            with live.run(f"new-{n}", category="billing") as run:
                run.choose("config")
        live.flush()
        after = next(run for run in runs_of(folder)[96:] if not run.control).choices[0]
    assert 0.5 < after.probabilities["learned"] < before["probabilities"]["config"]["billing"]["learned"]
    first, *_, last = runs_of(folder)
    assert last.choices[0].arms["learned"] != first.choices[0].arms["learned"]


def test_a_point_may_be_missing_and_there_are_still_rewards(tmp_path: Path) -> None:
    (tmp_path / "live.toml").write_text("[settings]\nenabled = true\n")
    with open_live(tmp_path / "live.toml") as live:
        for n in range(20):
            with live.run(f"ticket-{n}") as run:
                run.turn()
                run.end("r")
    runs = runs_of(tmp_path)
    assert len(runs) == 20
    assert all(run.reward is not None for run in runs)
    with stored(tmp_path) as store:
        (report, *_) = store.updates()
    assert (report.executed, report.reason) == (False, "no_trajectories")


def test_what_cannot_be_opened_is_refused_at_the_start(folder: Path) -> None:
    with pytest.raises(SettingError, match="'python:nowhere:x' cannot be used"):
        open_live(folder / "live.toml", inference="python:nowhere:x")
    assert not list(folder.glob("live.db*"))
    (folder / "live.db").write_bytes(b"not a database, and no reason to empty it" * 100)
    with pytest.raises(StoreError, match=r"live\.db"):
        open_live(folder / "live.toml")
    assert (folder / "live.db").read_bytes().startswith(b"not a database")


def test_a_store_in_memory_learns_too_and_writes_nothing(folder: Path) -> None:
    with open_live(scored(folder), store="none") as live:
        serve(live, 0, 64)
        wait(lambda: live.status()["selector"] >= 4)
    assert not list(folder.glob("live.db*"))
