"""Streams and buckets on the server: made where they are missing, else compared, never altered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.nats.link import NatsLink, NatsRefusal
from pytest_tfgrpo.production.bus.protocol import DEDUPE_S
from pytest_tfgrpo.production.bus.streams import StreamSpec

_SECOND = 10**9
_NOT_FOUND = 10059
_IN_USE = 10058
_COMMON: Mapping[str, Json] = {
    "retention": "limits",
    "storage": "file",
    "discard": "old",
    "max_bytes": -1,
    "max_msg_size": -1,
    "deny_delete": False,
    "sealed": False,
}
"""What events and rows need to be kept, and to be deleted for good."""


def stream_config(spec: StreamSpec) -> dict[str, Json]:
    """Return what the server should say of a stream."""
    return {
        **_COMMON,
        "name": spec.name,
        "subjects": sorted(spec.patterns),
        "max_age": int(spec.max_age_s * _SECOND),
        "max_msgs": -1 if spec.max_count is None else spec.max_count,
        "max_msgs_per_subject": -1,
        "duplicate_window": int(DEDUPE_S * _SECOND),
    }


def bucket_config(bucket: str) -> dict[str, Json]:
    """Return what the server should say of a bucket of keys and values.

    It keeps the value before the last one, which the writer then overwrites; a bucket that denies deletes
    would keep it on disk.
    """
    return {
        **_COMMON,
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "max_age": 0,
        "max_msgs": -1,
        "max_msgs_per_subject": 2,
        "duplicate_window": 120 * _SECOND,
        "allow_rollup_hdrs": True,
    }


async def provide(link: NatsLink, configs: Sequence[Mapping[str, Json]]) -> None:
    """Make the streams that are missing; raises BusError, which lists how others differ, before that."""
    missing, differences = [], []
    for config in configs:
        try:
            found = (await link.api(f"STREAM.INFO.{config['name']}"))["config"]
        except NatsRefusal as refusal:
            if refusal.code != _NOT_FOUND:
                raise
            missing.append(config)
        else:
            differences += differing(config, found)
    if differences:
        raise BusError(
            f"NATS at {link.where} has streams that differ, and they are left as they are: "
            + "; ".join(differences)
            + "; change or remove them yourself"
        )
    for config in missing:
        try:
            await link.api(f"STREAM.CREATE.{config['name']}", config)
        except NatsRefusal as refusal:
            if refusal.code != _IN_USE:  # another process was faster
                raise BusError(f"the stream {config['name']} cannot be made: {refusal}") from refusal


def differing(wanted: Mapping[str, Json], found: Mapping[str, Json]) -> list[str]:
    """Return how a stream differs from what is wanted, key by key."""
    lines = []
    for key, value in wanted.items():
        has = found.get(key, False if isinstance(value, bool) else None)
        if key == "subjects":
            has = sorted(has or [])
        if has != value:
            lines.append(f"{wanted['name']} has {key} {_readable(key, has)}, not {_readable(key, value)}")
    if found.get("mirror") or found.get("sources"):
        lines.append(f"{wanted['name']} copies another stream")
    return lines


def _readable(key: str, value: Json) -> str:
    if key in ("max_age", "duplicate_window") and isinstance(value, int):
        return f"{value / _SECOND:.12g} s"
    return repr(value)
