"""Parts: the operations of a candidate grouped into units that stay together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pytest_tfgrpo.core.lessons import Experience, Library, Operation
from pytest_tfgrpo.learning.library.library import is_trim, says_the_same

OperationSet: TypeAlias = tuple[Operation, ...]
"""Operations that only apply together, in their order."""


def units_of(library: Library, operations: Sequence[Operation]) -> list[OperationSet]:
    """Return `operations` in units, those of one domain side by side: they change the same prompts.

    Together stay operations of which one changes what another added, and those of which one may only enter
    because another takes away a lesson that says the same. What a size cap removed is in no unit: it follows
    from the operations that are kept.
    """
    own = [operation for operation in operations if not is_trim(operation)]
    known = {e.id: e for e in library.experiences} | {e.id: e for e in _added(own)}
    root = list(range(len(own)))

    def find(n: int) -> int:
        while root[n] != n:
            n = root[n]
        return n

    for n, later in enumerate(own):
        for m, earlier in enumerate(own[:n]):
            if _bound(earlier, later, known):
                root[find(n)] = find(m)
    members: dict[int, list[Operation]] = {}
    for n, operation in enumerate(own):
        members.setdefault(find(n), []).append(operation)
    units = [tuple(unit) for unit in members.values()]
    return sorted(units, key=lambda unit: _domain(unit[0], known))


def _added(operations: Sequence[Operation]) -> list[Experience]:
    return [operation.experience for operation in operations if operation.experience is not None]


def _bound(earlier: Operation, later: Operation, known: dict[str, Experience]) -> bool:
    if earlier.experience is not None and earlier.experience.id in later.targets:
        return True
    gone = [known[target] for target in earlier.targets if target in known]
    new = later.experience
    return new is not None and any(says_the_same(new, old) for old in gone)


def _domain(operation: Operation, known: dict[str, Experience]) -> str:
    lesson = operation.experience or next((known[t] for t in operation.targets if t in known), None)
    return lesson.domain if lesson is not None else ""
