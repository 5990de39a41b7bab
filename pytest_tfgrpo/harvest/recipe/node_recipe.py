"""Recipes of JavaScript projects: the runner that package.json names, and what npm needs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles, within
from pytest_tfgrpo.scoring.runners.javascript.flags import kept_flags

LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
MEMBERS = 100
"""Manifests of a project with workspaces that are kept."""
CLEAN = ("npm", "ci", "--no-audit", "--no-fund")
"""Installs what the lock names, with hashes."""
_TEST = re.compile(r"[._-](?:test|spec)\.[cm]?[jt]s$|(?:^|/)test/.*\.[cm]?[jt]s$")
_BY_NODE = r"(?:node|tsx)\b.*--test"
_NODE: Mapping[str, tuple[str, ...]] = {"node": (), "tsx": ("--import=tsx",)}
"""Programs that run tests by node, with the flags that they mean."""
_CODE = re.compile(r"(?![/-])[^\x00-\x1f\\]+\.[cm]?[jt]sx?")
_IMPORT = re.compile(r"""["']node:test["']""")
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRecipe:
    """What package.json says of a folder's tests."""

    runner: str | None
    flags: tuple[str, ...] = ()
    """Of node, for the runner ``node-test``."""
    tests: tuple[str, ...] = ()
    """Globs of files with tests that the script names, relative to the folder."""
    files: dict[str, str] = field(default_factory=dict)
    setup: tuple[tuple[str, ...], ...] = ()
    sources: dict[str, str] = field(default_factory=dict)


def node_recipe(files: ProjectFiles) -> NodeRecipe:
    """Return what the package.json of a folder says."""
    manifest = files.json("package.json")
    runner, source, script = _runner(files)
    sources = {"runner": source} if runner else {}
    flags, tests = _words(script) if runner == "node-test" else ((), ())
    sources |= dict.fromkeys((*(("run",) if flags else ()), *(("tests",) if tests else ())), source)
    if not any(within(manifest, key) for key in DEPENDENCIES) and "workspaces" not in manifest:
        return NodeRecipe(runner=runner, flags=flags, tests=tests, sources=sources)
    names = ["package.json", *(name for name in LOCKS if files.has(name))]
    if manifest.get("workspaces"):
        members = (n for n in files.inside() if n.endswith("/package.json") and "node_modules" not in n)
        names += [name for _, name in zip(range(MEMBERS), members, strict=False)]
    if files.has(".npmrc") and "_auth" not in files.text(".npmrc"):
        names.append(".npmrc")
    sources["setup"] = "package.json dependencies"
    return NodeRecipe(
        runner=runner,
        flags=flags,
        tests=tests,
        files={name: files.text(name) for name in names},
        setup=(CLEAN,),
        sources=sources,
    )


def _words(script: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the flags of node that a script runs its tests with, and the globs of files with tests."""
    for part in re.split(r"&&|\|\||[;|]", script):
        try:
            words = shlex.split(part)
        except ValueError:
            continue
        place = next((n for n, word in enumerate(words) if word in _NODE), None)
        if place is None or "--test" not in words[place:]:
            continue
        before = [word.partition("=")[2] for word in words[:place] if word.startswith("NODE_OPTIONS=")]
        given = [flag for text in before for flag in text.split()] + words[place + 1 :]
        flags = tuple(dict.fromkeys((*_NODE[words[place]], *kept_flags(given))))
        return flags, tuple(glob for word in given if not word.startswith("-") for glob in _globs(word))
    return (), ()


def _globs(word: str) -> Iterator[str]:
    """Yield the globs of code that a word of a script means: a brace's parts one by one, no folder."""
    if brace := re.fullmatch(r"(.*?)\{([^{}]*)\}(.*)", word):
        for part in brace[2].split(",")[:MEMBERS]:
            yield from _globs(brace[1] + part + brace[3])
    elif _CODE.fullmatch(word) and ".." not in word.split("/"):
        yield word.removeprefix("./")


def _runner(files: ProjectFiles) -> tuple[str | None, str, str]:
    """Return the runner, where it is named, and the script of ``package.json`` that names it, if one does."""
    manifest = files.json("package.json")
    scripts = within(manifest, "scripts")
    needed = {name for key in DEPENDENCIES for name in within(manifest, key)}
    for name in ("test", *(key for key in scripts if key.startswith("test") and key != "test")):
        text = scripts.get(name)
        for word, runner in (("vitest", "vitest"), ("jest", "jest"), (_BY_NODE, "node-test")):
            if isinstance(text, str) and re.search(rf"(?:^|[\s/&;]){word}(?:$|[\s&;])", text):
                return runner, f"package.json scripts.{name}", text
    for runner in ("vitest", "jest"):
        if runner in needed:
            return runner, f"package.json dependencies {runner}", ""
        config = rf"{runner}\.config\.(?:[cm]?[jt]s|json)"
        if found := next((name for name in files.inside() if re.fullmatch(config, name)), None):
            return runner, found, ""
    for name in files.inside():
        if _TEST.search(name) and _IMPORT.search(files.text(name)):
            return "node-test", f"{name} imports node:test", ""
    return None, "", ""
