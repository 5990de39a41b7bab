"""Where spans are sent: what the ``OTEL_EXPORTER_OTLP_*`` variables say, and one request over HTTP."""

from __future__ import annotations

import gzip
import http.client
import ssl
import zlib
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.retry import OTLP

PREFIX = "OTEL_EXPORTER_OTLP_"
PATH = "/v1/traces"
PROTOCOL = "http/protobuf"
COMPRESSIONS = ("none", "gzip", "deflate")
DEFAULT_ENDPOINT = "http://localhost:4318"
DEFAULT_TIMEOUT_S = 10.0
ANSWER_MAX_BYTES = 65536


class SendError(Exception):
    """A request failed; the message says why, `retry` whether the same one may succeed later."""

    def __init__(self, message: str, *, retry: bool) -> None:
        super().__init__(message)
        self.retry = retry


@dataclass(frozen=True, kw_only=True, slots=True)
class Destination:
    """An OTLP/HTTP receiver."""

    url: str
    headers: Mapping[str, str]
    timeout_s: float
    compression: str
    tls: ssl.SSLContext | None
    """None for plain HTTP."""

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """Return a connection that opens with its first request."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if self.tls is not None:
            return http.client.HTTPSConnection(host, parts.port, timeout=timeout_s, context=self.tls)
        return http.client.HTTPConnection(host, parts.port, timeout=timeout_s)

    def send(self, connection: http.client.HTTPConnection, body: bytes) -> int:
        """Send one request; returns the number of spans that the receiver rejected. Raises SendError."""
        headers = {"Content-Type": "application/x-protobuf", "User-Agent": "pytest-tfgrpo", **self.headers}
        if self.compression != "none":
            headers["Content-Encoding"] = self.compression
            body = gzip.compress(body, 5) if self.compression == "gzip" else zlib.compress(body, 5)
        parts = urlsplit(self.url)
        try:
            connection.request("POST", parts.path + (f"?{parts.query}" * bool(parts.query)), body, headers)
            answer = connection.getresponse()
            data = answer.read(ANSWER_MAX_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise SendError(_reason(error), retry=True) from error
        if not 200 <= answer.status < 300:
            raise SendError(f"HTTP {answer.status}", retry=answer.status in OTLP)
        kind = answer.getheader("Content-Type", "")
        if kind.startswith("text/html"):
            raise SendError(f"the answer is {kind}: not an OTLP receiver", retry=False)
        if not answer.isclosed():  # more than an answer may have
            connection.close()
        return _rejected(data)


def _reason(error: Exception) -> str:
    """Return why no answer came, in few words, and the same for every request."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.HTTPException):
        return f"the answer is not HTTP ({type(error).__name__})"
    return error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__


def _rejected(answer: bytes) -> int:
    """Return ``partial_success.rejected_spans`` of an ExportTraceServiceResponse; 0 for anything else."""
    if len(answer) < 4 or answer[0] != 0x0A or answer[2] != 0x08:
        return 0
    number = 0
    for shift, byte in enumerate(answer[3:12]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number
    return 0


def destination(environ: Mapping[str, str]) -> Destination:
    """Return where the standard variables send traces; raises SettingError naming the one that cannot be."""

    def variable(name: str) -> tuple[str, str]:
        own = f"{PREFIX}TRACES_{name}"
        return (own, environ[own]) if environ.get(own) else (PREFIX + name, environ.get(PREFIX + name, ""))

    url = _url(*variable("ENDPOINT"))
    name, protocol = variable("PROTOCOL")
    if protocol not in ("", PROTOCOL):
        raise SettingError(
            f"{name}={protocol!r} is not supported; set {PREFIX}TRACES_PROTOCOL={PROTOCOL} "
            "and the collector's HTTP port"
        )
    name, compression = variable("COMPRESSION")
    if (compression := compression.strip().lower() or "none") not in COMPRESSIONS:
        raise SettingError(f"{name} must be one of {', '.join(COMPRESSIONS)}, not {compression!r}")
    return Destination(
        url=url,
        headers=_headers(*variable("HEADERS")),
        timeout_s=_seconds(*variable("TIMEOUT")),
        compression=compression,
        tls=_tls(variable("CERTIFICATE"), variable("CLIENT_CERTIFICATE"), variable("CLIENT_KEY"))
        if url.startswith("https:")
        else None,
    )


def _url(name: str, endpoint: str) -> str:
    own = name.startswith(f"{PREFIX}TRACES_")
    url = endpoint.strip() if own else (endpoint.strip() or DEFAULT_ENDPOINT).removesuffix("/") + PATH
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingError(f"{name}={endpoint!r} is not an address; write for example {DEFAULT_ENDPOINT}")
    return url if parts.path else f"{url}/"


def _headers(name: str, text: str) -> dict[str, str]:
    headers = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, sign, value = pair.partition("=")
        header, content = unquote(key.strip()), unquote(value.strip())
        if not sign or not header.isascii() or not header.replace("-", "").replace("_", "").isalnum():
            raise SettingError(f"{name}: write headers as name=value,name=value; {key!r} is not one")
        if not content.isprintable():
            raise SettingError(f"{name}: the value of {key!r} holds a control character; remove it")
        headers[header] = content
    return headers


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text or DEFAULT_TIMEOUT_S)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise SettingError(f"{name} must be a number of seconds > 0, not {text!r}")
    return seconds


def _tls(trusted: tuple[str, str], certificate: tuple[str, str], key: tuple[str, str]) -> ssl.SSLContext:
    name = trusted[0]
    try:
        context = ssl.create_default_context(cafile=trusted[1] or None)
        name = certificate[0]
        if certificate[1]:
            context.load_cert_chain(certificate[1], key[1] or None)
    except OSError as error:  # an ssl.SSLError is one
        raise SettingError(f"{name} cannot be loaded: {error}") from error
    return context
