"""Counts that only go down: `ratchets.tsv` holds what each is today."""

import ast
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support import ROOT
from support.syntax_trees import PACKAGE, Module, each, modules, ours

KEPT = Path(__file__).with_name("ratchets.tsv")
OPTIONAL = (
    *("actors.spans.agent_spans", "actors.spans.program_spans", "actors.spans.span_receiver"),
    *("engine.stages.tracing", "engine.stages.worlds", "engine.stages.world_steps", "suite.world_steps"),
    *("gate.early_stop", "gate.looks", "gate.sequential"),
    *("learning.attribution", "runs.headroom", "suite.contamination"),
)
"""Features that the trunk should not know."""
TRUNK = ("engine", "engine/attempts", "engine/phases", "engine/preparation", "launch")
LOAD_LATE = ("api/", "cli/", "features.py:", "launch/", "plugin/")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def depth_of_all_imports() -> list[str]:
    """Modules on the longest chain of imports, those inside functions counted."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for module, found in each():
        if ours(found.target) and not found.typing_only and found.target != module.name:
            graph[module.name].add(found.target)

    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max((chain(target) for target in graph.get(name, ())), key=len, default=()))

    return list(max((chain(name) for name in graph), key=len))


def own_imports_in_functions() -> list[str]:
    """Imports of the package's own modules inside functions."""
    return sorted({f"{m.path}:{one.line}" for m, one in each() if one.lazy and ours(one.target)})


def own_imports_in_functions_of_domain_code() -> list[str]:
    """Those of them that are in no face, launch, table of features or registry, which may load late."""
    return [
        place
        for place in own_imports_in_functions()
        if not place.startswith(LOAD_LATE) and "/registry.py:" not in place
    ]


def files_of_the_fullest_folder() -> list[str]:
    """Modules beside each other."""
    folders: dict[PurePosixPath, list[str]] = {}
    for module in modules().values():
        folders.setdefault(PurePosixPath(module.path).parent, []).append(module.path)
    return max(folders.values(), key=len)


def thousands_of_lines_of_the_largest_room() -> list[str]:
    """A mark for each thousand lines, begun ones counted; `production` is a house of rooms."""
    sizes: Counter[str] = Counter()
    for module in modules().values():
        names = module.path.split("/")
        sizes["/".join(names[:2]) if names[0] == "production" else names[0]] += module.lines
    name, count = sizes.most_common(1)[0]
    return [name] * -(-count // 1000)


def classes_over_250_lines() -> list[str]:
    return [f"{m.path}: {n.name}" for m, n in _classes() if int(n.end_lineno or 0) - n.lineno >= 250]


def classes_over_15_attributes() -> list[str]:
    """Those of over 15 that are no record of a schema."""
    found = ((m, n, _declared(n) | _assigned(n).keys()) for m, n in _classes())
    return [
        f"{m.path}: {n.name}"
        for m, n, names in found
        if len(names) > 15 and not (_is_record(n) and any(names <= keys for keys in _keys_of_schemas()))
    ]


def _is_record(node: ast.ClassDef) -> bool:
    """Return whether a class is a frozen dataclass without methods; what properties say follows from it."""
    methods = [one for one in node.body if isinstance(one, Function)]
    return any("frozen=True" in ast.unparse(one) for one in node.decorator_list) and all(
        [ast.unparse(one) for one in method.decorator_list] == ["property"] for method in methods
    )


@cache
def _keys_of_schemas() -> tuple[frozenset[str], ...]:
    """Return the keys of each object of the packaged schemas; one that stands under a name has that too."""
    found = []
    for file in (ROOT / PACKAGE / "core/schemas").rglob("*.schema.json"):
        schema = json.loads(file.read_text("utf-8"))
        parts: list[Any] = [schema]
        named = set()
        objects = []
        while parts:
            part = parts.pop()
            if isinstance(part, dict):
                more = part.get("additionalProperties")
                if isinstance(more, dict) and "$ref" in more:
                    named.add(more["$ref"].rpartition("/")[2])
                if isinstance(part.get("properties"), dict):
                    objects.append(part)
                parts += part.values()
            elif isinstance(part, list):
                parts += part
        under_names = [one for name, one in schema.get("$defs", {}).items() if name in named]
        for one in objects:
            name = {"name"} if any(one is other for other in under_names) else set()
            found.append(frozenset(one["properties"]) | name)
    return tuple(found)


def attributes_born_outside_init() -> list[str]:
    """Attributes that no `__init__` and no line of the class body names."""
    return [
        f"{m.path}: {n.name}.{name}"
        for m, n in _classes()
        for name, methods in sorted(_assigned(n).items())
        if "__init__" not in methods and name not in _declared(n)
    ]


def functions_of_over_9_arguments() -> list[str]:
    """Functions of over 9 arguments, 12 in numerics."""
    found = []
    for module, node in _functions():
        args = node.args
        named = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        count = len(named) + bool(args.vararg) + bool(args.kwarg) - (named[:1] in (["self"], ["cls"]))
        if count > (12 if module.part == "numerics" else 9):
            found.append(f"{module.path}: {node.name}")
    return found


def functions_over_50_lines() -> list[str]:
    """Functions over 50 lines, docstrings not counted."""
    found = []
    for module, node in _functions():
        text = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
        doc = int(text.end_lineno or 0) - text.lineno + 1 if text is not None else 0
        if int(node.end_lineno or 0) - node.lineno + 1 - doc > 50:
            found.append(f"{module.path}: {node.name}")
    return found


def settings_read_by_string() -> list[str]:
    """`settings["x"]`, `settings.get("x")` and `getattr(settings, "x")`."""
    found = []
    for module in modules().values():
        for node in ast.walk(module.tree):
            match node:
                case ast.Subscript(value=base, slice=ast.Constant(value=str())):
                    pass
                case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[ast.Constant(), *_]):
                    pass
                case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(), *_]):
                    pass
                case _:
                    continue
            if getattr(base, "attr", getattr(base, "id", "")) in ("settings", "_settings"):
                found.append(f"{module.path}:{node.lineno}")
    return found


def optional_features_in_the_trunk() -> list[str]:
    """Imports of optional features in the engine's own files and the launch."""
    return [
        f"{module.path}:{found.line} {found.target}"
        for module, found in each()
        if PurePosixPath(module.path).parent.as_posix() in TRUNK
        and found.target.removeprefix(f"{PACKAGE}.").startswith(OPTIONAL)
        and not module.name.removeprefix(f"{PACKAGE}.").startswith(OPTIONAL)
    ]


COUNTS = {
    "import depth, imports in functions counted": depth_of_all_imports,
    "own imports in functions": own_imports_in_functions,
    "own imports in functions of domain code": own_imports_in_functions_of_domain_code,
    "files of the fullest folder": files_of_the_fullest_folder,
    "thousands of lines of the largest room": thousands_of_lines_of_the_largest_room,
    "classes over 250 lines": classes_over_250_lines,
    "classes over 15 attributes": classes_over_15_attributes,
    "attributes born outside __init__": attributes_born_outside_init,
    "functions of over 9 arguments": functions_of_over_9_arguments,
    "functions over 50 lines": functions_over_50_lines,
    "settings read by string": settings_read_by_string,
    "optional features in the trunk": optional_features_in_the_trunk,
}


@cache
def kept() -> dict[str, int]:
    rows = [line.split("\t") for line in KEPT.read_text(encoding="utf-8").splitlines()]
    return {name: int(count) for name, count in rows}


def test_each_optional_feature_is_there() -> None:
    there = {name.removeprefix(f"{PACKAGE}.") for name in modules()}
    assert [name for name in OPTIONAL if name not in there] == []


def test_each_count_is_kept() -> None:
    assert kept().keys() == COUNTS.keys()


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_does_not_grow_and_what_is_won_is_kept(name: str) -> None:
    found = COUNTS[name]()
    most = kept()[name]
    shown = "\n  ".join(sorted(set(found))[:60])
    assert len(found) <= most, f"{name}: {len(found)}, {most} before. They are:\n  {shown}"
    assert len(found) == most, f"{name}: {len(found)}, better than {most}: write it into {KEPT}"


def _classes() -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                yield module, node


def _functions() -> Iterator[tuple[Module, Function]]:
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, Function):
                yield module, node


def _declared(node: ast.ClassDef) -> set[str]:
    """Fields that a class body announces."""
    return {
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and not ast.unparse(one.annotation).startswith("ClassVar")
    }


def _assigned(node: ast.ClassDef) -> dict[str, set[str]]:
    """Attributes of `self` by name, with the methods that assign them."""
    found: dict[str, set[str]] = {}
    for method in node.body:
        if isinstance(method, Function):
            for one in ast.walk(method):
                if (
                    isinstance(one, ast.Attribute)
                    and isinstance(one.ctx, ast.Store)
                    and isinstance(one.value, ast.Name)
                    and one.value.id == "self"
                ):
                    found.setdefault(one.attr, set()).add(method.name)
    return found
