"""One connection to the loop's service, that is kept: Python's standard library alone."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

_REPLY_BYTES = 1_000_000
_LONGEST_RETRY_AFTER_S = 120.0
_SHORTEST_S = 0.05


class ServiceAddress(NamedTuple):
    """Where the service listens."""

    secure: bool
    host: str
    port: int | None
    path: str
    """In front of each of its paths, without a slash at its end."""


class ServiceAnswer(NamedTuple):
    """What the service says of a batch."""

    status: int
    """Of HTTP; 0: it cannot be reached."""
    refused: int = 0
    """How many events of the batch."""
    retry_after_s: float | None = None
    error: str = ""
    """Status, and what it says of the first refusal."""


def service_address(url: str) -> ServiceAddress:
    """Return the parts of a URL; raises ValueError for one that is no service's, or holds credentials."""
    parts = urlsplit(url)
    if parts.username is not None:
        raise ValueError("url: has credentials in it; pass the token as `token`")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"url: {url!r} is not that of a service, such as 'http://127.0.0.1:4318'")
    return ServiceAddress(parts.scheme == "https", parts.hostname, parts.port, parts.path.rstrip("/"))


class ServiceLink:
    """Posts batches, over one connection that it opens anew where the service has closed it."""

    def __init__(self, address: ServiceAddress, headers: Mapping[str, str], timeout_s: float) -> None:
        self._address = address
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._kept: http.client.HTTPConnection | None = None

    def post(self, path: str, texts: Sequence[str], deadline: float) -> ServiceAnswer:
        """Post JSON texts as one array; one wait lasts until `deadline`, of ``time.monotonic``, at most."""
        body = f"[{','.join(texts)}]".encode("ascii")
        problem = ""
        while True:
            kept, self._kept = self._kept, None
            connection = kept or self._connect(deadline)
            try:
                connection.request("POST", self._address.path + path, body, self._headers)
                with connection.getresponse() as response:
                    said = response.read(_REPLY_BYTES)
                    if response.isclosed() and not response.will_close:
                        self._kept = connection
                    return _answer(response, said)
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = f"{type(error).__name__}: {error}"[:300]
            finally:
                if self._kept is not connection:
                    connection.close()
            if kept is None:  # else the service had closed the connection in the meantime
                return ServiceAnswer(0, error=f"cannot be reached: {problem}")

    def close(self) -> None:
        """Close the connection that is kept, in this process."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _connect(self, deadline: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._address.secure else http.client.HTTPConnection
        left = max(_SHORTEST_S, min(self._timeout_s, deadline - time.monotonic()))
        return kind(self._address.host, self._address.port, timeout=left)


def _answer(response: http.client.HTTPResponse, said: bytes) -> ServiceAnswer:
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = None
    refusals = found.get("refused", 0) if isinstance(found, dict) else 0
    several = refusals if isinstance(refusals, list) else []
    number = refusals if isinstance(refusals, int) else len(several)
    after = response.headers.get("Retry-After", "")
    wait_s = min(float(after), _LONGEST_RETRY_AFTER_S) if after.isdecimal() and len(after) < 10 else None
    shown = json.dumps(several[0] if several else found)[:300]
    return ServiceAnswer(response.status, max(0, number), wait_s, f"answered {response.status}: {shown}")
