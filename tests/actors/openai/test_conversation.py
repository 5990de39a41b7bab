"""What an actor says to a model, and how a conversation ends."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from support.completers import USAGE
from support.model_actor import Bench, script, wants

from pytest_tfgrpo.actors.openai import conversation
from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.llm.protocol import Completion, Request
from pytest_tfgrpo.sandbox.workspace import Workspace

ADD = '''
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''
ADD_1_2 = ("add", '{"a": 1, "b": 2}')


def test_prompt_temperature_and_seed_go_to_the_model_and_its_answer_comes_back(bench: Bench) -> None:
    outcome = bench.ask(script("3"))
    assert (outcome.status, outcome.answer) == ("ok", "3")
    (request,) = bench.model.requests
    assert [(m.role, m.content) for m in request.messages] == [
        ("system", "Solve the task."),
        ("user", "How many words are in 'a b c'?"),
    ]
    assert (request.temperature, request.seed, request.tools) == (0.7, 2**62 + 1, ())
    assert request.timeout_s is not None
    assert 0 < request.timeout_s <= 99.75
    (frame,) = outcome.frames
    assert (frame.kind, frame.name, frame.output, frame.tokens) == ("model", "scripted", "3", 120)
    assert (frame.usage, frame.cost_usd, frame.latency_ms, frame.finish) == (USAGE, 0.01, 1.0, "stop")
    assert not (bench.root / "work").exists()


def test_an_empty_system_prompt_is_no_message(bench: Bench) -> None:
    bench.ask(script("3"), prompt=Prompt(system="", user="u"))
    assert [m.role for m in bench.model.requests[0].messages] == ["user"]


def test_a_tools_result_goes_back_to_the_model_and_every_call_is_a_frame(bench: Bench) -> None:
    bench.tools(ADD)
    outcome = bench.ask(script(wants(ADD_1_2, text="Let me see."), "3"))
    assert outcome.answer == "3"
    assert [(f.kind, f.name, f.input, f.output) for f in outcome.frames] == [
        ("model", "scripted", {"messages": 2}, "Let me see."),
        ("tool", "add", {"a": 1, "b": 2}, "3"),
        ("model", "scripted", {"messages": 4}, "3"),
    ]
    tool = outcome.frames[1]
    assert (tool.tokens, tool.cost_usd, tool.error, tool.usage) == (0, 0.0, None, None)
    said, told = bench.model.requests[1].messages[2:]
    assert (said.role, said.content, said.tool_calls[0].id) == ("assistant", "Let me see.", "c0")
    assert (told.role, told.content, told.tool_call_id) == ("tool", "3", "c0")


def test_calls_of_one_turn_run_side_by_side_and_are_told_in_order(bench: Bench) -> None:
    bench.tools(
        """
        import threading
        both = threading.Barrier(2, timeout=100)

        def meet(who: str) -> str:
            both.wait()
            return who
        """
    )
    outcome = bench.ask(script(wants(("meet", '{"who": "a"}'), ("meet", '{"who": "b"}')), "done"))
    assert outcome.answer == "done"
    assert bench.told() == ["a", "b"]
    assert [f.output for f in outcome.frames[1:3]] == ["a", "b"]


@pytest.mark.parametrize(
    ("turn", "status", "code", "answer"),
    [
        (Completion(text="half an ans", finish="length", usage=USAGE), "failed", "truncated", "half an ans"),
        (
            Completion(text="I cannot help", finish="refusal", usage=USAGE),
            "failed",
            "refusal",
            "I cannot help",
        ),
        (Completion(text="", finish="content_filter", usage=USAGE), "error", "content_filter", ""),
        (Completion(text="", usage=USAGE), "failed", "no_answer", ""),
        (Completion(text=" \n", usage=USAGE, finish="tool_calls"), "failed", "no_answer", ""),
        (Completion(text="ä" * 501, usage=USAGE), "failed", "oversize", ""),
        (ModelError("no room", "rate_limit"), "error", "rate_limit", ""),
        (ModelError("odd JSON", "bad_response"), "error", "bad_response", ""),
        (ModelError("withheld", "content_filter"), "error", "content_filter", ""),
        (ModelError("gone", "timeout"), "error", "timeout", ""),
        (ModelError("10 MB", "oversize"), "failed", "oversize", ""),
        (RuntimeError("a bug of the client"), "error", "client", ""),
    ],
)
def test_each_end_has_its_outcome_and_keeps_what_was_paid(
    bench: Bench, turn: Any, status: str, code: str, answer: str
) -> None:
    outcome = bench.ask(script(turn))
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code, outcome.answer) == (status, code, answer)
    (frame,) = outcome.frames
    assert frame.cost_usd is None
    assert frame.usage == (USAGE if isinstance(turn, Completion) else None)
    assert (frame.error is None) == isinstance(turn, Completion)
    assert len(frame.output.encode()) <= 1000


def test_a_refusal_is_quoted(bench: Bench) -> None:
    outcome = bench.ask(script(Completion(text="I cannot help", finish="refusal", usage=USAGE)))
    assert outcome.failure is not None
    assert "I cannot help" in outcome.failure.message


def test_a_call_that_the_budget_forbids_leaves_the_frames_before_it(bench: Bench) -> None:
    bench.tools(ADD)
    outcome = bench.ask(script(wants(ADD_1_2), BudgetError("budget_usd of 1 is used up")))
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("error", "budget")
    assert [f.kind for f in outcome.frames] == ["model", "tool"]


def test_an_endless_tool_loop_ends_after_max_steps_and_runs_no_tool_in_vain(bench: Bench) -> None:
    bench.tools(ADD)
    outcome = bench.ask(lambda _: wants(ADD_1_2), settings={"max_steps": 3})
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("failed", "tool_loop")
    assert [f.kind for f in outcome.frames] == ["model", "tool", "model", "tool", "model"]
    assert "max_steps" in outcome.failure.message


def test_a_flood_of_calls_in_one_turn_is_a_tool_loop(bench: Bench) -> None:
    bench.tools(ADD)
    assert bench.ask(script(wants(*[ADD_1_2] * 64), "3")).status == "ok"
    outcome = bench.ask(script(wants(*[ADD_1_2] * 65)))
    assert outcome.failure is not None
    assert outcome.failure.code == "tool_loop"
    assert len(outcome.frames) == 1


def test_a_model_that_writes_and_writes_is_stopped(bench: Bench) -> None:
    bench.tools(ADD)
    outcome = bench.ask(lambda _: wants(("add", "x" * 3000)), settings={"max_steps": 1000})
    assert outcome.failure is not None
    assert outcome.failure.code == "oversize"
    assert [f.kind for f in outcome.frames].count("model") == 3


def test_a_model_that_lets_tools_talk_and_talk_is_stopped(bench: Bench) -> None:
    bench.tools("def work() -> str:\n    return 'x' * 50_000")
    outcome = bench.ask(lambda _: wants(*[("work", "")] * 40), settings={"max_steps": 1000})
    assert outcome.failure is not None
    assert outcome.failure.code == "oversize"
    assert [f.kind for f in outcome.frames].count("model") == 3


def test_tool_calls_beside_finish_stop_are_calls(bench: Bench) -> None:
    bench.tools(ADD)
    turn = Completion(text="", tool_calls=wants(ADD_1_2).tool_calls, finish="stop", usage=USAGE)
    assert bench.ask(script(turn, "3")).answer == "3"


def test_arguments_that_were_cut_off_are_not_tried(bench: Bench) -> None:
    bench.tools(ADD)
    turn = Completion(text="", tool_calls=wants(ADD_1_2).tool_calls, finish="length", usage=USAGE)
    outcome = bench.ask(script(turn))
    assert outcome.failure is not None
    assert outcome.failure.code == "truncated"


def test_calls_without_ids_of_their_own_are_told_apart(bench: Bench) -> None:
    bench.tools(ADD)
    one, two = wants(ADD_1_2, ADD_1_2).tool_calls
    same = type(two)(id=one.id, name=two.name, arguments=two.arguments)
    bench.ask(script(Completion(text="", tool_calls=(one, same)), "3"))
    said, *told = bench.model.requests[1].messages[2:]
    ids = [call.id for call in said.tool_calls]
    assert len(set(ids)) == 2
    assert [m.tool_call_id for m in told] == ids


def test_half_surrogate_pairs_are_made_harmless_everywhere(bench: Bench) -> None:
    bench.tools("def echo(text: str) -> str:\n    return text + chr(0xd800)")
    turn = wants(("echo", '{"text": "x"}'), ("ech\ud800", '{"a\ud800": 1}'), text="\ud800")
    outcome = bench.ask(script(turn, "3\udfff"), prompt=Prompt(system="s\ud800", user="u\ud800"))
    assert outcome.answer == "3?"
    for request in bench.model.requests:
        repr(list(request.messages)).encode()
        for message in request.messages:
            message.content.encode()
    for frame in outcome.frames:
        f"{frame.name}{frame.input}{frame.output}{frame.error}".encode()


def test_unknown_use_is_unknown_and_not_nothing(bench: Bench) -> None:
    outcome = bench.ask(script(Completion(text="3")))
    assert (outcome.frames[0].cost_usd, outcome.frames[0].tokens, outcome.frames[0].usage) == (None, 0, None)


def test_reasoning_tokens_are_counted_once(bench: Bench) -> None:
    usage = Usage(prompt=10, completion=50, reasoning=40)
    assert bench.ask(script(Completion(text="3", usage=usage))).frames[0].tokens == 60


async def _never(_: Request) -> str:
    await asyncio.Event().wait()
    return ""


def test_a_model_that_never_answers_is_the_providers_fault_and_its_frame_is_kept(bench: Bench) -> None:
    outcome = bench.ask(_never, timeout_s=0.1)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("error", "timeout")
    assert [(f.kind, f.cost_usd) for f in outcome.frames] == [("model", None)]
    assert outcome.frames[0].error == "the model did not answer within 0.1 s"


STILL_AT_WORK = """
import asyncio, threading
gate = threading.Event()

def thread() -> str:
    gate.wait()

async def coroutine() -> str:
    await asyncio.Event().wait()

async def stubborn() -> str:
    while not gate.is_set():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            pass

def quick() -> str:
    return "q"
"""


def test_tools_still_at_work_at_the_time_limit_are_the_agents_fault(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "MARGIN_S", 1.0)
    monkeypatch.setattr(conversation, "MARGIN_SHARE", 0.5)
    bench.tools(STILL_AT_WORK)
    tools = ("thread", "coroutine", "stubborn")

    async def at_limit(tool: str) -> AttemptResult:
        actor = bench.actor(script(wants(("quick", ""), (tool, ""))))
        call = bench.make_call(timeout_s=2.0, workspace=Workspace(bench.root / tool))
        return await attempt(actor, call)

    async def scene() -> list[AttemptResult]:
        outcomes = await asyncio.gather(*map(at_limit, tools))
        import tools_under_test

        tools_under_test.gate.set()
        return outcomes

    for tool, outcome in zip(tools, asyncio.run(scene()), strict=True):
        assert outcome.failure is not None
        assert (outcome.status, outcome.failure.code) == ("failed", "timeout")
        assert f"'{tool}' was still running" in outcome.failure.message
        frames = [(f.name, f.output) for f in outcome.frames]
        assert frames == [("scripted", ""), ("quick", "q"), (tool, "")]
        assert outcome.frames[0].cost_usd == 0.01


def test_cancelling_the_rollout_cancels_its_tools(bench: Bench) -> None:
    bench.tools(
        """
        import asyncio
        seen = []

        async def work() -> str:
            seen.append("started")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("left")
        """
    )
    actor = bench.actor(script(wants(("work", ""))))

    async def scene() -> list[str]:
        import tools_under_test

        task = asyncio.create_task(attempt(actor, bench.make_call()))
        while not tools_under_test.seen:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return list(tools_under_test.seen)

    assert asyncio.run(scene()) == ["started", "left"]


def test_an_actor_is_told_by_model_steps_and_tools(bench: Bench) -> None:
    one = bench.actor()
    assert (one.name, one.paid, one.metered) == ("openai:scripted", True, True)
    assert one.identity == {"model": "openai:scripted", "max_steps": 5, "tools": {}}
    assert one.bound(3) == {"usd": None, "tokens": None}
    bench.tools(ADD)
    two = bench.actor(max_steps=6)
    assert one.identity != two.identity
    assert two.identity["tools"]["sha256"].keys() == {"tools_under_test.py"}


def test_thoughts_are_kept_in_the_frame_and_neither_answered_nor_sent_back(bench: Bench) -> None:
    bench.tools(ADD)
    thinks = wants(ADD_1_2, text="Let me see.")
    outcome = bench.ask(script(replace(thinks, thoughts="a sum"), Completion(text="3", thoughts="done")))
    assert outcome.answer == "3"
    assert [(f.output, f.thoughts) for f in outcome.frames if f.kind == "model"] == [
        ("Let me see.", "a sum"),
        ("3", "done"),
    ]
    assert "a sum" not in str(bench.model.requests[-1].messages)


def test_thoughts_are_kept_within_what_an_answer_may_have(bench: Bench) -> None:
    thinks = Completion(text="3", thoughts="ä" * 100)
    (frame,) = bench.ask(script(thinks), answer_max_bytes=11).frames
    assert frame.thoughts == "ä" * 5


def test_the_thoughts_of_all_calls_of_a_rollout_share_that_limit(bench: Bench) -> None:
    bench.tools(ADD)
    thinks = replace(wants(ADD_1_2), thoughts="x" * 8)
    outcome = bench.ask(script(thinks, thinks, Completion(text="3", thoughts="done")), answer_max_bytes=11)
    said = [frame.thoughts for frame in outcome.frames if frame.kind == "model"]
    assert said == ["x" * 8, "x" * 3, ""]


def test_thoughts_without_an_answer_are_none_and_named(bench: Bench) -> None:
    outcome = bench.ask(script(Completion(text="", thoughts="hm", why_empty="it returned thoughts alone")))
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("failed", "no_answer")
    assert outcome.failure.message == "the model returned an empty answer: it returned thoughts alone"
    assert outcome.frames[0].thoughts == "hm"


def test_a_call_that_nobody_can_read_is_named(bench: Bench) -> None:
    bench.tools(ADD)
    outcome = bench.ask(script("<tool_call>please add 1 and 2</tool_call>"))
    assert outcome.failure is not None
    assert outcome.failure.code == "no_answer"
    assert "a call of a tool as text that cannot be read" in outcome.failure.message


def test_an_answer_may_have_as_many_bytes_as_are_allowed(bench: Bench) -> None:
    outcomes = [bench.ask(script("ä" * n), answer_max_bytes=10) for n in (5, 6)]
    assert [(one.status, one.failure.code if one.failure else "") for one in outcomes] == [
        ("ok", ""),
        ("failed", "oversize"),
    ]
