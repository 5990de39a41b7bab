"""Agents in this process that report no frames, and emit spans."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from pytest_tfgrpo.actors.python import PythonActor
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.telemetry.traces import rollout_spans
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts

MakeCall = Callable[..., ActorCall]
Agent = Callable[..., Any]


class Bench:
    """Asks agents that trace with a provider of their own."""

    def __init__(self, make_call: MakeCall) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.tracer = self.provider.get_tracer("toy")
        self.counts = SpanCounts()
        self._make_call = make_call

    @contextmanager
    def model(self, **said: Any) -> Iterator[trace.Span]:
        given = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **said}
        with self.tracer.start_as_current_span("chat m-1", attributes=given) as span:
            yield span

    @contextmanager
    def tool(self, name: str, **said: Any) -> Iterator[trace.Span]:
        given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **said}
        with self.tracer.start_as_current_span(f"execute_tool {name}", attributes=given) as span:
            yield span

    def ask(self, *agents: Agent, **changes: Any) -> list[AttemptResult]:
        """Ask agents, all at once."""

        async def ask() -> list[AttemptResult]:
            calls = [self._make_call(span_counts=self.counts, **changes) for _ in agents]
            actors = [PythonActor("python:a:b", agent, {}) for agent in agents]
            return await asyncio.gather(*map(attempt, actors, calls))

        return asyncio.run(ask())


@pytest.fixture
def bench(make_call: MakeCall, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(make_call)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made.provider)
    return made


def names(result: AttemptResult) -> list[str]:
    return [frame.name for frame in result.frames]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_an_agent_that_returns_its_answer_alone_has_its_spans_as_frames(bench: Bench, kind: str) -> None:
    def solve(context: Any) -> str:
        with bench.model(**{"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2}):
            pass
        said = {"gen_ai.tool.call.arguments": '{"b": [1]}', "gen_ai.tool.call.result": "3"}
        with bench.tool("count", **said):
            pass
        return "3"

    async def solve_async(context: Any) -> str:
        return solve(context)

    (result,) = bench.ask(solve if kind == "plain" else solve_async)
    model, tool = result.frames
    assert (model.kind, model.name, model.tokens, model.cost_usd) == ("model", "m-1", 9, None)
    assert (tool.kind, tool.name, tool.input, tool.output) == ("tool", "count", {"b": [1]}, "3")
    assert tool.started_at is not None
    assert tool.started_at >= result.started_at[:19]
    assert (result.answer, result.extra, bench.counts.warnings) == ("3", {}, [])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("3", [("research", 0), ("m-1", 1), ("search", 2), ("m-1", 1), ("count", 0)]),
        ({"answer": "3", "tokens": 5}, [("research", 0), ("search", 1), ("count", 0), ("python", 0)]),
    ],
)
def test_calls_within_a_tool_are_inside_of_it(bench: Bench, answer: Any, found: list[Any]) -> None:
    def solve(context: Any) -> Any:
        with bench.tool("research"), bench.tracer.start_as_current_span("invoke_agent"):
            with bench.model(**{"gen_ai.usage.input_tokens": 1}):
                pass
            with bench.tool("search"), bench.model(**{"gen_ai.usage.input_tokens": 2}):
                pass
        with bench.tool("count"):
            pass
        return answer

    (result,) = bench.ask(lambda context: solve(context))
    assert [(frame.name, frame.inside) for frame in result.frames] == found


def test_frames_that_the_agent_returns_stand_alone(bench: Bench) -> None:
    def solve(context: Any) -> dict[str, Any]:
        with bench.tool("seen"):
            return {"answer": "3", "frames": [{"kind": "tool", "name": "told"}]}

    (result,) = bench.ask(solve)
    assert names(result) == ["told"]


def test_what_the_agent_says_of_its_model_stands_beside_the_tools_of_its_spans(bench: Bench) -> None:
    def solve(context: Any) -> dict[str, Any]:
        with bench.model(**{"gen_ai.usage.input_tokens": 7}), bench.tool("count"):
            return {"answer": "3", "model": "m-2", "tokens": 5, "cost_usd": 0.5}

    (result,) = bench.ask(lambda context: solve(context))
    assert names(result) == ["count", "m-2"]
    assert [frame.tokens for frame in result.frames] == [0, 5]


def test_rollouts_at_once_have_their_own_spans_also_in_threads_that_keep_the_context(bench: Bench) -> None:
    barrier = threading.Barrier(3)

    async def one(context: Any) -> str:
        await asyncio.to_thread(work, "one")
        return "3"

    def two(context: Any) -> str:
        work("two")
        return "3"

    def three(context: Any) -> str:
        parent = trace.set_span_in_context(bench.tracer.start_span("agent"))

        def late() -> None:  # it has no context but that of its parent
            given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "by parent"}
            bench.tracer.start_span("tool", parent, attributes=given).end()

        run_in_thread(late)
        work("three")
        return "3"

    def work(name: str) -> None:
        barrier.wait(100)
        with bench.tool(name):
            barrier.wait(100)

    results = bench.ask(one, two, three)
    assert list(map(names, results)) == [["one"], ["two"], ["by parent", "three"]]
    assert bench.counts.warnings == []


def run_in_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(100)


def test_calls_of_a_thread_without_context_are_counted_once_and_belong_to_nobody(bench: Bench) -> None:
    def lost() -> None:
        with bench.tool("lost"), bench.tracer.start_as_current_span("not a call"):
            pass

    def solve(context: Any) -> str:
        run_in_thread(lost)
        return "3"

    async def idle(context: Any) -> str:
        await asyncio.sleep(0.2)
        return "3"

    results = bench.ask(solve, idle, idle)
    assert list(map(names, results)) == [["python"]] * 3
    (warning,) = bench.counts.warnings
    assert "became no frames: 1 lost (in no rollout's context" in warning
    lost()
    assert bench.counts.warnings == [warning], "between rollouts an application may do as it likes"


def test_calls_that_end_after_the_answer_are_counted_and_not_waited_for(bench: Bench) -> None:
    go = threading.Event()
    threads = []

    def solve(context: Any) -> str:
        open_call = bench.tracer.start_span("t", attributes={"gen_ai.operation.name": "execute_tool"})
        bench.tracer.start_span("not a call")

        def later() -> None:
            go.wait(100)
            with owner.around(), bench.tool("after the answer"):
                open_call.end()

        (owner,) = rollout_spans._ACTIVE
        threads.append(threading.Thread(target=later))
        threads[0].start()
        with bench.tool("in time"):
            return "3"

    (result,) = bench.ask(solve)
    assert names(result) == ["in time"]
    assert result.extra == {"unused_spans": {"late": 1}}
    go.set()
    threads[0].join(100)
    (warning,) = bench.counts.warnings
    assert "2 late" in warning


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_an_agent_that_runs_on_a_thread_of_somebody_else_has_its_spans(
    bench: Bench, make_call: MakeCall, kind: str
) -> None:
    def solve(context: Any) -> str:
        with bench.tool("count"):
            return "3"

    async def solve_async(context: Any) -> str:
        await asyncio.sleep(0)
        return solve(context)

    async def elsewhere(agent: Callable[[], Any]) -> Any:
        """Call as pytest's thread does, for agents that fixtures make."""
        found: list[Any] = []

        def call() -> None:
            value = agent()
            found.append(asyncio.run(value) if asyncio.iscoroutine(value) else value)

        run_in_thread(call)
        return found[0]

    agent = solve if kind == "plain" else solve_async
    actor = PythonActor("fixture:a", agent, {}, run=elsewhere)
    result = asyncio.run(attempt(actor, make_call(span_counts=bench.counts)))
    assert (names(result), bench.counts.warnings) == (["count"], [])


@pytest.mark.parametrize("fault", [ValueError("x"), AgentFailure("x"), ProviderError("x"), SystemExit(3)])
def test_an_agent_that_fails_has_the_calls_until_then(bench: Bench, fault: BaseException) -> None:
    def solve(context: Any) -> str:
        with bench.tool("count"):
            pass
        raise fault

    async def solve_async(context: Any) -> str:
        return solve(context)

    for result in bench.ask(solve, solve_async):
        assert result.status == ("error" if isinstance(fault, ProviderError) else "failed")
        assert names(result) == ["count"]


def test_an_agent_that_takes_too_long_has_the_calls_until_then(bench: Bench) -> None:
    async def solve(context: Any) -> str:
        with bench.model():
            pass
        await asyncio.Event().wait()
        return "3"

    (result,) = bench.ask(solve, timeout_s=0.2)
    assert result.failure is not None
    assert (result.status, result.failure.code, names(result)) == ("failed", "timeout", ["m-1"])


def test_a_broken_answer_keeps_the_calls_that_led_to_it(bench: Bench) -> None:
    def solve(context: Any) -> Any:
        with bench.tool("count"):
            return 42

    (result,) = bench.ask(solve)
    assert (result.status, names(result)) == ("failed", ["count"])


def test_what_a_span_holds_ends_no_rollout(bench: Bench) -> None:
    hostile = {
        "gen_ai.tool.call.arguments": "[" * 5000,
        "gen_ai.tool.call.result": "\ud800",
        "gen_ai.usage.cost": -3.0,
    }

    def solve(context: Any) -> str:
        with bench.tool("odd", **hostile):
            pass
        with bench.tool("numbers", **{"gen_ai.tool.call.arguments": '{"a": NaN}'}):
            pass
        with bench.model(**{"gen_ai.input.messages": '[{"parts": 3}]'}):
            pass
        with bench.model(**{"gen_ai.usage.input_tokens": 2**52}):
            pass
        for _ in range(20):
            with bench.tool("huge", **{"gen_ai.tool.call.result": "x" * 1000}):
                pass
        return "3"

    (result,) = bench.ask(solve)
    assert result.status == "ok"
    assert names(result)[:3] == ["odd", "numbers", "m-1"]
    assert result.frames[2].tokens == 0
    (unused,) = result.extra.values()
    assert isinstance(unused, dict)
    assert (unused["malformed"], unused["too_large"] > 10) == (1, True)
    assert sum(len(frame.output) for frame in result.frames) <= 8000


def test_a_model_call_that_two_instrumentations_saw_is_one_frame(bench: Bench) -> None:
    def solve(context: Any) -> str:
        with bench.model(), bench.tracer.start_as_current_span("http"), bench.model():
            return "3"

    (result,) = bench.ask(solve)
    assert (names(result), result.extra) == (["m-1"], {})


def test_a_provider_gets_one_processor_and_keeps_what_it_had(bench: Bench) -> None:
    before = rollout_spans._PROVIDERS.copy()
    for _ in range(3):
        bench.ask(lambda context: "3")
    added = rollout_spans._PROVIDERS.keys() - before.keys()
    assert added <= {id(bench.provider)}
    assert len(bench.provider._active_span_processor._span_processors) == 1


def test_without_a_tracer_provider_none_is_made(make_call: MakeCall) -> None:
    trace_before = trace.get_tracer_provider()
    result = asyncio.run(attempt(PythonActor("python:a:b", lambda context: "3", {}), make_call()))
    assert names(result) == ["python"]
    assert trace.get_tracer_provider() is trace_before


@pytest.mark.parametrize("ending", ["answer", "crash"])
def test_spans_of_a_call_that_installs_the_provider_are_counted_and_those_of_the_next_are_frames(
    make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    installed: list[TracerProvider] = []
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: (installed or [trace.ProxyTracerProvider()])[0])
    bench = Bench(make_call)

    def solve(context: Any) -> str:
        first = not installed
        installed[:] = [bench.provider]
        with bench.tool("count"):
            if first and ending == "crash":
                raise ValueError("the first call")
        return "3"

    (first,) = bench.ask(solve)
    (second,) = bench.ask(solve)
    assert "count" not in names(first)
    assert names(second) == ["count"]
    assert bench.counts.counted == {"no_provider": 1}
    (warning,) = bench.counts.warnings
    assert "1 no_provider (calls that installed their tracer provider themselves" in warning
    if ending == "answer":
        assert first.extra["unused_spans"] == {"no_provider": 1}
    assert "unused_spans" not in second.extra
