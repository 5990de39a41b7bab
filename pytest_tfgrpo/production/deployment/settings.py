"""The section ``[deployment]`` of ``loop.toml``."""

from __future__ import annotations

from pytest_tfgrpo.core.keys.setting_parsers import choice
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting, parse_folder


@dataclass(frozen=True, kw_only=True, slots=True)
class DeploymentSettings:
    """The section ``[deployment]``."""

    approval: str
    flag_file: str
    """Empty: none."""


# fmt: off
DEPLOYMENT_ROWS = (
    LoopSetting(section="deployment", key="approval", parse=choice("manual", "automatic"), default="manual",
                help="who lets a version meet users: a person, or its validation where that is conclusive"),
    LoopSetting(section="deployment", key="flag_file", parse=parse_folder, default="",
                help="file of flags for flagd and OpenFeature that says what is served; empty: none"),
)
# fmt: on
