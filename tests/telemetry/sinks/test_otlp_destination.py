"""The ``OTEL_EXPORTER_OTLP_*`` variables, and one request."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.collector import Collector, Conduct
from support.sinks.otlp_destination import read, send

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.telemetry.sinks.otlp_destination import SendError


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "http://localhost:4318/v1/traces"),
        ({"ENDPOINT": "http://c:4318"}, "http://c:4318/v1/traces"),
        ({"ENDPOINT": "http://c/otlp/"}, "http://c/otlp/v1/traces"),
        ({"ENDPOINT": ""}, "http://localhost:4318/v1/traces"),
        ({"TRACES_ENDPOINT": "http://c/mine"}, "http://c/mine"),
        ({"TRACES_ENDPOINT": "http://c"}, "http://c/"),
        ({"TRACES_ENDPOINT": "https://c:1/a?b=c", "ENDPOINT": "http://d"}, "https://c:1/a?b=c"),
    ],
)
def test_the_endpoint_of_traces_is_taken_as_it_is_and_the_common_one_gets_a_path(
    variables: dict[str, str], url: str
) -> None:
    assert read(**variables).url == url


def test_variables_of_traces_beat_the_common_ones() -> None:
    found = read(
        HEADERS="a=1", TRACES_HEADERS="api-key=x%20y, b = 2 ,", TIMEOUT="3", TRACES_TIMEOUT="0.5",
        COMPRESSION="none", TRACES_COMPRESSION="GZIP", PROTOCOL="grpc", TRACES_PROTOCOL="http/protobuf",
    )  # fmt: skip
    assert found.headers == {"api-key": "x y", "b": "2"}
    assert (found.timeout_s, found.compression, found.tls) == (0.5, "gzip", None)
    assert read().timeout_s == 10.0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ENDPOINT", "localhost:4318", "is not an address; write for example http://localhost:4318"),
        ("ENDPOINT", "ftp://c", "is not an address"),
        ("TRACES_ENDPOINT", "http://", "is not an address"),
        ("TRACES_ENDPOINT", "http://c:99999/", "is not an address"),
        ("PROTOCOL", "grpc", "is not supported; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"),
        ("TRACES_PROTOCOL", "http/json", "is not supported"),
        ("COMPRESSION", "zstd", "must be one of none, gzip, deflate, not 'zstd'"),
        ("TIMEOUT", "soon", "must be a number of seconds > 0, not 'soon'"),
        ("TIMEOUT", "0", "must be a number of seconds > 0"),
        ("TIMEOUT", "nan", "must be a number of seconds > 0"),
        ("HEADERS", "api-key", "write headers as name=value,name=value; 'api-key' is not one"),
        ("HEADERS", "a b=1", "'a b' is not one"),
        ("HEADERS", "é=1", "'é' is not one"),
        ("HEADERS", "=1", "'' is not one"),
        ("HEADERS", "-_=1", "'-_' is not one"),
        ("TIMEOUT", "1e6", "must be a number of seconds > 0, not '1e6'"),
        ("TIMEOUT", "-1", "must be a number of seconds > 0, not '-1'"),
        ("TRACES_ENDPOINT", "http://c:0/", "is not an address"),
        ("HEADERS", "a=1%0d%0aHost: x", "the value of 'a' holds a control character"),
    ],
)
def test_a_variable_that_cannot_be_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingError) as error:
        read(**{name: value})
    assert f"OTEL_EXPORTER_OTLP_{name}" in str(error.value)
    assert message in str(error.value)


def test_a_secret_header_is_not_in_the_message() -> None:
    with pytest.raises(SettingError) as error:
        read(HEADERS="authorization=Bearer s3cret-s3cret%0a")
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("name", ["CERTIFICATE", "CLIENT_CERTIFICATE"])
def test_a_certificate_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=f"OTEL_EXPORTER_OTLP_{name} cannot be loaded"):
        read(ENDPOINT="https://c", **{name: str(tmp_path / "none.pem")})
    assert read(ENDPOINT="http://c", **{name: "none.pem"}).tls is None


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.mark.parametrize("compression", ["none", "gzip", "deflate"])
def test_a_request_has_path_headers_and_compression(collector: Collector, compression: str) -> None:
    assert send(collector, b"", HEADERS="api-key=k", COMPRESSION=compression) == 0
    assert collector.paths == ["/v1/traces"]
    (headers,) = collector.headers
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["api-key"] == "k"
    assert headers.get("content-encoding", "none") == compression
    assert collector.bodies == [b""]


def test_a_request_may_have_a_query_and_any_answer_of_success(collector: Collector) -> None:
    collector.conduct = Conduct(status=202)
    assert send(collector, b"", TRACES_ENDPOINT=f"{collector.url}/own?key=1") == 0
    assert collector.paths == ["/own?key=1"]


def test_after_an_answer_that_is_too_long_to_read_the_next_request_is_sent(collector: Collector) -> None:
    collector.conduct = Conduct(body=b"x" * 70_000)
    found = read(ENDPOINT=collector.url, TIMEOUT="5")
    connection = found.connect(5)
    try:
        assert [found.send(connection, b"") for _ in range(2)] == [0, 0]
    finally:
        connection.close()


def test_a_header_of_the_user_takes_the_place_of_the_usual_one(collector: Collector) -> None:
    assert send(collector, b"", HEADERS="User-Agent=mine") == 0
    assert collector.headers[0]["user-agent"] == "mine"


@pytest.mark.parametrize("rejected", [1, 127, 128, 70000])
def test_spans_that_the_receiver_rejects_are_counted(collector: Collector, rejected: int) -> None:
    collector.conduct = Conduct(rejected=rejected)
    assert send(collector) == rejected


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\x0a", b"\x0a\x00", b"\x0a\x02\x08", b"\x0a\x09\x08" + b"\xff" * 9]
)
def test_an_odd_answer_rejects_nothing(collector: Collector, body: bytes) -> None:
    collector.conduct = Conduct(body=body)
    assert send(collector) == 0


@pytest.mark.parametrize(
    ("conduct", "message", "retry"),
    [
        (Conduct(status=500), "HTTP 500", False),
        (Conduct(status=404), "HTTP 404", False),
        (Conduct(status=307), "HTTP 307", False),
        (Conduct(status=503), "HTTP 503", True),
        (Conduct(status=429), "HTTP 429", True),
        (
            Conduct(body=b"<html>", content_type="text/html"),
            "the answer is text/html: not an OTLP receiver",
            False,
        ),
        (Conduct(raw=b"\x00\xff garbage\r\n\r\n"), "the answer is not HTTP (BadStatusLine)", True),
        (Conduct(raw=b""), "the answer is not HTTP (RemoteDisconnected)", True),
    ],
)
def test_a_request_fails_for_a_reason(
    collector: Collector, conduct: Conduct, message: str, retry: bool
) -> None:
    collector.conduct = conduct
    with pytest.raises(SendError) as error:
        send(collector)
    assert (str(error.value), error.value.retry) == (message, retry)


def test_nobody_listening_is_a_refused_connection() -> None:
    with Collector() as gone:
        pass
    with pytest.raises(SendError, match=r"^connection refused$"):
        send(gone)
