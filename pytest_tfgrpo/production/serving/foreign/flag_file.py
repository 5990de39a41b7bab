"""What is served as a file of feature flags in flagd's form, which OpenFeature's provider reads.

flagd draws by a hash of its own, not by that of `assignment`: the share of the sessions is the same, their
choice is not. The version on its way comes first, so that a growing share only adds sessions to it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import write_atomic
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import Serving

FLAG = "tfgrpo-policy-version"
"""The key of the flag, whose value is the name of a version."""
_SCHEMA = "https://flagd.dev/schema/v0/flags.json"
_PARTS = 10_000
"""A share is a number of these."""
_EVERY_S = 1.0
"""Between two looks at what is served."""


def flags_of(serving: Serving) -> dict[str, Json]:
    """Return the file's value: all sessions get the live version, or a share of them that of the ramp."""
    flag: dict[str, Json] = {
        "state": "ENABLED",
        "variants": {name: name for name in serving.versions},
        "defaultVariant": serving.live,
    }
    ramp = serving.ramp
    if ramp is not None:
        key = {"var": "targetingKey"}
        share = round(_PARTS * ramp.share)
        shares = [[ramp.version, share], [serving.live, _PARTS - share]]
        draw = {"fractional": [{"cat": [f"{ramp.deployment}/", key]}, *shares]}
        flag["targeting"] = {"if": [key, draw, None]}  # without a session: the live version
        flag["metadata"] = {"deployment": ramp.deployment}
    return {"$schema": _SCHEMA, "flags": {FLAG: flag}}


class FlagFile:
    """A role of the loop that keeps the file as what is served; each service keeps its own."""

    def __init__(self, bus: Bus, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._deployments, self._path, self._clock = Deployments(bus), path, clock
        self._look_at = float("-inf")

    def step(self) -> int:
        """Look, once in a while; return 1 where the file was written. Raises BusError and StoreError."""
        if self._clock() < self._look_at:
            return 0
        content = json.dumps(flags_of(self._deployments.serving()), indent=1).encode() + b"\n"
        written = self._write(content)
        self._look_at = self._clock() + _EVERY_S
        return written

    def _write(self, content: bytes) -> int:
        path = self._path
        try:
            try:
                before = path.stat().st_mtime_ns if path.read_bytes() != content else None
            except FileNotFoundError:
                before = 0
            if before is None:
                return 0
            write_atomic(path, [content])
            if path.stat().st_mtime_ns <= before:  # a clock went back; readers look for a newer time
                os.utime(path, ns=(before + 10**9, before + 10**9))
        except OSError as error:
            raise StoreError(
                f"cannot write the flag file {path}: {error}; see [deployment] flag_file"
            ) from error
        return 1

    def close(self) -> None:
        """Leave the file as it is: sessions go on by it."""
