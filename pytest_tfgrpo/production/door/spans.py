"""Spans at the door: opted out, refused, or the data of events whose texts are redacted."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field, replace

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.fitting import UnfitError, fit_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import MAX_EVENT_BYTES
from pytest_tfgrpo.production.door.dropped_runs import trajectories_of
from pytest_tfgrpo.production.door.hidden_users import UserHider
from pytest_tfgrpo.production.door.opt_outs import DropReason, OptOuts, says_opt_out
from pytest_tfgrpo.production.door.scrubber import LEAF_BYTES, LoopScrubber, cut_texts
from pytest_tfgrpo.production.span_events import encode_spans
from pytest_tfgrpo.telemetry.traces.dialects.dialects import SESSION_KEYS, USER_KEYS, is_scrubbed
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, SpanEvent, TraceSpan

LARGEST_GROUP = 500_000
"""Bytes of an event with several spans."""
_LIGHT = 350_000
"""Characters from which a group is not joined by another span."""
_SPAN_CHARS = 400
"""Of a span without attributes."""
_OPT_OUT = "tfgrpo.opt_out"
_USER = "user.id"
"""Where the pseudonym of a user stands whom another name gives."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptTrace:
    """What one call brought of a trace."""

    id: str
    reason: DropReason = ""
    """Why nothing of it is kept."""
    data: tuple[bytes, ...] = ()
    """Of events."""
    trajectories: tuple[str, ...] = ()
    """Ids of those that are not to be, where nothing is kept."""
    sessions: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """What it names."""
    at: float = 0.0
    """Seconds since 1970 when the first of its spans ended."""


@dataclass(kw_only=True, slots=True)
class KeptSpans:
    """What one call brought."""

    traces: list[KeptTrace] = field(default_factory=list)
    accepted: int = 0
    opted_out: int = 0
    refused: dict[int, RefusedSpan] = field(default_factory=dict)
    """By the place in the call, from 0."""


_Numbered = list[tuple[int, TraceSpan]]


class SpanDoor:
    """Judges the spans of a call together; may be shared by threads."""

    def __init__(self, scrubber: LoopScrubber, opt_outs: OptOuts) -> None:
        self._scrubber = scrubber
        self._opt_outs = opt_outs

    def take(self, found: Iterable[TraceSpan | RefusedSpan], dropped: Container[str]) -> KeptSpans:
        """Return what becomes of spans; nothing is kept of the traces in `dropped`."""
        kept = KeptSpans()
        traces: dict[str, _Numbered] = {}
        for index, one in enumerate(found):
            if isinstance(one, RefusedSpan):
                kept.refused[index] = one
            else:
                traces.setdefault(one.key[0], []).append((index, one))
        for trace, spans in traces.items():
            kept.traces.append(self._taken(trace, spans, trace in dropped, kept))
        return kept

    def _taken(self, trace: str, spans: _Numbered, known: bool, kept: KeptSpans) -> KeptTrace:
        """Return what becomes of the spans of a trace, of which nothing is kept where that is `known`."""
        tables = [(span.attributes, span.resource) for _, span in spans]
        sessions = _once(one for pair in tables for one in sessions_of(pair))
        users = _once(one for pair in tables for one in self._scrubber.users.named(pair))
        at = min(span.end_ns for _, span in spans) / 1e9
        marked = known or any(says_opt_out(table.get(_OPT_OUT)) for pair in tables for table in pair)
        reason: DropReason = "attribute" if marked else self._opt_outs.reason(sessions, users, at)
        refused: dict[int, RefusedSpan] = {}
        data: tuple[bytes, ...] = ()
        if not reason:
            data = tuple(self._data(trace, spans, refused))
            reason = self._opt_outs.reason_of_refs(data, at)
        if reason:
            kept.opted_out += len(spans)
            never = tuple(trajectories_of(trace, (span for _, span in spans)))
            return KeptTrace(
                id=trace, reason=reason, trajectories=never, sessions=sessions, users=users, at=at
            )
        kept.refused |= refused
        kept.accepted += len(spans) - len(refused)
        return KeptTrace(id=trace, data=data, sessions=sessions, users=users, at=at)

    def _data(self, trace: str, spans: _Numbered, refused: dict[int, RefusedSpan]) -> Iterator[bytes]:
        """Yield the data of events with the spans of a trace; those that cannot be kept join `refused`."""
        hidden = _Hidden(self._scrubber, (span for _, span in spans))
        groups: dict[int, _Numbered] = {}
        resources: dict[int, Mapping[str, Json]] = {}
        for index, span in spans:
            shared = id(span.resource)
            try:
                if shared not in resources:
                    resources[shared] = hidden.attributes(span.resource)
                groups.setdefault(shared, []).append((index, hidden.span(span, resources[shared])))
            except UnfitError:
                refused[index] = RefusedSpan(RefusedTrace.MALFORMED, span.place, span.key, span.parent)
        # whoever assembles the trace takes it as whole once it has its root
        for group in sorted(groups.values(), key=_has_root):
            for part in _parts(sorted(group, key=lambda one: not one[1].parent)):
                yield from _encoded(trace, part, refused)


class _Hidden:
    """Takes out of the spans of a trace what the scrubber finds, and the trace's users."""

    def __init__(self, scrubber: LoopScrubber, spans: Iterable[TraceSpan]) -> None:
        self._scrubber = scrubber
        self._users = UserHider(
            scrubber,
            {user for span in spans for user in scrubber.users.named((span.attributes, span.resource))},
        )

    def span(self, span: TraceSpan, resource: Mapping[str, Json]) -> TraceSpan:
        """Return a span fit to keep; raises UnfitError."""
        return TraceSpan(
            key=span.key,
            parent=span.parent,
            name=fit_text(span.name, self._users),
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            attributes=self.attributes(span.attributes),
            events=tuple(
                SpanEvent(fit_text(event.name, self._users), event.at_ns, self.attributes(event.attributes))
                for event in span.events
            ),
            failed=span.failed,
            message=fit_text(span.message, self._users),
            place=span.place,
            resource=resource,
        )

    def attributes(self, table: Mapping[str, Json]) -> dict[str, Json]:
        """Return attributes fit to keep; raises UnfitError."""
        found = self._scrubber.attributes(table)
        hidden = {key: self._users.attribute(key, value) for key, value in found.items()}
        if not table.keys() & USER_KEYS and (users := self._scrubber.users.named((table,))):
            hidden[_USER] = self._scrubber.user_ref(users[0])
        return hidden


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


def sessions_of(tables: Iterable[Mapping[str, Json]]) -> list[str]:
    """Return the sessions that attributes name, as texts."""
    found = []
    for table in tables:
        for key in table.keys() & SESSION_KEYS:
            value = table[key]
            if value.__class__ is int or (
                isinstance(value, str) and value.strip() and not is_scrubbed(value)
            ):
                found.append(str(value).strip())
    return found


def _has_root(spans: _Numbered) -> bool:
    return any(not span.parent for _, span in spans)


def _parts(spans: _Numbered) -> Iterator[_Numbered]:
    """Yield spans in groups that are about as large as an event may be."""
    part: _Numbered = []
    weight = 0
    for index, span in spans:
        own = _SPAN_CHARS + _weight(span.attributes) + sum(_weight(event.attributes) for event in span.events)
        if part and weight + own > _LIGHT:
            yield part
            part, weight = [], 0
        part.append((index, span))
        weight += own
    if part:
        yield part


def _weight(table: Mapping[str, Json]) -> int:
    return sum(
        len(key) + len(value if value.__class__ is str else repr(value)) for key, value in table.items()
    )


def _encoded(trace: str, spans: _Numbered, refused: dict[int, RefusedSpan]) -> Iterator[bytes]:
    """Yield the data of events, halving what is too large; one span loses the middle of its texts."""
    data = encode_spans(trace, [span for _, span in spans])
    if len(data) <= (LARGEST_GROUP if len(spans) > 1 else MAX_EVENT_BYTES):
        yield data
    elif len(spans) > 1:
        middle = len(spans) // 2
        yield from _encoded(trace, spans[:middle], refused)
        yield from _encoded(trace, spans[middle:], refused)
    else:
        ((index, span),) = spans
        for longest in LEAF_BYTES:
            data = encode_spans(trace, [_shorter(span, longest)])
            if len(data) <= MAX_EVENT_BYTES:
                yield data
                return
        refused[index] = RefusedSpan(RefusedTrace.TOO_LARGE, span.place, span.key, span.parent)


def _shorter(span: TraceSpan, longest: int) -> TraceSpan:
    events = tuple(
        SpanEvent(event.name, event.at_ns, cut_texts(event.attributes, longest)) for event in span.events
    )
    return replace(
        span,
        attributes=cut_texts(span.attributes, longest),
        events=events,
        resource=cut_texts(span.resource, longest),
    )
