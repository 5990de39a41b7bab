"""Convert records to JSON values and back; the only place that knows both shapes."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pytest_tfgrpo.core.python.dataclass import maker_of

T = TypeVar("T")

Json: typing.TypeAlias = Any
"""A value that JSON can hold."""
SPARSE: Mapping[str, Any] = {"sparse": True}
"""Metadata of a field that is not written while it is None, {} or its default."""
ROUNDING = 1e-9
"""What sums of shares may lie beyond 1."""
SHARES: Mapping[str, Any] = {"within": (-ROUNDING, 1.0 + ROUNDING)}
"""Metadata of a field whose numbers lie in [0, 1]."""
AMOUNTS: Mapping[str, Any] = {"within": (0.0, sys.float_info.max)}
"""Metadata of a field whose numbers are finite and not negative."""
FINITE: Mapping[str, Any] = {"within": (-sys.float_info.max, sys.float_info.max)}
_ATOMS = frozenset({str, int, float, bool, type(None)})


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


@cache
def _dense_and_sparse(cls: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    sparse = {f.name: f.default for f in dataclasses.fields(cls) if "sparse" in f.metadata}
    return tuple(name for name in _names(cls) if name not in sparse), sparse


def leaves(value: Json) -> Iterator[Json]:
    """Yield what is neither a mapping nor a list within JSON, in order; keys are left out."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def to_wire(value: Any) -> Any:
    """Return `value` as JSON values: records become objects, tuples arrays; sparse fields come last."""
    cls: Any = value.__class__
    if cls in _ATOMS:
        return value
    if cls is tuple or cls is list:
        return [v if v.__class__ in _ATOMS else to_wire(v) for v in value]
    if cls is dict or isinstance(value, Mapping):
        return {str(k): v if v.__class__ in _ATOMS else to_wire(v) for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        dense, sparse = _dense_and_sparse(cls)
        fields = ((name, getattr(value, name)) for name in dense)
        wire = {name: v if v.__class__ in _ATOMS else to_wire(v) for name, v in fields}
        for name, default in sparse.items():
            if (v := getattr(value, name)) is not None and v != {} and v != default:
                wire[name] = to_wire(v)
        return wire
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_wire(v) for v in value]
    raise TypeError(f"cannot put {value!r} on the wire; use JSON values and records")


def from_wire(cls: type[T], data: Any) -> T:
    """Return the record of type `cls` that `data` describes.

    Raises ValueError on unknown or missing keys and on values of the wrong type, naming the path.
    """
    hint: Any = cls
    try:
        return typing.cast(T, _quick_reader(hint)(data))
    except Exception:  # noqa: BLE001 - the careful reader takes it after all, or says where it is wrong
        return typing.cast(T, _reader(hint)(data, cls.__name__))


WireReader: typing.TypeAlias = Callable[[Any, str], Any]


@cache
def _reader(hint: Any) -> WireReader:
    if hint is Any:
        return lambda data, _where: data
    if dataclasses.is_dataclass(hint):
        return _record_reader(typing.cast(type, hint))
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Union or origin is types.UnionType:
        return _union_reader(args)
    if origin is tuple:
        return _tuple_reader(args)
    if origin is Sequence:
        return _tuple_reader((args[0], Ellipsis))
    if origin is typing.Literal:
        return _literal_reader(args)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(args[1])
    if hint is Path:
        return lambda data, where: Path(_expect(data, str, where))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice_reader(hint)
    return _scalar_reader(hint)


def _expect(data: Any, kind: type, where: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"{where}: expected {kind.__name__}, got {data!r}")
    return data


def _scalar_reader(hint: type) -> WireReader:
    if hint is float:

        def read_float(data: Any, where: str) -> float:
            if isinstance(data, bool) or not isinstance(data, int | float):
                raise ValueError(f"{where}: expected a number, got {data!r}")
            try:
                return float(data)
            except OverflowError:
                raise ValueError(f"{where}: a number of {_digits(int(data))} digits is too large") from None

        return read_float
    if hint is type(None):
        return lambda data, where: _expect(data, type(None), where)
    return lambda data, where: _expect(data, hint, where)


def _digits(number: int) -> int:
    """Return about how many decimal digits an integer has; Python prints those of thousands not at all."""
    return int(number.bit_length() * 0.30103) + 1


def _choice_reader(hint: type[StrEnum]) -> WireReader:
    read = _literal_reader(tuple(member.value for member in hint))
    return lambda data, where: hint(read(data, where))


def _literal_reader(values: tuple[Any, ...]) -> WireReader:
    def read(data: Any, where: str) -> Any:
        if data not in values:
            raise ValueError(f"{where}: expected one of {', '.join(map(repr, values))}, got {data!r}")
        return data

    return read


def _union_reader(args: tuple[Any, ...]) -> WireReader:
    inner = [a for a in args if a is not type(None)]
    if len(inner) != 1 or len(inner) == len(args):
        raise TypeError(f"only `X | None` travels on the wire, not {args!r}")

    def read(data: Any, where: str) -> Any:
        return None if data is None else _reader(inner[0])(data, where)

    return read


def _tuple_reader(args: tuple[Any, ...]) -> WireReader:
    variadic = len(args) == 2 and args[1] is Ellipsis

    def read(data: Any, where: str) -> Any:
        items = _expect(data, list, where)
        if variadic and set(map(type, items)) == {args[0]}:  # long lists of numbers in no time
            return tuple(items)
        if variadic:
            return tuple(_reader(args[0])(v, f"{where}/{i}") for i, v in enumerate(items))
        if len(items) != len(args):
            raise ValueError(f"{where}: expected {len(args)} items, got {len(items)}")
        return tuple(_reader(a)(v, f"{where}/{i}") for i, (a, v) in enumerate(zip(args, items, strict=True)))

    return read


def _mapping_reader(value_hint: Any) -> WireReader:
    def read(data: Any, where: str) -> Any:
        return {k: _reader(value_hint)(v, f"{where}/{k}") for k, v in _expect(data, dict, where).items()}

    return read


def _record_reader(cls: type) -> WireReader:
    hints = get_type_hints(cls)
    required = {
        f.name
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    readers: dict[str, WireReader] = {}
    limits = {f.name: f.metadata["within"] for f in dataclasses.fields(cls) if "within" in f.metadata}

    def read(data: Any, where: str) -> Any:
        if not readers:  # resolved late: records may nest
            readers.update({name: _reader(hints[name]) for name in _names(cls)})
        items = _expect(data, dict, where)
        if unknown := items.keys() - readers.keys():
            raise ValueError(f"{where}: unknown key {min(unknown)!r}")
        if missing := required - items.keys():
            raise ValueError(f"{where}: missing key {min(missing)!r}")
        found = {name: readers[name](v, f"{where}/{name}") for name, v in items.items()}
        for name, (low, high) in limits.items():
            if name in found and not _lies_within(found[name], low, high):
                least, most = round(low), round(high) if high < 2 else "all that is finite"
                raise ValueError(
                    f"{where}/{name}: expected numbers from {least} to {most}, got {items[name]!r}"
                )
        return cls(**found)

    return read


def _lies_within(value: Any, low: float, high: float) -> bool:
    """Return whether a number, or all in a tuple or a mapping, lie in [low, high]; None does."""
    if isinstance(value, tuple | dict):
        values = value.values() if isinstance(value, dict) else value
        return all(_lies_within(one, low, high) for one in values)
    return value is None or low <= value <= high


QuickReader: typing.TypeAlias = Callable[[Any], Any]


class NotAsWritten(Exception):
    """A value that needs a careful look, which says where it is wrong."""


@cache
def _quick_reader(hint: Any) -> QuickReader:
    """Return what reads a value that is as we wrote it, which nearly all are, or raises anything."""
    if hint is Any:
        return lambda data: data
    if dataclasses.is_dataclass(hint):
        return _quick_record(typing.cast(type, hint))
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Union or origin is types.UnionType:
        return _quick_optional(args)
    if origin is Sequence or (origin is tuple and args[1:] == (Ellipsis,)):
        return _quick_tuple(args[0])
    if origin is typing.Literal:
        return _quick_literal(args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _quick_mapping(args[1])
    if hint in _ATOMS and hint is not float:
        return _exactly(hint)
    if hint is float:
        return _quick_float
    return _refuse


def _refuse(_data: Any) -> Any:
    raise NotAsWritten


def _exactly(kind: type) -> QuickReader:
    def read(data: Any) -> Any:
        if data.__class__ is not kind:
            raise NotAsWritten
        return data

    return read


def _quick_float(data: Any) -> Any:
    if data.__class__ is float:
        return data
    if data.__class__ is int:
        return float(data)
    raise NotAsWritten


def _quick_literal(values: tuple[Any, ...]) -> QuickReader:
    def read(data: Any) -> Any:
        if data not in values:
            raise NotAsWritten
        return data

    return read


def _quick_optional(args: tuple[Any, ...]) -> QuickReader:
    [hint] = [arg for arg in args if arg is not type(None)]
    if len(args) != 2:
        return _refuse
    inner = _quick_reader(hint)
    return lambda data: None if data is None else inner(data)


def _quick_tuple(hint: Any) -> QuickReader:
    inner = _quick_reader(hint)

    def read(data: Any) -> Any:
        if data.__class__ is not list:
            raise NotAsWritten
        return tuple(map(inner, data))

    return read


def _quick_mapping(hint: Any) -> QuickReader:
    inner = _quick_reader(hint)

    def read(data: Any) -> Any:
        if data.__class__ is not dict:
            raise NotAsWritten
        return {key: inner(value) for key, value in data.items()}

    return read


def _quick_record(cls: type) -> QuickReader:
    compiled: list[QuickReader] = []

    def read(data: Any) -> Any:
        if not compiled:  # late: records may nest
            compiled.append(_compiled(cls))
        return compiled[0](data)

    return read


def _compiled(cls: type) -> QuickReader:
    """Return a reader of one record, of a class of slots, which looks at its fields without a loop."""
    hints = get_type_hints(cls)
    known = dataclasses.fields(cls)
    space: dict[str, Any] = {"Refused": NotAsWritten, "MISSING": dataclasses.MISSING, "_make": maker_of(cls)}
    lines = ["if _data.__class__ is not dict:", " raise Refused"]
    for f in known:
        name, made = f.name, f.default_factory is not dataclasses.MISSING
        taken = _taken(name, hints[name], space)
        if "within" in f.metadata:
            low, high = f.metadata["within"]
            space["_lies_within"] = _lies_within
            taken = [*taken, f"if not _lies_within({name}, {low!r}, {high!r}):", " raise Refused"]
        if f.default is dataclasses.MISSING and not made:
            lines += [f"{name} = _data[{name!r}]", *taken]
            continue
        space[f"_default_{name}"] = f.default_factory if made else f.default
        lines += [f"{name} = _data.get({name!r}, MISSING)", f"if {name} is MISSING:", " _left_out += 1"]
        lines += [f" {name} = _default_{name}{'()' if made else ''}", "else:", *(f" {one}" for one in taken)]
    lines += [f"if len(_data) + _left_out != {len(known)}:", " raise Refused"]
    lines += [f"return _make(({', '.join(f.name for f in known)},))"]
    exec("\n".join(["def read(_data, _left_out=0):", *(f" {line}" for line in lines)]), space)
    reader: QuickReader = space["read"]
    return reader


def _taken(name: str, hint: Any, space: dict[str, Any]) -> list[str]:
    """Return the lines that turn the value of a field into what the record has, or refuse it."""
    args = get_args(hint)
    rest = [arg for arg in args if arg is not type(None)]
    if hint in _ATOMS and hint is not float:
        space[f"_kind_{name}"] = hint
        return [f"if {name}.__class__ is not _kind_{name}:", " raise Refused"]
    if get_origin(hint) is types.UnionType and len(rest) == 1 and len(args) == 2:
        return [f"if {name} is not None:", *(f" {line}" for line in _taken(name, rest[0], space))]
    space[f"_read_{name}"] = _quick_reader(hint)
    taken = f"{name} = _read_{name}({name})"
    return [f"if {name}.__class__ is not float:", f" {taken}"] if hint is float else [taken]
