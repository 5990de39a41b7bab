"""The section ``[bus]`` of ``loop.toml``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.keys.setting_parsers import parse_text
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.loop_setting import LoopSetting


@dataclass(frozen=True, kw_only=True, slots=True)
class BusSettings:
    """The section ``[bus]``."""

    url: str
    """Public nowhere: it may hold a password."""
    options: Mapping[str, Json]


def parse_bus(value: Any) -> str:
    """Return the URL of a bus."""
    url = parse_text(value)
    kind, _, where = url.partition(":")
    if kind not in ("embedded", "nats") or not where:
        raise ValueError("must be embedded:<path> or nats:<url>")
    return url


def parse_options(value: Any) -> Mapping[str, Json]:
    """Return options of `nats.connect`, from a table or the text of a JSON object."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("must be a JSON object") from None
    fits = isinstance(value, dict) and all(isinstance(one, str | int | float) for one in value.values())
    if not fits:
        raise ValueError("must be names with texts, numbers or truth values")
    return MappingProxyType(value)


# fmt: off
BUS_ROWS = (
    LoopSetting(section="bus", key="url", parse=parse_bus, default="embedded:loop-bus.db", hidden=True,
                help="where events are kept: embedded:<path>, or nats:<url> of a NATS JetStream server"),
    LoopSetting(section="bus", key="options", parse=parse_options, default=MappingProxyType({}), hidden=True,
                help="options of nats.connect; tls_ca_file, tls_cert_file and tls_key_file make its tls"),
)
# fmt: on
