"""Components of a reward that a project adds, by entry point.

An entry point of the group ``pytest_tfgrpo.reward_components`` is called with the payload of a trajectory
and returns a score from 0 to 1, a score and a reason, or None where the component does not apply. Its name
is the component's, and a weight in the settings makes it count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import TypeAlias

from pytest_tfgrpo.core.errors import RewarderError, describe
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.rewards.evidence import RewardClaim
from pytest_tfgrpo.production.rewards.rewards import WEIGHTS

GROUP = "pytest_tfgrpo.reward_components"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

FurtherComponent: TypeAlias = Callable[[Mapping[str, Json]], "float | tuple[float, str] | None"]


def load_components() -> dict[str, FurtherComponent]:
    """Return the further components that are installed, by name; raises RewarderError."""
    found: dict[str, FurtherComponent] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        where = f"entry point {point.name!r} = {point.value!r} of the group {GROUP!r}"
        if not _NAME.fullmatch(point.name) or point.name in WEIGHTS:
            raise RewarderError(f"{where}: a component needs a name of its own in lower case, digits and _")
        if point.name in found:
            raise RewarderError(f"{where}: two components have that name; uninstall one")
        try:
            component = point.load()
        except Exception as error:
            raise RewarderError(f"{where} cannot be loaded: {describe(error)}") from error
        if not callable(component):
            raise RewarderError(f"{where} is no function")
        found[point.name] = component
    return found


def further_claims(
    trajectory: Mapping[str, Json], components: Mapping[str, FurtherComponent]
) -> tuple[list[RewardClaim], dict[str, str]]:
    """Return what further components say of a trajectory, and what went wrong, by component.

    A component that raises, or returns no score, is absent from this reward and stops nothing.
    """
    claims, problems = [], {}
    at = utc_time(trajectory["end_timestamp"]) or ""
    for name, component in components.items():
        try:
            said = component(trajectory)
            score, reasoning = said if isinstance(said, tuple) else (said, "")
            if score is None:
                continue
            if isinstance(score, bool) or not 0.0 <= float(score) <= 1.0:
                raise ValueError(f"{score!r} is no score from 0 to 1")
        except Exception as error:  # noqa: BLE001 - it is not ours
            problems[name] = describe(error)[:200]
            continue
        claims.append(
            RewardClaim(
                component=name,
                score=math.fabs(float(score)),
                explicit=False,
                at=at,
                source="automated",
                reasoning=str(reasoning),
                evidence=False,
            )
        )
    return claims, problems
