"""The sections ``[warehouse]``, ``[archive]`` and ``[logs]`` of ``loop.toml``."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting, parse_folder

_DATABASE = re.compile(r"(?:/[A-Za-z_][A-Za-z0-9_]{0,63})?/?")


@dataclass(frozen=True, kw_only=True, slots=True)
class WarehouseSettings:
    """The section ``[warehouse]``."""

    url: str
    """Public nowhere: it may hold a password."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveSettings:
    """The section ``[archive]``."""

    folder: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LogSettings:
    """The section ``[logs]``."""

    path: str


def parse_warehouse(value: Any) -> str:
    """Return the URL of a ClickHouse server; an empty text names none."""
    url = str(value)
    try:
        found = urlsplit(url)
        fits = found.scheme in ("http", "https") and found.hostname and found.port != 0
    except ValueError:
        fits = False
    if url and not (fits and _DATABASE.fullmatch(found.path) and not found.query and not found.fragment):
        raise ValueError("must be a URL such as http://host:8123/database, or empty")
    return url


# fmt: off
WAREHOUSE_ROWS = (
    LoopSetting(section="warehouse", key="url", parse=parse_warehouse, default="", hidden=True,
                help="ClickHouse that keeps events for 90 days: http://host:8123/database; empty: none"),
)
ARCHIVE_ROWS = (
    LoopSetting(section="archive", key="folder", parse=parse_folder, default="",
                help="folder of gzip files, one a day, that keep events for 90 days; empty: none"),
)
LOG_ROWS = (
    LoopSetting(section="logs", key="path", parse=parse_folder, default="",
                help="file that gets a line of JSON for each event; - is stderr; empty: none"),
)
# fmt: on
