"""What the application answers, in process."""

import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from support.services import FakeIntake, Local

from pytest_tfgrpo.core.errors import BusError, SettingError
from pytest_tfgrpo.core.events import EventFault, EventRefusal
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.door.intake import IntakeResult
from pytest_tfgrpo.production.service import app
from pytest_tfgrpo.production.service.answers import HttpAnswer
from pytest_tfgrpo.production.service.app import require_packages
from pytest_tfgrpo.production.service.limits import ServiceLimits
from pytest_tfgrpo.production.sinks.prometheus.exposition import TEXT_TYPE
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, TraceSpan

TOKEN = "correct-horse-battery"
SPAN = {"traceId": "a" * 32, "spanId": "b" * 16, "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
PROTOBUF = "application/x-protobuf"


def export(*spans: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def failing(error: Exception) -> FakeIntake:
    def fail() -> None:
        raise error

    return FakeIntake(before=fail)


def test_one_payload_or_an_array_is_taken_under_the_subject_of_its_path() -> None:
    local = Local()
    assert local.post("/feedback", b'{"a": 1}').value == {"accepted": 1, "opted_out": 0, "refused": []}
    assert local.post("/rewards", b"[1, 2]", "Application/JSON; charset=utf-8").value["accepted"] == 2
    assert local.post("/trajectories", b"[]").status == 200
    subjects = ["agent.rl.feedback.v1", "agent.rl.reward.v1", "agent.rl.reward.v1"]
    assert local.intake.kept == list(zip(subjects, [{"a": 1}, 1, 2], strict=True))


def test_what_is_refused_is_said_and_is_an_error_only_where_it_came_alone() -> None:
    local = Local()
    some, alone = local.post("/feedback", b'["bad", {}]'), local.post("/feedback", b'"bad"')
    refused = [{"index": 0, "code": "schema", "pointer": "/data", "message": "it is bad"}]
    assert (some.status, some.value) == (200, {"accepted": 1, "opted_out": 0, "refused": refused})
    assert (alone.status, alone.value) == (422, {"accepted": 0, "opted_out": 0, "refused": refused})
    assert local.post("/feedback", b'["bad"]').status == 200


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5000])
def test_a_body_that_is_no_json_is_answered_with_400_and_goes_through_the_intake(body: bytes) -> None:
    answer = Local().post("/feedback", body)
    assert answer.status == 400
    assert answer.value["refused"][0]["code"] == "schema"


def test_log_records_that_are_events_of_generative_ai_are_taken_with_their_spans() -> None:
    local = Local()
    record = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "timeUnixNano": "5",
        "eventName": "gen_ai.evaluation.result",
        "attributes": [{"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.5}}],
    }
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, record | {"traceId": "zz"}]}]}]}
    answer = local.post("/v1/logs", json.dumps(body).encode())
    assert answer.value["partialSuccess"]["rejectedLogRecords"] == "1"
    assert [one.events[0].name for one in local.intake.found[:1]] == ["gen_ai.evaluation.result"]


def test_an_export_request_too_deep_to_be_read_is_refused() -> None:
    answer = Local().post("/v1/traces", b'{"resourceSpans":' + b"[" * 100_000)
    assert (answer.status, answer.value) == (
        400,
        {"message": "the body is no export request of OTLP: not_json"},
    )


def test_of_spans_without_end_that_are_refused_some_are_kept_and_all_are_counted() -> None:
    local = Local()
    answer = local.post("/v1/traces", export(*[{}] * 1500, SPAN))
    assert answer.value["partialSuccess"]["rejectedSpans"] == "1500"
    assert len(local.intake.found) == 1001


def test_spans_are_taken_as_json_and_answered_as_otlp_has_it() -> None:
    local = Local()
    whole = local.post("/v1/traces", export(SPAN))
    part = local.post("/v1/traces", export(SPAN, SPAN | {"spanId": "0"}))
    assert (whole.status, whole.value) == (200, {})
    assert part.value == {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "bad_id"}}
    assert len(local.intake.found) == 3


def test_a_refusal_in_protobuf_is_a_status_of_google_rpc() -> None:
    answer = Local().post("/v1/traces", b"\xff\xff", PROTOBUF)
    assert (answer.status, answer.headers["content-type"]) == (400, PROTOBUF)
    assert "no export request of OTLP" in Status.FromString(answer.body).message


def test_a_partial_success_in_protobuf_is_read_by_others() -> None:
    from pytest_tfgrpo.production.service.answers import otlp_answer

    for rejected in (0, 1, 127, 128, 300, 2**21):
        answer = otlp_answer("protobuf", "Spans", rejected, "warum? ü" * 40)
        partial = ExportTraceServiceResponse.FromString(answer.body).partial_success
        assert (partial.rejected_spans, partial.error_message) == (
            (rejected, "warum? ü" * 40) if rejected else (0, "")
        )


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)]
)
def test_bodies_come_packed(encoding: str, pack: Any) -> None:
    assert Local().post("/feedback", pack(b"{}"), content_encoding=encoding).status == 200


@pytest.mark.parametrize(("limit", "taken"), [(1001, True), (1000, True), (999, False)])
def test_a_packed_body_may_have_as_many_bytes_as_the_limit(limit: int, taken: bool) -> None:
    packed = gzip.compress(b"[]" + bytes(998).replace(b"\0", b" "))
    answer = Local(limits=ServiceLimits(body_bytes=limit)).post("/feedback", packed, content_encoding="gzip")
    assert (answer.status == 200) is taken


BOMB = 50_000_000


@pytest.mark.parametrize(
    ("pack", "encoding", "status"),
    [
        pytest.param(lambda: gzip.compress(bytes(BOMB), 1), "gzip", 413, id="bomb"),
        pytest.param(lambda: zlib.compress(bytes(BOMB), 1), "deflate", 413, id="deflated bomb"),
        pytest.param(lambda: gzip.compress(gzip.compress(bytes(BOMB), 1)), "gzip", 400, id="bomb within"),
        pytest.param(lambda: gzip.compress(b"{}")[:-1], "gzip", 400, id="cut short"),
        pytest.param(lambda: gzip.compress(b"{}") * 2, "gzip", 400, id="two members"),
        pytest.param(lambda: b"no gzip", "gzip", 400, id="not packed"),
        pytest.param(lambda: b"{}", "br", 415, id="unknown"),
        pytest.param(lambda: b"{}", "gzip, gzip", 415, id="twice"),
    ],
)
def test_what_cannot_be_unpacked_within_the_limit_is_refused(
    pack: Callable[[], bytes], encoding: str, status: int
) -> None:
    local = Local(limits=ServiceLimits(body_bytes=1_000_000))
    assert local.post("/feedback", pack(), content_encoding=encoding).status == status


def test_a_body_is_read_no_further_than_a_few_times_its_limit() -> None:
    taken = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield bytes(1000)

    local = Local(limits=ServiceLimits(body_bytes=10_000, drained_bytes=40_000))
    answer = local.post("/feedback", endless())
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert len(taken) < 60
    taken.clear()
    assert local.post("/feedback", endless(), content_length="10001").status == 413
    assert len(taken) < 50
    taken.clear()
    for more in ({"content_length": "40001"}, {"content_length": "10001", "expect": "100-continue"}):
        assert local.post("/feedback", endless(), **more).status == 413
    assert not taken
    assert local.post("/feedback", b"{}").status == 200
    whole = b"{}" + b" " * 9_998
    assert local.post("/feedback", whole, content_length="10000").status == 200
    assert local.post("/feedback", whole + b" ").status == 413


def test_bodies_that_are_too_much_together_are_to_come_again() -> None:
    local = Local(limits=ServiceLimits(held_bytes=1000))
    answer = local.post("/feedback", b"{}" + b" " * 2000)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert local.post("/feedback", b"{}").status == 200


def test_an_array_has_so_many_payloads_at_most() -> None:
    local = Local(limits=ServiceLimits(events=2))
    assert local.post("/feedback", b"[1,2,3]").status == 413
    assert local.intake.kept == []
    assert local.post("/feedback", b"[1,2]").status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
@pytest.mark.parametrize("path", ["/feedback", "/v1/traces"])
def test_another_content_type_is_refused(path: str, kind: str) -> None:
    assert Local().post(path, b"{}", kind).status == 415


@pytest.mark.parametrize("kind", ["application/x-protobuf", "application/protobuf"])
def test_protobuf_has_two_names(kind: str) -> None:
    assert Local().post("/v1/traces", b"", kind).status == 200


def test_an_answer_names_a_few_reasons_each_once_and_how_much_was_opted_out() -> None:
    class Choosy(FakeIntake):
        reasons = ("a", "a", "b", "c", "d", "e", "f")

        def spans(self, found: Iterable[TraceSpan | RefusedSpan]) -> IntakeResult:
            refused = {
                index: EventRefusal(fault=EventFault.SCHEMA, pointer="", message=one)
                for index, one in enumerate(self.reasons)
            }
            return IntakeResult(accepted=0, opted_out=0, refused=refused)

        def payloads(self, subject: str, payloads: Sequence[Json | bytes]) -> IntakeResult:
            return IntakeResult(accepted=1, opted_out=2, refused={})

    local = Local(Choosy())
    partial = local.post("/v1/traces", export(SPAN)).value["partialSuccess"]
    assert partial == {"rejectedSpans": "7", "errorMessage": "a; b; c; d; e"}
    assert local.post("/feedback", b"[1,2,3]").value == {"accepted": 1, "opted_out": 2, "refused": []}


def test_all_missing_packages_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    require_packages()
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match="starlette and uvicorn missing: pip install"):
        require_packages()


@pytest.mark.parametrize("given", ["", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer", "Bearer \xe9"])
def test_who_does_not_know_the_token_sends_nothing(given: str) -> None:
    local = Local(token=TOKEN)
    answer = local.post("/feedback", b"{}", authorization=given)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert local.intake.kept == []


def test_who_knows_the_token_sends_under_any_host_name() -> None:
    local = Local(token=TOKEN)
    assert local.post("/feedback", b"{}", authorization=f"bearer {TOKEN}", host="loop.example").status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((name, 200) for name in ("localhost", "127.0.0.1:4318", "[::1]:4318", "[::1]", "localhost:1")),
        *(
            (name, 421)
            for name in ("evil.example", "evil.example:4318", "localhost.evil.example", "10.0.0.1")
        ),
    ],
)
def test_without_a_token_a_page_of_another_site_reaches_nothing(host: str, status: int) -> None:
    assert Local().post("/feedback", b"{}", host=host).status == status


def test_a_bus_that_fails_asks_for_the_request_again_and_is_reported() -> None:
    local = Local(failing(BusError("the disk at /secret is full")))
    for path, message in (("/feedback", "error"), ("/v1/traces", "message")):
        answer = local.post(path, export(SPAN))
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.value[message] == "the events cannot be stored now; send this again later"
    assert local.reports[0] == "the bus takes no events: BusError: the disk at /secret is full"
    assert local.get("/healthz").value == {"status": "degraded", "parts": {"intake": "failing"}}
    local.intake.before = lambda: None
    local.post("/feedback", b"{}")
    assert local.get("/healthz").value == {"status": "ok", "parts": {"intake": "ok"}}


def test_a_bus_that_does_not_answer_in_time_asks_for_the_request_again() -> None:
    going = threading.Event()
    local = Local(FakeIntake(before=going.wait), limits=ServiceLimits(answer_s=0.05))
    try:
        assert local.post("/feedback", b"{}").status == 503
        assert local.get("/healthz").value["parts"] == {"intake": "failing"}
    finally:
        going.set()


def test_what_nobody_thought_of_is_reported_and_answered_without_its_words() -> None:
    local = Local(failing(RuntimeError("a secret")))
    answer = local.post("/feedback", b"{}")
    assert (answer.status, "secret" in str(answer.body)) == (500, False)
    assert local.reports == ["a request to /feedback failed: RuntimeError: a secret"]


def test_a_scrape_takes_the_token_and_no_other_site_reaches_it() -> None:
    local = Local(token=TOKEN, metrics=lambda: HttpAnswer(200, b"x 1\n", TEXT_TYPE))
    answer = local.get("/metrics", authorization=f"Bearer {TOKEN}")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"x 1\n", TEXT_TYPE)
    refused = local.get("/metrics")
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert Local().get("/metrics", host="evil.example").status == 421


def test_a_scrape_hides_no_failure_of_the_intake() -> None:
    local = Local(failing(BusError("the bus is away")))
    assert local.post("/feedback", b"{}").status == 503
    assert local.get("/metrics").status == 200
    assert local.get("/healthz").value["parts"]["intake"] == "failing"


def test_health_names_the_roles_that_fail() -> None:
    answer = Local(token=TOKEN, roles={"assembler": "failing"}).get("/healthz")
    assert answer.value == {"status": "degraded", "parts": {"intake": "ok", "assembler": "failing"}}
    assert answer.status == 200


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/feedback", 405), ("POST", "/x", 404)])
def test_other_paths_and_methods_are_refused_in_json(method: str, path: str, status: int) -> None:
    answer = Local().send(method, path, [b""])
    assert (answer.status, list(answer.value)) == (status, ["error"])
