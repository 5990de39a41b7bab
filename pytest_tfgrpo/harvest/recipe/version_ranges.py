"""Ranges of versions as text: of ``requires-python`` and of Poetry."""

from __future__ import annotations

import re
from contextlib import suppress

from packaging.specifiers import InvalidSpecifier, SpecifierSet

PATCHES = 50
"""More than any minor version of Python has had."""


def bounds(part: str) -> list[str]:
    """Return a part of a range as bounds of PEP 440: ``^3.8`` and ``~3.8`` are two, ``*`` is none."""
    found = re.fullmatch(r"([\^~])\s*([0-9]+(?:\.[0-9]+)*)(.*)", part)
    if part in ("", "*"):
        return []
    if found is None:
        return [part if part[0] in "<>=!~" else f"=={part}"]
    kind, digits = found[1], [int(digit) for digit in found[2].split(".")]
    first = next((place for place, digit in enumerate(digits) if digit), len(digits) - 1)
    place = first if kind == "^" else min(1, len(digits) - 1)
    above = [*digits[:place], digits[place] + 1]
    return [f">={found[2]}{found[3]}", f"<{'.'.join(map(str, above))}"]


def allows(specifier: str, version: tuple[int, int]) -> bool:
    """Return whether a ``requires-python`` allows a release of a minor version; what is no range allows all.

    Poetry's ``||`` stands between ranges of which one has to.
    """
    releases = ["{}.{}.{}".format(*version, patch) for patch in range(PATCHES)]
    return any(any(map(_range(one).contains, releases)) for one in specifier.split("||"))


def _range(text: str) -> SpecifierSet:
    """Return what can be read of a range, ``^3.8``, ``~3.8``, ``3`` and old ``<3.9.*`` among it."""
    found = SpecifierSet()
    for part in re.split(r"[,\s]+", re.sub(r"([<>=!~^])\s+", r"\1", text.strip())):
        of_major = re.sub(r"^(==)?v?([0-9]+)$", r"==\2.*", part)
        for bound in bounds(re.sub(r"^(<=?|>=?|~=?|\^)(.*?)(\.\*)+$", r"\1\2", of_major)):
            with suppress(InvalidSpecifier):
                found &= SpecifierSet(bound)
    return found
