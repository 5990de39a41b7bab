"""`dataclass` of the standard library, quicker for frozen classes with slots: to declare, and to make.

The standard library compiles six methods for each frozen class when it is declared. Here `==`, `hash` and
`repr` are shared by all, and `__init__` is compiled when the first object is made; it uses the slots' own
setters, where the standard library looks each field up by its name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        *, frozen: bool = False, kw_only: bool = False, slots: bool = False, eq: bool = True
    ) -> Callable[[type[T]], type[T]]:
        """Return the decorator that `dataclasses.dataclass` returns, for the same arguments."""
        if not (frozen and slots and eq):
            return dataclasses.dataclass(frozen=frozen, kw_only=kw_only, slots=slots, eq=eq)
        bare = dataclasses.dataclass(kw_only=kw_only, slots=True, init=False, repr=False, eq=False)
        return lambda cls: _freeze(bare(cls))


def _freeze(cls: type[T]) -> type[T]:
    """Give a class of slots the methods of a frozen dataclass, except for those that its body has."""
    known = dataclasses.fields(cls)  # type: ignore[arg-type]
    compared = _values_of([f.name for f in known if f.compare])
    shown = [f.name for f in known if f.repr]
    names = tuple(f.name for f in known)

    def eq(self: Any, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_(self: Any) -> int:
        return hash(compared(self))

    def repr_(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    def getstate(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def setstate(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    shared = {
        "__init__": _FirstInit(cls, known),
        "__eq__": eq,
        "__hash__": hash_,
        "__repr__": repr_,
        "__setattr__": _refuse_setting,
        "__delattr__": _refuse_deleting,
        "__getstate__": getstate,
        "__setstate__": setstate,
    }
    for name, method in shared.items():
        if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
            setattr(cls, name, method)
    return cls


class _FirstInit:
    """Stands for `__init__` until it is needed: to make an object, or to read its signature."""

    def __init__(self, cls: type, known: tuple[Field[Any], ...]) -> None:
        self._cls, self._known = cls, known

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., None]:
        made = _init_of(self._cls, self._known)
        self._cls.__init__ = made  # type: ignore[misc]
        bound: Callable[..., None] = made.__get__(instance, owner)
        return bound


def _refuse_setting(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _init_of(cls: type, known: tuple[Field[Any], ...]) -> Callable[..., None]:
    """Compile `__init__` of a class."""
    space: dict[str, Any] = {"MISSING": MISSING}
    places, words, lines = list[str](), list[str](), list[str]()
    for f in known:
        space[f"_set_{f.name}"] = getattr(cls, f.name).__set__
        value, default = f.name, ""
        if f.default_factory is not MISSING:
            space[f"_new_{f.name}"] = f.default_factory
            value, default = f"_new_{f.name}() if {f.name} is MISSING else {f.name}", "=MISSING"
        elif f.default is not MISSING:
            space[f"_default_{f.name}"] = f.default
            default = f"=_default_{f.name}"
        (words if f.kw_only else places).append(f.name + default)
        lines.append(f" _set_{f.name}(self, {value})")
    parameters = ", ".join(["self", *places, *(["*", *words] if words else [])])
    exec("\n".join([f"def __init__({parameters}):", *(lines or [" pass"])]), space)
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def maker_of(cls: type[T]) -> Callable[[Sequence[Any]], T]:
    """Return what makes an object of a class of slots from the values of all its fields, in their order.

    It takes a third of the time of calling the class with keywords. Raises ValueError on another number.
    """
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    space: dict[str, Any] = {f"_set_{name}": getattr(cls, name).__set__ for name in names}
    space |= {"_new": object.__new__, "_cls": cls}
    lines = [f" _set_{name}(_self, {name})" for name in names]
    exec(
        "\n".join(
            [
                "def make(_values):",
                f" [{', '.join(names)}] = _values",
                " _self = _new(_cls)",
                *lines,
                " return _self",
            ]
        ),
        space,
    )
    make: Callable[[Sequence[Any]], T] = space["make"]
    return make
