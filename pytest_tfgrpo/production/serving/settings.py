"""The section ``[proxy]`` of ``loop.toml``."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pytest_tfgrpo.core.keys.setting_parsers import parse_bool, parse_text, whole
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxySettings:
    """The section ``[proxy]``."""

    upstream: str
    """Empty where there is no proxy."""
    host: str
    port: int
    collect: bool

    @property
    def url(self) -> str:
        """The base URL for clients; empty where there is no proxy, or any port is as good."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1" if self.upstream and self.port else ""


def parse_upstream(value: Any) -> str:
    """Return the base URL of a model server; an empty text is none."""
    if value == "":
        return ""
    url = parse_text(value).rstrip("/")
    parts = urlsplit(url)
    whole_url = parts.scheme in ("http", "https") and parts.hostname
    if not whole_url or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must be the base URL of a model server, such as https://models.example/v1")
    return url


# fmt: off
PROXY_ROWS = (
    LoopSetting(section="proxy", key="upstream", parse=parse_upstream, default="",
                help="base URL of the model server behind `tfgrpo loop proxy`, which usually ends in /v1"),
    LoopSetting(section="proxy", key="host", parse=parse_text, default="127.0.0.1",
                help="address that the proxy listens at; it passes the keys of its callers, and adds none"),
    LoopSetting(section="proxy", key="port", parse=whole(0, 65535), default=4319,
                help="port that the proxy listens at; 0 any that is free"),
    LoopSetting(section="proxy", key="collect", parse=parse_bool, default=False,
                help="publish what passes as trajectories, redacted"),
)
# fmt: on
