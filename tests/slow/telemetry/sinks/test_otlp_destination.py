"""The ``OTEL_EXPORTER_OTLP_*`` variables, and one request."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.collector import Collector
from support.sinks.otlp_destination import send

from pytest_tfgrpo.telemetry.sinks.otlp_destination import SendError


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


def test_a_receiver_with_tls_must_have_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    with Collector(tls=(tmp_path / "cert.pem", tmp_path / "key.pem")) as collector:
        assert send(collector, CERTIFICATE=str(tmp_path / "cert.pem")) == 0
        with pytest.raises(SendError, match=r"CERTIFICATE_VERIFY_FAILED|SSL"):
            send(collector)
