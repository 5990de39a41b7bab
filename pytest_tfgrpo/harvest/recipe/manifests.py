"""Manifests of Python projects: name, version, dependencies and Pythons, read without running anything."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles, table, within, words
from pytest_tfgrpo.harvest.recipe.requirement_text import poetry

VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.!+_-]{0,99}")
UNKNOWN = "0"
"""Version of a project that says none which can be read."""
_DECIDED = re.compile(r"\b(?:sys|os|platform|version|version_info|PY2|PY3)\b", re.IGNORECASE)
"""A condition that holds on some machines, Pythons or commands alone."""
_ASSIGNED = re.compile(r"""^(?:__version__|VERSION|version)\s*(?::\s*\w+\s*)?=\s*["']([^"'\n]+)["']""", re.M)


@dataclass(kw_only=True, slots=True)
class PythonProject:
    """What the manifests of a folder say; the first one that says something counts."""

    name: str = ""
    version: str = ""
    requires_python: str = ""
    pythons: tuple[str, ...] = ()
    """Minor versions that its classifiers name."""
    dependencies: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    """Extras and groups of dependencies, by name."""
    tests_require: list[str] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    """Folders of its packages, as declared."""
    entry_points: dict[str, dict[str, str]] = field(default_factory=dict)
    """By group, name to object."""
    sources: dict[str, str] = field(default_factory=dict)
    """Where each value is from."""

    def take(self, name: str, value: Json, source: str) -> None:
        """Set a value that is not set yet, and that is not empty."""
        if value and not getattr(self, name):
            setattr(self, name, value)
            self.sources[name] = source


def python_project(files: ProjectFiles) -> PythonProject:
    """Return what the manifests of a folder say of its Python project."""
    project = PythonProject()
    _pyproject(project, files.toml("pyproject.toml"))
    _setup_cfg(project, files.ini("setup.cfg"))
    _setup_py(project, files)
    _package_info(project, files)
    if not VERSION.fullmatch(project.version):
        project.version = ""
    project.take("version", _version_in(files, project.name), "its modules")
    return project


def _pyproject(project: PythonProject, data: dict[str, Json]) -> None:
    told = table(data.get("project"))
    where = "pyproject.toml [project] "
    for name, key in (("name", "name"), ("version", "version"), ("requires_python", "requires-python")):
        if isinstance(told.get(key), str):
            project.take(name, told[key], where + key)
    project.take("pythons", _classified(words(told.get("classifiers"))), where + "classifiers")
    project.take("dependencies", words(told.get("dependencies")), where + "dependencies")
    for group, items in within(told, "optional-dependencies").items():
        project.groups.setdefault(group, words(items))
        project.sources.setdefault(
            f"group {group}", f"pyproject.toml [project.optional-dependencies] {group}"
        )
    for group in (groups := within(data, "dependency-groups")):
        project.groups.setdefault(group, _group(groups, group))
        project.sources.setdefault(f"group {group}", f"pyproject.toml [dependency-groups] {group}")
    for group, key in (("console_scripts", "scripts"), ("gui_scripts", "gui-scripts")):
        _add_entries(project, group, within(told, key))
    for group, entries in within(told, "entry-points").items():
        _add_entries(project, group, table(entries))
    _poetry(project, within(data, "tool", "poetry"))
    for root in words(within(data, "tool", "setuptools", "packages", "find").get("where")):
        project.roots.append(root)
    project.roots += _texts(within(data, "tool", "setuptools", "package-dir").get(""))
    project.roots += _texts(within(data, "tool", "flit", "module").get("src"))


def _group(groups: dict[str, Json], name: str, depth: int = 5) -> list[str]:
    """Return the requirements of a group of dependencies with those that it includes (PEP 735)."""
    found: list[str] = []
    items = groups.get(name)
    for item in items if isinstance(items, list) else []:
        if isinstance(item, str):
            found.append(item)
        elif depth and isinstance(other := table(item).get("include-group"), str):
            found += _group(groups, other, depth - 1)
    return found


def _poetry(project: PythonProject, told: dict[str, Json]) -> None:
    where = "pyproject.toml [tool.poetry] "
    for name in ("name", "version"):
        if isinstance(told.get(name), str):
            project.take(name, told[name], where + name)
    needed = within(told, "dependencies")
    if isinstance(needed.get("python"), str):
        project.take("requires_python", needed["python"], where + "dependencies.python")
    project.take("pythons", _classified(words(told.get("classifiers"))), where + "classifiers")
    project.take("dependencies", _poetry_list(needed), where + "dependencies")
    groups = {"dev": told.get("dev-dependencies")}
    groups |= {name: table(group).get("dependencies") for name, group in within(told, "group").items()}
    groups |= {name: _needed(needed, names) for name, names in within(told, "extras").items()}
    for group, items in groups.items():
        if listed := _poetry_list(table(items)):
            project.groups.setdefault(group, listed)
            project.sources.setdefault(f"group {group}", f"{where}group {group}")
    _add_entries(project, "console_scripts", within(told, "scripts"))
    for group, entries in within(told, "plugins").items():
        _add_entries(project, group, table(entries))
    packages = told.get("packages")
    for package in packages if isinstance(packages, list) else []:
        project.roots += _texts(table(package).get("from"))


def _needed(needed: dict[str, Json], names: Json) -> dict[str, Json]:
    """Return the dependencies that an extra names, which are optional without it."""
    listed = {name: needed[name] for name in words(names) if name in needed}
    return {n: {**one, "optional": False} if isinstance(one, dict) else one for n, one in listed.items()}


def _poetry_list(items: dict[str, Json]) -> list[str]:
    return [text for name, value in items.items() if name != "python" and (text := poetry(name, value))]


def _setup_cfg(project: PythonProject, data: dict[str, dict[str, str]]) -> None:
    meta, options = data.get("metadata", {}), data.get("options", {})
    project.take("name", meta.get("name", "").strip(), "setup.cfg [metadata] name")
    if not meta.get("version", "").startswith(("attr:", "file:")):
        project.take("version", meta.get("version", "").strip(), "setup.cfg [metadata] version")
    classifiers = words(meta.get("classifiers") or meta.get("classifier"))
    project.take("pythons", _classified(classifiers), "setup.cfg [metadata] classifiers")
    for name, key in (("dependencies", "install_requires"), ("tests_require", "tests_require")):
        listed = [item for line in words(options.get(key)) for item in line.split("|") if item]
        project.take(
            name, [item for item in listed if not item.startswith("#")], f"setup.cfg [options] {key}"
        )
    python = options.get("python_requires", "").strip()
    project.take("requires_python", python, "setup.cfg [options] python_requires")
    for group, text in data.get("options.extras_require", {}).items():
        project.groups.setdefault(group, [item for item in words(text) if not item.startswith("#")])
        project.sources.setdefault(f"group {group}", f"setup.cfg [options.extras_require] {group}")
    for group, text in data.get("options.entry_points", {}).items():
        _add_entries(project, group, _entry_lines(words(text)))
    for line in words(options.get("package_dir")):
        key, _, root = line.partition("=")
        project.roots += [root.strip()] if not key.strip() and root.strip() else []
    project.roots += words(data.get("options.packages.find", {}).get("where"))


def _setup_py(project: PythonProject, files: ProjectFiles) -> None:
    """Take the literal arguments of ``setup(...)``; names are looked up among the module's own literals.

    What is added to a list counts too, wherever a version, a platform or a command does not decide it.
    """
    tree = files.python("setup.py")
    known = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for name, value in _added(tree.body):
        if name in known:
            known[name] = ast.BinOp(left=known[name], op=ast.Add(), right=value)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if ast.unparse(call.func).rpartition(".")[2] == "setup":
            told = {word.arg: _literal(word.value, known) for word in call.keywords if word.arg}
            _setup_arguments(project, told)


def _added(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield what statements add to lists: the list's name, and a list."""
    for node in body:
        match node:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                yield name, value
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=how), args=[item])):
                if how in ("append", "extend"):
                    yield name, ast.List(elts=[item], ctx=ast.Load()) if how == "append" else item
            case ast.Try(body=tried, handlers=handlers, orelse=orelse, finalbody=last):
                yield from _added([*tried, *(one for h in handlers for one in h.body), *orelse, *last])
            case ast.If(test=test, body=then, orelse=orelse) if not _DECIDED.search(ast.unparse(test)):
                yield from _added([*then, *orelse])


def _setup_arguments(project: PythonProject, told: Mapping[str, Json]) -> None:
    for name, key in (("name", "name"), ("version", "version"), ("requires_python", "python_requires")):
        if isinstance(told.get(key), str):
            project.take(name, told[key], f"setup.py {key}")
    for name, key in (("dependencies", "install_requires"), ("tests_require", "tests_require")):
        project.take(name, words(told.get(key)), f"setup.py {key}")
    project.take("pythons", _classified(words(told.get("classifiers"))), "setup.py classifiers")
    for group, items in table(told.get("extras_require")).items():
        project.groups.setdefault(group, words(items))
        project.sources.setdefault(f"group {group}", f"setup.py extras_require {group}")
    entries = told.get("entry_points")
    if isinstance(entries, str):
        parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
        try:
            parser.read_string(entries)
        except configparser.Error:
            return
        entries = {section: [f"{k}={v}" for k, v in parser.items(section)] for section in parser.sections()}
    for group, lines in table(entries).items():
        _add_entries(project, group, _entry_lines(words(lines)))
    project.roots += _texts(table(told.get("package_dir")).get(""))


def _literal(node: ast.expr, known: Mapping[str, ast.expr], depth: int = 20) -> Json:
    """Return the value of literals, of names of literals, and of sums of lists; None of anything else."""
    if depth == 0:
        return None
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _literal(known[name], known, depth - 1) if name in known else None
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_literal(item, known, depth - 1) for item in items]
        case ast.Dict(keys=keys, values=values):
            pairs = [(_literal(k, known, depth - 1), v) for k, v in zip(keys, values, strict=True) if k]
            return {key: _literal(v, known, depth - 1) for key, v in pairs if isinstance(key, str)}
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, two = (_literal(side, known, depth - 1) for side in (left, right))
            return one + two if isinstance(one, list) and isinstance(two, list) else None
    return None


def _package_info(project: PythonProject, files: ProjectFiles) -> None:
    """Take name, version and Python from the PKG-INFO of a source distribution."""
    head = files.text("PKG-INFO").partition("\n\n")[0] if files.has("PKG-INFO") else ""
    fields: dict[str, list[str]] = {}
    for line in head.splitlines():
        key, colon, value = line.partition(":")
        if colon and not key.startswith((" ", "\t")):
            fields.setdefault(key.lower(), []).append(value.strip())
    for name, key in (("name", "name"), ("version", "version"), ("requires_python", "requires-python")):
        project.take(name, fields.get(key, [""])[0], f"PKG-INFO {key}")
    project.take("pythons", _classified(fields.get("classifier", [])), "PKG-INFO classifiers")


def _version_in(files: ProjectFiles, name: str) -> str:
    """Return the version that a module of the project assigns."""
    package = re.sub(r"[-.]+", "_", name).lower()
    likely = [
        path
        for path in files.inside()
        if re.fullmatch(
            r"(?:src/|lib/)?(?P<package>\w+)/(?:__init__|_?_?version_?_?|__about__|_meta)\.py", path
        )
        or path == f"{package}.py"
        or path == f"src/{package}.py"
    ]
    likely.sort(key=lambda path: (package not in path.lower(), path.count("/"), path))
    for path in likely[:20]:
        if (found := _ASSIGNED.search(files.text(path))) and VERSION.fullmatch(found[1]):
            return found[1]
    return ""


def _classified(classifiers: list[str]) -> tuple[str, ...]:
    found = (
        re.fullmatch(r"Programming Language\s*::\s*Python\s*::\s*(3\.[0-9]+)\s*", item)
        for item in classifiers
    )
    return tuple(match[1] for match in found if match)


def _add_entries(project: PythonProject, group: str, entries: Mapping[str, Json]) -> None:
    for name, value in entries.items():
        if isinstance(value, str) and re.fullmatch(r"[\w.-]+", group) and re.fullmatch(r"[^=\[\]\n]+", name):
            project.entry_points.setdefault(group, {}).setdefault(name.strip(), value.strip())


def _entry_lines(lines: list[str]) -> dict[str, str]:
    return {k.strip(): v.strip() for k, equals, v in (line.partition("=") for line in lines) if equals}


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value.strip("/")
