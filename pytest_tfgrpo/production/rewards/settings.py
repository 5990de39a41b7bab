"""The section ``[rewards]`` of ``loop.toml``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.keys.list_values import listed
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting
from pytest_tfgrpo.production.rewards.rewards import WEIGHTS

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardSettings:
    """The section ``[rewards]``."""

    weights: Mapping[str, float]
    """By component; every component that is computed here has one."""


def parse_weights(value: Any) -> Mapping[str, float]:
    """Return the weights of all components, from a table or a text such as ``efficiency=0.3, style=0.1``."""
    if isinstance(value, str):
        pairs = [[part.strip() for part in entry.partition("=")] for entry in listed(value)]
        value = {name: weight for name, _, weight in pairs}
        if not value or len(value) < len(pairs):
            raise ValueError("must be weights such as efficiency=0.3, style=0.1, each once")
    found = dict(WEIGHTS)
    for name, weight in value.items():
        if _NAME.fullmatch(name) is None:
            raise ValueError(
                "must name components in lower case, digits and _, such as efficiency=0.3, style=0.1"
            )
        found[name] = _weight(name, weight)
    if not any(found.values()):
        raise ValueError("must leave a weight above 0")
    return MappingProxyType(found)


def _weight(name: str, value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        weight = math.nan
    if isinstance(value, bool) or not 0.0 <= weight <= 1.0:
        raise ValueError(f"must be weights from 0 to 1 such as efficiency=0.3, style=0.1; {name} has none")
    return weight


# fmt: off
REWARD_ROWS = (
    LoopSetting(section="rewards", key="weights", parse=parse_weights, default=WEIGHTS,
                help="weights from 0 to 1 by component; one that is not named keeps its default"),
)
# fmt: on
