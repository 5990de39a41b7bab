"""Network exceptions of an agent in this process: a provider's fault or the network's, not the agent's.

They are recognised by module and name over all base classes, so that no library is imported for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.retry import may_pass

CHAIN = 20
"""Exceptions of a chain of causes that are looked at."""
_CLIENT = frozenset({"APIConnectionError", "APITimeoutError", "InternalServerError", "RateLimitError"})
KNOWN: dict[str, frozenset[str]] = {
    "builtins": frozenset({"ConnectionError", "TimeoutError"}),
    "socket": frozenset({"gaierror", "herror"}),
    "ssl": frozenset({"SSLError"}),
    "http": frozenset({"IncompleteRead", "RemoteDisconnected"}),
    "urllib": frozenset({"URLError"}),
    "aiohttp": frozenset({"ClientConnectionError", "ClientPayloadError", "ServerTimeoutError"}),
    "anthropic": _CLIENT,
    "botocore": frozenset({"ConnectionError", "HTTPClientError"}),
    "httpcore": frozenset({"NetworkError", "ProtocolError", "TimeoutException"}),
    "httpx": frozenset({"TransportError"}),
    "openai": _CLIENT,
    "pyreqwest": frozenset({"ConnectError", "RequestTimeoutError", "TransportError"}),
    "requests": frozenset({"ChunkedEncodingError", "ConnectionError", "Timeout"}),
    "urllib3": frozenset(
        {"IncompleteRead", "MaxRetryError", "NewConnectionError", "ProtocolError", "TimeoutError"}
    ),
    "websockets": frozenset({"ConnectionClosedError"}),
}
"""Base classes by top-level module."""
_STATUS = {
    "aiohttp": "ClientResponseError",
    "httpx": "HTTPStatusError",
    "requests": "HTTPError",
    "urllib": "HTTPError",
}
"""Exceptions that stand for the status of an HTTP answer."""


def network_fault(error: BaseException) -> BaseException | None:
    """Return the network exception that `error` is or comes from, or None."""
    return next((one for one in _causes(error) if _is_network(one)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it comes from, each once: its cause, else what was being handled."""
    seen: set[int] = set()
    now: BaseException | None = error
    while now is not None and id(now) not in seen and len(seen) < CHAIN:
        yield now
        seen.add(id(now))
        if isinstance(now, BaseExceptionGroup):
            now = now.exceptions[0] if all(map(network_fault, now.exceptions)) else None
        else:
            now = now.__cause__ or (None if now.__suppress_context__ else now.__context__)


def _is_network(error: BaseException) -> bool:
    for base in type(error).__mro__:
        module = str(base.__module__).partition(".")[0]
        if _STATUS.get(module) == base.__name__:
            return _is_passing(error)
        if base.__name__ in KNOWN.get(module, ()):
            return True
    return False


def _is_passing(error: BaseException) -> bool:
    """Return whether the HTTP status of an exception says that its server cannot answer now."""
    response = getattr(error, "response", None)
    for owner, name in ((response, "status_code"), (error, "status"), (error, "code")):
        status = getattr(owner, name, None)
        if type(status) is int:
            return may_pass(status)
    return False
