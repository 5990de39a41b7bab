"""The section ``[privacy]`` of ``loop.toml``."""

from __future__ import annotations

import re
from typing import Any

from pytest_tfgrpo.core.keys.list_values import listed
from pytest_tfgrpo.core.keys.setting_parsers import parse_bool, parse_text
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting

_ATTRIBUTE = re.compile(r"(?=.{3,100}\Z)[A-Za-z][\w-]*(?:\.[A-Za-z0-9_][\w-]*)*", re.ASCII)
_MOST_ATTRIBUTES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivacySettings:
    """The section ``[privacy]``."""

    key_file: str
    ip_addresses: bool
    user_attributes: tuple[str, ...]
    """Names under which users stand, beside those that everybody knows."""


def parse_attributes(value: Any) -> tuple[str, ...]:
    """Return names of attributes, from a list or a text such as ``customer.id, tenant.member``."""
    found = listed(value) if isinstance(value, str) else tuple(dict.fromkeys(value))
    blank = isinstance(value, str) and not found
    if blank or len(found) > _MOST_ATTRIBUTES or not all(map(_ATTRIBUTE.fullmatch, found)):
        raise ValueError(
            f"must be up to {_MOST_ATTRIBUTES} names such as customer.id, of 3 characters or more"
        )
    return found


# fmt: off
PRIVACY_ROWS = (
    LoopSetting(section="privacy", key="key_file", parse=parse_text, default="loop.key",
                help="key of the pseudonyms and placeholders; whoever has it can test a guess against them"),
    LoopSetting(section="privacy", key="ip_addresses", parse=parse_bool, default=False,
                help="take out IP addresses too"),
    LoopSetting(section="privacy", key="user_attributes", parse=parse_attributes, default=(),
                help="further attributes that name a user, such as customer.id, also in JSON"),
)
# fmt: on
