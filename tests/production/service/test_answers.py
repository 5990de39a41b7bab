"""What the service says and reads, piece by piece."""

import gzip
import zlib

import pytest

from pytest_tfgrpo.production.service import reports
from pytest_tfgrpo.production.service.answers import _varint, otlp_answer, otlp_status
from pytest_tfgrpo.production.service.bodies import RefusedRequest, unpack
from pytest_tfgrpo.production.service.openapi import openapi
from pytest_tfgrpo.production.service.reports import FirstReports
from pytest_tfgrpo.telemetry.traces.otlp.otlp import OtlpForm


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (16384, b"\x80\x80\x01")],
)
def test_numbers_of_protobuf_take_seven_bits_a_byte(number: int, data: bytes) -> None:
    assert _varint(number) == data


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        (" GZip ", gzip.compress(b"text", mtime=0)),
        ("X-Gzip", gzip.compress(b"text", mtime=0)),
        ("Deflate", zlib.compress(b"text")),
        ("Identity", b"text"),
        (" ", b"text"),
    ],
)
def test_an_encoding_may_be_written_in_any_case(encoding: str, body: bytes) -> None:
    assert unpack(body, encoding, 4) == b"text"


def test_a_body_that_is_no_whole_stream_of_its_encoding_says_so() -> None:
    packed = gzip.compress(b"text")
    for body in (packed[:-1], packed + b"more"):
        with pytest.raises(RefusedRequest, match="not one gzip stream: it ends early, or goes on"):
            unpack(body, "gzip", 100)
    with pytest.raises(RefusedRequest, match="the body has more than 3 bytes; send less at once"):
        unpack(packed, "gzip", 3)


def test_the_first_of_equal_reports_is_said_and_that_there_are_more_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "_MOST", 2)
    said: list[str] = []
    first = FirstReports(said.append)
    for text in ("disk full", "disk full", "no bus", "odd", "disk full", "other", "one more"):
        first.say(text)
    assert said == ["disk full", "no bus", "further errors of other kinds are not reported"]


def test_reports_that_differ_by_more_than_numbers_are_all_said() -> None:
    said: list[str] = []
    first = FirstReports(said.append)
    texts = [f"a request to {path} failed: no disk" for path in ("/feedback", "/rewards")]
    for text in (*texts, "row 7 of 12 is bad", "row 8 of 31 is bad"):
        first.say(text)
    assert said == [*texts, "row 7 of 12 is bad"]


def test_whoever_cannot_hear_of_an_error_causes_no_other() -> None:
    def deaf(_: str) -> None:
        raise OSError("no terminal")

    FirstReports(deaf).say("disk full")


def test_a_scrape_is_refused_for_its_token_and_its_host_alone() -> None:
    assert openapi()["paths"]["/metrics"]["get"]["responses"].keys() == {"200", "401", "421", "503"}


@pytest.mark.parametrize(
    ("form", "rejected", "media_type", "body"),
    [
        ("json", 0, "application/json", b"{}"),
        ("json", 2, "application/json", b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "m"}}'),
        ("protobuf", 0, "application/x-protobuf", b""),
        ("protobuf", 2, "application/x-protobuf", b"\x0a\x05\x08\x02\x12\x01m"),
    ],
)
def test_an_export_that_is_taken_in_part_says_how_much_is_not(
    form: OtlpForm, rejected: int, media_type: str, body: bytes
) -> None:
    found = otlp_answer(form, "Spans", rejected, "m")
    assert (found.status, found.media_type, found.body) == (200, media_type, body)


def test_a_refusal_is_a_status_with_a_message_in_the_form_that_was_sent() -> None:
    refused = otlp_status("json", 400, "m")
    assert (refused.status, refused.media_type, refused.body) == (
        400,
        "application/json",
        b'{"message": "m"}',
    )
    refused = otlp_status("protobuf", 413, "m")
    assert (refused.status, refused.media_type, refused.body) == (413, "application/x-protobuf", b"\x12\x01m")
