"""Settings with several values in one text: paths and names, separated by commas or lines."""

from __future__ import annotations

import re


def listed(text: str | None) -> tuple[str, ...]:
    """Return the entries of a text such as ``a, b``, each once; None has none."""
    return tuple(dict.fromkeys(part for line in re.split(r"[,\n]", text or "") if (part := line.strip())))


def variables(text: str | None) -> tuple[str, ...]:
    """Return the names of environment variables; raises ValueError for one that is none."""
    names = listed(text)
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(
                f"must be names of environment variables without their values ({name!r} is none)"
            )
    return names
