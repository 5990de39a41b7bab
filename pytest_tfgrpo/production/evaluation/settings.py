"""The section ``[evaluator]`` of ``loop.toml``."""

from __future__ import annotations

from pytest_tfgrpo.core.keys.setting_parsers import real
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatorSettings:
    """The section ``[evaluator]``."""

    lease_s: float
    feedback_wait_h: float


# fmt: off
EVALUATOR_ROWS = (
    LoopSetting(section="evaluator", key="lease_s", parse=real(1, 3600), default=15.0,
                help="seconds after which another process takes over from one that is gone"),
    LoopSetting(section="evaluator", key="feedback_wait_h", parse=real(0, 720), default=24.0,
                help="hours that feedback waits for its trajectory"),
)
# fmt: on
