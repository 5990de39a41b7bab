"""Whatever an actor does costs one attempt: it ends in time and becomes an outcome."""

import asyncio
import contextlib
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_scenario
from support.jobs import ScriptedActor

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.errors import AgentFailure, BudgetError, ProviderError
from pytest_tfgrpo.core.records import Frame, Phase, Trajectory, Usage
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.engine.attempts import attempt as module
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot, attempt, rollout_of
from pytest_tfgrpo.llm.limits.queueing import current_ticket, take_ticket
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace


def ask(answer: Any, tmp_path: Path, timeout_s: float = 100.0, *, part: bool = False) -> AttemptResult:
    call = ActorCall(
        task=make_scenario().task(),
        prompt=Prompt(system="", user="?"),
        temperature=0.0,
        seed=1,
        workspace=Workspace(tmp_path / "work"),
        timeout_s=timeout_s,
        answer_max_bytes=1000,
        part_thoughts=part,
    )

    async def in_turn() -> AttemptResult:
        take_ticket(1)
        return await attempt(ScriptedActor(answer), call)

    return asyncio.run(in_turn())


def code(outcome: AttemptResult) -> tuple[str, str]:
    assert outcome.failure is not None
    return outcome.status, outcome.failure.code


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_actor_that_raises_what_ends_a_loop_has_crashed(
    tmp_path: Path, error: type[BaseException]
) -> None:
    async def answer(call: ActorCall) -> str:
        raise error("over")

    outcome = ask(answer, tmp_path)
    assert code(outcome) == ("failed", "crash")
    assert outcome.failure is not None
    assert error.__name__ in outcome.failure.message


@pytest.mark.parametrize("waits", [True, False])
def test_an_actor_that_cancels_its_own_task_has_crashed(tmp_path: Path, waits: bool) -> None:
    async def answer(call: ActorCall) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if waits:
            await asyncio.sleep(0)
        return "3"

    assert code(ask(answer, tmp_path)) == ("failed", "crash")


def test_an_actor_that_will_not_be_cancelled_is_left_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CANCEL_GRACE_S", 0.05)
    refused = 0

    async def answer(call: ActorCall) -> str:
        nonlocal refused
        while refused < 2:  # the second is from the end of the loop
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                refused += 1
        return "3"

    assert code(ask(answer, tmp_path, timeout_s=0.05)) == ("failed", "timeout")


@pytest.mark.parametrize(("reason", "status"), [("timeout", "error"), ("other", "failed")])
def test_an_actor_stopped_at_its_time_limit_may_tell_why_and_what_it_used(
    tmp_path: Path, reason: str, status: str
) -> None:
    frame = Frame(kind="model", name="m", tokens=7)

    async def answer(call: ActorCall) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            raise ProviderError("the model is slow", reason, frames=(frame,))

    outcome = ask(answer, tmp_path, timeout_s=0.01)
    assert code(outcome) == (status, "timeout")
    assert outcome.frames == ((frame,) if reason == "timeout" else ())


def test_waiting_for_room_in_the_budget_is_neither_time_of_the_attempt_nor_latency(tmp_path: Path) -> None:
    async def answer(call: ActorCall) -> str:
        with current_ticket().waiting():
            await asyncio.sleep(0.5)
        return "3"

    outcome = ask(answer, tmp_path, timeout_s=0.3)
    assert outcome.status == "ok"
    assert outcome.latency_ms < 500


def test_after_waiting_for_the_budget_the_time_limit_still_holds(tmp_path: Path) -> None:
    async def answer(call: ActorCall) -> str:
        with current_ticket().waiting():
            await asyncio.sleep(0.05)
        await asyncio.sleep(60)
        return "3"

    assert code(ask(answer, tmp_path, timeout_s=0.05)) == ("failed", "timeout")


def test_an_answer_after_the_time_limit_is_none(tmp_path: Path) -> None:
    async def answer(call: ActorCall) -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "3"

    assert code(ask(answer, tmp_path, timeout_s=0.01)) == ("failed", "timeout")


@pytest.mark.parametrize(
    "frames",
    [
        [{"kind": "tool"}],
        ({"kind": "tool"},),
        (Frame(kind="tool", name="x", cost_usd=math.nan),),
        (Frame(kind="tool", name="x", latency_ms=math.inf),),
        (Frame(kind="tool", name="x", tokens="7"),),  # type: ignore[arg-type]
        (Frame(kind="tool", name="x", tokens=-1),),
        (Frame(kind="tool", name=None, output=b"x"),),  # type: ignore[arg-type]
        (Frame(kind="gift", name="x"),),  # type: ignore[arg-type]
        (Frame(kind=USER, name="x"),),
        (Frame(kind="model", name="x", usage=Usage(prompt=-1, completion=2)),),
        (Frame(kind="model", name="x", usage={"prompt": 1}),),  # type: ignore[arg-type]
        (Frame(kind="model", name="x", finish=None),),  # type: ignore[arg-type]
        (Frame(kind="tool", name="x", cost_usd="much"),),  # type: ignore[arg-type]
        (Frame(kind="tool", name="x", cost_usd=10**400),),
        (Frame(kind="tool", name="x", latency_ms=10**400),),
        (Frame(kind="tool", name="x", tokens=10**400),),
        (Frame(kind="tool", name="x", cost_usd=1e300),),
        (Frame(kind="model", name="x", usage=Usage(prompt=10**400, completion=2)),),
        (Frame(kind="model", name="x", sampled={"logprobs": [-1.0]}),),  # type: ignore[arg-type]
        (Frame(kind="model", name="x", sampled=Sampled(kind="raw", logprobs=[-1.0])),),  # type: ignore[arg-type]
        (Frame(kind="model", name="x", sampled=Sampled(kind="raw", logprobs=("x",))),),  # type: ignore[arg-type]
        (Frame(kind="model", name="x", sampled=Sampled(kind=None)),),  # type: ignore[arg-type]
    ],
)
def test_frames_that_are_none_are_garbage(tmp_path: Path, frames: Any) -> None:
    outcome = ask(lambda call: Trajectory(answer="3", frames=frames), tmp_path)
    assert outcome.status == "failed"
    assert outcome.failure is not None
    assert outcome.failure.code in ("garbage", "crash")


@pytest.mark.parametrize(
    "field",
    [
        {"name": None},
        {"output": b"x"},
        {"error": 3},
        {"thoughts": None},
        {"inside": "x"},
        {"extra": None},
        {"started_at": 5},
    ],
    ids=lambda field: next(iter(field)),
)
def test_a_field_of_a_frame_that_is_of_another_type_is_garbage(tmp_path: Path, field: dict[str, Any]) -> None:
    frame = Frame(**{"kind": "model", "name": "m"} | field)
    assert code(ask(lambda call: Trajectory(answer="3", frames=(frame,)), tmp_path)) == ("failed", "garbage")


def test_what_an_answer_carries_and_names_of_frames_without_secrets_are_kept(tmp_path: Path) -> None:
    frame = Frame(kind="tool", name="password=hunter2hunter2", output="x")
    made = Trajectory(answer="3", frames=(frame,), extra={"a": [1]}, decoy="answer")
    outcome = ask(lambda call: made, tmp_path)
    assert (outcome.extra, outcome.decoy) == ({"a": [1]}, "answer")
    assert [(f.name, f.output) for f in outcome.frames] == [("password=[redacted:named]", "x")]


def test_a_rollout_says_what_its_slot_and_its_attempt_were() -> None:
    phase = Phase(epoch=3, mode="eval", temperature=0.3, rollouts=2, scenarios=("s",))
    question: Any = SimpleNamespace(
        scenario=make_scenario("s"), experiences=("a",), left_out=("b",), tossed=("c",), prompt_stamp="p"
    )
    call: Any = SimpleNamespace(seed=7, temperature=0.4)
    slot = Slot(phase=phase, question=question, index=1, rollout_id="r", group_id="g", call=call)
    frames = (Frame(kind="model", name="m", tokens=5, cost_usd=0.5),)
    known: dict[str, Any] = {"status": "ok", "answer": "3", "frames": frames, "extra": {"x": 1}}
    known |= {"decoy": "answer", "started_at": "T", "latency_ms": 9.0}
    rollout = rollout_of(slot, AttemptResult(**known), "run1")
    wanted = {"rollout_id": "r", "group_id": "g", "run_id": "run1", "scenario_id": "s", "epoch": 3, **known}
    wanted |= {"mode": "eval", "index": 1, "seed": 7, "temperature": 0.4, "tokens": 5, "cost_usd": 0.5}
    wanted |= {"experiences": ("a",), "left_out": ("b",), "tossed": ("c",), "prompt_stamp": "p"}
    assert {name: getattr(rollout, name) for name in wanted} == wanted


@pytest.mark.parametrize("talks", [True, False])
def test_what_the_user_said_is_kept_of_a_conversation_that_failed(tmp_path: Path, talks: bool) -> None:
    frames = (Frame(kind=USER, name="user", output="And now?"),)

    def answer(call: ActorCall) -> str:
        raise AgentFailure("no more", "x", frames=frames)

    async def reply(_: object) -> str:
        raise ProviderError("it says something else")

    user: Any = SimpleNamespace(reply=reply) if talks else None
    call: Any = SimpleNamespace(part_thoughts=False, answer_max_bytes=9)
    fault: Any = asyncio.run(module.ask_once(ScriptedActor(answer), call, module.NOTHING, user))
    assert (fault[0], fault[1].frames) == ("failed", frames if talks else ())


@pytest.mark.parametrize("part", [{"extra": ["x"]}, {"decoy": 7}])
def test_what_an_answer_carries_beside_its_frames_has_a_type_too(tmp_path: Path, part: Any) -> None:
    assert code(ask(lambda call: Trajectory(answer="3", **part), tmp_path)) == ("failed", "garbage")


def test_an_actor_that_the_budget_stops_is_no_failure_of_the_agent(tmp_path: Path) -> None:
    async def answer(call: ActorCall) -> str:
        raise BudgetError("budget_usd is used up")

    outcome = ask(answer, tmp_path)
    assert code(outcome) == ("error", "budget")
    assert outcome.failure is not None
    assert outcome.failure.message == "budget_usd is used up"


def test_log_probabilities_that_cannot_be_are_null_with_the_reason(tmp_path: Path) -> None:
    said = Sampled(kind="raw", logprobs=(-1.0, math.nan), token_ids=(1, 2), temperature=0.5)
    sound = replace(said, logprobs=(-1.0, -2.0))
    frames = tuple(Frame(kind="model", name="m", sampled=one) for one in (said, sound, None))
    none = Sampled(kind="raw", temperature=0.5, reason="not_finite")
    answered = ask(lambda call: Trajectory(answer="3", frames=frames), tmp_path)
    assert [frame.sampled for frame in answered.frames] == [none, sound, None]

    async def fail(call: ActorCall) -> str:
        raise AgentFailure("no more", "x", frames=frames)

    assert [frame.sampled for frame in ask(fail, tmp_path).frames] == [none, sound, None]


@pytest.mark.parametrize("fault", [AgentFailure, ProviderError])
def test_what_a_failed_attempt_used_is_kept(tmp_path: Path, fault: type[AgentFailure]) -> None:
    frame = Frame(kind="model", name="m", tokens=7, cost_usd=0.5)

    async def answer(call: ActorCall) -> str:
        raise fault("no more", "x", frames=(frame,), answer="half an ans", latency_ms=12.0)

    outcome = ask(answer, tmp_path)
    assert (outcome.frames, outcome.answer, outcome.latency_ms) == ((frame,), "half an ans", 12.0)


@pytest.mark.parametrize(
    "carried", [{"frames": [1]}, {"answer": b"x"}, {"latency_ms": math.nan}, {"frames": ({},)}]
)
@pytest.mark.parametrize(("fault", "status"), [(AgentFailure, "failed"), (ProviderError, "error")])
def test_what_a_failure_carries_and_cannot_be_kept_is_dropped(
    tmp_path: Path, carried: dict[str, Any], fault: type[AgentFailure], status: str
) -> None:
    async def answer(call: ActorCall) -> str:
        raise fault("no more", "x", **carried)

    outcome = ask(answer, tmp_path)
    assert code(outcome) == (status, "x")
    assert (outcome.frames, outcome.answer) == ((), "")


@pytest.mark.parametrize("latency_ms", [math.nan, -1.0, "1", 10**400, 1e300])
def test_a_recorded_latency_must_be_one(tmp_path: Path, latency_ms: Any) -> None:
    outcome = ask(lambda call: Trajectory(answer="3", latency_ms=latency_ms), tmp_path)
    assert code(outcome) == ("failed", "garbage")


@pytest.mark.parametrize("letter", ["x", "ä", "日", "😀"])
def test_an_answer_may_have_as_many_bytes_as_the_limit_and_no_more(tmp_path: Path, letter: str) -> None:
    fits = "x" * (1000 % len(letter.encode())) + letter * (1000 // len(letter.encode()))
    assert ask(lambda call: fits, tmp_path).answer == fits
    assert code(ask(lambda call: f"{fits}x", tmp_path)) == ("failed", "oversize")


def test_a_recorded_latency_counts_instead_of_the_measured_one(tmp_path: Path) -> None:
    frame = Frame(kind="model", name="m")
    assert (
        ask(lambda call: Trajectory(answer="3", frames=(frame,), latency_ms=77.0), tmp_path).latency_ms == 77
    )


def test_an_actor_that_raises_an_error_without_a_text_has_crashed(tmp_path: Path) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    async def answer(call: ActorCall) -> str:
        raise Mute

    assert code(ask(answer, tmp_path)) == ("failed", "crash")


THINKS = "<think>Paris? No.</think>\nRome"


def test_an_agents_answer_stays_as_it_is_unless_its_thoughts_are_to_be_parted(tmp_path: Path) -> None:
    frames = (Frame(kind="model", name="m", output=THINKS), Frame(kind="tool", name="t"))

    async def answer(call: ActorCall) -> Trajectory:
        return Trajectory(answer=THINKS, frames=frames)

    assert ask(answer, tmp_path).answer == THINKS
    parted = ask(answer, tmp_path, part=True)
    assert (parted.status, parted.answer) == ("ok", "Rome")
    assert [(f.output, f.thoughts) for f in parted.frames] == [("Rome", "Paris? No."), ("", "")]


def test_an_agent_that_only_thinks_has_not_answered(tmp_path: Path) -> None:
    async def answer(call: ActorCall) -> Trajectory:
        return Trajectory(answer="<think>hm", frames=(Frame(kind="model", name="m"),))

    outcome = ask(answer, tmp_path, part=True)
    assert code(outcome) == ("failed", "no_answer")
    assert outcome.frames[0].thoughts == "hm"


@pytest.mark.parametrize("fault", [AgentFailure, ProviderError])
def test_a_secret_in_the_message_of_a_failure_is_taken_out(tmp_path: Path, fault: type[Exception]) -> None:
    async def answer(call: ActorCall) -> str:
        raise fault("refused for password=hunter2hunter2", "refused")

    outcome = ask(answer, tmp_path)
    assert outcome.failure is not None
    assert outcome.failure.message == "refused for password=[redacted:named]"
