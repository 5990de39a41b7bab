import asyncio
from dataclasses import replace

import pytest
from support.completers import ScriptedCompleter, make_calls

from pytest_tfgrpo.core.errors import ModelError, OutageError
from pytest_tfgrpo.core.records import ModelCall
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.fingerprint import fingerprint
from pytest_tfgrpo.llm.limits import patience
from pytest_tfgrpo.llm.protocol import Completion, Message, Request, ToolCall

pytestmark = pytest.mark.asyncio


def ask(text: str = "Why?", **changes: object) -> Request:
    fields: dict[str, object] = {"temperature": 0.5, "seed": 1}
    return Request(messages=(Message(role="user", content=text),), **fields | changes)  # type: ignore[arg-type]


async def test_a_call_is_journaled_with_its_cost_before_anything_follows_from_it() -> None:
    written: list[ModelCall] = []
    calls, model = make_calls(written), ScriptedCompleter(lambda _: "Because.")
    answer = await calls.complete(model, ask(), key="e1.learn.a", purpose="learn", epoch=1, subject="a")
    assert answer.text == "Because."
    [call] = written
    assert (call.key, call.answer, call.cost_usd, call.tokens) == ("e1.learn.a", "Because.", 0.01, 120)
    assert call.prompt == "[user]\nWhy?"
    assert calls.of(1) == (call,)
    assert calls.of(2) == ()


async def test_the_calls_of_tools_in_a_conversation_tell_requests_apart() -> None:
    model = ScriptedCompleter(lambda _: "Because.")

    def after(query: str) -> Request:
        call = ToolCall(id="c1", name="search", arguments=query)
        asked = Message(role="assistant", content="", tool_calls=(call,))
        found = Message(role="tool", content="none", tool_call_id="c1")
        return Request(messages=(asked, found), temperature=0.5)

    assert fingerprint(model, after('{"q": "a"}')) == fingerprint(model, after('{"q": "a"}'))
    assert fingerprint(model, after('{"q": "a"}')) != fingerprint(model, after('{"q": "b"}'))


async def test_a_resumed_run_does_not_pay_twice_for_an_answer_that_is_on_file() -> None:
    written: list[ModelCall] = []
    await make_calls(written).complete(
        ScriptedCompleter(lambda _: "Because."), ask(), key="k", purpose="learn", epoch=1
    )
    model = ScriptedCompleter(lambda _: "Another answer.")
    resumed = make_calls(recorded={"k": written[0]})
    answer = await resumed.complete(model, ask(), key="k", purpose="learn", epoch=1)
    assert (answer.text, answer.cost_usd, model.requests) == ("Because.", 0.01, [])
    assert (answer.finish, answer.latency_ms) == ("stop", written[0].latency_ms)
    assert resumed.of(1) == tuple(written)
    cut = make_calls(recorded={"k": replace(written[0], finish="length")})
    assert (await cut.complete(model, ask(), key="k", purpose="learn", epoch=1)).finish == "length"


async def test_an_answer_on_file_to_another_question_is_not_taken() -> None:
    written: list[ModelCall] = []
    model = ScriptedCompleter(lambda _: "Because.")
    await make_calls(written).complete(model, ask(), key="k", purpose="learn", epoch=1)
    resumed = make_calls(recorded={"k": written[0]})
    await resumed.complete(model, ask("How?"), key="k", purpose="learn", epoch=1)
    assert len(model.requests) == 2


@pytest.mark.parametrize("cost_usd", [0.002, None])
async def test_a_failed_call_is_journaled_with_its_cost_and_made_again_by_a_resumed_run(
    cost_usd: float | None,
) -> None:
    def fail(_: Request) -> Completion:
        raise ModelError("the server is busy", "rate_limit", cost_usd=cost_usd)

    written: list[ModelCall] = []
    calls = make_calls(written)
    with pytest.raises(ModelError, match="busy"):
        await calls.complete(ScriptedCompleter(fail), ask(), key="k", purpose="judge", epoch=1)
    assert (written[0].error, written[0].cost_usd) == ("rate_limit: the server is busy", cost_usd)
    assert calls.spent_usd == (cost_usd or 0.0)
    model = ScriptedCompleter(lambda _: "Now.")
    answer = await make_calls(recorded={"k": written[0]}).complete(
        model, ask(), key="k", purpose="judge", epoch=1
    )
    assert answer.text == "Now."


@pytest.mark.parametrize(
    "changes",
    [{"temperature": 0.6}, {"seed": 2}, {"max_tokens": 9}, {"schema": {"type": "object"}}],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_fingerprint_covers_all_that_an_answer_depends_on(changes: dict[str, object]) -> None:
    model = ScriptedCompleter(lambda _: "")
    assert fingerprint(model, ask()) != fingerprint(model, ask(**changes))
    assert fingerprint(model, ask()) != fingerprint(model, ask("How?"))
    other = ScriptedCompleter(lambda _: "", name="openai:other")
    assert fingerprint(model, ask()) != fingerprint(other, ask())
    assert fingerprint(model, ask()) == fingerprint(model, ask(timeout_s=3.0)), "a time limit changes nothing"


class Away:
    """A model that is away from its second request on, for some requests; a prompt "Poison" always fails."""

    def __init__(self, requests: float) -> None:
        self.left = requests
        self.seen: list[str] = []

    def __call__(self, request: Request) -> str:
        text = request.messages[-1].content
        self.seen.append(text)
        if text == "Poison" or (len(self.seen) > 1 and self.left > 0):
            self.left -= 1
            raise ModelError("overloaded", "server", cost_usd=0.001)
        return "Because."


async def test_calls_wait_for_a_model_that_is_away_and_are_made_again() -> None:
    away, told, written = Away(6), list[str](), list[ModelCall]()
    model, calls = ScriptedCompleter(away), Calls(written.append, {}, told.append)
    await calls.complete(model, ask("0"), key="0", purpose="learn", epoch=1)
    asked = (calls.complete(model, ask(f"{n}"), key=f"{n}", purpose="learn", epoch=1) for n in range(1, 4))
    answers = await asyncio.gather(*asked)
    assert [answer.text for answer in answers] == ["Because."] * 3
    assert told == ["paused, a model does not answer: overloaded"]
    assert sum(answer.cost_usd or 0 for answer in answers) == pytest.approx(6 * 0.001 + 4 * 0.01)
    assert [call.error for call in written] == [None] * 4


async def test_a_model_that_stays_away_ends_the_calls_and_nothing_false_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 0.02)
    written: list[ModelCall] = []
    model, calls = ScriptedCompleter(Away(10**9)), Calls(written.append, {}, print)
    await calls.complete(model, ask("0"), key="0", purpose="learn", epoch=1)
    asked = (calls.complete(model, ask(f"{n}"), key=f"{n}", purpose="learn", epoch=1) for n in range(1, 4))
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, OutageError) and "overloaded" in str(one) for one in ended)
    assert [call.key for call in written] == ["0"]


async def test_a_prompt_that_a_model_never_answers_fails_alone() -> None:
    away, written = Away(0), list[ModelCall]()
    model, calls = ScriptedCompleter(away), Calls(written.append, {}, print)
    with pytest.raises(ModelError, match="overloaded"):
        await calls.complete(model, ask("Poison"), key="p", purpose="learn", epoch=1)
    assert away.seen.count("Poison") == 2
    assert [call.error for call in written] == ["server: overloaded"]


async def test_a_model_that_has_not_answered_yet_gets_no_time() -> None:
    def gone(_: Request) -> str:
        raise ModelError("connection refused", "connection")

    model = ScriptedCompleter(gone)
    with pytest.raises(OutageError, match=r"connection refused"):
        await Calls(print, {}, print).complete(model, ask(), key="k", purpose="judge", epoch=1)
    assert len(model.requests) == 2


async def test_the_calls_of_an_epoch_are_sorted_and_their_costs_add_up() -> None:
    written: list[ModelCall] = []
    calls, model = make_calls(written), ScriptedCompleter(lambda _: "token=hunter2hunter2x")
    for key, epoch in (("b", 1), ("a", 1), ("c", 2)):
        found = await calls.complete(model, ask(key), key=key, purpose="learn", epoch=epoch)
        assert found.text == "token=[redacted:named]"
    assert [call.key for call in calls.of(1)] == ["a", "b"]
    assert [call.answer for call in written] == ["token=[redacted:named]"] * 3
    assert {call.latency_ms for call in written} == {1.0}, "as the model said it"
    assert (calls.answered, calls.spent_usd, +calls.in_flight) == (3, pytest.approx(0.03), {})


async def test_what_is_journaled_of_a_call_holds_no_secret_and_names_its_subject() -> None:
    def fail(_: Request) -> Completion:
        raise ModelError("refused token=hunter2hunter2x", "auth")

    written: list[ModelCall] = []
    with pytest.raises(ModelError):
        await make_calls(written).complete(
            ScriptedCompleter(fail),
            ask("password=open5esame5x"),
            key="k",
            purpose="learn",
            epoch=1,
            subject="s1",
        )
    [call] = written
    assert (call.prompt, call.subject) == ("[user]\npassword=[redacted:named]", "s1")
    assert call.error == "auth: refused token=[redacted:named]"


@pytest.mark.parametrize(("role", "purpose"), [("judge", "judge"), ("user", "user"), ("optimizer", "learn")])
async def test_a_model_that_is_needed_later_is_reached_first(role: str, purpose: str) -> None:
    written: list[ModelCall] = []
    await make_calls(written).reach(ScriptedCompleter(lambda _: "ok"), role=role, epoch=2)
    assert [(call.key, call.purpose, call.epoch) for call in written] == [(f"hello.{role}", purpose, 2)]

    def gone(_: Request) -> str:
        raise ModelError("connection refused", "connection")

    with pytest.raises(
        OutageError, match=f"^the {role} does not answer, so no rollout.*: connection refused$"
    ):
        await make_calls().reach(ScriptedCompleter(gone), role=role, epoch=0)


async def test_of_several_calls_that_wait_for_a_model_one_finds_out_that_it_is_gone() -> None:
    def gone(_: Request) -> str:
        raise ModelError("connection refused", "connection")

    model, calls = ScriptedCompleter(gone), Calls(print, {}, print)
    ended = await asyncio.gather(
        *(calls.complete(model, ask(), key=key, purpose="learn", epoch=1) for key in "abc"),
        return_exceptions=True,
    )
    assert [type(one) for one in ended] == [OutageError] * 3
    assert len(model.requests) == 3 + 1
