"""Changed code that answers with nothing: the functions of a change as they are called by tests.

A function keeps what it does while modules are imported, so that tests can be found; called by a test it
returns a value of which every part is the same value again. A test that then still passes asserts nothing of
what the change does, whatever constants it looks at.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

Blank: TypeAlias = Literal["no", "yes", "none", "fed"]
"""What the value says where it is compared, or that it is None; ``fed`` is ``no``, also for what modules with
tests ask while they are imported."""
FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
SILENT = frozenset(
    f"__{name}__" for name in ("init", "post_init", "init_subclass", "set_name", "del", "setattr", "delattr")
)
"""Methods that must return None."""
PREAMBLE = """
import sys as _blank_sys
def _blank_asked():
    frame, names = _blank_sys._getframe(1), set()
    while frame is not None:
        names.add(frame.f_code.co_name)
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return FED and "test" in str(frame.f_globals.get("__file__")).rpartition("/")[2]
        frame = frame.f_back
    return FED or "runtestprotocol" in names or "wrap_session" not in names
class _Blank:
    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return self
    def __hash__(self): return 7
    def __iter__(self): return iter((self,))
    def __float__(self): return float(SAYS)
    def __await__(self):
        return self
        yield
    async def __aenter__(self): return self
    async def __aexit__(self, *a): pass
    async def __aiter__(self): yield self
def _blank_methods():
    same = "call getitem enter neg pos abs invert round get"
    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
        same += " " + name + " r" + name
    answers = {
        same: lambda self, *a, **k: self,
        "eq": lambda self, other: SAYS or self is other,
        "ne lt le gt ge bool contains": lambda self, *a: SAYS,
        "len int index": lambda self: int(SAYS),
        "str repr format fspath": lambda self, *a: "blank",
        "setattr delattr setitem delitem exit": lambda self, *a: None,
    }
    for names, answer in answers.items():
        for name in names.split():
            setattr(_Blank, "__" + name + "__", answer)
_blank_methods()
_blank_value = VALUE
def _blank_class(cls):
    old = cls.__new__
    def new(cls, *a, **k):
        if _blank_asked():
            return _blank_value
        return object.__new__(cls) if old is object.__new__ else old(cls, *a, **k)
    try:
        cls.__new__ = staticmethod(new)
    except Exception:
        pass
"""
"""What a module with blanked functions begins with: where pytest runs, only its tests ask."""


class _Module(NamedTuple):
    """A module, and what of it is to be blanked."""

    tree: ast.Module
    functions: frozenset[int]
    """Ids of nodes."""
    classes: frozenset[str]
    """Names of classes whose making is blanked too."""
    values: frozenset[str]
    """Names that are no functions, to which a change gave another value."""


def blanked_code(
    before: Mapping[str, bytes], after: Mapping[str, bytes], changed: Iterable[str], blank: Blank
) -> dict[str, bytes]:
    """Return the modules of `after` in which something is blanked, by path.

    `changed` are the paths of changed sources. What uses a name that a change gave another value is blanked
    too, also in modules that import the changed one. What is no Python that can be parsed is left out.
    """
    paths = [path for path in changed if path.endswith(".py")]
    known = {one for path in paths for one in _dumps(parsed(before.get(path, b"")))}
    found: dict[str, _Module] = {}
    for path in paths:
        if path in after and (tree := parsed(after[path])) is not None:
            found[path] = _compared(tree, known)
    for path, tree, names in list(_users(after, found)):
        found[path] = _Module(tree, frozenset(_using(tree, names)), frozenset(), frozenset())
    return {path: _written(one, blank) for path, one in found.items() if one.functions or one.classes}


def feeds_itself(data: bytes) -> bool:
    """Return whether a module calls anything while its tests are found, so that tests may be made of that."""
    tree = parsed(data)
    left: list[ast.AST] = [] if tree is None else [tree]
    for node in left:
        if isinstance(node, ast.Call) and not ast.unparse(node.func).startswith("pytest."):
            return True
        if isinstance(node, ast.FunctionDef) and node.name == "pytest_generate_tests":
            return True
        body = getattr(node, "body", []) if isinstance(node, FunctionNode) else []
        inside = {*map(id, body if isinstance(body, list) else [body])}
        left += [one for one in ast.iter_child_nodes(node) if id(one) not in inside]
    return False


def _users(
    after: Mapping[str, bytes], found: Mapping[str, _Module]
) -> Iterator[tuple[str, ast.Module, frozenset[str]]]:
    """Yield the other modules that import changed ones, with the names that changed there."""
    named = {stem_of(path): one.values for path, one in found.items()}
    for path, data in after.items():
        if path.endswith(".py") and path not in found and any(stem.encode() in data for stem in named):
            tree = parsed(data)
            for stem in named.keys() & ({} if tree is None else _imported(tree)):
                assert tree is not None
                yield path, tree, named[stem]


def _compared(tree: ast.Module, known: set[str]) -> _Module:
    """Return what of a module is not known."""
    functions = [node for node in _functions(tree) if ast.dump(node) not in known]
    classes, values = set[str](), set[str]()
    for node, owner in _statements(tree):
        if isinstance(node, ast.ClassDef):
            classes |= {node.name} if _head(node) not in known else set()
        elif ast.dump(node) not in known:
            values |= _assigned(node)
            classes |= {owner} - {""}
    called = classes | {node.name for node in functions if not isinstance(node, ast.Lambda)}
    while more := _derived(tree, called | values) - values:
        values |= more
    marked = {id(node) for node in functions} | set(_using(tree, values))
    return _Module(tree, frozenset(marked), frozenset(classes), frozenset(values))


def _derived(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the names that a module's statements assign from what changed."""
    plain = (node for node, _ in _statements(tree) if not isinstance(node, ast.ClassDef))
    return {name for node in plain if names & _used(node) for name in _assigned(node)}


def _written(one: _Module, blank: Blank) -> bytes:
    """Return the text of a module with its functions blanked."""
    value, says = ("None" if blank == "none" else "_Blank()"), str(blank == "yes")
    _Blanking(one.functions).visit(one.tree)
    body, place = one.tree.body, 0
    while place < len(body) and _stands_first(body[place]):
        place += 1
    preamble = PREAMBLE.replace("VALUE", value).replace("SAYS", says).replace("FED", str(blank == "fed"))
    body[place:place] = ast.parse(preamble).body
    own = {node.name for node in body if isinstance(node, ast.ClassDef)}
    body += ast.parse("".join(f"_blank_class({name})\n" for name in sorted(one.classes & own))).body
    return ast.unparse(ast.fix_missing_locations(one.tree)).encode("utf-8", "surrogateescape")


def _stands_first(node: ast.stmt) -> bool:
    doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return doc or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


class _Blanking(ast.NodeTransformer):
    """Lets functions ask who calls them before they do what they do."""

    def __init__(self, marked: frozenset[int]) -> None:
        self._marked = marked

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Blank a function."""
        return self._blanked(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Blank a function."""
        return self._blanked(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Blank a lambda."""
        self.generic_visit(node)
        if id(node) in self._marked:
            asked = ast.parse("_blank_value if _blank_asked() else 0", mode="eval").body
            assert isinstance(asked, ast.IfExp)
            asked.orelse, node.body = node.body, asked
        return node

    def _blanked(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        if id(node) in self._marked:
            how = "return _blank_value"
            if node.name in SILENT:
                how = "return"
            elif any(isinstance(one, ast.Yield | ast.YieldFrom) for one in _inside(node)):
                how = "yield _blank_value; return"
            node.body[:0] = ast.parse(f"if _blank_asked(): {how}").body
        return node


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a function, but not what is in functions within."""
    left = list(ast.iter_child_nodes(node))
    for one in left:
        yield one
        if not isinstance(one, FunctionNode | ast.ClassDef):
            left += ast.iter_child_nodes(one)


def _functions(tree: ast.AST) -> Iterator[FunctionNode]:
    return (node for node in ast.walk(tree) if isinstance(node, FunctionNode))


def _statements(tree: ast.AST, owner: str = "") -> Iterator[tuple[ast.stmt, str]]:
    """Yield the statements of a module and of its classes, with the class; functions are left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield node, owner
            yield from _statements(node, node.name)
        elif isinstance(node, ast.stmt) and not isinstance(node, FunctionNode):
            yield node, owner


def _dumps(tree: ast.Module | None) -> Iterator[str]:
    """Yield what is known of a module: functions, statements and the heads of classes."""
    if tree is not None:
        yield from map(ast.dump, _functions(tree))
        for node, _ in _statements(tree):
            yield _head(node) if isinstance(node, ast.ClassDef) else ast.dump(node)


def _head(node: ast.ClassDef) -> str:
    parts = (*node.bases, *node.keywords, *node.decorator_list)
    return f"{node.name} {[ast.dump(part) for part in parts]}"


def _using(tree: ast.AST, names: Iterable[str]) -> Iterator[int]:
    wanted = {*names}
    return (id(node) for node in _functions(tree) if wanted & _used(node))


def _used(tree: ast.AST) -> set[str]:
    """Return the names that are read somewhere, behind a dot too."""
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return found | {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}


def _assigned(tree: ast.AST) -> set[str]:
    """Return the names that a statement gives values, imported ones too."""
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found | {(n.asname or n.name).split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.alias)}


def _imported(tree: ast.AST) -> set[str]:
    """Return all words of the modules and names that a module imports."""
    found = {word for n in ast.walk(tree) if isinstance(n, ast.alias) for word in n.name.split(".")}
    froms = (n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))
    return found | {word for name in froms for word in name.split(".")}


def stem_of(path: str) -> str:
    """Return the last word of a module's name; of a package its folder's."""
    place = PurePosixPath(path)
    return place.parent.name if place.stem == "__init__" else place.stem


def parsed(data: bytes) -> ast.Module | None:
    """Return a module as a tree; None for what cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
