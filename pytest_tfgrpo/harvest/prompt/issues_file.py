"""Issues: texts of a tracker, exported as JSON lines, and which of them a commit message fixes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError

FILE_MAX = 500_000_000
_VERB = r"(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?)"
_ISSUE = r"(?:[\w.-]+/[\w.-]+)?(?:#|gh-)(\d{1,9})\b|https?://\S{1,200}/(?:issues|-/issues)/(\d{1,9})\b"
_FIXES = re.compile(
    rf"\b{_VERB}\b[\s:]*(?:issue\s*)?(?:{_ISSUE})((?:\s*(?:,|and|&)\s*(?:{_ISSUE}))*)", re.IGNORECASE
)
_NUMBER = re.compile(_ISSUE, re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def read_issues(path: Path) -> Mapping[int, str]:
    """Return the text of each issue of a JSON lines file with ``number``, ``title`` and ``body``.

    Other keys are left alone. Raises SettingError, with the line, on anything else.
    """
    try:
        if path.stat().st_size > FILE_MAX:
            raise SettingError(f"{path} has over {FILE_MAX} bytes; export only the issues of these commits")
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"cannot read the issues {str(path)!r}: {error}") from error
    return dict(_issue(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip())


def _issue(line: str, where: str) -> tuple[int, str]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{where}: not JSON: {error}; write one issue a line") from error
    number = value.get("number") if isinstance(value, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise SettingError(
            f'{where}: number is {number!r}; write {{"number": 12, "title": "...", "body": "..."}}'
        )
    parts = []
    for key in ("title", "body"):
        text = value.get(key)
        if text is not None and not isinstance(text, str):
            raise SettingError(f"{where}: {key} is {text!r}; it must be a text")
        parts.append(_COMMENT.sub("", text or "").replace("\r\n", "\n").strip())
    return number, "\n\n".join(part for part in parts if part)


def fixed_issues(message: str) -> tuple[int, ...]:
    """Return the numbers of the issues that a commit message says it fixes, closes or resolves, in order."""
    found: list[int] = []
    for match in _FIXES.finditer(message):
        found += [int(a or b) for a, b in _NUMBER.findall(match[0])]
    return tuple(dict.fromkeys(found))
