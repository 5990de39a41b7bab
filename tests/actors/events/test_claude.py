"""Claude Code's stream: turns, tools, totals, and whose fault it is when there is no answer."""

import json
from typing import Any

import pytest

from pytest_tfgrpo.actors.events.claude import read_claude
from pytest_tfgrpo.actors.output import read_trajectory
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError, RolloutFault
from pytest_tfgrpo.core.records import Frame, Trajectory, Usage

INIT = {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash", "Edit"], "model": "opus"}


def said(*blocks: dict[str, Any], id_: str = "m1", out: int = 5, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 7}
    message = {"id": id_, "type": "message", "role": "assistant", "model": "opus", "content": list(blocks)}
    return {"type": "assistant", "message": {**message, "usage": {**usage, "output_tokens": out}}, **more}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def use(id_: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def results(*ended: tuple[str, Any, bool]) -> dict[str, Any]:
    blocks = [
        {"type": "tool_result", "tool_use_id": id_, "content": content, "is_error": failed}
        for id_, content, failed in ended
    ]
    return {"type": "user", "message": {"role": "user", "content": blocks}}


def result(subtype: str = "success", **more: Any) -> dict[str, Any]:
    told = {"is_error": subtype != "success", "duration_ms": 900, "duration_api_ms": 700, "num_turns": 2}
    usage = {
        "input_tokens": 6,
        "cache_read_input_tokens": 40,
        "cache_creation_input_tokens": 14,
        "output_tokens": 30,
    }
    closing = {"type": "result", "subtype": subtype, **told, "total_cost_usd": 0.25, "usage": usage}
    return closing | ({"result": "Done."} if subtype == "success" else {}) | more


def stream(*events: Any) -> bytes:
    return b"".join((e if isinstance(e, bytes) else json.dumps(e).encode()) + b"\n" for e in events)


def read(*events: Any) -> Trajectory:
    value = read_claude(stream(*events))
    return read_trajectory(value, answer_max_bytes=10_000, elapsed_ms=1.0, model="command")


def fault(*events: Any) -> RolloutFault:
    with pytest.raises((AgentFailure, ProviderError)) as caught:
        read_claude(stream(*events))
    return caught.value


WORK = (
    INIT,
    said(words("I look."), out=1),
    said(use("t1", "Bash", command="python -m unittest"), out=8),
    results(("t1", "FAILED", True)),
    said(use("t2", "Edit", file_path="a.py"), id_="m2"),
    results(("t2", [words("changed"), {"type": "image", "source": {}}], False)),
    said(words("Done."), id_="m3", out=2),
)


def test_a_stream_becomes_turns_and_tools_in_order() -> None:
    trajectory = read(*WORK, result())
    assert trajectory.answer == "Done."
    assert [(f.kind, f.name, f.output, f.error) for f in trajectory.frames] == [
        ("model", "opus", "I look.", None),
        ("tool", "Bash", "FAILED", "FAILED"),
        ("model", "opus", "", None),
        ("tool", "Edit", "changed\n[image]", None),
        ("model", "opus", "Done.", None),
    ]
    assert trajectory.frames[1].input == {"command": "python -m unittest"}
    assert [f.tokens for f in trajectory.frames] == [38, 0, 35, 0, 17]


def test_the_steps_of_a_subagent_are_inside_of_the_tool_that_started_it() -> None:
    below = {"parent_tool_use_id": "t1"}
    events = (
        INIT,
        said(use("t1", "Task", prompt="look")),
        said(use("t2", "Read", path="a"), id_="m2", **below),
        results(("t2", "text", False)) | below,
        said(words("found"), id_="m3", **below),
        results(("t1", "found", False)),
        said(words("Done."), id_="m4"),
    )
    frames = read(*events, result()).frames
    assert [(frame.name, frame.inside) for frame in frames] == [
        ("opus", 0),
        ("Task", 0),
        ("opus", 1),
        ("Read", 2),
        ("opus", 3),
        ("opus", 0),
    ]


def test_what_a_turn_used_is_counted_once_however_many_events_repeat_it() -> None:
    first = read(*WORK, result()).frames[0]
    assert first.usage == Usage(prompt=30, completion=8, cached=20)
    assert first.tokens == 38
    told, bare = said(words("I look.")), said(words(" Well."))
    told["message"]["stop_reason"] = "max_tokens"
    told["error"] = "rate_limit"
    del bare["message"]["usage"]
    (frame,) = read(INIT, told, bare, result(usage=None)).frames
    assert (frame.usage, frame.finish, frame.error) == (
        Usage(prompt=30, completion=5, cached=20),
        "length",
        "rate_limit",
    )


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("of tomorrow", ""),
    ],
)
def test_a_turn_says_why_it_ended(reason: str, finish: str) -> None:
    turn = said(words("Done."))
    turn["message"]["stop_reason"] = reason
    assert [frame.finish for frame in read(INIT, turn, result()).frames] == [finish]


def test_the_closing_events_totals_are_the_sums_over_the_frames() -> None:
    trajectory = read(INIT, said(words("a"), out=8), said(words("b"), id_="m2", out=2), result())
    assert trajectory.tokens == 6 + 40 + 14 + 30
    assert trajectory.cost_usd == 0.25
    assert [f.cost_usd for f in trajectory.frames] == [0.0, 0.25]
    assert trajectory.frames[-1].usage == Usage(prompt=30, completion=22, cached=20)
    assert sum(f.latency_ms for f in trajectory.frames) == 700


def test_totals_below_the_sum_of_the_turns_are_believed_all_the_same() -> None:
    trajectory = read(*WORK, result(usage={"input_tokens": 5, "output_tokens": 1}))
    assert [f.tokens for f in trajectory.frames] == [0, 0, 0, 0, 6]


def test_the_models_of_helpers_count_too() -> None:
    use_of = {
        "inputTokens": 10,
        "outputTokens": 5,
        "cacheReadInputTokens": 100,
        "cacheCreationInputTokens": 0,
    }
    models = {"opus": use_of, "haiku": {"inputTokens": 1, "outputTokens": 1}}
    trajectory = read(INIT, said(words("a")), result(modelUsage=models))
    assert trajectory.tokens == 10 + 5 + 100 + 1 + 1


def test_an_unknown_cost_stays_unknown() -> None:
    trajectory = read(INIT, said(words("a")), result(total_cost_usd=None))
    assert trajectory.cost_usd is None
    assert trajectory.tokens == 90


def test_a_tool_without_a_name_is_called_one() -> None:
    (_, tool) = read(INIT, said(use("t", "")), results(("t", "1", False)), result()).frames
    assert (tool.kind, tool.name) == ("tool", "tool")


def test_a_tool_that_failed_without_a_word_says_so() -> None:
    (_, tool) = read(INIT, said(use("t", "Bash")), results(("t", "", True)), result()).frames
    assert (tool.output, tool.error) == ("", "the tool failed")
    (_, tool) = read(INIT, said(use("t", "Bash")), results(("t", "x" * 400, True)), result()).frames
    assert (tool.output, tool.error) == ("x" * 400, "x" * 300)


def test_tools_used_at_once_are_joined_with_their_results_by_id() -> None:
    trajectory = read(
        INIT,
        said(use("a", "Read", path="a"), use("b", "Read", path="b"), use("c", "Read", path="c")),
        results(("c", "3", False), ("a", "1", False)),
        results(("b", "2", False), ("unasked", "?", False)),
        result(),
    )
    tools = [f for f in trajectory.frames if f.kind == "tool"]
    assert [(f.input, f.output) for f in tools] == [
        ({"path": "a"}, "1"),
        ({"path": "b"}, "2"),
        ({"path": "c"}, "3"),
    ]
    assert all(f.error is None and f.cost_usd == 0 for f in tools)


def test_an_interrupted_stream_keeps_what_was_done() -> None:
    caught = fault(INIT, said(use("t1", "Bash", command="sleep 600")))
    assert isinstance(caught, AgentFailure)
    assert caught.code == "no_answer"
    assert str(caught) == "the stream ended without the event 'result' after 2 events"
    model, tool = caught.frames
    assert (model.tokens, model.cost_usd) == (35, None)
    assert tool.error == "the stream does not say how it ended"


def test_a_broken_line_is_garbage_and_keeps_what_was_done() -> None:
    caught = fault(INIT, said(words("a")), b'{"type": "result", "resu')
    assert isinstance(caught, AgentFailure)
    assert caught.code == "garbage"
    assert "line 3 of the stream is broken" in str(caught)
    assert [f.output for f in caught.frames] == ["a"]


@pytest.mark.parametrize(
    "line",
    [b"{" * 100_000, b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}"],
)
def test_values_that_json_does_not_have_are_a_broken_line(line: bytes) -> None:
    assert fault(INIT, line).code == "garbage"


def test_lines_that_are_no_objects_and_events_of_unknown_types_are_passed_over() -> None:
    news = [{"type": "telepathy"}, {"no": "type"}, {"type": ["list"]}, {"type": None}]
    assert read(b"warning: old", INIT, b"[1]", *news, said(words("a")), result()).answer == "Done."
    assert str(fault(INIT, *news)).endswith("after 1 events and 4 of unknown types")


@pytest.mark.parametrize(
    ("closing", "code"),
    [
        (result("error_max_turns"), "max_turns"),
        (result("error_max_budget_usd"), "max_budget"),
        (result("error_max_structured_output_retries", errors=["no JSON"]), "structured_output"),
        (result(stop_reason="refusal"), "refusal"),
        (result(is_error=True, result="Prompt is too long"), "context"),
        (result(result=None), "no_answer"),
    ],
)
def test_what_the_agent_did_not_manage_is_its_failure_with_its_cost(
    closing: dict[str, Any], code: str
) -> None:
    caught = fault(*WORK, closing)
    assert isinstance(caught, AgentFailure)
    assert caught.code == code
    assert sum(f.cost_usd or 0 for f in caught.frames) == 0.25


@pytest.mark.parametrize(
    ("error", "closing", "code"),
    [
        ("", result(is_error=True, api_error_status=429, result="API Error: 429"), "rate_limit"),
        ("", result(is_error=True, result="API Error: 529 Overloaded"), "rate_limit"),
        ("", result(is_error=True, result="Invalid API key · Please run /login"), "auth"),
        ("", result(is_error=True, api_error_status=500, result="API Error"), "provider"),
        ("authentication_failed", result(is_error=True, result="?"), "auth"),
        ("rate_limit", result(is_error=True, result=""), "rate_limit"),
        ("server_error", result(is_error=True, result="?"), "server"),
        ("billing_error", result(is_error=True, result="?"), "auth"),
        ("overloaded", result(is_error=True, result="?"), "rate_limit"),
        ("invalid_request", result(is_error=True, result="?"), "rejected"),
        ("", result("error_during_execution", errors=["aborted"]), "provider"),
        ("", result("error_of_tomorrow"), "provider"),
    ],
)
def test_a_fault_of_the_provider_is_not_the_agents(error: str, closing: dict[str, Any], code: str) -> None:
    last = said(words("API Error"), id_="m9", **({"error": error} if error else {}))
    caught = fault(*WORK, last, closing)
    assert isinstance(caught, ProviderError)
    assert caught.code == code
    assert len(caught.frames) == 6


def test_a_stream_that_ends_in_the_middle_of_a_providers_fault_is_that_fault() -> None:
    caught = fault(*WORK, said(words("API Error"), id_="m9", error="rate_limit"))
    assert (type(caught), caught.code) == (ProviderError, "rate_limit")


@pytest.mark.parametrize("output", [b"", b"Hello there.\n", b'{"answer": "ours"}\n'])
def test_a_program_that_prints_no_event_was_not_set_up(output: bytes) -> None:
    caught = fault(output)
    assert (type(caught), caught.code) == (ProviderError, "spawn")


def test_a_result_alone_is_one_model_call() -> None:
    (frame,) = read(result()).frames
    assert frame == Frame(
        kind="model", name="claude", output="Done.", tokens=90, cost_usd=0.25, latency_ms=700,
        usage=Usage(prompt=60, completion=30, cached=40),
    )  # fmt: skip


def test_the_last_of_several_results_counts() -> None:
    trajectory = read(*WORK, result(total_cost_usd=0.1), result(result="Also done.", total_cost_usd=0.3))
    assert (trajectory.answer, trajectory.cost_usd) == ("Also done.", 0.3)


@pytest.mark.parametrize("number", [-1, 1.5, True, "3", None, 10**13, [1]])
def test_figures_that_cannot_be_are_unknown(number: Any) -> None:
    usage = {"input_tokens": number, "output_tokens": number}
    trajectory = read(
        INIT, said(words("a")), result(usage=usage, total_cost_usd="free", duration_api_ms=number)
    )
    assert trajectory.tokens == 35
    assert trajectory.cost_usd is None


def test_data_nested_deeply_is_kept_as_text() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    tool = read(INIT, said(use("t", "Bash", deep=deep)), result()).frames[1]
    assert tool.input == json.dumps({"deep": deep})


def test_lone_surrogates_are_replaced() -> None:
    caught = fault(INIT, said(words("\ud800"), use("t", "\udc00", key="\ud800")))
    model, tool = caught.frames
    assert (model.output, tool.name, tool.input) == ("?", "?", {"key": "?"})


def test_a_tool_that_the_provider_ran_has_its_result_in_the_turn() -> None:
    ran = {"type": "web_search_tool_result", "tool_use_id": "t1", "content": "it rains"}
    trajectory = read(
        INIT, said({**use("t1", "web_search"), "type": "server_tool_use"}, ran, words("Rain.")), result()
    )
    (frame,) = (frame for frame in trajectory.frames if frame.kind == "tool")
    assert (frame.name, frame.output, frame.error) == ("web_search", "it rains", None)


@pytest.mark.parametrize(
    ("event", "unknown"),
    [
        ({"type": "assistant", "message": "x"}, 1),
        ({"type": "user"}, 1),
        ({"type": "user", "message": ["x"]}, 1),
        ({"type": "user", "message": {}}, 0),
        ({"type": "user", "message": {"content": "x"}}, 0),
        ({"type": "user", "message": {"content": ["x", {"type": "text"}]}}, 0),
        ({"type": "news"}, 1),
        ({}, 1),
        (INIT, 0),
    ],
)
def test_events_of_an_unknown_shape_are_counted(event: dict[str, Any], unknown: int) -> None:
    assert read(event, said(words("Done.")), event, result()) == read(said(words("Done.")), result())
    known = 1 + 2 * (1 - unknown)
    told = f"the stream ended without the event 'result' after {known} events"
    assert str(fault(INIT, event, event)) == told + " and 2 of unknown types" * unknown


def test_blocks_that_are_none_are_passed_over_and_those_behind_them_read() -> None:
    odd: Any = ["x", None, {"type": 1}, {}]
    found = read(
        said(*odd, words("I look."), *odd, use("t1", "Bash", command="ls")),
        {
            "type": "user",
            "message": {"content": [*odd, results(("t1", "a.py", False))["message"]["content"][0]]},
        },
        result(),
    )
    assert [(f.kind, f.name, f.output) for f in found.frames][:2] == [
        ("model", "opus", "I look."),
        ("tool", "Bash", "a.py"),
    ]


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ({}, (60, 30, 40)),
        (None, (60, 30, 40)),
        ({"opus": {"inputTokens": 1, "outputTokens": 2}}, (1, 2, 0)),
        (
            {
                "opus": {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 4},
                "haiku": {"inputTokens": 0, "outputTokens": 0, "cacheCreationInputTokens": 8},
            },
            (13, 2, 4),
        ),
        ({"opus": {"inputTokens": 1, "outputTokens": 2}, "haiku": {"inputTokens": 1}}, (60, 30, 40)),
        ({"opus": {"inputTokens": 1, "outputTokens": 2}, "haiku": 3}, (60, 30, 40)),
    ],
)
def test_the_tokens_of_a_session_are_those_of_all_its_models_or_of_the_conversation(
    models: Any, told: tuple[int, int, int]
) -> None:
    frames = [f for f in read(said(words("Done.")), result(modelUsage=models)).frames if f.usage is not None]
    sums = [sum(getattr(f.usage, name) for f in frames) for name in ("prompt", "completion", "cached")]
    assert tuple(sums) == told
