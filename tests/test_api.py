"""``pytest_tfgrpo.run`` and ``arun``: a run without pytest, with the same results."""

import asyncio
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.api import SMALL, SUITE, Counter, Held, scenario
from support.builders import make_scenario

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.core.errors import BaselineError, JournalError, ScenarioError, SettingError
from pytest_tfgrpo.core.records import Group, PhaseResult, Rollout, Run
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.protocols import RewardBatch


@dataclass
class Manners:
    """A rewarder that scores every rollout alike."""

    name: str = "manners"
    score: float = 0.5
    weight: float = 0.0

    def __call__(self, batch: RewardBatch) -> list[tuple[float, str]]:
        return [(self.score, "as told")] * len(batch.rollouts)


def test_scenarios_are_values_and_the_actor_an_object(tmp_path: Path) -> None:
    actor, seen = Counter(), list[object]()
    result = tfgrpo.run(tmp_path, SUITE, actor=actor, observe=seen.append, **SMALL)
    assert result.run.status == "complete"
    assert actor.closed
    assert actor.calls == sum(isinstance(record, Rollout) for record in seen) == 2 * (2 + 2) + 2 * 5
    assert [record.phase.label for record in seen if isinstance(record, PhaseResult)] == [
        "epoch1",
        "epoch2",
        "baseline",
        "epoch3-eval",
    ]
    assert all(score.gt_score is not None for g in seen if isinstance(g, Group) for score in g.scores)
    assert isinstance(seen[-1], Run)
    assert result.verdict is not None
    assert result.passed == (not result.verdict.failed)
    assert json.loads((result.folder or tmp_path).joinpath("report.json").read_text()) == result.report


def test_without_learning_each_eval_scenario_runs_once_and_nothing_is_written(tmp_path: Path) -> None:
    actor = Counter()
    result = tfgrpo.run(tmp_path, SUITE, actor=actor, learning=False)
    assert (actor.calls, result.folder, result.verdict) == (2, None, None)
    assert result.passed
    assert list(tmp_path.iterdir()) == []


def test_no_setting_comes_from_the_environment_or_an_ini_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGRPO_GROUP_SIZE", "7")
    monkeypatch.setenv("FEATURE_TFGRPO_GROUP", "1")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfgrpo_seed = 5\n")
    monkeypatch.chdir(tmp_path)
    result = tfgrpo.run(".", SUITE, actor=Counter(), learning=False)
    assert (result.run.settings["group_size"], result.run.settings["seed"]) == (2, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": []}, "unknown setting 'data'; did you mean 'scenarios'"),
        ({"max_cost": 1}, "unknown setting 'max_cost'; did you mean 'budget_usd'"),
        ({"group_siez": 3}, "unknown setting 'group_siez'; did you mean 'group_size'"),
        ({"group_size": 1}, r"group_size must be an integer >= 2, not 1 \(argument group_size\)"),
        ({"actor": None}, "no actor"),
        ({"actor": SimpleNamespace(name="x", bound=None)}, "has no attribute 'identity'"),
        ({"actor": Counter}, "actor: 'Counter' is a class; name an instance"),
        ({"progress": 1}, "progress must be True or False, not 1"),
        ({"checks": {"exact": None}}, "the check kind 'exact' is built in"),
        ({"rewarders": [len]}, "has no attribute 'name'"),
        (
            {"rewarders": [Manners("reward")]},
            "the rewarder name 'reward' belongs to a metric of every rollout; rename yours",
        ),
        ({"rewarders": [Manners(), Manners()]}, "two rewarders are called 'manners'"),
        ({"gate_rules": [5]}, "has no attribute 'name'"),
        ({"resume": "latest", "out": "elsewhere"}, "no incomplete run"),
    ],
)
def test_misuse_is_an_error_before_any_call(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    actor = Counter()
    with pytest.raises(ValueError, match=message):
        tfgrpo.run(tmp_path, SUITE, **{"actor": actor} | arguments)
    assert actor.calls == 0


def test_a_rewarder_is_a_metric_that_a_gate_can_judge(tmp_path: Path) -> None:
    (tmp_path / "gates.yaml").write_text("gates:\n  polite: {metric: manners, min_mean: .5}\n")
    for score, passed in ((0.4, False), (0.6, True)):
        result = tfgrpo.run(
            tmp_path,
            SUITE,
            actor=Counter(),
            rewarders=[Manners(score=score)],
            gates="gates.yaml",
            learning=False,
        )
        assert result.passed is passed
        assert result.report["epochs"][-1]["metrics"]["manners"]["mean"] == score
        assert result.run.phases[-1].groups[0].scores[0].evidence == {"manners": "as told"}


class Refuses:
    """A rule of a gate that no run passes."""

    name = "refuses"

    def judge(self, *_: object) -> RuleResult:
        return RuleResult(name=self.name, outcome="fail", message="as told")


@pytest.mark.parametrize(
    "call", [tfgrpo.run, lambda *args, **kwargs: asyncio.run(tfgrpo.arun(*args, **kwargs))]
)
def test_rewarders_and_rules_judge_a_run_however_it_is_started(tmp_path: Path, call: Any) -> None:
    supplied: dict[str, Any] = {"rewarders": [Manners(score=0.25)], "gate_rules": [Refuses()]}
    result = call(tmp_path, SUITE, actor=Counter(), **supplied, **SMALL)
    assert [rule.name for rule in result.verdict.results if rule.outcome == "fail"] == ["refuses"]
    assert result.report["epochs"][-1]["metrics"]["manners"]["mean"] == 0.25


def test_a_missing_baseline_is_an_error_before_any_call(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="main"):
        tfgrpo.run(tmp_path, SUITE, actor=Counter(), baseline="main")


@pytest.mark.parametrize(
    ("scenarios", "message"),
    [
        ("nowhere", "there is no file or folder"),
        (None, "no scenario was found"),
        ([scenario("a"), scenario("a", prompt="Another?")], "the id 'a' is taken"),
        ([scenario("a", checks=[{"kind": "exat", "value": 3}])], "unknown check kind 'exat'"),
        (
            [make_scenario("a", checker="test_x.py::test_a")],
            r"test_x\.py::test_a, which only pytest can call",
        ),
    ],
)
def test_a_scenario_that_cannot_run_is_named(tmp_path: Path, scenarios: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        tfgrpo.run(tmp_path, scenarios, actor=Counter())


def test_observers_are_called_in_order_on_the_callers_thread_and_break_nothing(tmp_path: Path) -> None:
    threads, order = set[int](), list[str]()

    def first(record: object) -> None:
        threads.add(threading.get_ident())
        order.append("first")
        raise OSError("the wire is cut")

    def second(record: object) -> None:
        order.append("second")

    arguments: dict[str, Any] = {"actor": Counter(), "observe": [first, second], **SMALL}
    for result in (
        asyncio.run(tfgrpo.arun(tmp_path, SUITE, **arguments)),
        tfgrpo.run(tmp_path, SUITE, **arguments),
    ):
        assert result.run.status == "complete"
        assert sum("the wire is cut" in text for text in result.report["warnings"]) == 1
    assert threads == {threading.get_ident()}
    assert order == ["first", "second"] * (len(order) // 2)


def test_run_works_inside_a_running_loop_as_a_notebook_has_one(tmp_path: Path) -> None:
    async def cell() -> tfgrpo.RunResult:
        return tfgrpo.run(tmp_path, SUITE, actor=Counter(), learning=False)

    assert asyncio.run(cell()).run.status == "complete"


def test_cancelling_ends_the_run_with_its_files_and_it_can_be_resumed(tmp_path: Path) -> None:
    actor = Held(4)

    async def cut() -> None:
        started = asyncio.Event()

        def observe(record: object) -> None:
            if isinstance(record, PhaseResult):
                started.set()

        run = asyncio.create_task(
            tfgrpo.arun(tmp_path, SUITE, actor=actor, observe=observe, task_id="t", **SMALL)
        )
        await started.wait()
        run.cancel()
        await run

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cut())
    (folder,) = (tmp_path / "out" / "t" / "runs").iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert report["status"] == "cancelled"
    assert actor.closed
    before = actor.calls
    again = Counter()
    result = tfgrpo.run(tmp_path, SUITE, actor=again, resume="latest", task_id="t", **SMALL)
    assert result.folder == folder
    assert (result.run.status, again.calls < 16, before < 16) == ("complete", True, True)


def test_a_setting_error_names_the_argument() -> None:
    with pytest.raises(SettingError, match="argument temperature_eval"):
        tfgrpo.run(".", SUITE, actor="offline", temperature_eval=9)


@pytest.mark.parametrize("when", [Rollout, Run])
def test_an_interrupt_in_an_observer_ends_the_run_with_its_files(tmp_path: Path, when: type) -> None:
    def observe(record: object) -> None:
        if isinstance(record, when):
            raise KeyboardInterrupt

    for call in (tfgrpo.run, lambda *args, **kwargs: asyncio.run(tfgrpo.arun(*args, **kwargs))):
        actor = Counter() if when is Run else Held(1)
        with pytest.raises(KeyboardInterrupt):
            call(tmp_path, SUITE, actor=actor, observe=observe, **SMALL)
    reports = [json.loads(path.read_text()) for path in tmp_path.glob("out/*/runs/*/report.json")]
    assert [report["status"] for report in reports] == ["complete" if when is Run else "cancelled"] * 2


def test_cancelling_twice_still_writes_the_files(tmp_path: Path) -> None:
    async def cut() -> None:
        started = asyncio.Event()
        run = asyncio.create_task(
            tfgrpo.arun(tmp_path, SUITE, actor=Held(1), observe=lambda _: started.set(), **SMALL)
        )
        await started.wait()
        run.cancel()
        await asyncio.sleep(0.001)
        run.cancel()
        await run

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cut())
    (report,) = tmp_path.glob("out/*/runs/*/report.json")
    assert json.loads(report.read_text())["status"] == "cancelled"


def test_an_actor_that_breaks_before_the_start_leaves_no_run_behind(tmp_path: Path) -> None:
    class Broken(Counter):
        def bound(self, call_count: int) -> dict[str, float | None]:
            raise OSError("no limits")

    with pytest.raises(OSError, match="no limits"):
        tfgrpo.run(tmp_path, SUITE, actor=Broken(), **SMALL)
    assert list(tmp_path.glob("out/*/runs/*")) == []


def test_an_engine_that_fails_is_told_at_once_though_an_actor_will_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(Counter):
        async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
            if call.task.id != "c":
                return await super().__call__(call)
            for _ in range(400):
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    continue
            return tfgrpo.Trajectory(answer="late")

    def full(*_: object) -> None:
        raise JournalError("the disk is full")

    monkeypatch.setattr("pytest_tfgrpo.engine.run_writer.RunWriter.rollout", full)
    monkeypatch.setattr("pytest_tfgrpo.engine.attempts.attempt.CANCEL_GRACE_S", 0.1)
    monkeypatch.setattr("pytest_tfgrpo.launch.engine_thread.JOIN_S", 0.1)
    with pytest.raises(JournalError, match="the disk is full"):
        tfgrpo.run(tmp_path, SUITE, actor=Stubborn(), **SMALL)
