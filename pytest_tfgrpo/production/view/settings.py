"""The section ``[view]`` of ``loop.toml``."""

from __future__ import annotations

from pytest_tfgrpo.core.keys.setting_parsers import parse_text
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewSettings:
    """The section ``[view]``."""

    path: str


# fmt: off
VIEW_ROWS = (
    LoopSetting(section="view", key="path", parse=parse_text, default="loop-view.db",
                help="SQLite file of what the reports read; it can be deleted at any time"),
)
# fmt: on
