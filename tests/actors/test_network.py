"""Network exceptions of an agent are recognised whatever library raised them, and without importing it."""

import socket
import ssl
import urllib.error
from email.message import Message

import pytest

from pytest_tfgrpo.actors.network import network_fault


def foreign(module: str, name: str, *bases: type, **attributes: object) -> BaseException:
    """Return an exception as a library that is not installed would raise it."""
    kind = type(name, bases or (Exception,), {"__module__": module})
    error = kind("it went wrong")
    for key, value in attributes.items():
        setattr(error, key, value)
    return error  # type: ignore[no-any-return]


class Response:
    def __init__(self, status: int) -> None:
        self.status_code = status


def http_error(code: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("http://x", code, "no", Message(), None)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError("refused"),
        ConnectionResetError("reset"),
        TimeoutError("late"),
        socket.gaierror(-2, "Name or service not known"),
        ssl.SSLError("handshake"),
        urllib.error.URLError("no host"),
        http_error(503),
        foreign("httpx", "ConnectError", type("TransportError", (Exception,), {"__module__": "httpx"})),
        foreign("httpx", "HTTPStatusError", response=Response(502)),
        foreign("requests.exceptions", "ConnectionError", OSError),
        foreign("requests.exceptions", "HTTPError", OSError, response=Response(429)),
        foreign("urllib3.exceptions", "MaxRetryError"),
        foreign("aiohttp.client_exceptions", "ClientConnectionError"),
        foreign("aiohttp.client_exceptions", "ClientResponseError", status=500),
        foreign("openai", "APIConnectionError"),
        foreign("openai", "RateLimitError"),
        foreign("anthropic", "InternalServerError"),
        foreign(
            "httpcore", "RemoteProtocolError", type("ProtocolError", (Exception,), {"__module__": "httpcore"})
        ),
        foreign("httpcore._exceptions", "TimeoutException"),
        foreign("http.client", "IncompleteRead"),
        foreign("botocore.exceptions", "HTTPClientError"),
        foreign("pyreqwest.exceptions", "RequestTimeoutError"),
        foreign("websockets.exceptions", "ConnectionClosedError"),
        ExceptionGroup("both", [ConnectionError("a"), TimeoutError("b")]),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_a_network_exception_is_one_by_itself_and_as_a_cause(error: BaseException) -> None:
    assert network_fault(error) is not None
    wrapped = RuntimeError("the model failed")
    wrapped.__cause__ = error
    assert network_fault(wrapped) is not None
    handling = RuntimeError("the model failed")
    handling.__context__ = error
    assert network_fault(handling) is not None


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no idea"),
        FileNotFoundError("x"),
        http_error(404),
        foreign("httpx", "HTTPStatusError", response=Response(400)),
        foreign("requests.exceptions", "HTTPError", OSError, response=Response(404)),
        foreign("agent", "ConnectionError"),
        foreign("openai", "BadRequestError"),
        ExceptionGroup("both", [ConnectionError("a"), ValueError("b")]),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_other_exceptions_are_the_agents(error: BaseException) -> None:
    assert network_fault(error) is None


def test_a_cause_that_is_suppressed_or_a_circle_is_no_cause() -> None:
    suppressed = RuntimeError("an answer that is none")
    suppressed.__context__, suppressed.__suppress_context__ = ConnectionError("gone"), True
    assert network_fault(suppressed) is None
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__cause__, other.__cause__ = other, one
    assert network_fault(one) is None
