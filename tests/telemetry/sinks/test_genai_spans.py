"""Records as spans: what a hostile agent reports, attempts cut short, and times."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collector import ReceivedSpan, decoded
from support.sweeps import make_run

from pytest_tfgrpo.core.records import (
    CheckResult,
    Failure,
    Frame,
    Group,
    JudgeResult,
    ModelCall,
    Phase,
    PhaseResult,
    Rollout,
    Run,
    Score,
    Usage,
)
from pytest_tfgrpo.core.trace_ids import child_id
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.sinks.genai_spans import SpanWriter, span_count
from pytest_tfgrpo.telemetry.sinks.otlp import envelope, request
from pytest_tfgrpo.telemetry.sinks.span_content import SpanContent

RUN = "20260101T000000-12345678"
START = "2026-01-01T00:00:01.000Z"
START_NS = 1_767_225_601_000_000_000
AT_NS = START_NS + 10_000_000_000


def rollout(*frames: Frame, **fields: object) -> Rollout:
    values = {
        "rollout_id": f"{RUN}.e1.a.r0", "group_id": f"{RUN}.e1.a", "run_id": RUN, "scenario_id": "a",
        "epoch": 1, "mode": "train", "index": 0, "seed": 1, "temperature": 0.7, "status": "ok",
        "frames": frames, "latency_ms": 500.0, "started_at": START,
    }  # fmt: skip
    return Rollout(**values | fields)  # type: ignore[arg-type]


def group(*members: Rollout) -> Group:
    scores = tuple(
        Score(rollout_id=r.rollout_id, gt_score=1.0, reward=1.0, relative_rank=0.5, advantage=0.0)
        for r in members
    )
    return Group(
        group_id=f"{RUN}.e1.a", epoch=1, mode="train", scenario_id="a", domain="text", rollouts=members,
        scores=scores, informative=False,
    )  # fmt: skip


def phase(status: str, *loose: Rollout, calls: tuple[ModelCall, ...] = ()) -> PhaseResult:
    one = Phase(epoch=1, mode="train", temperature=0.7, rollouts=2, scenarios=("a",), dev=("d",))
    return PhaseResult(
        phase=one,
        groups=(),
        status=status,
        library_hash="h",
        loose=loose,
        calls=calls,  # type: ignore[arg-type]
    )


def spans(record: Group | PhaseResult | Run, *, content: bool = False) -> list[ReceivedSpan]:
    writer = SpanWriter(
        RUN, agent="python:a:b", provider="python", content=SpanContent(on=content, text_max=None)
    )
    made = writer.spans(record, AT_NS)
    assert len(made) == span_count(record)
    return list(decoded(request(envelope({}, "s", "1"), made)))


NUMBERS = st.one_of(st.integers(0, 10**400), st.floats(0, allow_nan=False, allow_infinity=False))
TEXTS = st.text(max_size=40)


@given(
    kind=st.sampled_from(["model", "tool"]),
    name=TEXTS,
    told=st.one_of(TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=3), st.none(), st.floats()),
    latency_ms=st.floats(0, 1e308),
    tokens=st.integers(0, 2**80),
    usage=st.one_of(
        st.none(), st.builds(Usage, prompt=st.integers(0, 2**80), completion=st.integers(0, 2**80))
    ),
    error=st.one_of(st.none(), TEXTS),
    started_at=st.sampled_from([None, START, "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]),
    content=st.booleans(),
)
def test_whatever_an_agent_reports_becomes_a_span(
    kind: str, name: str, told: object, latency_ms: float, tokens: int, usage: Usage | None,
    error: str | None, started_at: str | None, content: bool,
) -> None:  # fmt: skip
    frame = Frame(
        kind=kind, name=name, input=told, output=name, latency_ms=latency_ms, tokens=tokens, usage=usage,
        error=error, finish=name, started_at=started_at, cost_usd=latency_ms,
    )  # type: ignore[arg-type]  # fmt: skip
    call, agent, of_group = spans(group(rollout(frame, latency_ms=latency_ms)), content=content)
    assert call.parent_id == agent.span_id
    assert agent.parent_id == of_group.span_id
    assert START_NS <= call.start_ns <= call.end_ns
    assert call.failed is (error is not None)
    assert call.attributes.get("error.type") == ("_OTHER" if error is not None else None)


def test_calls_without_a_time_follow_one_another() -> None:
    made = spans(
        group(
            rollout(
                Frame(kind="tool", name="a", latency_ms=100),
                Frame(kind="tool", name="b", latency_ms=50, started_at="2026-01-01T00:00:01.300Z"),
                Frame(kind="tool", name="c", latency_ms=20),
                Frame(kind="tool", name="d", latency_ms=20, started_at="2025-01-01T00:00:00.000Z"),
            )
        )
    )
    times = [((s.start_ns - START_NS) / 1e6, (s.end_ns - START_NS) / 1e6) for s in made[:4]]
    assert times == [(0, 100), (300, 350), (350, 370), (370, 390)]


@pytest.mark.parametrize("name", ["python", "command"])
def test_an_agent_that_reports_no_call_has_no_span_for_one(name: str) -> None:
    silent = Frame(kind="model", name=name, output="3", latency_ms=5)
    assert [s.name for s in spans(group(rollout(silent)))] == ["invoke_agent python:a:b", "tfgrpo.group"]
    counted, *_ = spans(group(rollout(replace(silent, tokens=5))))
    assert counted.name == "chat"
    assert "gen_ai.request.model" not in counted.attributes


@pytest.mark.parametrize(
    ("usage", "cost_usd", "known"),
    [
        (None, None, set()),
        (Usage(prompt=0, completion=0), 0.0, {"input_tokens", "output_tokens", "cost_usd"}),
    ],
)
def test_of_a_call_only_what_is_known_is_counted(
    usage: Usage | None, cost_usd: float | None, known: set[str]
) -> None:
    frame = Frame(kind="model", name="m", output="3", usage=usage, cost_usd=cost_usd)
    call, *_ = spans(group(rollout(frame)))
    counts = {key: value for key, value in call.attributes.items() if "tokens" in key or "cost" in key}
    assert {key.rpartition(".")[2] for key in counts} == known
    assert set(counts.values()) <= {0}


@pytest.mark.parametrize("named", [None, "", 7, ["m-1"]])
def test_only_a_text_names_the_model_that_answered(named: Json) -> None:
    frame = Frame(kind="model", name="m", tokens=1, extra={"response_model": named})
    call, *_ = spans(group(rollout(frame)))
    assert "gen_ai.response.model" not in call.attributes
    call, *_ = spans(group(rollout(replace(frame, extra={"response_model": "m-1" * 100}))))
    assert call["gen_ai.response.model"] == ("m-1" * 100)[:200]


def test_why_a_rewarder_gave_a_score_is_content() -> None:
    told = group(rollout())
    (score,) = told.scores
    told = replace(told, scores=(replace(score, extra={"style": 0.5}, evidence={"style": "short"}),))
    for content, why in ((True, "short"), (False, None)):
        (found,) = [span.scores()["style"] for span in spans(told, content=content) if span.scores()]
        assert (found["score.value"], found.get("explanation")) == (0.5, why)


def test_of_a_score_only_the_checks_that_failed_are_the_reason() -> None:
    checks = (
        CheckResult(kind="exact", weight=1.0, credit=1.0, reason="fine"),
        CheckResult(kind="regex", weight=1.0, credit=0.0, reason="no digit"),
    )
    agent, _ = spans(group(rollout(checks=checks)), content=True)
    assert agent.scores()["gt_score"]["explanation"] == "regex: no digit"


@pytest.mark.parametrize(("finish", "told"), [("length", "length"), ("", "stop")])
def test_an_answer_says_why_the_model_stopped(finish: str, told: str) -> None:
    frame = Frame(
        kind="model", name="m", input=["password", {"token": "hunter22-x"}, 7], output="4", finish=finish
    )
    call, *_ = spans(group(rollout(frame)), content=True)
    (message,) = json.loads(call["gen_ai.output.messages"])
    assert (message["role"], message["finish_reason"]) == ("assistant", told)
    (asked,) = json.loads(call["gen_ai.input.messages"])
    kept = json.loads(asked["parts"][0]["content"])
    assert (kept[0], kept[2]) == ("password", 7)
    assert "hunter22" not in str(kept)


def test_an_attempt_that_was_cut_short_is_sent_with_its_epoch_and_has_an_id_of_its_own() -> None:
    cut, done = rollout(status="cancelled"), rollout(index=1)
    epoch, attempt = spans(phase("cancelled", cut, done))
    assert attempt.name.startswith("invoke_agent")
    assert attempt.parent_id == epoch.span_id
    assert attempt.failed
    whole, _ = spans(group(cut))
    assert attempt.span_id != whole.span_id
    assert epoch["tfgrpo.status"] == epoch["error.type"] == "cancelled"
    assert epoch.start_ns == START_NS


def test_what_no_group_will_have_is_sent_when_the_epoch_is_complete() -> None:
    assert len(spans(phase("complete", rollout(), rollout(index=1)))) == 3


@pytest.mark.parametrize(
    ("purpose", "subject", "parent"),
    [("judge", "a", "group"), ("judge", "d", "epoch"), ("judge", "", "epoch"), ("learn", "a", "epoch")],
)
def test_a_vote_belongs_to_its_group_where_that_is_known(purpose: str, subject: str, parent: str) -> None:
    call = ModelCall(
        key="k", purpose=purpose, epoch=1, subject=subject, model="openai:big@local", fingerprint="f",
        prompt="p", latency_ms=200.0, started_at=START, error="timeout: no answer",
    )  # fmt: skip
    epoch, made = spans(phase("complete", calls=(call,)))
    of_group = spans(group(rollout()))[-1]
    assert made.parent_id == {"group": of_group, "epoch": epoch}[parent].span_id
    assert (made.name, made["gen_ai.request.model"], made["error.type"]) == ("chat big", "big", "timeout")
    assert made.end_ns - made.start_ns == 200_000_000


def test_a_record_of_an_older_journal_has_no_time() -> None:
    agent, of_group = spans(group(rollout(started_at=None)))
    assert (agent.start_ns, agent.end_ns) == (AT_NS - 500_000_000, AT_NS)
    assert of_group.start_ns == agent.start_ns


@pytest.mark.parametrize("status", ["complete", "incomplete"])
def test_a_run_is_one_span_with_how_it_ended(status: str) -> None:
    run = make_run(final={"a": [1, 0], "b": [1]}, status=status, reason="the budget is spent")
    (found,) = spans(run, content=True)
    assert (found.name, found["tfgrpo.status"], found["tfgrpo.scenarios"]) == ("tfgrpo.run", status, 2)
    assert (found["tfgrpo.run_id"], found["tfgrpo.task_id"]) == ("run1", "demo")
    assert (found["latency_ms"], found.end_ns - found.start_ns) == (30_000.0, 30_000_000_000)
    assert found.failed is (status != "complete")
    assert found.attributes.get("error.type") == (None if status == "complete" else status)
    (backwards,) = spans(replace(run, finished_at="2020-01-31T12:00:00.000Z"))
    assert backwards.end_ns == backwards.start_ns == found.start_ns


@pytest.mark.parametrize("failure", [None, Failure(code="network", message="away")])
def test_a_rollout_without_a_score_says_why(failure: Failure | None) -> None:
    told = group(rollout(status="error", failure=failure))
    told = replace(told, scores=(replace(told.scores[0], gt_score=None, relative_rank=None),))
    agent, _ = spans(told)
    (found,) = [agent.scores()["gt_score"]]
    code = "_OTHER" if failure is None else "network"
    assert found.get("score.value") is None
    assert (agent["error.type"], agent.failed) == (code, True)


OF_GROUP = {"tfgrpo_epoch": 1, "group_size": 1, "tfgrpo.mode": "train", "tfgrpo.scenario_id": "a"}
OF_ROLLOUT = OF_GROUP | {"gen_ai.conversation.id": f"{RUN}.e1.a.r0"}
TOOL = Frame(
    kind="tool", name="t" * 300, cost_usd=0.25, tokens=3, latency_ms=10.0, input={"a": 1}, output="x",
    error="broke",
)  # fmt: skip


def test_a_group_its_rollout_and_their_calls_are_spans_with_all_that_is_known() -> None:
    usage = Usage(prompt=5, completion=4, reasoning=2, cached=1)
    model = Frame(kind="model", name="m", cost_usd=0.5, tokens=9, usage=usage, finish="stop")
    failure = Failure(code="crash", message="it broke")
    ended = rollout(TOOL, model, answer="3", tokens=12, cost_usd=0.75, status="failed", failure=failure)
    tool, chat, agent, of_group = spans(group(ended), content=True)
    assert tool.attributes == OF_ROLLOUT | {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t" * 200,
        "tfgrpo.tokens": 3,
        "tool_cost_usd": 0.25,
        "latency_ms": 10.0,
        "gen_ai.tool.call.arguments": '{"a": 1}',
        "gen_ai.tool.call.result": "x",
        "error.type": "_OTHER",
    }
    assert (tool.name, tool.message) == (f"execute_tool {'t' * 200}", "broke")
    assert chat.attributes == OF_ROLLOUT | {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "python",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 1,
        "gen_ai.response.finish_reasons": ["stop"],
        "tfgrpo.tokens": 9,
        "tfgrpo.cost_usd": 0.5,
        "latency_ms": 0.0,
    }
    assert json.loads(agent.attributes.pop("gen_ai.output.messages"))[0]["parts"][0]["content"] == "3"
    assert agent.attributes == OF_ROLLOUT | {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "python",
        "gen_ai.agent.name": "python:a:b",
        "gen_ai.request.temperature": 0.7,
        "tfgrpo.index": 0,
        "tfgrpo.status": "failed",
        "tfgrpo.tokens": 12,
        "tfgrpo.advantage": 0.0,
        "tfgrpo.cost_usd": 0.75,
        "tool_cost_usd": 0.25,
        "latency_ms": 500.0,
        "error.type": "crash",
    }
    assert agent.message == "it broke"
    assert of_group.attributes == OF_GROUP | {
        "tfgrpo.domain": "text",
        "tfgrpo.gt_score": 1.0,
        "tfgrpo.informative": False,
        "tool_cost_usd": 0.25,
        "latency_ms": 10_000.0,
    }


def test_an_epoch_and_a_call_beside_its_rollouts_are_spans_with_all_that_is_known() -> None:
    call = ModelCall(
        key="k", purpose="learn", epoch=1, subject="", model="openai:big@local", fingerprint="f",
        prompt="p", latency_ms=200.0, started_at="2026-01-01T00:00:00.000Z", error="timeout: no answer",
        usage=Usage(prompt=5, completion=4),
    )  # fmt: skip
    cut = rollout(TOOL, status="cancelled")
    result = replace(phase("incomplete", cut, calls=(call,)), reason="no budget")
    dev = group(rollout(TOOL, rollout_id=f"{RUN}.e1.d.r0", scenario_id="d"))
    epoch, chat, *_ = spans(replace(result, dev=(dev,)), content=True)
    assert epoch.attributes == {
        "tfgrpo_epoch": 1,
        "group_size": 2,
        "tfgrpo.mode": "train",
        "tfgrpo.phase": "epoch1",
        "tfgrpo.status": "incomplete",
        "tfgrpo.groups": 0,
        "tfgrpo.library": "h",
        "tfgrpo.lessons_changed": 0,
        "gen_ai.request.temperature": 0.7,
        "tool_cost_usd": 0.5,
        "latency_ms": 11_000.0,
        "error.type": "incomplete",
    }
    assert (epoch.message, epoch.start_ns) == ("no budget", START_NS - 1_000_000_000)
    assert json.loads(chat.attributes.pop("gen_ai.input.messages"))[0]["parts"][0]["content"] == "p"
    assert chat.attributes == {
        "tfgrpo_epoch": 1,
        "group_size": 2,
        "tfgrpo.purpose": "learn",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "big",
        "gen_ai.conversation.id": f"{RUN}.k",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 4,
        "tfgrpo.tokens": 9,
        "latency_ms": 200.0,
        "error.type": "timeout",
    }
    assert chat.message == "no answer"
    swept = replace(result, phase=replace(result.phase, mode="eval"))
    assert "tfgrpo.lessons_changed" not in spans(swept)[0].attributes
    (named,) = spans(replace(result, calls=(replace(call, model="scripted"),), loose=()))[1:]
    assert named["gen_ai.request.model"] == "scripted"


def test_two_attempts_that_were_cut_short_are_two_spans() -> None:
    again = rollout(status="cancelled", started_at="2026-01-01T00:00:02.000Z")
    epoch, *attempts = spans(phase("cancelled", again, rollout(status="cancelled")))
    assert len({one.span_id for one in attempts}) == 2
    assert epoch.start_ns == START_NS


def test_a_group_begins_with_the_first_of_its_rollouts() -> None:
    later = rollout(rollout_id=f"{RUN}.e1.a.r1", index=1, started_at="2026-01-01T00:00:02.000Z")
    assert spans(group(rollout(), later))[-1].start_ns == START_NS


def test_a_call_has_the_id_of_its_place_and_a_time_within_its_rollout() -> None:
    frames = [
        Frame(kind="model", name="python", output="3"),
        Frame(kind="user", name="user"),
        Frame(kind="tool", name="early", latency_ms=10, started_at="2026-01-01T00:00:00.999Z"),
        Frame(kind="tool", name="late", latency_ms=10, started_at="2026-01-01T00:00:01.501Z"),
    ]
    early, late, agent, _ = spans(group(rollout(*frames)))
    own = bytes.fromhex(agent.span_id)
    assert [one.span_id for one in (early, late)] == [child_id(own, place).hex() for place in (2, 3)]
    assert [one.start_ns - START_NS for one in (early, late)] == [0, 501_000_000]


@pytest.mark.parametrize("known", [{"tokens": 5}, {"cost_usd": 0.0}])
def test_a_call_without_a_name_is_one_where_tokens_or_a_cost_are_known(known: dict[str, float]) -> None:
    frame = Frame(kind="model", name="python", output="3", **known)  # type: ignore[arg-type]
    assert len(spans(group(rollout(frame)))) == 3


def test_each_score_has_its_reason_and_a_part_is_no_pass() -> None:
    told = group(rollout(opinion=JudgeResult(score=0.0, reason="rude")))
    (score,) = told.scores
    score = replace(score, gt_score=0.75, extra={"judge": 0.0, "style": None}, evidence={"judge": "no"})
    agent, _ = spans(replace(told, scores=(score,)), content=True)
    scores = agent.scores()
    assert (scores["gt_score"]["score.label"], scores["judge"]["explanation"]) == ("fail", "rude")
    assert scores["judge"]["score.value"] == 0.0
    assert "style" not in scores


def test_a_secret_in_the_name_of_an_agent_is_not_sent() -> None:
    writer = SpanWriter(
        RUN, agent="command:a --key sk-abcdefghijklmnop0123", provider="x",
        content=SpanContent(on=False, text_max=None),
    )  # fmt: skip
    found = decoded(request(envelope({}, "s", "1"), writer.spans(group(rollout()), AT_NS)))
    assert not any("sk-abc" in str(one) for one in found)
