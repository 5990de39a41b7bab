"""Groups of a long run: the first stay in memory, the others lie in a temporary file until somebody looks.

A run of a million rollouts has no room for them in memory, and reads them a few times only. What it holds are
sequences of groups that look as tuples do; each access reads a group anew, so do not collect them.
"""

from __future__ import annotations

import marshal
import os
import struct
import tempfile
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args, get_type_hints, overload

from pytest_tfgrpo.core.python.dataclass import maker_of
from pytest_tfgrpo.core.records import Group, Rollout, Score
from pytest_tfgrpo.runs.journal.placed import PlacedValues

KEPT = 2_000
"""Groups of a run that stay in memory at most."""
KEPT_BYTES = 16_000_000
"""Room for them, by what they take in the file; more than that in memory."""
GLANCE = 4096
"""Bytes that are read at once: a group without its rollouts, and often with them."""
NOT_PLAIN = (ValueError, TypeError, RecursionError)
"""Raised for an answer of a kind that no journal can hold either."""
_LENGTHS = struct.Struct("<III")

GroupPlace: TypeAlias = int
"""The offset of a group in the file, or -1, -2, ... for one in memory."""


class GroupStore:
    """Takes the groups of one run; written by one thread, read by any."""

    def __init__(self, folder: Path | None = None) -> None:
        """The file, which has no name, lies in `folder`, else where temporary files do."""
        self._folder = folder
        self._kept: list[Group] = []
        self._room = KEPT_BYTES
        self._fd: int | None = None
        self._end = 0
        self._full = False
        self._lock = threading.Lock()
        self._last: tuple[int, tuple[Rollout, ...]] = (-1, ())
        """The rollouts that were read last, with their place."""

    def __del__(self) -> None:
        """Free the room on the disk."""
        if self._fd is not None:
            os.close(self._fd)

    def put(self, group: Group) -> GroupPlace:
        """Return the place of a group; what cannot be written stays in memory."""
        with self._lock:
            if len(self._kept) < KEPT and self._room > 0:
                self._room -= _size(group)
            elif not self._full:
                try:
                    return self._write(_packed(group))
                except OSError:  # no room: memory has to do
                    self._full = True
                except NOT_PLAIN:
                    pass
            self._kept.append(group)
            return -len(self._kept)

    def _write(self, data: bytes) -> int:
        if self._fd is None:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._fd = os.dup(file.fileno())
        place = self._end
        view = memoryview(data)
        while view:
            view = view[os.pwrite(self._fd, view, self._end + len(data) - len(view)) :]
        self._end += len(data)
        return place

    def get(self, place: GroupPlace) -> Group:
        """Return the group at a place; its rollouts are read when somebody looks at them."""
        if place < 0:
            return self._kept[-1 - place]
        glance = self._read(place, GLANCE)
        head, body, n = _LENGTHS.unpack_from(glance)
        start, end = _LENGTHS.size, _LENGTHS.size + head
        if len(glance) < end:
            glance += self._read(place + len(glance), end - len(glance))
        values = marshal.loads(memoryview(glance)[start:end])
        rollouts = StoredRollouts(self, place, place + end, body, n)
        return _group(values, rollouts)

    def rollouts(self, start: int, size: int) -> tuple[Rollout, ...]:
        """Return the rollouts of `size` bytes from `start` on."""
        known, rollouts = self._last
        if known != start:
            rollouts = tuple(map(_unpacker(Rollout), marshal.loads(self._read(start, size))))
            self._last = start, rollouts
        return rollouts

    def _read(self, start: int, size: int) -> bytes:
        assert self._fd is not None
        data = os.pread(self._fd, size, start)
        while len(data) < size and (more := os.pread(self._fd, size - len(data), start + len(data))):
            data += more
        return data

    def sequence(self, ids: tuple[str, ...], places: array[GroupPlace]) -> Sequence[Group]:
        """Return the groups of some scenarios at some places, in order: a tuple if all are in memory."""
        if max(places, default=-1) < 0:
            return tuple(map(self.get, places))
        return StoredGroups(self, ids, places)


class StoredRollouts(Sequence[Rollout]):
    """The rollouts of one group in the file."""

    __slots__ = ("_n", "_place", "_size", "_start", "_store")

    def __init__(self, store: GroupStore, place: int, start: int, size: int, n: int) -> None:
        self._store, self._place, self._start, self._size, self._n = store, place, start, size, n

    @property
    def group(self) -> Group:
        """The group that they are of."""
        return self._store.get(self._place)

    def _all(self) -> tuple[Rollout, ...]:
        return self._store.rollouts(self._start, self._size)

    @overload
    def __getitem__(self, at: int) -> Rollout: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Rollout, ...]: ...
    def __getitem__(self, at: int | slice) -> Rollout | tuple[Rollout, ...]:
        """Return one of them, or some."""
        return self._all()[at]

    def __iter__(self) -> Iterator[Rollout]:
        """Yield them in order."""
        return iter(self._all())

    def __add__(self, other: Iterable[Rollout]) -> tuple[Rollout, ...]:
        """Return them and others, as tuples add up."""
        return (*self, *other)

    def __len__(self) -> int:
        """Return how many there are; nothing is read for it."""
        return self._n

    def __eq__(self, other: object) -> bool:
        """Return whether `other` has the same in this order, as tuples compare."""
        return isinstance(other, tuple | StoredRollouts) and self._all() == tuple(other)

    def __repr__(self) -> str:
        """Return what the tuple looks like."""
        return repr(self._all())


class StoredGroups(Sequence[Group]):
    """Groups of one phase, in order, of which some are in the file."""

    __slots__ = ("_places", "_store", "ids")

    def __init__(self, store: GroupStore, ids: tuple[str, ...], places: array[GroupPlace]) -> None:
        """`ids` are of their scenarios."""
        self._store, self.ids, self._places = store, ids, places

    @overload
    def __getitem__(self, at: int) -> Group: ...
    @overload
    def __getitem__(self, at: slice) -> StoredGroups: ...
    def __getitem__(self, at: int | slice) -> Group | StoredGroups:
        """Return one of them, or some."""
        if isinstance(at, slice):
            return StoredGroups(self._store, self.ids[at], self._places[at])
        return self._store.get(self._places[at])

    def __iter__(self) -> Iterator[Group]:
        """Yield them in order, each read when it is its turn."""
        return map(self._store.get, self._places)

    def __add__(self, other: Iterable[Group]) -> tuple[Group, ...]:
        """Return them and others, as tuples add up."""
        return (*self, *other)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` has the same in this order, as tuples compare."""
        if not isinstance(other, tuple | StoredGroups) or len(self) != len(other):
            return False
        return all(own == one for own, one in zip(self, other, strict=True))

    def __repr__(self) -> str:
        """Return what the tuple looks like."""
        return repr(tuple(self))


class GroupsByScenario(Mapping[str, Group]):
    """Groups of one phase by scenario id, in order, of which some are in the file."""

    def __init__(self, groups: StoredGroups) -> None:
        self._groups = groups
        self._at = {id_: n for n, id_ in enumerate(groups.ids)}

    def __getitem__(self, id_: str) -> Group:
        """Return the group of a scenario."""
        return self._groups[self._at[id_]]

    def __contains__(self, id_: object) -> bool:
        """Return whether a scenario has one; nothing is read for it."""
        return id_ in self._at

    def __iter__(self) -> Iterator[str]:
        """Yield the ids in order."""
        return iter(self._at)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._at)


def by_scenario(groups: Sequence[Group]) -> Mapping[str, Group]:
    """Return the groups of one phase by scenario id, in order."""
    if isinstance(groups, StoredGroups):
        return GroupsByScenario(groups)
    return {group.scenario_id: group for group in groups}


class GroupsById(PlacedValues[Group, GroupPlace]):
    """Groups of a phase by their id, in the order in which they came."""

    def __init__(self, store: GroupStore, earlier: GroupsById | None = None) -> None:
        """Those of `earlier` are there already."""
        super().__init__({} if earlier is None else earlier.places())
        self._store = store

    def take(self, places: Mapping[str, GroupPlace]) -> None:
        """Take groups that lie at some places of the same store."""
        self._places.update(places)

    def __getitem__(self, id_: str) -> Group:
        """Return a group."""
        return self._store.get(self._places[id_])

    def __setitem__(self, id_: str, group: Group) -> None:
        """Keep a group."""
        self._places[id_] = self._store.put(group)

    def places(self) -> dict[str, GroupPlace]:
        """Return where each of them is."""
        return dict(self._places)

    def of(self, ids: Iterable[tuple[str, str]]) -> Sequence[Group]:
        """Return the groups that are there of some pairs of a scenario's id and a group's, in their order."""
        places = array("q")

        def found() -> Iterator[str]:
            for scenario, own in ids:
                if (place := self._places.get(own)) is not None:
                    places.append(place)
                    yield scenario

        return self._store.sequence(tuple(found()), places)


_GROUP_FIELDS = tuple(f.name for f in fields(Group))
_ROLLOUTS, _SCORES = (_GROUP_FIELDS.index(name) for name in ("rollouts", "scores"))
_values_of_group = attrgetter(*_GROUP_FIELDS)
_make_group = maker_of(Group)


def _packed(group: Group) -> bytes:
    """Return a group as it lies in the file: all but its rollouts, then these; raises what NOT_PLAIN has."""
    values = list(_values_of_group(group))
    values[_ROLLOUTS], values[_SCORES] = None, [*map(_packer(Score), group.scores)]
    head, body = marshal.dumps(values), marshal.dumps([*map(_packer(Rollout), group.rollouts)])
    return _LENGTHS.pack(len(head), len(body), len(group.rollouts)) + head + body


def _size(group: Group) -> int:
    """Return about how many bytes a group has in the file; of a bare answer its length will do."""
    if not any(r.frames or r.extra or r.files or r.opinion for r in group.rollouts):
        return sum(len(r.answer) for r in group.rollouts)
    try:
        return len(_packed(group))
    except NOT_PLAIN:
        return 0


def _group(head: list[Any], rollouts: Sequence[Rollout]) -> Group:
    head[_ROLLOUTS], head[_SCORES] = rollouts, tuple(map(_unpacker(Score), head[_SCORES]))
    return _make_group(head)


class _Nested(NamedTuple):
    """A field of a record that holds records."""

    place: int
    kind: type
    many: bool
    default: Any
    """Written as an ellipsis, so that it is the same object when it is read."""


@cache
def _nested(cls: type) -> list[_Nested]:
    hints, found = get_type_hints(cls), []
    for place, field in enumerate(fields(cls)):
        types = [hints[field.name], *_within(hints[field.name])]
        inner = [one for one in types if isinstance(one, type) and is_dataclass(one)]
        if inner:
            many = any(getattr(one, "__origin__", None) is tuple for one in types)
            found.append(_Nested(place, inner[0], many, field.default))
    return found


def _within(hint: Any) -> Iterator[Any]:
    for one in get_args(hint):
        yield one
        yield from _within(one)


@cache
def _packer(cls: type) -> Callable[[Any], list[Any]]:
    """Return a function that makes plain values of a record: those of its fields, in order."""
    values_of = attrgetter(*(f.name for f in fields(cls)))
    nested = [(place, _packer(kind), many, default) for place, kind, many, default in _nested(cls)]

    def pack(record: Any) -> list[Any]:
        values = list(values_of(record))
        for place, inner, many, default in nested:
            value = values[place]
            if value is default:
                values[place] = ...
            elif value:
                values[place] = [inner(one) for one in value] if many else inner(value)
        return values

    return pack


@cache
def _unpacker(cls: type) -> Callable[[list[Any]], Any]:
    """Return the inverse of a packer."""
    make: Callable[[list[Any]], Any] = maker_of(cls)
    nested = [(place, _unpacker(kind), many, default) for place, kind, many, default in _nested(cls)]
    if not nested:
        return make

    def unpack(values: list[Any]) -> Any:
        for place, inner, many, default in nested:
            value = values[place]
            if value is ...:
                values[place] = default
            elif value:
                values[place] = tuple(map(inner, value)) if many else inner(value)
        return make(values)

    return unpack
