"""What a function, or an object that is called like one, does: a digest, equal for equal code and values.

Seen are its code, and the functions, classes and plain values of its module that it names; what else there is
counts by its name or class. What the code itself assigns or fills is its state, and does not count.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator, Set
from typing import Any

from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
CONTAINERS = (list, tuple, dict, set, frozenset)
MOST = 10_000
"""Values that are looked at; further ones count by their class."""
BORN = ("__init__", "__new__", "__post_init__")
"""Methods whose assignments are what an object is made with."""
FILLS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft"),
    *("put", "put_nowait", "remove", "setdefault", "sort", "update"),
}
"""Methods that change what they belong to."""
_SET_BY = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"}
_OUTER = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_ATTR"}
_OWN = {"LOAD_FAST"}
_READ_BY = {"LOAD_METHOD", "LOAD_ATTR"}


def fingerprint(agent: object) -> str:
    """Return the sha256 of what `agent` does, as far as it can be seen; equal for equal code and values."""
    return stamp(_Contents(agent).of(agent))


def _is_large(value: object) -> bool:
    return isinstance(value, list | tuple | dict | set | frozenset) and len(value) > MOST


def _poses(value: object) -> bool:
    """Return whether an object calls itself one of another class, as mocks and proxies do."""
    return type(value) is not value.__class__


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _assigned(code: types.CodeType) -> set[str]:
    """Return the names of globals, attributes and outer variables that code assigns or fills."""
    free = set(code.co_freevars)
    return {*_filled(code, _OUTER)} | {
        str(one.argval)
        for each in _codes(code)
        for one in dis.get_instructions(each)
        if one.opname in _SET_BY or (one.opname == "STORE_DEREF" and one.argval in free)
    }


def _filled(code: types.CodeType, loaded_by: Set[str]) -> Iterator[str]:
    """Yield the names of what code fills, as in ``log.append(x)`` and ``cache[key] = x``."""
    for each in _codes(code):
        steps = [one for one in dis.get_instructions(each) if one.opname not in ("CACHE", "EXTENDED_ARG")]
        for n, one in enumerate(steps):
            fills = one.opname in _READ_BY and one.argval in FILLS
            back = 1 if fills else 2 if one.opname in ("STORE_SUBSCR", "DELETE_SUBSCR") else 0
            if back and n >= back and steps[n - back].opname in loaded_by:
                yield str(steps[n - back].argval)


def _defaults(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the defaults of a function by parameter, but for those that it fills itself, as with a cache."""
    code, given = function.__code__, function.__defaults__ or ()
    filled = set(_filled(code, _OWN))
    positional = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    for name, one in (*zip(positional, given, strict=True), *(function.__kwdefaults__ or {}).items()):
        if name not in filled:
            yield name, one


def _state(value: object) -> dict[str, object]:
    """Return what an object holds, in its slots too."""
    found = dict(getattr(value, "__dict__", {}))
    for one in type(value).__mro__:
        for name, member in vars(one).items():
            if isinstance(member, types.MemberDescriptorType) and name not in found and name != "__dict__":
                try:
                    found[name] = member.__get__(value)
                except AttributeError:  # nothing is in it
                    continue
    return found


def _changed_by(made: type) -> set[str]:
    """Return the names of attributes that the methods of a class and its bases assign or fill."""
    return {
        name
        for one in made.__mro__
        for method, member in vars(one).items()
        if method not in BORN and (function := _function(member)) is not None
        for name in _assigned(function.__code__)
    }


def _function(value: object) -> types.FunctionType | None:
    """Return the function inside a member of a class, if there is one."""
    inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return inner if isinstance(inner, types.FunctionType) else None


class _Contents:
    """Makes one JSON value of an agent; what is met again is named by when it was met first."""

    def __init__(self, agent: object) -> None:
        inner = agent
        while isinstance(inner, functools.partial):
            inner = inner.func
        self._home = getattr(inner, "__module__", None)
        self._met: dict[int, int] = {}
        self._left = MOST
        self._kept: list[object] = []
        """Keeps what was met alive, so that no other object takes its id."""

    def of(self, value: object) -> Json:
        """Return the content of a value."""
        if _poses(value):
            return self._named(type(value))
        if isinstance(value, PLAIN):
            return [type(value).__name__, repr(value)]
        self._left -= 1
        if self._left < 0 or _is_large(value):
            return self._named(value)
        if isinstance(value, tuple | frozenset | types.CodeType):  # which the compiler may share or not
            return self._content(value)
        if id(value) in self._met:
            return ["again", self._met[id(value)]]
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        return self._content(value)

    def _content(self, value: Any) -> Json:
        made = type(value)
        if isinstance(value, CONTAINERS) and made not in CONTAINERS and made.__module__ == self._home:
            return self._of_object(value)  # with the code of its class
        match value:
            case types.FunctionType():
                return self._of_function(value)
            case types.MethodType():
                return ["method", self.of(value.__func__), self.of(value.__self__)]
            case functools.partial():
                return ["partial", self.of(value.func), self.of(value.args), self.of(value.keywords)]
            case types.CodeType():
                return self._of_code(value)
            case list() | tuple():
                return [type(value).__name__, [self.of(one) for one in value]]
            case dict():
                return ["dict", [[self.of(key), self.of(one)] for key, one in value.items()]]
            case set() | frozenset():
                return [type(value).__name__, sorted(stamp(_Contents(one).of(one)) for one in value)]
            case type():
                return self._of_class(value)
        if isinstance(wrapped := getattr(value, "__wrapped__", None), types.FunctionType):
            return ["wrapped", self._named(type(value)), self.of(wrapped)]
        return self._of_object(value)

    def _of_function(self, function: types.FunctionType) -> Json:
        code = function.__code__
        if function.__module__ != self._home:
            return self._named(function)
        own = _assigned(code)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        named = {name for each in _codes(code) for name in each.co_names}
        known = {name: function.__globals__[name] for name in named if name in function.__globals__}
        return [
            "function",
            self._of_code(code),
            [[name, self.of(one)] for name, one in _defaults(function)],
            [[name, self._of_cell(cell)] for name, cell in cells.items() if name not in own],
            [[name, self.of(known[name])] for name in sorted(known) if name not in own],
        ]

    def _of_cell(self, cell: types.CellType) -> Json:
        try:
            return self.of(cell.cell_contents)
        except ValueError:
            return "empty"

    def _of_code(self, code: types.CodeType) -> Json:
        names = [*code.co_names, "", *code.co_varnames, "", *code.co_freevars, "", *code.co_cellvars]
        counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
        return [code.co_code.hex(), counts, names, [self.of(one) for one in code.co_consts]]

    def _of_class(self, made: type) -> Json:
        if made.__module__ != self._home:
            return self._named(made)
        own = _changed_by(made)
        inside = {
            name: one
            for name, one in vars(made).items()
            if _function(one) is not None
            or (isinstance(one, PLAIN) and not name.startswith("__") and name not in own)
        }
        members = [[name, self.of(_function(inside[name]) or inside[name])] for name in sorted(inside)]
        return ["class", made.__qualname__, [self.of(base) for base in made.__bases__], members]

    def _of_object(self, value: object) -> Json:
        """Return the class of an object, and what it was made with where that is of the same module."""
        made = type(value)
        if made.__module__ != self._home:
            return self._named(value)
        own, state = _changed_by(made), _state(value)
        held = [[name, self.of(state[name])] for name in state if name not in own]
        inside = [self._content(kind(value)) for kind in CONTAINERS if isinstance(value, kind)]
        return ["object", self.of(made), held, inside]

    @staticmethod
    def _named(value: object) -> Json:
        """Return the name of a module, function or class; of any other object that of its class."""
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        shown = value if hasattr(value, "__qualname__") else type(value)
        return ["named", str(getattr(shown, "__module__", "")), str(getattr(shown, "__qualname__", ""))]
