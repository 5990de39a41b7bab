"""Settings with several values in one text: paths, names and limits, separated by commas or lines."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_tfgrpo.core.texts.named_values import nearest

LIMITS = ("processes", "memory", "file_size")
"""What ``sandbox_limits`` can limit; `processes` is a count, the others are bytes."""
BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def listed(text: str | None) -> tuple[str, ...]:
    """Return the entries of a text such as ``a, b``, each once; None has none."""
    return tuple(dict.fromkeys(part for line in re.split(r"[,\n]", text or "") if (part := line.strip())))


def variables(text: str | None) -> tuple[str, ...]:
    """Return the names of environment variables; raises ValueError for one that is none."""
    names = listed(text)
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError("must be names of environment variables, without their values")
    return names


def limits(text: str | None) -> dict[str, int]:
    """Return limits by name from a text such as ``processes=64, memory=2GB``; raises ValueError."""
    found: dict[str, int] = {}
    for entry in listed(text):
        name, _, value = (part.strip() for part in entry.partition("="))
        if name not in LIMITS:
            raise ValueError(f"must limit {', '.join(LIMITS)} ({name!r} is unknown{nearest(name, LIMITS)})")
        if name in found:
            raise ValueError(f"must name each limit once ({name!r} is there twice)")
        found[name] = _number(name, value)
    return found


def domains(text: str | None) -> Mapping[str, tuple[str, ...]]:
    """Return names of agents by domain from a text such as ``billing = a, b``; raises ValueError.

    A line or comma begins a domain where ``=`` follows, else it goes on with the names of the one before.
    """
    found: dict[str, list[str]] = {}
    names: list[str] | None = None
    for entry in filter(None, map(str.strip, re.split(r"[,\n]", text or ""))):
        before, begins, name = map(str.strip, entry.rpartition("="))
        if begins:
            if before in found:
                raise ValueError(f"must name each domain once ({before!r} is there twice)")
            names = found.setdefault(before, [])
        if names is None or (begins and not before):
            raise ValueError(f"must begin with a domain, such as 'billing = {name}' ({entry!r} has none)")
        names += [name] if name else []
    for domain, known in found.items():
        if not known:
            raise ValueError(f"must name agents for each domain ({domain!r} has none)")
    return {domain: tuple(known) for domain, known in found.items()}


def _number(name: str, value: str) -> int:
    units = BYTES if name != "processes" else {"": 1}
    match = re.fullmatch(r"(\d{1,15}) ?([A-Za-z]*)", value)
    if match is None or match[2] not in units or int(match[1]) < 1:
        example = "processes=64" if name == "processes" else f"{name}=2GB"
        raise ValueError(f"must be limits such as {example} ({name}={value!r} is no limit)")
    return int(match[1]) * units[match[2]]
