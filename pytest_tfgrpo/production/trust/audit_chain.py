"""Whether the records of the audit are those that were written: each holds the hash of the one before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.bus.chain import NOTHING, previous_of, record_hash
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT
from pytest_tfgrpo.storage.event_store import BusEvent

_HEAD = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{64})")


class ChainHead(NamedTuple):
    """A record by its place and its hash, which covers all records before it."""

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


def head_of(text: str) -> ChainHead:
    """Return a head as it was printed; raises SettingError."""
    found = _HEAD.fullmatch(text.strip())
    if found is None:
        raise SettingError(
            f"an anchor must be a head such as 41:9f86..., a number and 64 hexadecimals, not {text[:99]!r}"
        )
    return ChainHead(int(found[1]), found[2])


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenLink:
    """The first place where the chain does not hold."""

    sequence: int
    id: str = ""
    """Of the record; empty where it is missing."""
    time: str = ""
    why: str

    def __str__(self) -> str:
        named = f" ({self.id}, {self.time})" if self.id else ""
        return f"audit record {self.sequence}{named} {self.why}"


@dataclass(kw_only=True, slots=True)
class AuditChain:
    """What a look at all records found."""

    count: int = 0
    first: BusEvent | None = None
    head: ChainHead | None = None
    unlinked: int = 0
    """Records at the beginning that were written before there was a chain."""
    gone: int = 0
    """Records before the first one, as retention removes them."""
    broken: BrokenLink | None = None
    anchored: bool | None = None
    """Whether an anchor was met; False: it is older than what is kept. None without one."""


def verify_audit(bus: Bus, anchor: ChainHead | None = None) -> AuditChain:
    """Return whether the records on a bus are a chain, up to the first place where they are none.

    `anchor` is the head of an earlier look, which was kept elsewhere. Raises BusError.
    """
    last = bus.last(AUDIT)  # before the records: what comes meanwhile is no hole
    return verify_records(bus.replay(AUDIT), last, anchor)


def verify_records(records: Iterable[BusEvent], last: int, anchor: ChainHead | None = None) -> AuditChain:
    """Return what `verify_audit` does of records in their order; `last` is the newest sequence there was."""
    found = AuditChain()
    following = iter(records)
    before: BusEvent | None = None
    for record in following:
        found.broken = _broken(found, before, record, following)
        if found.broken is not None:
            return found
        found.count += 1
        found.head = ChainHead(record.sequence, record_hash(record))
        if anchor is not None and anchor.sequence == record.sequence:
            found.anchored = anchor == found.head
            if not found.anchored:
                found.broken = _at(
                    record, "is not the one that the anchor names: it, or one before it, changed"
                )
                return found
        before = record
    end = max(last, anchor.sequence if anchor else 0)
    at = 0 if before is None else before.sequence
    if before is None:
        found.gone = last
    elif at < last:
        found.broken = _missing(at + 1, last)
    if anchor is not None and found.broken is None and found.anchored is None:
        found.anchored = False
        if at < anchor.sequence and end > last:
            found.broken = _missing(at + 1, anchor.sequence, f"the anchor names {anchor.sequence}")
    return found


def _broken(
    found: AuditChain, before: BusEvent | None, record: BusEvent, following: Iterator[BusEvent]
) -> BrokenLink | None:
    """Return why a record does not follow the one before it; reads one more where it does not."""
    previous = previous_of(record)
    if before is None:
        found.first, found.gone = record, record.sequence - 1
        found.unlinked = int(previous is None)
        if record.sequence == 1 and previous not in (None, NOTHING):
            return _at(record, "is the first, and yet names one before it: the stream was written again")
        return None
    if record.sequence != before.sequence + 1:
        return _missing(before.sequence + 1, record.sequence - 1)
    if previous is None:
        if found.unlinked == found.count:
            found.unlinked += 1
            return None
        return _at(record, "names no record before it: another program wrote it")
    if previous == record_hash(before):
        return None
    after = next(following, None)
    if after is not None and previous_of(after) != record_hash(record):
        return _at(record, "was changed: neither its neighbour before nor the one after fits it")
    return _at(before, f"is not the one that record {record.sequence} was written after: it was changed")


def _at(record: BusEvent, why: str) -> BrokenLink:
    return BrokenLink(sequence=record.sequence, id=record.id, time=record.time, why=why)


def _missing(first: int, last: int, though: str = "older ones are there") -> BrokenLink:
    through = f", like all up to {last}," if last > first else ""
    return BrokenLink(sequence=first, why=f"is missing{through} though {though}")
