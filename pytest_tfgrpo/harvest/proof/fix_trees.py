"""The three trees of a fix, as a check makes them: before, before with the fix's tests, and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.proof.work_tree import Tree
from pytest_tfgrpo.harvest.suite.suite_files import FixArchives
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.checks.hidden.fresh_tree import foreign_modules
from pytest_tfgrpo.scoring.checks.hidden.protected import shadows

TreeName: TypeAlias = Literal["base", "base_with_tests", "fix"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FixTrees:
    """The files of a fix in the parts that its archives have."""

    base: Tree
    hidden: Tree
    """Protected files as the fix has them."""
    reference: Tree
    """What the fix added or changed besides."""
    removed: tuple[str, ...] = ()
    """What it removed besides."""
    removed_tests: tuple[str, ...] = ()
    """Protected files that it removed: they are in no tree with its tests."""

    def tree(self, name: TreeName) -> dict[str, ArchiveEntry]:
        """Return the files of a tree: what its agent changed lies below what is protected."""
        if name == "base":
            return dict(self.base)
        if name == "base_with_tests":
            return {**self._base_without(self.removed_tests), **self.hidden}
        kept = self._base_without((*self.removed, *self.removed_tests))
        return {**kept, **self.reference, **self.hidden}

    def _base_without(self, removed: Iterable[str]) -> dict[str, ArchiveEntry]:
        gone = set(removed)
        return {path: entry for path, entry in self.base.items() if path not in gone}

    def archives(self) -> FixArchives:
        """Return the archives; raises ArchiveProblem."""
        parts = (self.base, self.hidden, self.reference)
        base, hidden, reference = (pack(part.values()) for part in parts)
        return FixArchives(base=base, hidden=hidden, reference=reference)


def left_out_by_checks(trees: FixTrees, environment: BuiltEnvironment | None) -> tuple[str, ...]:
    """Return what the fix adds and no check takes from an agent: modules that stand in for others."""
    names, roots = foreign_modules(environment), () if environment is None else environment.imports
    packages = {path.rpartition("/")[0] for path in trees.tree("fix") if path.endswith("/__init__.py")}
    packages |= {""} if "__init__.py" in trees.tree("fix") else set()
    own = {place for path in trees.base for place in _places(path)}
    return tuple(path for path in trees.reference if shadows(path, names, packages, roots, own))


def _places(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def by_name(entries: Iterable[ArchiveEntry]) -> dict[str, ArchiveEntry]:
    """Return entries by name."""
    return {entry.name: entry for entry in entries}
