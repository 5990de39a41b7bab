"""What test function and judge find of a rollout, and what is on file of it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_rollout, make_scenario

from pytest_tfgrpo.core.errors import BudgetError, OutageError
from pytest_tfgrpo.core.named_scores import NamedScore
from pytest_tfgrpo.core.records import CheckerResult, Failure, Rollout
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.engine.phases import grader as module
from pytest_tfgrpo.engine.phases.grader import Grader, unreached
from pytest_tfgrpo.scoring.checks.protocol import TooSlow

SECRET = "sk-proj-" + "a1B2c3D4" * 6
PLACE: Any = SimpleNamespace()


class World:
    """What stands around the grader of a run, and what it was told."""

    def __init__(self, *, found: CheckerResult | None = None, known: Any = None, opinion: Any = None) -> None:
        self.told: list[Any] = []
        self.stopped: list[str] = []
        self.opinion = opinion

        async def of(rollout_id: str) -> CheckerResult | None:
            self.told.append("waited")
            return found

        async def commit() -> None:
            self.told.append("committed")

        resumed = SimpleNamespace(
            checker_results=known or {},
            opinions={"run1.e1.count-words.r5": SimpleNamespace(score=0.5, reason="")},
        )
        writer = SimpleNamespace(
            commit=commit,
            checker_result=lambda id_, result: self.told.append(result),
            opinion=lambda id_, result: self.told.append(result),
        )
        context: Any = SimpleNamespace(
            job=SimpleNamespace(resumed=resumed, judge=self), writer=writer, calls=None,
            observe=lambda record: self.told.append(type(record).__name__),
            tests=SimpleNamespace(checker_results=SimpleNamespace(of=of)),
            breaker=SimpleNamespace(stop=self.stopped.append),
        )  # fmt: skip
        self.grader = Grader(context)

    async def ask_judge(self, scenario: object, rollout: object, calls: object) -> Any:
        self.told.append("asked")
        if isinstance(self.opinion, BaseException):
            raise self.opinion
        return self.opinion


ROLLOUT = make_rollout(checks=())


def judged(world: World) -> Rollout | None:
    return asyncio.run(world.grader.judge(ROLLOUT, PLACE))


def test_a_test_function_judges_what_is_on_disk_and_without_secrets_it_is_kept() -> None:
    scores = (NamedScore(name="speed", value=0.5, why="fast"), NamedScore(name="b", value=1.0, why=SECRET))
    world = World(found=CheckerResult(outcome="score", score=0.25, reason=f"saw {SECRET}", scores=scores))
    found = judged(world)
    assert found is not None
    assert [check.credit for check in found.checks] == [0.25]
    assert world.told[:3] == ["committed", "AwaitingChecker", "waited"]
    assert SECRET not in world.told[3].reason
    assert SECRET not in found.checks[0].reason
    kept = [(one.name, one.value, one.why) for one in world.told[3].scores]
    assert kept[0] == ("speed", 0.5, "fast")
    assert kept[1][:2] == ("b", 1.0)
    assert SECRET not in str((kept, found.scores))
    assert world.grader.excluded == set()


def test_what_a_test_function_found_before_is_taken_and_it_is_not_asked() -> None:
    known = {ROLLOUT.rollout_id: CheckerResult(outcome="skip", reason="not here")}
    world = World(known=known)
    assert judged(world) == ROLLOUT
    assert (world.told, world.grader.excluded) == ([], {ROLLOUT.group_id})


def test_one_that_never_runs_leaves_the_rollout_to_a_resumed_run() -> None:
    world = World()
    assert judged(world) is None
    assert world.told == ["committed", "AwaitingChecker", "waited"]


OPINION: Any = SimpleNamespace(score=0.75, reason="fine")
RUBRIC = {"rubric": ("polite",)}


@pytest.mark.parametrize(
    ("scenario", "rollout", "opinion", "told", "score"),
    [
        (RUBRIC, ROLLOUT, OPINION, ["asked", OPINION], 0.75),
        ({}, ROLLOUT, OPINION, [], None),
        (RUBRIC, make_rollout(credit=None), OPINION, [], None),
        (RUBRIC, make_rollout(5), OPINION, [], 0.5),
    ],
)
def test_a_judge_is_asked_once_about_an_answer_that_has_a_rubric(
    scenario: Any, rollout: Rollout, opinion: Any, told: list[Any], score: float | None
) -> None:
    world = World(opinion=opinion)
    found = asyncio.run(world.grader.ask_judge(make_scenario(**scenario), rollout))
    assert found is not None
    assert world.told == told
    assert (None if found.opinion is None else found.opinion.score) == score


@pytest.mark.parametrize(
    ("error", "stopped"), [(BudgetError("used up"), []), (OutageError("judge away"), ["judge away"])]
)
def test_a_judge_that_cannot_be_asked_leaves_the_rollout_to_a_resumed_run(
    error: Exception, stopped: list[str]
) -> None:
    world = World(opinion=error)
    assert asyncio.run(world.grader.ask_judge(make_scenario(**RUBRIC), ROLLOUT)) is None
    assert (world.stopped, world.told) == (stopped, ["asked"])


@pytest.mark.parametrize(("truth", "status"), [("judge", "error"), ("checks", "ok")])
def test_a_judge_without_a_score_makes_an_error_where_it_decides(truth: Any, status: str) -> None:
    world = World(opinion=SimpleNamespace(score=None, reason="no valid vote"))
    found = asyncio.run(world.grader.ask_judge(make_scenario(truth=truth, **RUBRIC), ROLLOUT))
    assert found is not None
    assert found.status == status
    assert (found.failure.code if found.failure else "") == ("judge" if truth == "judge" else "")


def test_each_check_of_a_rollout_that_failed_before_has_no_credit() -> None:
    failed = make_rollout(status="failed", failure=Failure(code="timeout", message="late"))
    checks = (
        Check(kind="exact", params={"value": "3"}, weight=2.0),
        Check(kind="limits", params={"steps": 2}),
    )
    found = unreached(make_scenario(checks=checks), failed)
    assert [(c.kind, c.weight, c.credit, c.reason) for c in found] == [
        (check.title, check.weight, 0.0, "not reached: timeout") for check in checks
    ]
    [alone] = unreached(make_scenario(checker="test_a.py::test_it"), make_rollout(status="failed"))
    assert (alone.kind, alone.weight, alone.credit, alone.reason) == ("test", 1.0, 0.0, "not reached: failed")


DEFAULTS: dict[str, Any] = {name: setting.default for name, setting in BY_NAME.items()}


def test_a_check_is_shown_all_that_an_attempt_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    def evaluate(checks: Any, context: Any, kinds: Any, *, at_once: bool = False) -> Any:
        shown.append((checks, context, kinds))
        if at_once:
            raise TooSlow
        return ()

    async def call(work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    monkeypatch.setattr(module, "evaluate", evaluate)
    world = World()
    grader: Any = world.grader
    grader._job.kinds, grader._job.settings = {"exact": None}, DEFAULTS
    grader._context.check_threads = SimpleNamespace(call=call)
    scenario = make_scenario(environment="a" * 64, checks=(Check(kind="exact", params={}),))
    rollout = make_rollout(answer="7", latency_ms=1234.0, checks=())
    asyncio.run(grader.evaluate(scenario, rollout, PLACE))
    for checks, context, kinds in shown:
        assert (checks, kinds) == (scenario.checks, {"exact": None})
        assert (context.answer, context.frames, context.latency_ms) == ("7", rollout.frames, 1234.0)
        assert (context.environment, context.workspace, context.task) == ("a" * 64, PLACE, scenario.task())
    assert len(shown) == 2


@pytest.mark.parametrize(("limits", "told"), [((0.001, 0.002), "0.003"), ((0.001, None), "0.004")])
def test_checks_that_do_not_end_are_an_error_with_the_time_that_all_of_them_had(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[float | None, ...], told: str
) -> None:
    def evaluate(*_: Any, **__: Any) -> Any:
        raise TooSlow

    monkeypatch.setattr(module, "evaluate", evaluate)
    monkeypatch.setattr(module, "CHECK_GRACE_S", 0.001)
    grader: Any = World().grader
    grader._job.kinds, grader._job.settings = {}, DEFAULTS | {"timeout_s": 0.003}
    grader._context.check_threads = SimpleNamespace(call=lambda *_: asyncio.sleep(60))
    params: list[Any] = [{} if limit is None else {"timeout_s": limit} for limit in limits]
    scenario = make_scenario(checks=tuple(Check(kind="tests", params=one) for one in params))
    found = asyncio.run(grader.evaluate(scenario, ROLLOUT, PLACE))
    assert (found.status, found.failure.code) == ("error", "check")
    assert found.failure.message == f"the checks did not end within {told} s"
