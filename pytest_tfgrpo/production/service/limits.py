"""What one client may cost the service, and who may reach it."""

from __future__ import annotations

import ipaddress
import re

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass

SHORTEST_TOKEN = 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceLimits:
    """Bytes, counts and seconds; each holds for one request unless it says otherwise."""

    body_bytes: int = 16 << 20
    """Of a body, both as it was sent and unpacked."""
    held_bytes: int = 128 << 20
    """Of the bodies of all requests at one time."""
    drained_bytes: int = 256 << 20
    """Of a body that is refused, which are read all the same: a client that still sends sees a reset."""
    head_bytes: int = 64 << 10
    events: int = 1000
    """Payloads of one array."""
    threads: int = 4
    """Requests that are redacted and stored at the same time."""
    connections: int = 1000
    head_s: float = 10.0
    """From the first byte of a connection or request to the end of its headers."""
    body_s: float = 30.0
    answer_s: float = 8.0
    """From the end of the body to the answer, which is 503 then; exporters wait ten seconds in all."""
    keep_alive_s: int = 75
    """That a connection may rest between requests."""
    drain_s: int = 10
    """That requests have to end, all together, once the service is to stop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListeningAddress:
    """Where the service listens, and what its clients must know."""

    host: str = "127.0.0.1"
    port: int = 4318
    """0 picks a free one."""
    token: str = ""


def is_loopback(host: str) -> bool:
    """Return whether a name or address is this machine's own, without a name server."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_token(text: str) -> bool:
    """Return whether a text can be the bearer token of requests."""
    return len(text) >= SHORTEST_TOKEN and _TOKEN.fullmatch(text) is not None


def check_reach(host: str, token: str) -> None:
    """Raise SettingError for a token that is none, or an address that others reach without a token."""
    if not token:
        if not is_loopback(host):
            raise SettingError(
                f"the service would listen on {host!r}, which other machines reach, and has no token; "
                "set one, or listen on 127.0.0.1"
            )
    elif not is_token(token):
        raise SettingError(
            f"the token of the service must be {SHORTEST_TOKEN} or more letters, digits or ._~+/=-; make "
            "one with: openssl rand -hex 24"
        )
