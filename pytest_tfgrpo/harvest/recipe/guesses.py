"""Guesses how tests run, from scripts that run them: tox, nox, hatch, make, CI; parsed, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.recipe.manifests import PythonProject
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles, table, within, words
from pytest_tfgrpo.harvest.recipe.requirement_text import RequirementList, installed_by, requirement_list
from pytest_tfgrpo.harvest.recipe.requirement_text import requirements_file as items_of
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

TEST_GROUPS = (
    "test",
    "tests",
    "testing",
    "pytest",
    "unittest",
    "dev-test",
    "dev",
    "develop",
    "development",
    "all",
)
"""Extras and groups that hold what tests need, the likely ones first."""
TEST_FILES = tuple(
    name.format(kind)
    for kind in ("tests", "test", "testing", "dev", "develop", "development")
    for name in (
        "requirements-{}.txt", "requirements_{}.txt", "{}-requirements.txt", "{}_requirements.txt",
        "requirements/{}.txt", "requirements/{}.in", "tests/requirements.txt", "requirements.{}.txt",
    )
)  # fmt: skip
NO_TESTS = re.compile(
    r"(?i)^(?:docs?|documentation|lint(?:s|er|ers|ing)?|format(?:ting)?|style|typ(?:ing|es?)|typecheck(?:ing)?"
    r"|mypy|release|publish|build|pre-?commit|bench\w*|notebooks?)$"
)
"""Extras and groups that no test needs."""
_LISTED = re.compile(
    r"(?:[\w.-]*[-_.])?requirements(?:[-_.][\w.-]*)?\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)"
)
FURTHER = 20
"""Requirements files that are read besides those called after tests."""
WORKFLOWS = 20
"""Files of CI workflows that are read."""


@dataclass(kw_only=True, slots=True)
class Guess:
    """What the scripts of a project say of its tests."""

    dependencies: RequirementList = field(default_factory=RequirementList)
    pythons: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)


def guess(files: ProjectFiles, project: PythonProject) -> Guess:
    """Return what the scripts of a folder say; the likeliest that names requirements counts."""
    found = Guess()
    for source, items in _lists(files, project):
        listed = requirement_list(items)
        if listed.requirements or listed.extras:
            found.dependencies, found.sources["dependencies"] = listed, source
            break
    for source, pythons in _pythons(files, project):
        if pythons:
            found.pythons, found.sources["python"] = pythons, source
            break
    found.variables = _variables(files.ini("tox.ini").get("testenv", {}).get("setenv", ""))
    if found.variables:
        found.sources["env"] = "tox.ini [testenv] setenv"
    return found


def every_list(files: ProjectFiles, project: PythonProject) -> Iterator[tuple[str, list[str]]]:
    """Yield all that tests may need, each list with a name: extras, groups, scripts, requirements files."""
    for name, items in project.groups.items():
        if not NO_TESTS.search(name):
            yield name, items
    for source, items in _lists(files, project):
        if source not in project.sources.values():  # else it is a group
            yield source, items
    for name in sorted(name for name in files.inside() if _LISTED.fullmatch(name))[:FURTHER]:
        if name not in TEST_FILES and not NO_TESTS.search(re.sub(r"[-_.]?requirements[-_.]?", "", name[:-4])):
            yield name, items_of(name, files.text)


def _lists(files: ProjectFiles, project: PythonProject) -> Iterator[tuple[str, list[str]]]:
    """Yield lists of what tests need with their source, the likeliest first."""
    for name in TEST_GROUPS[:5]:
        if project.groups.get(name):
            yield project.sources[f"group {name}"], project.groups[name]
    for name, section, deps in _tox(files):
        yield f"{name} {section}", [item for line in words(deps) for item in _tox_item(line, files.text)]
    yield from _nox(files)
    for name in ("hatch-test", "test", "tests", "default"):
        told = within(files.toml("pyproject.toml"), "tool", "hatch", "envs", name)
        items = words(told.get("dependencies")) + words(told.get("extra-dependencies"))
        yield f"pyproject.toml [tool.hatch.envs.{name}]", items
    if project.tests_require:
        yield project.sources["tests_require"], project.tests_require
    for name in TEST_FILES:
        if files.has(name):
            yield name, items_of(name, files.text)
    for name in TEST_GROUPS[5:]:
        if project.groups.get(name):
            yield project.sources[f"group {name}"], project.groups[name]
    yield from _script_lists(files)


def _tox(files: ProjectFiles) -> Iterator[tuple[str, str, str]]:
    """Yield the requirements of tox environments that run tests: file, section, text."""
    for name in ("tox.ini", "setup.cfg"):
        sections = files.ini(name)
        for section in ("testenv", "tox:testenv"):
            if deps := sections.get(section, {}).get("deps"):
                yield name, f"[{section}] deps", deps
    told = files.toml("pyproject.toml")
    legacy = within(told, "tool", "tox").get("legacy_tox_ini")
    found = re.search(r"\[testenv\].*?^deps\s*=\s*(.*?)(?=^\S|\Z)", str(legacy or ""), re.M | re.S)
    if found:
        yield "pyproject.toml", "[tool.tox] legacy_tox_ini", found[1]
    for name, base in (("tox.toml", files.toml("tox.toml")), ("pyproject.toml", within(told, "tool", "tox"))):
        if items := words(within(base, "env_run_base").get("deps")):
            yield name, "env_run_base.deps", "\n".join(items)


def _tox_item(line: str, text_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the items of a line of tox's deps, whose factors in front of it (``py39: mock``) are cut."""
    text = re.sub(r"^!?[\w{},.!-]+\s*:\s+", "", line).replace("{toxinidir}/", "").replace("{tox_root}/", "")
    if included := re.match(r"-r\s*(\S+)", text):
        yield from items_of(included[1], text_of)
    elif "{" not in text and not text.startswith(("-", "#")):
        yield re.sub(r"\s#.*", "", text)


def _nox(files: ProjectFiles) -> Iterator[tuple[str, list[str]]]:
    """Yield what the test functions of a noxfile install."""
    for node in files.python("noxfile.py").body:
        if isinstance(node, ast.FunctionDef) and re.search("test", node.name):
            items: list[str] = []
            for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
                if ast.unparse(call.func) == "session.install":
                    texts = [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
                    items += installed_by("pip install " + " ".join(map(repr, texts)), files.text)
            yield f"noxfile.py {node.name}", items


def _script_lists(files: ProjectFiles) -> Iterator[tuple[str, list[str]]]:
    for name, text in [*workflows(files), ("Makefile", files.text("Makefile"))]:
        lines = text.replace("\\\n", " ").splitlines()
        runs = [line for line in lines if "pip" in line and "install" in line]
        items = [item for line in runs for item in installed_by(line, files.text)]
        yield name, [item for item in items if item not in ("pip", "setuptools", "wheel")]


def workflows(files: ProjectFiles) -> Iterator[tuple[str, str]]:
    """Yield the files of CI workflows that mention tests, with their text; of the tree's root too."""
    root = ProjectFiles(read=files.read, names=files.names)
    names = [
        name
        for name in sorted(files.names)
        if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", name) or name in (".travis.yml", ".gitlab-ci.yml")
    ]
    names.sort(key=lambda name: ("test" not in name, name))
    for name in names[:WORKFLOWS]:
        text = root.text(name)
        if re.search(r"pytest|tox|nox|unittest|\btests?\b", text):
            yield name, text


def _pythons(files: ProjectFiles, project: PythonProject) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the minor versions of Python that a source names."""
    yield ".python-version", minors(files.text(".python-version"))[:1]
    if project.pythons:
        yield project.sources["pythons"], project.pythons
    envs = files.ini("tox.ini").get("tox", {})
    listed = envs.get("envlist") or envs.get("env_list") or ""
    named = re.findall(r"\bpy(3?)\.?\{([^}]*)\}", listed)
    digits = [major + digit for major, group in named for digit in re.split(r"\s*,\s*", group.strip())]
    digits += re.findall(r"\bpy(3[0-9]+|3\.[0-9]+)\b", listed)
    yield "tox.ini [tox] envlist", minors(" ".join(re.sub(r"^3\.?", "3.", digit) for digit in digits))
    for name, text in workflows(files):
        try:
            value = parse_yaml(text).value
        except (Refused, RecursionError):
            continue
        yield name, minors(" ".join(_versions(value)))


def _versions(value: Json, depth: int = 30) -> Iterator[str]:
    """Yield what stands under keys such as ``python-version``, wherever they are."""
    if isinstance(value, list) and depth:
        for item in value:
            yield from _versions(item, depth - 1)
    for key, item in table(value).items():
        if re.fullmatch(r"python(?:[-_]versions?)?", str(key).lower()):
            listed = item if isinstance(item, list) else [item]
            yield from (str(part) for part in listed if isinstance(part, str | float))
        elif depth:
            yield from _versions(item, depth - 1)


def minors(text: str) -> tuple[str, ...]:
    """Return the minor versions of Python 3 that a text names, each once."""
    return tuple(dict.fromkeys(re.findall(r"(?<![\d.])(3\.[0-9]{1,2})(?!\d)", text)))


def _variables(text: str) -> dict[str, str]:
    """Return the plain assignments of tox's setenv."""
    found = {}
    variable = load_schema("environment")["properties"]["variables"]["propertyNames"]["pattern"]
    for line in words(text):
        name, equals, value = (part.strip() for part in line.partition("="))
        if equals and re.search(variable, name) and not re.search(r"[{}$\x00]", value):
            found[name] = value
    return found
