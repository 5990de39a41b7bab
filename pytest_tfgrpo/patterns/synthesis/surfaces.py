"""What can be run of a project without tests: its scripts, modules and commands, by path and manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.recipe.manifests import python_project
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected

SCRIPTS = 500
"""Files that are looked into."""
MAIN = re.compile(r"""^if __name__ == ["']__main__["']|^#!""", re.MULTILINE)
"""How a script can be told from a module."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnableSurface:
    """One thing of a project that a person can start."""

    path: str
    """The file that is run."""
    command: str
    source: str
    """What says that it can be run."""


def nearest_surface(files: ProjectFiles, sources: Sequence[str]) -> RunnableSurface | None:
    """Return what can be run nearest to changed files, of equally near ones what a manifest names."""
    found = [*_entry_points(files), *_node_commands(files), *_scripts(files, sources)]
    return min(found, key=lambda one: min(_apart(one.path, name) for name in sources), default=None)


def _entry_points(files: ProjectFiles) -> Iterator[RunnableSurface]:
    """Yield the commands of a Python project whose modules are there."""
    project = python_project(files)
    for name, target in project.entry_points.get("console_scripts", {}).items():
        module = target.partition(":")[0].strip().replace(".", "/")
        places = [f"{root}{module}{end}" for root in ("", "src/") for end in (".py", "/__init__.py")]
        if path := next((place for place in places if files.has(place)), ""):
            yield RunnableSurface(path=path, command=name, source=f"entry point {name} = {target}")


def _node_commands(files: ProjectFiles) -> Iterator[RunnableSurface]:
    """Yield the commands of a package of node."""
    told = files.json("package.json").get("bin")
    named = told if isinstance(told, dict) else {"bin": told}
    for name, path in named.items():
        place = path.removeprefix("./") if isinstance(path, str) else ""
        if files.has(place):
            yield RunnableSurface(path=place, command=f"node {place}", source=f"package.json bin {name}")


def _scripts(files: ProjectFiles, sources: Sequence[str]) -> Iterator[RunnableSurface]:
    """Yield scripts and packages that can be run, those first that changed."""
    named = [name for name in files.inside() if name.endswith(".py") and not is_protected(name)]
    named.sort(key=lambda name: name not in sources)
    for name in named[:SCRIPTS]:
        if name.endswith("/__main__.py"):
            module = name.removeprefix("src/").removesuffix("/__main__.py").replace("/", ".")
            yield RunnableSurface(path=name, command=f"python -m {module}", source=name)
        elif MAIN.search(files.text(name)):
            yield RunnableSurface(path=name, command=f"python {name}", source=name)


def _apart(one: str, other: str) -> int:
    """Return how many steps lie between two files, through the folders that they share."""
    parts, others = PurePosixPath(one).parts, PurePosixPath(other).parts
    shared = next((n for n, pair in enumerate(zip(parts, others, strict=False)) if pair[0] != pair[1]), None)
    common = min(len(parts), len(others)) if shared is None else shared
    return len(parts) + len(others) - 2 * common
