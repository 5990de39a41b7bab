"""Protected paths: what an agent may not change, as it decides which tests run and what comes of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "__mocks__", "__snapshots__"})
"""Folders that hold nothing but tests and what tests need; compared without case."""
_JAVASCRIPT = r"(?:[cm]?[jt]sx?)"
_NAMES = re.compile(
    "|".join(
        (
            r"test_.*\.pyi?",
            r".*_tests?\.pyi?",
            r"tests?\.py",
            r"conftest\.py",
            rf".*[._-](?:test|spec)\.{_JAVASCRIPT}",
            rf"test(?:-.*)?\.{_JAVASCRIPT}",
            r".*\.snap",
            # runner configuration, read wherever it lies
            r"\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|setup\.cfg|pyproject\.toml|\.coveragerc",
            rf"(?:jest|vitest|vite|babel)\.(?:config|setup|workspace|preset)(?:\..+)?\.(?:{_JAVASCRIPT}|json)",
            r"(?:postcss|tailwind|svelte|next|nuxt|astro|webpack|rollup|uno|unocss)\.config\..+|\.postcssrc(?:\..*)?",
            r"(?:ts|js)config(?:\..+)?\.json",
            r"(?:package|package-lock|npm-shrinkwrap)\.json|\.npmrc|\.babelrc(?:\..*)?|\.swcrc",
            r"(?:setup-?tests?|jest-.*|vitest-.*)\." + _JAVASCRIPT,
            # files that an interpreter reads by itself
            r"(?:site|user)customize(?:\..+)?|.*\.pth|.*\.egg-link|pyvenv\.cfg|.*\.py[co]",
        )
    ),
    re.IGNORECASE,
)
"""Names of protected files, in any folder."""
_FOLDER_NAMES = re.compile(
    r".*\.(?:dist-info|egg-info)|(?:site|user)customize|node_modules|site-packages|__pycache__|\.git",
    re.IGNORECASE,
)
"""Names of folders of which all is protected, beside those of tests."""
_RUNNERS = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "py", "unittest", "exceptiongroup"}
)
"""Modules that run tests: nothing in a workspace may be called so, whatever is installed."""


def is_protected(path: str, globs: Iterable[str] = ()) -> bool:
    """Return whether a path comes from the fix in every check; relative to the tree, with forward slashes.

    Tests and their folders, runner configuration as whole files, and what an interpreter reads by itself;
    `globs` name further paths: ``*`` stays within a folder, ``**`` crosses folders, one that names a folder
    holds all in it.
    """
    *folders, name = path.split("/")
    if any(part.lower() in TEST_FOLDERS or _FOLDER_NAMES.fullmatch(part) for part in folders):
        return True
    return _NAMES.fullmatch(name) is not None or matches(path, globs)


def matches(path: str, globs: Iterable[str]) -> bool:
    """Return whether a path is one that a glob names, or lies in a folder that it names."""
    return any(_compiled(glob).fullmatch(path) for glob in globs)


def lies_in(path: str, places: Collection[str]) -> bool:
    """Return whether a path is one of `places`, or lies in one that is a folder."""
    while path:
        if path in places:
            return True
        path = path.rpartition("/")[0]
    return False


def is_test(path: str, globs: Iterable[str] = ()) -> bool:
    """Return whether a path is a file with tests, by the customs of pytest, node, jest and vitest."""
    *folders, name = path.split("/")
    if globs := tuple(globs):
        return matches(path, globs)
    if re.fullmatch(r"test_.*\.py|.*_tests?\.py|tests?\.py", name):
        return True
    if re.fullmatch(rf".*[._-](?:test|spec)\.{_JAVASCRIPT}|test(?:-.*)?\.{_JAVASCRIPT}", name):
        return True
    in_tests = any(part in ("test", "__tests__") for part in folders)
    return in_tests and re.fullmatch(rf"[^.].*\.{_JAVASCRIPT}", name) is not None


def shadows(
    path: str,
    names: Collection[str],
    packages: Collection[str],
    roots: Iterable[str] = (),
    own: Collection[str] = (),
) -> bool:
    """Return whether a path would be imported in place of a module that is not the project's.

    `names` are the top-level modules of the standard library and the environment, `packages` the folders
    with an ``__init__`` file, whose modules have a prefix; `roots` are folders from which modules are
    imported, beside the tree itself; `own` the project's files and folders, which may be called anyhow.
    """
    parts = path.split("/")
    starts = {".", "", *roots}
    for depth, part in enumerate(parts):
        folder = "/".join(parts[:depth])
        if (folder in packages and folder not in starts) or "/".join(parts[: depth + 1]) in own:
            continue
        last = depth == len(parts) - 1
        if last and not part.endswith((".py", ".pyc", ".so", ".pyd", ".zip")):
            continue
        module = part.partition(".")[0] if last else part
        if module in _RUNNERS or module in names:
            return True
    return False


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> re.Pattern[str]:
    """Return the pattern of a glob; every part of it is literal but ``*``, ``**`` and ``?``."""
    text = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob.strip("/").removeprefix("./")):
        text += {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}.get(part, re.escape(part))
    return re.compile(rf"{text}(?:/.*)?", re.DOTALL)
