"""What was served last, in a file: a process that starts while the bus is away goes on with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from pytest_tfgrpo.core.files import read_plain, write_atomic
from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.production.deployment.serving import Serving, serving_of
from pytest_tfgrpo.production.serving.served_version import ServedVersion

SCHEMA = "tfgrpo.served/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedState:
    """What is served, and the texts of each version that is or may come back."""

    serving: Serving
    versions: Mapping[str, ServedVersion] = field(default_factory=dict)


def encode_state(state: ServedState) -> bytes:
    """Return the content of the file."""
    versions: dict[str, Json] = {
        name: {"packs": to_wire(one.packs), "lessons": to_wire(one.lessons)}
        for name, one in state.versions.items()
    }
    value = {"schema": SCHEMA, "serving": to_wire(state.serving), "versions": versions}
    return json.dumps(value).encode()


def decode_state(data: bytes) -> ServedState:
    """Return what the content of a file says; raises ValueError and StoreError."""
    value = load_json(data)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(f"it is no {SCHEMA}")
    serving = serving_of(json.dumps(value.get("serving")).encode())
    versions = {}
    for name, one in from_wire(dict[str, dict[str, Json]], value.get("versions")).items():
        packs = from_wire(tuple[PromptPack, ...], one.get("packs"))
        versions[name] = ServedVersion(name, packs, from_wire(tuple[Experience, ...], one.get("lessons")))
    return ServedState(serving=serving, versions=versions)


def read_last_known(file: Path) -> ServedState | None:
    """Return what was served last; None where there is no file. Raises OSError, ValueError and StoreError."""
    try:
        return decode_state(read_plain(file))
    except FileNotFoundError:
        return None


def write_last_known(file: Path, state: ServedState) -> None:
    """Keep what is served; raises OSError."""
    write_atomic(file, [encode_state(state)])
