"""The section ``[assembler]`` of ``loop.toml``."""

from __future__ import annotations

from pytest_tfgrpo.core.keys.setting_parsers import real
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting


@dataclass(frozen=True, kw_only=True, slots=True)
class AssemblerSettings:
    """The section ``[assembler]``."""

    idle_s: float
    settle_s: float


# fmt: off
ASSEMBLER_ROWS = (
    LoopSetting(section="assembler", key="idle_s", parse=real(0.1, 86400), default=60.0,
                help="seconds without a span after which a trace whose root is missing is complete"),
    LoopSetting(section="assembler", key="settle_s", parse=real(0, 3600), default=10.0,
                help="seconds without a span after which any trace is: exporters send every 5 s each"),
)
# fmt: on
