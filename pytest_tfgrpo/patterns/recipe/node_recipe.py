"""Recipes of JavaScript projects: the runner that package.json names, and what npm needs."""

from __future__ import annotations

import re
from dataclasses import field

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.patterns.recipe.project_files import ProjectFiles, within

LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
MEMBERS = 100
"""Manifests of a project with workspaces that are kept."""
CLEAN = ("npm", "ci", "--no-audit", "--no-fund")
"""Installs what the lock names, with hashes."""
_TEST = re.compile(r"[._-](?:test|spec)\.[cm]?[jt]s$|(?:^|/)test/.*\.[cm]?[jt]s$")
_IMPORT = re.compile(r"""["']node:test["']""")
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRecipe:
    """What package.json says of a folder's tests."""

    runner: str | None
    files: dict[str, str] = field(default_factory=dict)
    setup: tuple[tuple[str, ...], ...] = ()
    sources: dict[str, str] = field(default_factory=dict)


def node_recipe(files: ProjectFiles) -> NodeRecipe:
    """Return what the package.json of a folder says."""
    manifest = files.json("package.json")
    runner, source = _runner(files)
    sources = {"runner": source} if runner else {}
    if not any(within(manifest, key) for key in DEPENDENCIES) and "workspaces" not in manifest:
        return NodeRecipe(runner=runner, sources=sources)
    names = ["package.json", *(name for name in LOCKS if files.has(name))]
    if manifest.get("workspaces"):
        members = (n for n in files.inside() if n.endswith("/package.json") and "node_modules" not in n)
        names += [name for _, name in zip(range(MEMBERS), members, strict=False)]
    if files.has(".npmrc") and "_auth" not in files.text(".npmrc"):
        names.append(".npmrc")
    sources["setup"] = "package.json dependencies"
    return NodeRecipe(
        runner=runner, files={name: files.text(name) for name in names}, setup=(CLEAN,), sources=sources
    )


def _runner(files: ProjectFiles) -> tuple[str | None, str]:
    """Return the runner and where it is named: by the scripts, by the dependencies, by a configuration."""
    manifest = files.json("package.json")
    scripts = within(manifest, "scripts")
    needed = {name for key in DEPENDENCIES for name in within(manifest, key)}
    for name in ("test", *(key for key in scripts if key.startswith("test") and key != "test")):
        text = scripts.get(name)
        for word, runner in (("vitest", "vitest"), ("jest", "jest"), (r"node\b.*--test", "node-test")):
            if isinstance(text, str) and re.search(rf"(?:^|[\s/&;]){word}(?:$|[\s&;])", text):
                return runner, f"package.json scripts.{name}"
    for runner in ("vitest", "jest"):
        if runner in needed:
            return runner, f"package.json dependencies {runner}"
        config = rf"{runner}\.config\.(?:[cm]?[jt]s|json)"
        if found := next((name for name in files.inside() if re.fullmatch(config, name)), None):
            return runner, found
    for name in files.inside():
        if _TEST.search(name) and _IMPORT.search(files.text(name)):
            return "node-test", f"{name} imports node:test"
    return None, ""
