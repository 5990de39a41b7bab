"""The section ``[alerts]`` of ``loop.toml``."""

from __future__ import annotations

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting, parse_words


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertSettings:
    """The section ``[alerts]``."""

    command: tuple[str, ...]


# fmt: off
ALERT_ROWS = (
    LoopSetting(section="alerts", key="command", parse=parse_words, default=(), hidden=True,
                help="program that gets each alert as JSON on stdin, within 10 s; "
                     'such as ["./page-me", "--now"]'),
)
# fmt: on
