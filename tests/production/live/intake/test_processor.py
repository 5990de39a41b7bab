"""Agents of other frameworks that run in the process that serves, by their spans."""

import asyncio
import contextvars
import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Status, StatusCode, Tracer, get_current_span
from support.abandoned import abandon, repeat_among_collections
from support.otlp_spans import exported, write_lines
from support.tools import tfgrpo

from pytest_tfgrpo.cli.live.open_live import open_live
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.wire.stamp import combined_stamp
from pytest_tfgrpo.production.live.records import LiveRollout
from pytest_tfgrpo.production.live.session import Live
from pytest_tfgrpo.production.live.store.store import open_live_store

CONFIG = """
[points.config]
default = "bare"
[points.config.arms.bare]
[points.config.arms.warm]
temperature = 0.7
"""


class Kept(SpanProcessor):
    """Keeps what ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "live.toml").write_text(CONFIG)
    return tmp_path / "live.toml"


@pytest.fixture
def live(config: Path) -> Iterator[Live]:
    with open_live(config, enabled=True) as live:
        yield live


def tracer_of(*processors: SpanProcessor) -> Tracer:
    provider = TracerProvider(shutdown_on_exit=False)
    for processor in processors:
        provider.add_span_processor(processor)
    return provider.get_tracer("toy")


def serve(tracer: Tracer, name: str = "toy", *, turns: int = 2) -> None:
    """Run an agent as frameworks trace it: some set attributes only after a span has started."""
    with tracer.start_as_current_span("invoke_agent") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name})
        agent.set_attribute("gen_ai.conversation.id", f"talk of {name}")
        for _ in range(turns):
            with tracer.start_as_current_span("cycle"):
                chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
                tracer.start_span("chat", attributes=chat).end()
                called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
                with tracer.start_as_current_span("execute_tool", attributes=called) as tool:
                    tool.set_status(Status(StatusCode.ERROR, "nothing found"))


def stored(config: Path, live: Live, *, swallowed: int = 0) -> list[LiveRollout]:
    assert live.flush()
    assert live.status()["swallowed"] == ({"span": swallowed} if swallowed else {})
    store = open_live_store(config.parent / "live.db", "default")
    try:
        return list(store.rollouts())
    finally:
        store.close()


def test_an_outermost_agent_is_a_run_on_each_thread(config: Path, live: Live) -> None:
    tracer = tracer_of(live.span_processor())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: serve(tracer, f"agent-{n}", turns=n % 3), range(12)))
    found = {run.run: run for run in stored(config, live)}
    assert sorted(found) == sorted(f"talk of agent-{n}" for n in range(12))
    for n in range(12):
        run = found[f"talk of agent-{n}"]
        assert run.trace is not None
        assert (run.category, run.trace.turns, run.trace.tool_errors) == (f"agent-{n}", n % 3, n % 3)


def test_an_agent_within_a_run_adds_its_turns_to_it(config: Path, live: Live) -> None:
    tracer = tracer_of(live.span_processor())
    with live.run("ticket-1", category="refund") as run:
        arm = run.choose("config")
        serve(tracer)
        run.end("done", score=0.5)
    (found,) = stored(config, live)
    assert found.trace is not None
    assert (found.run, found.category, found.trace.score) == ("ticket-1", "refund", 0.5)
    assert (found.trace.turns, found.trace.tool_errors) == (2, 2)
    assert [choice.arm for choice in found.choices] == [arm.name]
    serve(tracer)
    assert [run.run for run in stored(config, live)] == ["ticket-1", "talk of toy"]


def test_runs_of_concurrent_tasks_keep_apart(config: Path, live: Live) -> None:
    tracer = tracer_of(live.span_processor())

    async def answer(n: int) -> None:
        with live.run(f"ticket-{n}") as run:
            await asyncio.sleep(0)
            named = {"gen_ai.operation.name": "invoke_agent"}
            with tracer.start_as_current_span("invoke_agent", attributes=named):
                for _ in range(n):
                    await asyncio.sleep(0)
                    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
                    tracer.start_span("chat", attributes=chat).end()
            run.end("done")

    async def serve_all() -> None:
        await asyncio.gather(*map(answer, range(5)))

    asyncio.run(serve_all())
    turns = {run.run: run.trace.turns for run in stored(config, live) if run.trace is not None}
    assert turns == {f"ticket-{n}": n for n in range(5)}


def test_agents_that_garbage_collection_ends_are_each_a_run(config: Path, live: Live) -> None:
    tracer = tracer_of(live.span_processor())
    named = {"gen_ai.operation.name": "invoke_agent"}

    def step() -> None:
        abandon(lambda: tracer.start_span("stream", attributes=named).end)
        tracer.start_span("agent", attributes=named).end()

    repeat_among_collections(step, times=60, places=30)
    assert len({run.run for run in stored(config, live)}) == 120


def test_a_run_that_garbage_collection_ends_within_another_leaves_that_one_current(
    config: Path, live: Live
) -> None:
    tracer = tracer_of(live.span_processor())

    def begin() -> Callable[[], None]:
        run = live.run("broken off").__enter__()
        return lambda: run.__exit__(GeneratorExit, None, None)

    def later() -> None:
        abandon(begin)

    contextvars.copy_context().run(later)
    with live.run("ticket-1"):
        gc.collect()
        serve(tracer)
    turns = {run.run: run.trace.turns for run in stored(config, live) if run.trace is not None}
    assert turns["ticket-1"] == 2


@pytest.mark.parametrize("within", ["around", "inside"], ids=["around the agent", "inside the agent"])
def test_a_choice_marks_the_current_span_from_which_another_store_learns_it(
    within: str, config: Path, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept()
    tracer = tracer_of(kept)
    with live.run("ticket-1", category="refund") as run, tracer.start_as_current_span("request"):
        if within == "around":
            run.choose("config")
            run.retry()
            run.choose("config")
            serve(tracer)
            serve(tracer)
        else:
            named = {"gen_ai.operation.name": "invoke_agent"}
            with tracer.start_as_current_span("invoke_agent", attributes=named):
                run.choose("config")
                run.retry()
                run.choose("config")
                serve(tracer)
                serve(tracer)
    (own,) = stored(config, live)
    (request,) = (span for span in kept.spans if any(e.name == "tfgrpo.live.choice" for e in span.events))
    assert request.attributes is not None
    assert request.attributes["tfgrpo.live.arm.config"] == own.choices[0].arm
    file = write_lines(tmp_path / "spans.jsonl", *map(exported, kept.spans))

    assert "0 stored, 1 known before" in tfgrpo("live", "ingest", str(file), "--config", str(config))
    monkeypatch.setenv("TFGRPO_LIVE_RL_STORE", "other.db")
    assert "1 stored, 0 known before" in tfgrpo("live", "ingest", str(file), "--config", str(config))
    store = open_live_store(tmp_path / "other.db", "default")
    (other,) = store.rollouts()
    store.close()
    assert (other.run, other.category, other.control) == (own.run, own.category, own.control)
    assert other.choices == own.choices
    assert other.attempt == own.attempt == 2
    assert other.trace is not None
    assert (other.trace.turns, other.trace.tool_errors) == (4, 4)


def test_a_choice_notes_the_version_of_the_policy_for_the_feedback_loop(config: Path, live: Live) -> None:
    other = (
        CONFIG.replace("config", "model").replace("arms.bare]", "arms.bare]\nsize = 7").replace("0.7", "0.9")
    )
    (config.parent / "live.toml").write_text(CONFIG + other)
    kept = Kept()
    tracer = tracer_of(kept)
    with open_live(config, enabled=True) as both:
        with both.run("one") as run, tracer.start_as_current_span("request"):
            run.choose("config")
            serve(tracer)
        with both.run("two") as run, tracer.start_as_current_span("request"):
            run.choose("config")
            run.choose("model")
            run.choose("model")
            serve(tracer)
        with both.run("again") as run, tracer.start_as_current_span("request"):
            run.choose("config")
            run.retry()
            run.choose("model")
            serve(tracer)
        runs = {run.run: run for run in stored(config, both)}
    stamps = {
        key: {choice.arms[choice.arm] for choice in run.choices} for key, run in runs.items() if run.choices
    }
    noted = [
        str((span.attributes or {})["tfgrpo.policy_version"]) for span in kept.spans if span.name == "request"
    ]
    assert noted == [
        *stamps["one"],
        *(stamps["two"] if len(stamps["two"]) == 1 else [combined_stamp(stamps["two"])]),
        *stamps["again"],
    ]


def test_a_mark_that_was_tampered_with_is_refused(
    config: Path, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept()
    tracer = tracer_of(kept)
    named = {"gen_ai.operation.name": "invoke_agent"}
    with live.run("ticket-1") as run, tracer.start_as_current_span("agent", attributes=named):
        run.choose("config")
        get_current_span().add_event("tfgrpo.live.choice", {"tfgrpo.live.owner": run.owner})
    live.flush()
    file = write_lines(tmp_path / "spans.jsonl", *map(exported, kept.spans))
    monkeypatch.setenv("TFGRPO_LIVE_RL_STORE", "other.db")
    out = tfgrpo("live", "ingest", str(file), "--config", str(config))
    assert "runs       0 stored" in out
    assert "refused    1 bad_mark: spans.jsonl:1" in out


def test_off_it_reports_nothing_and_marks_nothing(config: Path) -> None:
    kept = Kept()
    with open_live(config) as live:
        processor = live.span_processor()
        assert type(processor) is SpanProcessor
        tracer = tracer_of(processor, kept)
        with live.run("ticket-1") as run, tracer.start_as_current_span("request"):
            run.choose("config")
            serve(tracer)
    assert not (config.parent / "live.db").exists()
    assert [span for span in kept.spans for event in span.events] == []


def test_without_the_extra_it_says_what_to_install(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingError, match=r"pip install 'pytest-tfgrpo\[otel\]'"):
        live.span_processor()


def test_a_run_of_too_many_spans_is_counted_and_not_reported(
    config: Path, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.telemetry.traces.span_processor.MOST_SPANS", 20)
    tracer = tracer_of(live.span_processor())
    serve(tracer, "short", turns=6)
    serve(tracer, "long", turns=7)
    assert [run.run for run in stored(config, live, swallowed=1)] == ["talk of short"]
    assert "more than 20 spans" in str(live.status()["last_swallowed"])


def test_an_evaluation_is_the_score_within_a_run_and_without(config: Path, live: Live) -> None:
    tracer = tracer_of(live.span_processor())

    def serve_evaluated(score: float) -> None:
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "talk"}
        with tracer.start_as_current_span("invoke_agent", attributes=named) as agent:
            agent.add_event("gen_ai.evaluation.result", {"gen_ai.evaluation.score.value": score})

    serve_evaluated(0.25)
    with live.run("ticket-1"):
        serve_evaluated(0.75)
    assert [(run.run, run.trace and run.trace.score) for run in stored(config, live)] == [
        ("talk", 0.25),
        ("ticket-1", 0.75),
    ]


def test_spans_that_never_end_are_forgotten(
    config: Path, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.telemetry.traces.span_processor.MOST_OPEN", 10)
    tracer = tracer_of(live.span_processor())
    named = {"gen_ai.operation.name": "invoke_agent"}
    lost = tracer.start_span("invoke_agent", attributes=named)
    for _ in range(10):
        tracer.start_span("never ends")
    lost.end()
    serve(tracer)
    assert [run.run for run in stored(config, live)] == ["talk of toy"]


def test_an_agent_that_outlives_the_run_around_it_is_a_run_of_its_own(config: Path, live: Live) -> None:
    tracer = tracer_of(live.span_processor())
    with live.run("ticket-1") as run:
        serve(tracer, turns=1)
        run.end("done")
        serve(tracer)
    assert [(run.run, run.trace and run.trace.turns) for run in stored(config, live)] == [
        ("ticket-1", 1),
        ("talk of toy", 2),
    ]
