"""A control beside the final sweep: pairs, shared answers, torn pairs, and what drifts while a run lasts."""

import asyncio
import json
import math
import random
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario
from support.engine.lineup import gain, job, learned_under_drift, told_lessons, two_domains
from support.jobs import ScriptedActor, run_job, suite, three_or_not

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.files import JOURNAL, PER_EPOCH
from pytest_tfgrpo.core.records import CheckerResult, Group, Run
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.observers import AwaitingChecker, SharedPrompt
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.metrics.costs import of_run
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log, read_to_resume


def test_control_and_final_sweep_are_asked_pair_by_pair_in_random_order(tmp_path: Path) -> None:
    actor = ScriptedActor(three_or_not)
    known = suite(4, 20)
    run, _ = run_job(job(tmp_path, actor, scenarios=known))
    assert run.status == "complete"
    last = actor.calls[-2 * 4 * 20 :]
    pairs = list(zip(last[::2], last[1::2], strict=True))
    assert all((one.task.id, one.seed) == (two.task.id, two.seed) for one, two in pairs)
    assert all(told_lessons(one) != told_lessons(two) for one, two in pairs)
    assert 20 < sum(told_lessons(one) for one, _ in pairs) < 60
    again = ScriptedActor(three_or_not)
    run_job(job(tmp_path / "b", again, scenarios=known))
    assert [told_lessons(call) for call in again.calls] == [told_lessons(call) for call in actor.calls]


def test_a_control_has_the_library_of_the_start_whatever_was_learned(tmp_path: Path) -> None:
    run, _ = run_job(job(tmp_path))
    sweeps = Sweeps(run)
    assert sweeps.before is not None
    assert sweeps.after is not None
    assert (sweeps.before.library_hash, sweeps.after.library_hash) == (
        run.library_start.hash,
        run.library.hash,
    )
    assert run.library.hash != run.library_start.hash
    assert not any(r.experiences for group in sweeps.before.groups for r in group.rollouts)


def test_where_the_library_leaves_a_prompt_as_it_is_one_answer_serves_both(tmp_path: Path) -> None:
    actor, folder = ScriptedActor(three_or_not), tmp_path / "runs" / "run1"
    run, seen = run_job(job(tmp_path, actor), folder)
    asked = Counter(call.task.id for call in actor.calls)
    assert [asked[f"eval-{n}"] for n in range(6)] == [8, 8, 8, 4, 4, 4]
    sweeps = Sweeps(run)
    assert sweeps.before is not None
    assert [g.scenario_id for g in sweeps.before.groups] == ["eval-0", "eval-1", "eval-2"]
    assert [g.scenario_id for g in sweeps.before.shared] == ["eval-3", "eval-4", "eval-5"]
    shared = ("eval-3", "eval-4", "eval-5")
    assert [sweeps.rows_before[id_] == sweeps.rows_after[id_] for id_ in shared] == [True, True, True]
    assert sum(isinstance(record, Group) and record.shared for record in seen) == 3
    assert gain(run)["n"] == 6
    assert gain(run)["control"] == {"asked": "concurrent", "shared": 3, "drift": None}
    again = load_run(folder)
    assert gain(again) == gain(run)
    assert Sweeps(again).before.shared == sweeps.before.shared  # type: ignore[union-attr]


def test_a_shared_answer_is_paid_and_counted_once(tmp_path: Path) -> None:
    actor, folder = ScriptedActor(three_or_not), tmp_path / "runs" / "run1"
    run, _ = run_job(job(tmp_path, actor), folder)
    assert of_run(run)["usd"] == pytest.approx(0.01 * len(actor.calls))
    rows = {row["mode"]: row for row in json.loads((folder / PER_EPOCH).read_text())["epochs"]}
    assert (rows["baseline"]["rollouts"], rows["baseline"]["groups"], rows["baseline"]["shared"]) == (
        12,
        3,
        3,
    )
    assert rows["baseline"]["shared_rollouts"] == 12
    assert rows["baseline"]["gt_score"]["n"] == rows["eval"]["gt_score"]["n"] == 6
    assert (rows["eval"]["rollouts"], "shared" in rows["eval"]) == (24, False)
    text = " ".join(" ".join(terminal(build(run, None), verbosity=1)).split())
    assert "control ran beside the final sweep, where 3 scenarios have the same prompt and share" in text
    (row,) = [r for r in judge(run, baseline=None, settings=run.settings).results if r.name == "complete"]
    assert row.outcome == "pass"


@pytest.mark.parametrize("answer", [three_or_not, lambda call: "3"])
def test_it_is_never_dearer_than_an_early_control(tmp_path: Path, answer: Any) -> None:
    calls = {}
    for choice in ("concurrent", "early"):
        actor = ScriptedActor(answer)
        run_job(job(tmp_path / choice, actor, baseline_sweep=choice))
        calls[choice] = len(actor.calls)
    assert calls["concurrent"] < calls["early"]


def cut_behind(journal: bytes, rollouts: int) -> bytes:
    """Return a journal up to the rollout of that number in the last two sweeps, counted from 1."""
    lines = journal.splitlines(keepends=True)
    ends = [
        n
        for n, line in enumerate(lines, 1)
        if (event := json.loads(line))["event"] == "rollout" and event["data"]["mode"] != "train"
    ]
    return b"".join(lines[: ends[rollouts - 1]])


def other_side(id_: str) -> str:
    return id_.replace(".e0.", ".e2.") if ".e0." in id_ else id_.replace(".e2.", ".e0.")


@pytest.mark.parametrize("rollouts", [1, 2, 5, 9, 14, 23, 30])
def test_a_resumed_run_asks_both_sides_of_a_torn_pair_again(tmp_path: Path, rollouts: int) -> None:
    folder, part = tmp_path / "a" / "runs" / "run1", tmp_path / "b" / "runs" / "run1"
    whole, _ = run_job(job(tmp_path), folder)
    part.mkdir(parents=True)
    (part / JOURNAL).write_bytes(cut_behind((folder / JOURNAL).read_bytes(), rollouts))
    log = read_log(part)
    shared = tuple(f".eval-{n}." for n in (3, 4, 5))
    on_file = {id_ for id_ in log.rollouts if ".e1." not in id_}
    pairs = {id_ for id_ in on_file if not any(name in id_ for name in shared)}
    torn = {id_ for id_ in pairs if other_side(id_) not in pairs}
    assert len(torn) == (rollouts if rollouts < 24 else 24) % 2
    actor = ScriptedActor(three_or_not)
    resumed, _ = run_job(job(tmp_path, actor, job_resumed=read_to_resume(part)), part)
    assert len(actor.calls) == 2 * 3 * 4 + 3 * 4 - rollouts + len(torn)
    again = Counter((call.task.id, call.seed) for call in actor.calls)
    learned = [r for g in Sweeps(resumed).after.groups if not g.shared for r in g.rollouts]  # type: ignore[union-attr]
    assert {again[r.scenario_id, r.seed] for r in learned} <= {0, 2}
    assert gain(resumed) == gain(load_run(part)) == gain(whole)
    assert of_run(resumed) == of_run(load_run(part))
    assert of_run(resumed)["usd"] == pytest.approx(0.01 * (52 + len(torn)))


def test_the_new_answers_of_a_torn_pair_are_judged_and_what_was_found_of_the_old_is_forgotten(
    tmp_path: Path,
) -> None:
    scenario = make_scenario("f0", split="eval", checks=(), checker="t.py::f0")
    told: list[str] = []

    def play(work: Path, score: float, **changes: Any) -> Run:
        def observe(record: object) -> None:
            if isinstance(record, AwaitingChecker):
                told.append(record.rollout.rollout_id)
                engine.judge(record.rollout.rollout_id, CheckerResult(outcome="score", score=score))

        made = job(tmp_path, scenarios=[*suite(4, 0), scenario], **changes)
        engine = Engine(made, folder=work, observe=observe)
        return asyncio.run(engine.run())

    folder, part = tmp_path / "a" / "runs" / "run1", tmp_path / "b" / "runs" / "run1"
    play(folder, 0.25)
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    judged = next(n for n, line in enumerate(lines) if json.loads(line)["event"] == "judgement")
    part.mkdir(parents=True)
    (part / JOURNAL).write_bytes(b"".join(lines[: judged + 1]))
    log = read_log(part)
    log.forget(other_side(json.loads(lines[judged])["data"]["rollout_id"]))
    told.clear()
    run = play(part, 0.75, job_resumed=read_to_resume(part))
    assert run.status == "complete"
    assert len(told) == 2 * 4
    assert [group.gt_mean for result in run.phases[::2] for group in result.groups] == [0.75, 0.75]
    assert gain(load_run(part)) == gain(run)


def test_where_a_test_function_judges_shared_answers_its_runner_is_told(tmp_path: Path) -> None:
    scenario = make_scenario("f0", domain="other", split="eval", checks=(), checker="t.py::f0")
    told: list[object] = []

    def observe(record: object) -> None:
        told.append(record)
        if isinstance(record, AwaitingChecker):
            skip = record.rollout.index == 3
            engine.judge(
                record.rollout.rollout_id, CheckerResult(outcome="skip" if skip else "score", score=1.0)
            )

    engine = Engine(job(tmp_path, scenarios=[*suite(4, 0), scenario]), folder=None, observe=observe)
    run = asyncio.run(engine.run())
    assert SharedPrompt(scenario_id="f0", epoch=0) in told
    assert sum(isinstance(record, AwaitingChecker) for record in told) == 4
    assert [result.excluded for result in run.phases] == [("f0",), (), ("f0",)]


def test_both_controls_show_the_drift_and_keep_it_out_of_the_gain(tmp_path: Path) -> None:
    found = learned_under_drift(tmp_path, "both")
    assert found["ci95"][0] <= 0.1 <= found["ci95"][1]
    drift = found["control"]["drift"]
    assert drift["n"] == 80
    assert drift["ci95"][1] < -0.1


def test_an_early_part_is_out_of_the_same_total_and_in_every_report(tmp_path: Path) -> None:
    actor, folder = ScriptedActor(three_or_not), tmp_path / "runs" / "run1"
    run, _ = run_job(job(tmp_path, actor, scenarios=suite(4, 8), baseline_sweep="both"), folder)
    assert [r.phase.label for r in run.phases] == ["early", "baseline", "epoch1", "epoch2-eval"]
    assert [len(r.groups[0].rollouts) for r in run.phases] == [1, 3, 4, 4]
    assert len(actor.calls) == 8 * 4 + 4 * 4 + 8 * 4
    assert [call.task.id for call in actor.calls[:8]] == [f"eval-{n}" for n in range(8)]
    assert load_run(folder).phases == run.phases
    report = build(run, judge(run, baseline=None, settings=run.settings))
    assert report["gain"] is not None
    assert report["gain"]["control"]["drift"] is not None
    assert [row["epoch"] for row in report["epochs"]] == [-1, 0, 1, 2]
    (line,) = [line for line in terminal(report) if line.startswith("drift ")]
    assert line.startswith("drift  +0.") or line.startswith("drift  -0.")


def test_shared_answers_are_no_noise_of_the_gain_and_no_reason_for_more_rollouts(tmp_path: Path) -> None:
    def coin(call: ActorCall) -> str:
        return "3" if random.Random(f"{call.seed} {told_lessons(call)}").random() < 0.5 else "4"

    run, _ = run_job(job(tmp_path, coin, scenarios=two_domains(8, 12), gate_margin=0.0))
    (found,) = [r for r in judge(run, baseline=None, settings=run.settings).results if r.name == "gain"]
    sweeps = Sweeps(run)
    rows = [(old, sweeps.rows_after[id_]) for id_, old in sweeps.rows_before.items() if not old.shared]
    assert len(rows) == 12
    noise = sum(
        sum(row.sum_sq - row.sum**2 / row.n for row in side) / (3 * 12) for side in zip(*rows, strict=True)
    )
    spread = found.figures["spread"]
    variance = statistics.pvariance([pair[1].mean() - pair[0].mean() for pair in rows] + [0.0] * 12) * 24 / 23
    if noise / 4 / 2 > variance:
        assert spread == pytest.approx({"between": 0.0, "within": 4 * variance})
    else:
        assert spread == pytest.approx({"between": variance - noise / 4 / 2, "within": noise / 2})
    found_noise = build(run, None)["noise"]
    assert found_noise is not None
    assert {row["scenarios"] for row in found_noise["sweeps"]} == {24}
    own = math.sqrt(noise * 12 / 4) / 24
    gained = build(run, None)["gain"]
    assert gained is not None
    assert found_noise["gain_within"] == (abs(gained["difference"] or 0.0) < 1.96 * own)


# Pairs that a provider tears


class Absent:
    """Has no answer from call number `dies` on for `lost` calls, and notes which call asked what."""

    def __init__(self, dies: int, lost: int, code: str = "connection") -> None:
        self.asked: list[tuple[str, int, bool]] = []
        self._lost, self._code, self._made = range(dies, dies + lost), code, 0

    def __call__(self, call: ActorCall) -> str:
        self._made += 1
        if not call.workspace.path.name.endswith(".probe"):
            self.asked.append((call.task.id, call.seed, told_lessons(call)))
        if self._made - 1 in self._lost:
            raise ProviderError("connection refused", self._code)
        return three_or_not(call)


@pytest.mark.parametrize("lost", [1, 2, 12])
@pytest.mark.parametrize("dies", [16, 17, 18, 19, 37, 38])
def test_a_side_that_is_made_again_is_made_again_with_the_other(tmp_path: Path, dies: int, lost: int) -> None:
    whole, _ = run_job(job(tmp_path / "a", scenarios=suite(4, 3)))
    provider, folder = Absent(dies, lost), tmp_path / "b" / "runs" / "run1"
    run, _ = run_job(job(tmp_path / "b", provider, scenarios=suite(4, 3)), folder)
    assert run.status == "complete"
    assert gain(run) == gain(whole) == gain(load_run(folder))
    last = {call: n for n, call in enumerate(provider.asked)}
    pairs = {(id_, seed) for id_, seed, told in provider.asked[16:] if told and id_.startswith("eval")}
    assert len(pairs) == 3 * 4
    assert all(abs(last[id_, seed, True] - last[id_, seed, False]) == 1 for id_, seed in pairs)
    assert of_run(run)["usd"] == of_run(load_run(folder))["usd"]
    assert len(provider.asked) > 16 + 24
    assert len(provider.asked) % 2 == 0


def test_what_an_answer_cost_that_waits_for_its_other_side_is_kept_when_the_run_ends(tmp_path: Path) -> None:
    spent: list[ActorCall] = []

    async def slow_control(call: ActorCall) -> str:
        spent.append(call)
        if len(spent) > 16 and not told_lessons(call):
            await asyncio.sleep(30)
        return three_or_not(call)

    made = job(tmp_path, slow_control, scenarios=suite(4, 1), concurrency=8)

    async def cancelled() -> Run:
        task = asyncio.create_task(Engine(made, folder=None, observe=lambda record: None).run())
        while len(spent) < 16 + 8:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        task.cancel()
        return await task

    run = asyncio.run(cancelled())
    assert run.status == "cancelled"
    waiting = [rollout for result in run.phases for rollout in result.loose if rollout.mode == "eval"]
    assert len(waiting) == 4
    assert of_run(run)["usd"] == pytest.approx(0.01 * (16 + 4))
