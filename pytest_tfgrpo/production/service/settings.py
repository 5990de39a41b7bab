"""The section ``[service]`` of ``loop.toml``."""

from __future__ import annotations

from typing import Any

from pytest_tfgrpo.core.keys.setting_parsers import parse_text, whole
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting
from pytest_tfgrpo.production.service.limits import SHORTEST_TOKEN, is_token


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSettings:
    """The section ``[service]``."""

    host: str
    port: int
    token: str | None
    max_body_mb: int


def parse_token(value: Any) -> str:
    """Return a bearer token."""
    token = parse_text(value)
    if not is_token(token):
        raise ValueError(f"must be {SHORTEST_TOKEN} or more letters, digits or ._~+/=-")
    return token


# fmt: off
SERVICE_ROWS = (
    LoopSetting(section="service", key="host", parse=parse_text, default="127.0.0.1",
                help="address to listen at; any but a loopback address needs a token"),
    LoopSetting(section="service", key="port", parse=whole(0, 65535), default=4318,
                help="port to listen at; 4318 is that of OTLP over HTTP, 0 any that is free"),
    LoopSetting(section="service", key="token", parse=parse_token, default=None, hidden=True,
                help="bearer token of every request but GET /healthz and /openapi.json"),
    LoopSetting(section="service", key="max_body_mb", parse=whole(1, 1000), default=16,
                help="largest body of a request, once unpacked"),
)
# fmt: on
