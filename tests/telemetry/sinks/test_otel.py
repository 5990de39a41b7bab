"""Variables of OpenTelemetry that are numbers."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from opentelemetry import trace
from support.recordings import make_call
from support.sweeps import SETTINGS, make_run

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.telemetry.sinks.otel import Telemetry, _attribute, open_telemetry


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1000000000", "²", "ten"])
def test_a_limit_is_a_whole_number_above_0(text: str) -> None:
    with pytest.raises(
        SettingError, match=f"OTEL_BSP_MAX_QUEUE_SIZE must be a whole number > 0, not '{text}'"
    ):
        Telemetry(SETTINGS, {"OTEL_BSP_MAX_QUEUE_SIZE": text})  # type: ignore[arg-type]


def test_the_largest_and_the_smallest_limit_are_taken() -> None:
    for text in ("1", "999999999", " 7 ", ""):
        with pytest.raises(SettingError, match="OTEL_BSP_SCHEDULE_DELAY"):  # what is read later is wrong
            Telemetry(SETTINGS, {"OTEL_BSP_MAX_QUEUE_SIZE": text, "OTEL_BSP_SCHEDULE_DELAY": "x"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environ", "on"),
    [
        ({}, True),
        ({"OTEL_TRACES_EXPORTER": " OTLP "}, True),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_SDK_DISABLED": " True"}, False),
        ({"OTEL_SDK_DISABLED": "1"}, True),
    ],
)
def test_the_variables_say_whether_spans_are_sent(environ: dict[str, str], on: bool) -> None:
    assert (open_telemetry(SETTINGS, environ) is not None) is on
    with pytest.raises(SettingError, match="OTEL_TRACES_EXPORTER='console' is not supported; set it to otlp"):
        open_telemetry(SETTINGS, {"OTEL_TRACES_EXPORTER": "Console"})


class Lost:
    """A sender that could not send some spans."""

    def __init__(self, **lost: int) -> None:
        self.lost = lost

    def close(self) -> dict[str, int]:
        return self.lost


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ({}, ""),
        ({"refused": 3}, "telemetry: 3 spans lost: refused"),
        ({"refused": 3, "late": 4}, "telemetry: 7 spans lost: 3 refused, 4 late"),
    ],
)
def test_what_was_lost_is_told_with_its_reasons(lost: dict[str, int], told: str) -> None:
    telemetry = Telemetry(SETTINGS, {})
    telemetry._sender = Lost(**lost)  # type: ignore[assignment]
    assert telemetry.close() == told


def test_what_an_earlier_process_has_sent_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(final={"a": [1, 0]})
    result = run.phases[-1]
    (group,) = result.groups
    epoch = f"{run.run_id}.e{result.phase.epoch}"
    for sent, expected in (
        ((), [group, result, run]),
        ((group.group_id,), [result, run]),
        ((epoch,), [group, run]),
        ((group.group_id, epoch), [run]),
    ):
        telemetry, put = Telemetry(SETTINGS, {}), list[object]()
        monkeypatch.setattr(telemetry, "_put", put.append)
        for record in (group, result, run):
            telemetry(record)
        assert put == [], "it has not begun"
        telemetry.begin(SimpleNamespace(run_id=run.run_id), sent=sent)  # type: ignore[arg-type]
        for record in (group, result, run, "something else"):
            telemetry(record)
        assert put == expected


def test_a_call_that_an_earlier_process_has_sent_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch in which a process was killed is sent by the next one, with its own calls."""
    run = make_run(final={"a": [1, 0]})
    paid, fresh = make_call(key="e1.a.judge0"), make_call(key="e1.a.judge1")
    telemetry, put = Telemetry(SETTINGS, {}), list[object]()
    monkeypatch.setattr(telemetry, "_put", put.append)
    telemetry.begin(SimpleNamespace(run_id=run.run_id), sent={paid.key})  # type: ignore[arg-type]
    result = replace(run.phases[-1], calls=(paid, fresh))
    telemetry(result)
    assert put == [replace(result, calls=(fresh,))]


def begun(environ: dict[str, str]) -> Telemetry:
    telemetry = Telemetry(SETTINGS, environ)
    telemetry.begin(SimpleNamespace(run_id="run1"), sent=())  # type: ignore[arg-type]
    return telemetry


def test_spans_that_an_agent_makes_are_children_of_its_rollout_s() -> None:
    telemetry, outside = begun({}), trace.get_current_span()
    with telemetry.around("r7", Prompt(system="", user="?")):
        current = trace.get_current_span()
        found = current.get_span_context()
    assert trace.get_current_span() is outside
    assert repr(current) == "RolloutSpan('r7')"
    _, trace_hex, span_hex, flags = telemetry.traceparent("r7").split("-")
    assert (f"{found.trace_id:032x}", f"{found.span_id:016x}") == (trace_hex, span_hex)
    assert (found.is_remote, found.trace_flags.sampled, flags) == (True, True, "01")
    assert telemetry.traceparent("r8") != telemetry.traceparent("r7")


@pytest.mark.parametrize(("sampler", "kept"), [("always_off", False), ("always_on", True)])
def test_a_sampler_of_the_environment_keeps_all_of_a_run_or_nothing(
    sampler: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    telemetry, put = begun({"OTEL_TRACES_SAMPLER": sampler}), list[object]()
    monkeypatch.setattr(telemetry, "_put", put.append)
    telemetry(make_run(final={"a": [1, 0]}))
    assert (len(put), telemetry.traceparent("r7")[-3:]) == ((1, "-01") if kept else (0, "-00"))
    assert telemetry.context_of("r7").trace_flags.sampled is kept


def test_what_describes_a_resource_is_a_text_a_number_or_several_texts() -> None:
    given = ("x", True, 7, 0.5, ("a", 1), ["b"], None)
    assert [_attribute(one) for one in given] == ["x", True, 7, 0.5, ("a", "1"), ("b",), "None"]


@pytest.mark.parametrize(
    ("environ", "length"),
    [
        ({}, 50),
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "7"}, 7),
        ({"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "5"}, 5),
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "7", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "9"}, 9),
    ],
)
def test_the_limit_of_spans_goes_before_that_of_all_attributes(environ: dict[str, str], length: int) -> None:
    telemetry = Telemetry({**SETTINGS, "otel_content": True}, environ)  # type: ignore[arg-type]
    assert telemetry._content.text("x" * 50) == "x" * length
