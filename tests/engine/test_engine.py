import asyncio
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_scenario
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not
from support.sweeps import make_result
from support.syncs import Syncs

from pytest_tfgrpo.actors.offline.agent import open_offline
from pytest_tfgrpo.core.errors import AgentFailure, JournalError, ProviderError
from pytest_tfgrpo.core.files import JOURNAL, METRICS, PER_EPOCH, run_folder
from pytest_tfgrpo.core.lessons import Experience, Revision
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import CheckerResult, Frame, Group, PhaseResult, Rollout, Run, Trajectory
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.engine import run_writer
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.observers import AwaitingChecker, Observer, Record
from pytest_tfgrpo.engine.phases import grader
from pytest_tfgrpo.engine.run_end import COMPLETE
from pytest_tfgrpo.engine.run_writer import RunWriter
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.metrics.costs import of_run
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log, read_to_resume
from pytest_tfgrpo.scoring.checks.protocol import CheckKind


def statuses(run: Run) -> set[str]:
    return {r.status for p in run.phases for g in p.groups for r in g.rollouts}


def comparable(run: Run) -> Any:
    """Return a run without its times."""
    value = to_wire(run)
    text = json.dumps(value, sort_keys=True)
    for key in ("latency_ms", "created_at", "finished_at", "started_at"):
        text = __import__("re").sub(rf'"{key}": ("[^"]*"|[0-9.e-]+)', f'"{key}": 0', text)
    return json.loads(text)


def test_a_run_is_a_fold_over_its_phases_in_order(tmp_path: Path) -> None:
    run, seen = run_job(make_job(ScriptedActor(three_or_not), tmp_path, baseline_sweep="early"))
    assert run.status == "complete"
    assert [p.phase.label for p in run.phases] == ["baseline", "epoch1", "epoch2", "epoch3-eval"]
    assert [r.phase.epoch for r in seen if isinstance(r, PhaseResult)] == [0, 1, 2, 3]
    epochs = [r.epoch for r in seen if isinstance(r, Rollout)]
    assert epochs == sorted(epochs)
    assert seen[-1] is run


def test_rollouts_and_their_frames_say_when_they_began(tmp_path: Path) -> None:
    before = utc_now()
    run, _ = run_job(make_job(open_offline(), tmp_path), tmp_path / "runs" / "run1")
    rollouts = [r for p in run.phases for g in p.groups for r in g.rollouts]
    times = [str(time) for r in rollouts for time in (r.started_at, *(f.started_at for f in r.frames))]
    assert before <= min(times) <= max(times) <= utc_now()
    assert all(str(r.started_at) <= str(f.started_at) for r in rollouts for f in r.frames)
    assert load_run(tmp_path / "runs" / "run1").phases == run.phases


def test_several_observers_are_told_the_same_in_order_and_one_that_raises_breaks_nothing(
    tmp_path: Path,
) -> None:
    told: list[tuple[str, Record]] = []

    def broken(record: Record) -> None:
        told.append(("broken", record))
        if isinstance(record, Group):
            raise RuntimeError(f"no room for {record.scenario_id}")

    def last(record: Record) -> None:
        told.append(("last", record))

    async def play(observe: Observer | list[Observer]) -> Run:
        job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=suite(2, 2))
        return await Engine(job, folder=tmp_path / "run", observe=observe).run()

    run = asyncio.run(play([broken, last]))
    assert [name for name, _ in told] == ["broken", "last"] * (len(told) // 2)
    assert all(one is other for (_, one), (_, other) in zip(told[::2], told[1::2], strict=True))
    groups = [record for _, record in told[::2] if isinstance(record, Group)]
    assert groups
    assert all(score.reward is not None for group in groups for score in group.scores)
    (warning,) = [text for text in run.warnings if text.startswith("observer")]
    assert warning.endswith(f"broken broke: RuntimeError: no room for {groups[0].scenario_id}")
    assert load_run(tmp_path / "run") == run
    (tmp_path / "run" / JOURNAL).unlink()
    assert comparable(asyncio.run(play(last))) == comparable(
        replace(run, warnings=tuple(text for text in run.warnings if text != warning))
    )


def test_an_observer_that_raises_at_the_very_end_is_a_warning_too(tmp_path: Path) -> None:
    def late(record: Record) -> None:
        if isinstance(record, Run):
            raise KeyError("closed")

    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=suite(0, 1))
    run = asyncio.run(Engine(job, folder=None, observe=late).run())
    assert run.status == "complete"
    assert run.warnings[-1].endswith("late broke: KeyError: 'closed'")


def test_every_group_has_its_rollouts_in_order_with_a_score_each(tmp_path: Path) -> None:
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path))
    for phase in run.phases:
        assert [g.scenario_id for g in phase.groups] == list(phase.phase.scenarios)
        for group in phase.groups:
            assert [r.index for r in group.rollouts] == [0, 1, 2, 3]
            assert [s.gt_score for s in group.scores] == [float(r.answer == "3") for r in group.rollouts]


def test_lessons_of_an_epoch_are_in_the_prompts_of_the_next_and_the_sweep_leaves_them_alone(
    tmp_path: Path,
) -> None:
    actor = ScriptedActor(three_or_not)
    run, seen = run_job(make_job(actor, tmp_path))
    assert any(isinstance(record, Experience) for record in seen)
    by_epoch = {r.phase.epoch: r for r in run.phases}
    assert by_epoch[1].revision is not None
    assert by_epoch[1].revision.library.experiences
    assert by_epoch[2].library_hash == by_epoch[1].revision.library.hash
    assert by_epoch[0].revision is None
    assert by_epoch[3].revision is None
    assert by_epoch[3].library_hash == run.library.hash
    first = {r.experiences for g in by_epoch[0].groups + by_epoch[1].groups for r in g.rollouts}
    assert first == {()}
    assert any(r.experiences for g in by_epoch[3].groups for r in g.rollouts)
    assert "<experiences" in actor.calls[-1].prompt.system
    assert "<experiences" not in actor.calls[0].prompt.system


def test_the_same_job_gives_the_same_run_whatever_the_concurrency(tmp_path: Path) -> None:
    async def slow(call: ActorCall) -> str:
        await asyncio.sleep((call.seed % 7) / 2000)
        return three_or_not(call)

    one, _ = run_job(make_job(ScriptedActor(slow), tmp_path, concurrency=1))
    many, _ = run_job(make_job(ScriptedActor(slow), tmp_path, concurrency=50))
    assert comparable(replace(one, settings={})) == comparable(replace(many, settings={}))


def test_no_more_than_concurrency_rollouts_are_in_flight(tmp_path: Path) -> None:
    async def slow(call: ActorCall) -> str:
        await asyncio.sleep(0.002)
        return "3"

    actor = ScriptedActor(slow)
    run_job(make_job(actor, tmp_path, concurrency=5))
    assert actor.most_in_flight == 5


def fail_with(error: Exception) -> Any:
    def answer(call: ActorCall) -> str:
        raise error

    return answer


async def hang(call: ActorCall) -> str:
    await asyncio.Event().wait()
    return "3"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (fail_with(AgentFailure("it printed nonsense", "garbage")), "garbage"),
        (fail_with(KeyError("oops")), "crash"),
        (hang, "timeout"),
        (lambda call: Trajectory(answer="x" * 2000), "oversize"),
        (lambda call: Trajectory(answer=7), "garbage"),  # type: ignore[arg-type]
    ],
)
def test_the_agents_own_failure_scores_zero_and_costs_one_rollout(
    tmp_path: Path, answer: Any, code: str
) -> None:
    limits: dict[str, Any] = {"timeout_s": 0.05 if code == "timeout" else 100.0, "answer_max_bytes": 1000}
    job = make_job(ScriptedActor(answer), tmp_path, scenarios=suite(0, 1), **limits)
    run, _ = run_job(job)
    assert run.status == "complete"
    for group in (g for p in run.phases for g in p.groups):
        assert {r.failure.code for r in group.rollouts if r.failure} == {code}
        assert {s.gt_score for s in group.scores} == {0.0}
        assert all(check.credit == 0.0 for r in group.rollouts for check in r.checks)


def test_the_providers_failure_is_an_error_without_a_score(tmp_path: Path) -> None:
    job = make_job(ScriptedActor(fail_with(ProviderError("503"))), tmp_path, scenarios=suite(0, 1))
    run, _ = run_job(job)
    assert statuses(run) == {"error"}
    assert {s.gt_score for p in run.phases for g in p.groups for s in g.scores} == {None}


def test_a_check_that_breaks_is_an_error_not_a_failure(tmp_path: Path) -> None:
    check = Check(kind="python", params={"callable": "no_such_module:f"})
    scenario = make_scenario(split="eval", checks=(check,))
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path, scenarios=[scenario]))
    assert statuses(run) == {"error"}
    assert {r.failure.code for r in run.phases[-1].groups[0].rollouts if r.failure} == {"check"}


def test_a_check_that_never_ends_is_an_error_after_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grader, "CHECK_GRACE_S", 0.0)
    stop = threading.Event()
    kinds = {"slow": CheckKind(name="slow", params={}, evaluate=lambda check, context: stop.wait(100))}  # type: ignore[arg-type, return-value]
    scenario = make_scenario(split="eval", checks=(Check(kind="slow"),))
    job = make_job(
        ScriptedActor(three_or_not), tmp_path, scenarios=[scenario], job_kinds=kinds, timeout_s=0.5
    )
    try:
        run, _ = run_job(job)
    finally:
        stop.set()
    rollouts = run.phases[-1].groups[0].rollouts
    assert statuses(run) == {"error"}
    assert {r.failure.message for r in rollouts if r.failure} == {"the checks did not end within 0.5 s"}


def test_checks_have_the_time_of_all_of_them_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grader, "CHECK_GRACE_S", 0.0)
    stop = threading.Event()
    slow = CheckKind(name="slow", params={}, evaluate=lambda check, context: stop.wait(100))  # type: ignore[arg-type, return-value]
    checks = (Check(kind="slow"), Check(kind="slow", params={"timeout_s": 0.1}), Check(kind="slow"))
    scenario = make_scenario(split="eval", checks=checks)
    job = make_job(
        ScriptedActor(three_or_not), tmp_path, scenarios=[scenario], job_kinds={"slow": slow}, timeout_s=0.2
    )
    try:
        run, _ = run_job(job)
    finally:
        stop.set()
    messages = {r.failure.message for r in run.phases[-1].groups[0].rollouts if r.failure}
    assert messages == {"the checks did not end within 0.5 s"}


def test_a_used_up_budget_ends_the_run_with_what_is_done(tmp_path: Path) -> None:
    actor = ScriptedActor(three_or_not, {"usd": 0.01})
    run, _ = run_job(make_job(actor, tmp_path, budget_usd=0.20, concurrency=2))
    assert run.status == "incomplete"
    assert "budget_usd" in run.reason
    assert len(actor.calls) == 20
    assert [p.status for p in run.phases] == ["complete", "incomplete"]


def test_a_cancelled_run_returns_what_it_has_and_its_files_are_whole(tmp_path: Path) -> None:
    async def slow(call: ActorCall) -> str:
        await asyncio.sleep(0.01)
        return "3"

    async def scenario() -> Run:
        begun = asyncio.Event()
        engine = Engine(
            make_job(ScriptedActor(slow), tmp_path, concurrency=2),
            folder=tmp_path / "run",
            observe=lambda record: begun.set() if isinstance(record, Rollout) else None,
        )
        task = asyncio.create_task(engine.run())
        await begun.wait()
        task.cancel()
        return await task

    run = asyncio.run(scenario())
    assert (run.status, run.reason) == ("cancelled", "interrupted")
    log = read_log(tmp_path / "run")
    assert log.finish is not None
    assert log.finish["status"] == "cancelled"
    assert len(log.rollouts) > 0


def test_what_an_attempt_cut_short_has_cost_is_on_file_and_the_run_goes_on_from_there(tmp_path: Path) -> None:
    asked = [
        Frame(kind="model", name="m", tokens=5, cost_usd=0.5),
        Frame(kind="model", name="m", error="cut"),
    ]
    folder = tmp_path / "run"

    async def stuck(call: ActorCall) -> str:
        if call.scenario.id == "eval-0":
            return "3"
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            paid = asked if call.scenario.id == "eval-1" else asked[1:]
            raise ProviderError("no answer", "timeout", frames=tuple(paid)) from None
        return "4"

    async def cut() -> Run:
        actor = ScriptedActor(stuck)
        job = make_job(actor, tmp_path, group_size=1, baseline_sweep="early")
        task = asyncio.create_task(Engine(job, folder=folder, observe=lambda _: None).run())
        while actor.in_flight < 2 or not read_log(folder).rollouts:
            await asyncio.sleep(0.01)
        task.cancel()
        return await task

    run = asyncio.run(cut())
    assert (run.status, run.phases[-1].status) == ("cancelled", "cancelled")
    log = read_log(folder)
    assert [(r.scenario_id, r.status, r.tokens) for r in log.abandoned] == [("eval-1", "cancelled", 5)]
    assert run.phases[-1].loose[-1:] == load_run(folder).phases[-1].loose[-1:] == tuple(log.abandoned)
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        group_size=1,
        baseline_sweep="early",
        job_resumed=read_to_resume(folder),
    )
    whole, _ = run_job(job, folder)
    answers = [r for p in whole.phases for g in p.groups for r in g.rollouts]
    assert (whole.status, load_run(folder)) == ("complete", whole)
    assert of_run(whole)["usd"] == pytest.approx(0.5 + 0.01 * len(answers))


def test_an_answer_whose_checks_the_end_of_the_run_cut_short_is_on_file(tmp_path: Path) -> None:
    stop, begun = threading.Event(), threading.Event()

    def wait(check: Check, context: object) -> str:
        begun.set()
        stop.wait(100)
        return ""

    async def cut() -> None:
        kinds = {"slow": CheckKind(name="slow", params={}, evaluate=wait)}  # type: ignore[arg-type]
        scenario = make_scenario(split="eval", checks=(Check(kind="slow"),))
        job = make_job(
            ScriptedActor(three_or_not), tmp_path, scenarios=[scenario], job_kinds=kinds, group_size=1
        )
        task = asyncio.create_task(Engine(job, folder=tmp_path / "run", observe=lambda _: None).run())
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await task

    try:
        asyncio.run(cut())
    finally:
        stop.set()
    assert [(r.status, r.cost_usd) for r in read_log(tmp_path / "run").abandoned] == [("cancelled", 0.01)]


def test_a_run_cancelled_while_its_lessons_are_committed_returns_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = RunWriter.revision

    def cancel_then_write(self: RunWriter, revision: Revision) -> list[str]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return write(self, revision)

    monkeypatch.setattr(RunWriter, "revision", cancel_then_write)
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path), tmp_path / "demo" / "runs" / "run1")
    assert (run.status, run.reason) == ("cancelled", "interrupted")
    assert len(run.phases) == 1


def test_the_journal_tells_the_whole_run(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "demo" / "runs" / "run1"
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path), folder)
    assert comparable(load_run(folder)) == comparable(run)


def test_files_are_written_as_the_run_goes(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "demo" / "runs" / "run1"
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path), folder)
    lines = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    assert sum(line.get("tool") is None for line in lines) == 3 * 4 + 4 * 4 * 2 + 3 * 4
    assert [row["epoch"] for row in json.loads((folder / PER_EPOCH).read_text())["epochs"]] == [0, 1, 2, 3]
    library = json.loads((tmp_path / "out" / "demo" / "library.json").read_text())
    assert len(library["experiences"]) == len(run.library.experiences)
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("keep", [0.1, 0.35, 0.5, 0.62, 0.8, 0.97])
def test_a_run_cut_anywhere_resumes_without_repeating_a_recorded_rollout(tmp_path: Path, keep: float) -> None:
    whole_folder = tmp_path / "a" / "demo" / "runs" / "run1"
    whole, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path, baseline_sweep="early"), whole_folder)
    journal = (whole_folder / JOURNAL).read_bytes()
    folder = tmp_path / "b" / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    (folder / JOURNAL).write_bytes(journal[: int(len(journal) * keep)])
    log = read_log(folder)
    actor = ScriptedActor(three_or_not)
    resumed, _ = run_job(
        make_job(actor, tmp_path, baseline_sweep="early", job_resumed=read_to_resume(folder)), folder
    )
    assert len(actor.calls) + len(log.rollouts) == 3 * 4 + 4 * 4 * 2 + 3 * 4
    assert comparable(resumed) == comparable(whole)
    assert comparable(load_run(folder)) == comparable(whole)


SKIPPED = "2 malformed lines were skipped, one with password="


def test_a_phase_taken_from_the_journal_leaves_its_library_and_what_is_wrong_with_the_store(
    tmp_path: Path,
) -> None:
    learned = replace(empty(), hash="c" * 64)
    result = make_result({}, mode="train", revision=Revision(epoch=1, library=learned))
    kept: Any = SimpleNamespace(
        writer=SimpleNamespace(revision=lambda _: [f"{SKIPPED}hunter2hunter2"], phase=lambda *_: None),
        observe=SimpleNamespace(retell=False),
    )
    engine = Engine(make_job(ScriptedActor(three_or_not), tmp_path), folder=None, observe=lambda _: None)
    assert asyncio.run(engine._take(result, kept)) == COMPLETE
    run = engine._run(COMPLETE)
    assert run.library == learned
    assert run.warnings == (f"{SKIPPED}[redacted:named]",)


def test_a_full_disk_stops_the_run_with_what_was_committed_intact(tmp_path: Path) -> None:
    import resource

    folder = tmp_path / "run"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(JournalError, match=r"cannot write"):
            run_job(make_job(ScriptedActor(three_or_not), tmp_path), folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log = read_log(folder)
    assert not log.complete
    assert len(log.rollouts) > 0


class Slow:
    name, weight = "slow", 1.0

    def __call__(self, batch: Any) -> Any:
        time.sleep(1000)
        return [1.0] * len(batch.rollouts)


def test_a_rewarder_over_its_time_limit_aborts_the_epoch(tmp_path: Path) -> None:
    job = make_job(ScriptedActor(three_or_not), tmp_path, rewarder_timeout_s=0.05, job_rewarders=(Slow(),))
    run, _ = run_job(job, tmp_path / "run")
    assert run.status == "aborted"
    assert "rewarder_timeout_s" in run.reason
    assert run.library.experiences == ()
    (row,) = json.loads((tmp_path / "run" / PER_EPOCH).read_text())["epochs"]
    assert row["gt_score"]["n"] == 0
    assert row["cost_usd"]["n"] == row["rollouts"] > 0
    assert (tmp_path / "run" / METRICS).read_text().count('"tool": null') == row["rollouts"]


def test_groups_that_were_settled_keep_their_scores_when_a_rewarder_fails_in_the_resumed_run(
    tmp_path: Path,
) -> None:
    whole = tmp_path / "whole"
    run_job(make_job(ScriptedActor(three_or_not), tmp_path, baseline_sweep="off"), whole)
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    settled = [n for n, line in enumerate(lines) if b'"event":"group"' in line][1]  # two of the four
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / JOURNAL).write_bytes(b"".join(lines[: settled + 1]))
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        baseline_sweep="off",
        rewarder_timeout_s=0.05,
        job_rewarders=(Slow(),),
        job_resumed=read_to_resume(folder),
    )
    run, _ = run_job(job, folder)
    assert run.status == "aborted"
    (row,) = json.loads((folder / PER_EPOCH).read_text())["epochs"]
    assert (row["gt_score"]["n"], row["rollouts"]) == (2, 16), "the groups with scores, and all rollouts"


def test_a_marked_function_judges_each_rollout_and_a_skip_excludes_its_scenario(tmp_path: Path) -> None:
    scenarios = [
        make_scenario(f"f{i}", split="eval", checks=(), checker=f"t.py::f{i}", stamp=f"{i:064}")
        for i in range(2)
    ]
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=scenarios)
    seen: list[object] = []

    async def play() -> Run:
        engine = Engine(job, folder=tmp_path / "run", observe=seen.append)
        for phase in (0, 3):
            for index in range(4):
                score = CheckerResult(outcome="score", score=0.4, reason="partly")
                engine.judge(f"run1.e{phase}.f0.r{index}", score)
                engine.judge(f"run1.e{phase}.f1.r{index}", CheckerResult(outcome="skip"))
        return await engine.run()

    run = asyncio.run(play())
    assert run.status == "complete"
    assert [p.excluded for p in run.phases] == [("f1",), ("f1",)]
    groups = [g for record in seen if isinstance(record, Group) for g in [record]]
    assert {g.scenario_id for g in groups} == {"f0"}
    assert {g.gt_mean for g in groups} == {0.4}
    assert comparable(load_run(tmp_path / "run")) == comparable(run)


def test_a_test_function_that_never_runs_makes_its_epoch_incomplete(tmp_path: Path) -> None:
    scenario = make_scenario("f0", split="eval", checks=(), checker="t.py::f0")
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=[scenario], baseline_sweep="early")

    async def play() -> Run:
        engine = Engine(job, folder=None, observe=lambda record: None)
        engine.close_judging(0)
        return await engine.run()

    run = asyncio.run(play())
    assert run.status == "incomplete"
    assert "did not run" in run.reason
    assert not any(phase.groups for phase in run.phases)
    assert len(run.phases[0].loose) == run.phases[0].phase.rollouts  # paid for, and found again on resume


def test_rollouts_that_wait_for_fixtures_hold_no_place(tmp_path: Path) -> None:
    """Fixtures are set up in the order of test functions, here the other way round, and one at a time."""
    fields: dict[str, Any] = {"split": "eval", "checks": (), "fixtures": ("db",)}
    scenarios = [make_scenario(f"f{n}", checker=f"t.py::f{n}", stamp=f"{n:064}", **fields) for n in range(2)]
    own, agent = ScriptedActor(three_or_not), ScriptedActor(three_or_not)
    waiting = [f"run1.e{phase}.f{n}.r{index}" for phase in (0, 3) for index in range(4) for n in (1, 0)]
    job = make_job(own, tmp_path, scenarios=scenarios, concurrency=1, baseline_sweep="early")

    async def play() -> Run:
        def observe(record: object) -> None:
            if isinstance(record, AwaitingChecker):
                one.judge(record.rollout.rollout_id, CheckerResult(outcome="score", score=1.0))
                if waiting:
                    one.supply(waiting.pop(0), agent)

        one = Engine(job, folder=None, observe=observe)
        one.supply(waiting.pop(0), agent)
        async with asyncio.timeout(10):
            return await one.run()

    run = asyncio.run(play())
    assert run.status == "complete"
    assert (len(own.calls), len(agent.calls)) == (0, 16)


def test_a_rollout_is_on_disk_before_its_test_function_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, syncs, asked = tmp_path / "run" / JOURNAL, Syncs(monkeypatch), []
    scenario = make_scenario("f0", split="eval", checks=(), checker="t.py::f0")
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=[scenario])

    async def play() -> Run:
        def observe(record: object) -> None:
            if isinstance(record, AwaitingChecker):
                asked.append(record.rollout.rollout_id)
                assert f'"{record.rollout.rollout_id}"'.encode() in syncs.on_disk(journal)
                one.judge(record.rollout.rollout_id, CheckerResult(outcome="score", score=1.0))

        one = Engine(job, folder=tmp_path / "run", observe=observe)
        return await one.run()

    monkeypatch.setattr(run_writer, "COMMIT_EVERY_S", 60.0)
    run = asyncio.run(play())
    assert (run.status, run.warnings) == ("complete", ())
    assert len(asked) == 4  # nothing was learned: one answer serves both sweeps


@pytest.mark.parametrize("unchecked", [1, 5])
def test_answers_do_not_pile_up_before_their_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unchecked: int
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.engine.phases.checking.UNCHECKED", unchecked)
    folder, waiting = run_folder(tmp_path, "demo", "run1"), list[int]()
    seen: list[object] = []

    def answer(call: ActorCall) -> str:
        waiting.append(len(waiting) - sum(isinstance(one, Rollout) for one in seen))
        return three_or_not(call)

    slow = Check(kind="regex", params={"pattern": "^3$"})
    scenarios = [make_scenario(f"s{n}", split=("train", "eval")[n % 2], checks=(slow,)) for n in range(20)]
    job = make_job(ScriptedActor(answer), tmp_path, scenarios=scenarios, concurrency=2)
    run = asyncio.run(Engine(job, folder=folder, observe=seen.append).run())
    assert run.status == "complete"
    assert len(waiting) > 60
    assert max(waiting) <= unchecked + 2
    assert load_run(folder).phases == run.phases
