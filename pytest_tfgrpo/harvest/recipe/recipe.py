"""Recipes: how the tests of a fix run, from ``harvest.toml`` and, where it says nothing, from guesses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.toml_text import toml_text
from pytest_tfgrpo.harvest.fixes import FixCandidate, RecipePart
from pytest_tfgrpo.harvest.recipe.guesses import Guess, every_list, guess
from pytest_tfgrpo.harvest.recipe.manifests import UNKNOWN, PythonProject, python_project
from pytest_tfgrpo.harvest.recipe.node_recipe import NodeRecipe, node_recipe
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.harvest.recipe.recipe_file import RECIPE_FILE, FolderRecipe
from pytest_tfgrpo.harvest.recipe.requirement_text import (
    any_version,
    is_linter,
    name_of,
    normal,
    requirement_list,
    unique,
)
from pytest_tfgrpo.harvest.recipe.undeclared import undeclared_import
from pytest_tfgrpo.harvest.recipe.version_ranges import allows
from pytest_tfgrpo.scoring.checks.hidden.protected import is_test
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand

PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "PKG-INFO", "requirements.txt")
RELEASED = {
    "3.6": date(2016, 12, 23), "3.7": date(2018, 6, 27), "3.8": date(2019, 10, 14),
    "3.9": date(2020, 10, 5), "3.10": date(2021, 10, 4), "3.11": date(2022, 10, 24),
    "3.12": date(2023, 10, 2), "3.13": date(2024, 10, 7), "3.14": date(2025, 10, 7),
}  # fmt: skip
"""When a minor version of Python came out; one that is not listed came later."""
OLDEST = (3, 8)
"""The oldest Python on which the reporter of hidden tests runs."""
LATEST = 250_000_000_000
"""Seconds since 1970 that a date can hold; a commit can say anything."""
PLUGINS = frozenset(("flaky", "hypothesis", "iniconfig", "nbval", "pluggy", "py", "syrupy"))
"""Plugins of pytest that are not called so, and what pytest is made of."""
OF_PYTHON = ("pytest", "command")
"""Runners whose environment has a Python."""
TEMPLATE = "template"
"""Source of a value that nothing in the project says."""

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeKnowledge:
    """What recipes are made from besides the project's own files."""

    reviewed: tuple[FolderRecipe, ...] = ()
    """Of ``harvest.toml``."""
    interpreters: tuple[str, ...] = ()
    """Minor versions of the Pythons on this machine."""


def recipe_of(
    read: Read,
    names: Collection[str],
    candidate: FixCandidate,
    knowledge: RecipeKnowledge | None = None,
) -> tuple[RecipePart, ...]:
    """Return how the tests of a fix run: as declared, then relaxed (decision 44); none without a runner.

    Behind each of the two the same with all that the project's extras, groups and lists name beside it.
    `read` returns a file of the tree after the fix by its path, `names` are the paths of all its files.
    """
    knowledge = knowledge or RecipeKnowledge()
    tree = ProjectFiles(read=read, names=frozenset(names))
    tests = candidate.tests or candidate.protected  # what tests share can change alone
    folder = _folder_of(tree, tests, knowledge.reviewed)
    part = folder_recipe(tree, folder, tests, knowledge, candidate.change.committed_at)
    if part is None:
        return ()
    parts = (part, _with_all(replace(tree, folder=folder), part, knowledge, candidate.change.committed_at))
    found = [one for one in parts if one is not None]
    if part.python or part.setup or set(_relaxed(part).dependencies) != set(part.dependencies):
        found += map(_relaxed, tuple(found))
    return tuple(found)


def _relaxed(part: RecipePart) -> RecipePart:
    """Return the second pass of a part: without linters, and with any version of pytest and its plugins."""
    kept = tuple(_unpinned(item) for item in part.dependencies if not is_linter(item))
    return replace(part, dependencies=kept, relaxed=True)


def _with_all(
    files: ProjectFiles, part: RecipePart, knowledge: RecipeKnowledge, committed_at: int
) -> RecipePart | None:
    """Return a guessed part with what all extras, groups and lists of requirements name, if they add any."""
    told = _told(knowledge, files.folder)
    if told.dependencies is not None or part.command.runner not in OF_PYTHON:
        return None
    project = python_project(files)
    added, names = list[str](), list[str]()
    known = {normal(project.name), *(name_of(item) for item in part.dependencies if ";" not in item)}
    for name, items in every_list(files, project):
        listed = requirement_list(items).requirements
        here = [item for item in listed if not is_linter(item) and item not in part.dependencies]
        if new := [item for item in here if name_of(item) not in known]:
            added += new
            names.append(name)
            known.update(name_of(item) for item in new if ";" not in item)
    if not names:
        return None
    sources = {
        **part.sources,
        "dependencies": f"{part.sources['dependencies']}, all extras, groups and lists",
    }
    needed = unique((*part.dependencies, *added))
    wide = replace(part, dependencies=needed, extras=tuple(names), sources=sources)
    return wide if part.python else _with_python(wide, files, told, knowledge, committed_at)


def _told(knowledge: RecipeKnowledge, folder: str) -> FolderRecipe:
    return next((r for r in knowledge.reviewed if r.folder == folder), FolderRecipe(folder=folder))


def _unpinned(item: str) -> str:
    """Return a requirement; of pytest and its plugins any version.

    An old project may hold pytest at one of before 6, and its plugins at those that load with nothing newer.
    """
    name = name_of(item)
    if name == "pytest":
        return name
    return any_version(item) if name.startswith("pytest-") or name in PLUGINS else item


def folder_recipe(
    tree: ProjectFiles, folder: str, tests: Iterable[str], knowledge: RecipeKnowledge, committed_at: int
) -> RecipePart | None:
    """Return how the tests of a folder run; None where nothing names a runner.

    `tests` are files with tests, relative to the tree.
    """
    files = replace(tree, folder=folder)
    told = _told(knowledge, folder)
    of_python = any(name.endswith((".py", ".pyi", ".txt", ".cfg", ".toml")) for name in tests)
    node = node_recipe(files)
    runner = told.runner or ("pytest" if of_python else node.runner)
    if runner is None:
        return None
    command = SuiteCommand(runner=runner, folder=folder, run=told.run or ())
    if runner in OF_PYTHON:
        part = _with_python(_python_part(files, command), files, told, knowledge, committed_at)
    else:
        part = _node_part(files, command, node)
    return _reviewed(part, told, files)


def _folder_of(tree: ProjectFiles, tests: Sequence[str], reviewed: Sequence[FolderRecipe]) -> str:
    """Return the folder in which most tests of a fix run: a reviewed one, else one with a manifest."""
    known = {recipe.folder for recipe in reviewed}

    def of(test: str) -> str:
        parents = ["/".join(test.split("/")[:n]) or "." for n in range(test.count("/"), -1, -1)]
        if found := next((folder for folder in parents if folder in known), None):
            return found
        manifests = PYTHON_MANIFESTS[:3] if test.endswith(".py") else ("package.json",)
        having = (f for f in parents if any(replace(tree, folder=f).has(name) for name in manifests))
        return next(having, ".")

    return Counter(map(of, tests)).most_common(1)[0][0] if tests else "."


def _python_part(files: ProjectFiles, command: SuiteCommand) -> RecipePart:
    project = python_project(files)
    found = guess(files, project)
    sources = {"runner": f"files with tests in {files.folder!r}"} | found.sources
    name = project.name if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", project.name) else ""
    entries = {name: _entries(project)} if name and project.entry_points else {}
    return RecipePart(
        folder=files.folder,
        command=command,
        python=None,
        dependencies=_dependencies(project, found, command.runner, sources),
        imports=_imports(files, project, sources),
        variables=found.variables,
        distributions={name: project.version or UNKNOWN} if name else {},
        entry_points=entries,
        sources=sources,
    )


def _dependencies(
    project: PythonProject, found: Guess, runner: str, sources: dict[str, str]
) -> tuple[str, ...]:
    """Return what the project and its tests need, with the extras of the project that they name."""
    needed = requirement_list(project.dependencies)
    extras = list(found.dependencies.extras)
    items = [*needed.requirements, *found.dependencies.requirements]
    dropped = [*needed.dropped, *found.dependencies.dropped]
    own = normal(project.name)
    for item in items:
        if own and name_of(item) == own:
            extras += re.findall(r"[\w.-]+", item.partition("[")[2].partition("]")[0])
    for extra in dict.fromkeys(extras):
        listed = requirement_list(project.groups.get(extra, ()))
        items += listed.requirements
        dropped += listed.dropped
    kept = unique(item for item in items if not own or name_of(item) != own)
    named = [project.sources[key] for key in ("dependencies",) if key in project.sources]
    named += [found.sources["dependencies"]] if "dependencies" in found.sources else []
    if runner == "pytest" and not any(name_of(item) == "pytest" for item in kept):
        kept = (*kept, "pytest")
        named.append(f"{TEMPLATE} (pytest)")
    sources["dependencies"] = ", ".join(named)
    if dropped:
        sources["dependencies left out"] = ", ".join(dropped)[:1000]
    return kept


def _imports(files: ProjectFiles, project: PythonProject, sources: dict[str, str]) -> tuple[str, ...]:
    """Return the folders of the workspace from which the project's modules are imported."""
    inside = list(files.inside())
    roots = [root for root in dict.fromkeys(project.roots) if _is_place(root)]
    roots = [root for root in roots if any(name.startswith(f"{root}/") for name in inside)]
    sources["paths"] = "manifest"
    if not roots and any(re.fullmatch(r"src/(?:[^/]+/__init__|[^/]+)\.pyi?", name) for name in inside):
        roots, sources["paths"] = ["src"], "src/ holds modules"
    elif not roots:
        roots, sources["paths"] = ["."], TEMPLATE
    return tuple(_below(files.folder, root) for root in roots)


def _is_place(root: str) -> bool:
    return bool(root) and not root.startswith("/") and not {"..", "", "."} & set(root.split("/"))


def _below(folder: str, name: str) -> str:
    if folder == ".":
        return name
    return folder if name == "." else f"{folder}/{name}"


def _entries(project: PythonProject) -> str:
    lines: list[str] = []
    for group, entries in sorted(project.entry_points.items()):
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in sorted(entries.items())), ""]
    return "\n".join(line for line in lines if "\n" not in line)


def _with_python(
    part: RecipePart,
    files: ProjectFiles,
    told: FolderRecipe,
    knowledge: RecipeKnowledge,
    committed_at: int,
) -> RecipePart:
    """Return the part with a Python; with none where the project says nothing and needs only pytest.

    It then runs with pytest's own, whose further packages an undeclared import must not find.
    """
    project = python_project(files)
    found = guess(files, project)
    needs = told.dependencies if told.dependencies is not None else part.dependencies
    simple = set(part.imports) <= {part.folder} and not part.variables
    reviewed = told.dependencies is not None
    bare = (simple or reviewed) and all(" ".join(item.split()) == "pytest" for item in needs)
    declared = tuple(v for v in found.pythons if allows(project.requires_python, pair(v)))
    silent = not (declared or project.requires_python)
    if told.python or (bare and (reviewed or (silent and not undeclared_import(files)))):
        return replace(part, python=None)
    python, why = _python(declared, project.requires_python, knowledge.interpreters, committed_at)
    if declared and python in declared:
        why = found.sources["python"]
    elif project.requires_python:
        why = f"{project.sources['requires_python']} and {why}"
    return replace(part, python=python, sources={**part.sources, "python": why})


def _python(
    declared: Sequence[str], specifier: str, interpreters: Sequence[str], committed_at: int
) -> tuple[str, str]:
    """Return a minor version, and why: the newest that is declared, here, and was out at the time."""
    here = sorted((v for v in interpreters if pair(v) >= OLDEST), key=pair)
    day = datetime.fromtimestamp(min(max(committed_at, 0), LATEST), UTC).date()
    out = [v for v in here if RELEASED.get(v, date.max) <= day]
    fitting = [v for v in here if allows(specifier, pair(v))]
    for choices in ([v for v in declared if v in out], [v for v in declared if v in here]):
        if choices:
            return max(choices, key=pair), "declared"
    if declared:
        newest = max(declared, key=pair)
        above = [v for v in fitting if pair(v) > pair(newest)]
        return (above[0], f"the next after {newest} on this machine") if above else (newest, "declared")
    timely = [v for v in fitting if v in out]
    if timely:
        return timely[-1], "the newest of its time on this machine"
    if fitting:
        return fitting[0], "the oldest on this machine"
    return next((v for v in reversed(RELEASED) if allows(specifier, pair(v))), "3.11"), "not on this machine"


def pair(version: str) -> tuple[int, int]:
    """Return a minor version of Python as numbers."""
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def _node_part(files: ProjectFiles, command: SuiteCommand, node: NodeRecipe) -> RecipePart:
    return RecipePart(
        folder=files.folder,
        command=replace(command, run=command.run or node.flags),
        python=None,
        dependencies=(),
        tests=tuple(_below(files.folder, glob) for glob in node.tests),
        setup=node.setup,
        files=node.files,
        sources=node.sources,
    )


def _reviewed(part: RecipePart, told: FolderRecipe, files: ProjectFiles) -> RecipePart:
    """Return the part with the values that ``harvest.toml`` has in place of the guessed ones."""
    values: dict[str, object] = {}
    for name in ("python", "setup", "dependencies", "tests", "protected"):
        if getattr(told, name) is not None:
            values[name] = getattr(told, name)
    if told.files is not None:
        values["files"] = {name: files.text(name) for name in told.files if files.has(name)}
    if told.paths is not None:
        values["imports"] = tuple(_below(part.folder, path) for path in told.paths)
    if told.env is not None:
        values["variables"] = told.env
    kept = ("runner", "run", "python", "setup", "dependencies", "files", "paths", "env", "tests", "protected")
    where = {name: f"{RECIPE_FILE} [folder.{toml_text(told.folder)}] {name}" for name in kept}
    sources = {name: where[name] for name in kept if getattr(told, name) is not None}
    return replace(part, **values, sources={**part.sources, **sources})  # type: ignore[arg-type]


def folders_with_tests(tree: ProjectFiles) -> dict[str, list[str]]:
    """Return the files with tests by the folder in which they run."""
    found: dict[str, list[str]] = {}
    for name in sorted(tree.names):
        if is_test(name) and "node_modules/" not in name:
            found.setdefault(_folder_of(tree, (name,), ()), []).append(name)
    return found
