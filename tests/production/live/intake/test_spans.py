"""Spans of other frameworks as live runs."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import ROOT
from support.live.spans import ingest, rollouts
from support.live_events import RULES
from support.otlp_spans import agent, evaluation, line, span, write_lines
from support.tools import tfgrpo

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.intake.spans import SpanIngest, _checked
from pytest_tfgrpo.production.live.records import GateState, LiveEvent
from pytest_tfgrpo.production.live.store.store import open_live_store

FRAMEWORKS = ("pydantic-ai", "strands-latest", "strands")
RECORDED = [ROOT / "tests" / "telemetry" / "traces" / "recorded" / f"{name}.jsonl" for name in FRAMEWORKS]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.toml").write_text("[settings]\n")
    return tmp_path


def test_recorded_spans_of_each_framework_become_equal_runs(folder: Path) -> None:
    assert "runs       6 stored, 0 known before" in ingest(*RECORDED)
    found = rollouts(folder)
    good = [run for run in found if run.reply]
    bad = [run for run in found if not run.reply]
    for runs, expected in ((good, (3, 1, True, "succeeded")), (bad, (1, 0, False, "failed"))):
        traces = [(run.trace.turns, run.trace.tool_errors, run.trace.completed, run.status) for run in runs]  # type: ignore[union-attr]
        assert traces == [expected] * 3
    for run in good:
        assert (run.category, run.prompt, run.reply) == (
            "toy",
            "What is the weather in Paris?",
            "It is sunny in Paris.",
        )
        assert run.reward is not None


def test_ingesting_again_and_overlapping_files_adds_nothing(folder: Path) -> None:
    ingest(*RECORDED[:2])
    before = rollouts(folder)
    out = ingest(*RECORDED[:2])
    assert "runs       0 stored, 4 known before" in out
    assert rollouts(folder) == before
    assert "runs       2 stored, 4 known before" in ingest(*RECORDED)
    assert rollouts(folder)[:4] == before


def test_an_evaluation_is_the_outcome_once(folder: Path) -> None:
    file = write_lines(folder / "a.jsonl", span(2, "chat"), agent(events=(evaluation(0.75),)))
    assert "1 stored, 0 known before; 1 new scores" in ingest(file)
    assert "0 stored, 1 known before; 0 new scores" in ingest(file)
    assert [run.trace and run.trace.score for run in rollouts(folder)] == [0.75]


def test_an_evaluation_that_comes_later_finds_its_run(folder: Path) -> None:
    ingest(write_lines(folder / "a.jsonl", span(2, "chat"), agent()))
    later = write_lines(
        folder / "b.jsonl", span(7, events=(evaluation(0.5),)), span(8, parent=66, events=(evaluation(0.5),))
    )
    assert ingest(later).splitlines()[1:] == [
        "runs       0 stored, 0 known before; 1 new scores",
        "updates    0",
        "refused    1 no_run: b.jsonl:2",
    ]
    again = ingest(later)
    assert "0 new scores" in again
    assert "by the store" not in again
    assert [run.trace and run.trace.score for run in rollouts(folder)] == [0.5]


def test_scores_from_0_to_1_are_outcomes(folder: Path) -> None:
    traces = {f"{n + 1:032x}": score for n, score in enumerate((0.0, 1.0))}
    file = write_lines(
        folder / "a.jsonl",
        *(
            line(span(2, "chat", trace=t), agent(trace=t, events=(evaluation(score),)))
            for t, score in traces.items()
        ),
    )
    assert "2 new scores" in ingest(file)
    assert [run.trace and run.trace.score for run in rollouts(folder)] == [0.0, 1.0]


def test_an_inner_agent_is_a_call_of_the_outermost(folder: Path) -> None:
    inner = [agent(4, parent=3, attributes={"gen_ai.agent.name": "helper"}), span(5, "chat", parent=4)]
    outer = [agent(2, parent=1), span(3, "execute_tool", attributes={"gen_ai.tool.name": "ask"}, parent=2)]
    ingest(write_lines(folder / "a.jsonl", *inner, *outer, span(1, parent=None), span(6, "chat", parent=2)))
    (run,) = rollouts(folder)
    assert run.trace is not None
    assert (run.category, run.trace.turns, run.trace.tool_errors) == ("toy", 1, 0)


def mended(**fields: Any) -> dict[str, Any]:
    return {**span(3, "chat"), **fields}


HOSTILE: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "not_json"),
    "NaN in JSON": (line(span(3, "chat")).replace('"gen_ai.operation.name"', "NaN"), "not_json"),
    "lists within lists": ("[" * 100_000, "not_json"),
    "no object": ("[1]", "malformed"),
    "spans that are none": ('{"resourceSpans": [{"scopeSpans": 3}]}', "malformed"),
    "no trace id": (mended(traceId=None), "bad_id"),
    "a span id of zeros": (mended(spanId="0" * 16), "bad_id"),
    "a short parent": (mended(parentSpanId="12"), "bad_id"),
    "an id in base64": (mended(spanId="AAAAAAAAAAE="), "bad_id"),
    "a number as name": (mended(name=3), "malformed"),
    "no time": (mended(startTimeUnixNano=None), "malformed"),
    "a time of many digits": (mended(endTimeUnixNano="9" * 5000), "malformed"),
    "attributes that are no list": (mended(attributes={"a": 1}), "malformed"),
    "a text that says it is a number": (
        mended(attributes=[{"key": "a", "value": {"intValue": "x"}}]),
        "malformed",
    ),
    "messages that are none": (
        span(3, "chat", attributes={"gen_ai.input.messages": '[{"role": "user"}]'}),
        "malformed",
    ),
    "ten megabytes": (span(3, "chat", attributes={"gen_ai.input.messages": "x" * 10**7}), "too_large"),
    "NUL": (span(3, "execute_tool", attributes={"gen_ai.tool.name": "a\0b"}), "bad_text"),
    "half a pair": (span(3, "execute_tool", attributes={"gen_ai.tool.name": "\ud800"}), "bad_text"),
    "a loop": (span(3, "chat", parent=3), "loop"),
    "an orphan": (span(3, "chat", parent=77), "no_run"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_hostile_is_refused_with_its_line_and_other_runs_go_on(case: str, folder: Path) -> None:
    text, reason = HOSTILE[case]
    good = span(1, "invoke_agent", trace="cd" * 16, parent=None)
    file = write_lines(folder / "a.jsonl", good, text, span(2, "chat", trace="cd" * 16))
    out = ingest(file)
    assert "runs       1 stored" in out
    assert f"refused    1 {reason}: a.jsonl:2\n" in out
    assert [run.trace and run.trace.turns for run in rollouts(folder)] == [1]


@pytest.mark.parametrize("torn", [mended(name=3), mended(spanId="?")], ids=["of the run", "of its trace"])
def test_a_run_that_lacks_a_span_is_not_used(torn: dict[str, Any], folder: Path) -> None:
    out = ingest(write_lines(folder / "a.jsonl", agent(), span(2, "chat"), torn))
    assert "runs       0 stored" in out
    assert "1 incomplete: a.jsonl:1" in out
    assert rollouts(folder) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"doubleValue": "NaN"}, "outcome_not_a_number"),
        ({"doubleValue": "-Infinity"}, "outcome_not_a_number"),
        ({"stringValue": "0.5"}, "outcome_not_a_number"),
        ({"boolValue": True}, "outcome_not_a_number"),
        (1.5, "outcome_out_of_range"),
    ],
)
def test_an_outcome_that_is_no_score_is_refused_and_the_run_stays(
    value: Any, reason: str, folder: Path
) -> None:
    out = ingest(write_lines(folder / "a.jsonl", span(2, "chat"), agent(events=(evaluation(value),))))
    assert "runs       1 stored, 0 known before; 0 new scores" in out
    assert f"refused    1 {reason}: a.jsonl:2" in out


def test_a_file_that_is_missing_and_a_gate_that_holds_are_errors(folder: Path) -> None:
    assert "there is no file b.jsonl" in tfgrpo("live", "ingest", "b.jsonl", code=1)
    store = open_live_store(folder / "live.db", "default")
    store.change_gate(lambda _: GateState(state="hold", reason="failures"), now=1.0)
    store.close()
    file = write_lines(folder / "a.jsonl", agent())
    assert "the gate holds by failures" in tfgrpo("live", "ingest", str(file), code=1)


def test_without_texts_lengths_alone_are_stored(folder: Path) -> None:
    (folder / "live.toml").write_text('[settings]\ntext = "none"\n')
    ingest(RECORDED[0])
    good, bad = sorted(rollouts(folder), key=lambda run: run.status, reverse=True)
    assert good.trace is not None
    assert (good.prompt, good.reply, bad.reason) == (None, None, "error")
    assert (good.trace.prompt_chars, good.trace.reply_chars) == (29, 21)
    for text in (b"Atlantis", b"sunny", b"the model is down"):
        assert text not in b"".join(path.read_bytes() for path in folder.glob("live.db*"))


def test_messages_that_a_limit_cut_short_count_as_none(folder: Path) -> None:
    cut = span(2, "chat", attributes={"gen_ai.input.messages": '[{"role": "user", "par'})
    assert "runs       1 stored" in ingest(write_lines(folder / "a.jsonl", cut, agent()))
    (run,) = rollouts(folder)
    assert run.trace is not None
    assert (run.trace.turns, run.trace.prompt_chars) == (1, 0)


def test_updates_that_are_due_are_run(folder: Path) -> None:
    traces = [f"{n + 1:032x}" for n in range(17)]
    spans = [one for t in traces for one in (span(2, "chat", trace=t), agent(trace=t))]
    assert "updates    1\n" in ingest(write_lines(folder / "a.jsonl", line(*spans)))


def test_a_line_beyond_the_limit_is_refused_unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tfgrpo.telemetry.traces.otlp.otlp_lines.LINE_BYTES", 2000)
    file = write_lines(folder / "a.jsonl", "x" * 2000, "[" + " " * 9000, "", span(2, "chat"), agent())
    out = ingest(file)
    assert "refused    2 too_large: a.jsonl:1, a.jsonl:2\n" in out
    assert "runs       1 stored" in out


@pytest.mark.parametrize(
    ("refused", "raises"), [({"held": 1}, True), ({"reward_twice": 1}, False), ({}, False)]
)
def test_a_gate_that_these_runs_hold_is_no_error(refused: dict[str, int], raises: bool) -> None:
    report = SimpleNamespace(gate=GateState(state="hold", reason="max_blocked"), refused=refused)
    store: Any = SimpleNamespace(write=lambda *_, **__: report)
    found = SpanIngest(store, RULES, settings=None)  # type: ignore[arg-type]
    score = LiveEvent("outcome", "a", "o", 0, -1, 1.0, {"score": 1.0})
    with pytest.raises(StoreError, match="holds by max_blocked") if raises else nullcontext():
        found._write([], [score, score])
    assert found._scored == (0 if raises else 2 - sum(refused.values()))


def test_only_choices_are_checked_before_they_are_stored() -> None:
    turn, choice = (LiveEvent(kind, "a", "o", 1, 0, 1.0, {"odd": 1}) for kind in ("turn", "choice"))
    assert _checked([turn]) == [turn]
    with pytest.raises(ValueError, match="missing key 'point'"):
        _checked([turn, choice])
