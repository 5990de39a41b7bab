"""The families of harvested scenarios: fixes of the same place, which an agent solves or misses together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass

CENTRAL_SHARE, FEW = 0.25, 3
"""A file is central, and says nothing of a fix, if more than this share and more than FEW fixes change it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FixPlace:
    """Where a fix lies in time and in the project."""

    committed_at: int
    """Seconds since 1970, UTC."""
    sources: Collection[str]
    """The source files that it changes."""


def families_by_files(fixes: Mapping[str, FixPlace]) -> dict[str, str]:
    """Return the family of each fix that shares one, both by the fix's id.

    A fix belongs to the one file that it shares with the fewest others, central files left out, so that no
    chain of fixes joins what has nothing in common. The family is called by the id of its oldest fix: a path
    would say where the fix lies.
    """
    changed = Counter(path for fix in fixes.values() for path in set(fix.sources))
    most = max(FEW, int(CENTRAL_SHARE * len(fixes)))
    members: dict[str, list[str]] = {}
    for id_, fix in fixes.items():
        shared = [path for path in fix.sources if 2 <= changed[path] <= most]
        if shared:
            members.setdefault(min(shared, key=lambda path: (changed[path], path)), []).append(id_)
    found: dict[str, str] = {}
    for ids in members.values():
        if len(ids) > 1:
            oldest = min(ids, key=lambda id_: (fixes[id_].committed_at, id_))
            found |= dict.fromkeys(ids, oldest)
    return found
