"""Overwrites what there is of a session or a user: in every stream, in the view, and on disk.

Services may go on meanwhile: they take nothing more of whom is forgotten, and what they publish in these
moments goes too. Views of other machines are filled again. What an event says is found by the ids in it; an
identity is also searched for as it stands where it is long enough to be no word that others use. A user's
sessions go with the user, but for what names somebody else; of a session where others are, what names nobody
stays, since it may be theirs.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT, AUDIT_SUBJECT, SPANS_SUBJECT, STREAMS
from pytest_tfgrpo.production.door.dropped_runs import DroppedRuns, trajectories_of
from pytest_tfgrpo.production.door.named_in import NamedIn
from pytest_tfgrpo.production.door.opt_outs import Whose, forgotten_key, put_left, row_since
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.evaluation.kept_history import forget_history
from pytest_tfgrpo.production.span_events import SPANS, decode_spans, encode_opt_out, event_id
from pytest_tfgrpo.production.view.view import FORGET, TRAJECTORIES, LoopView
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, change
from pytest_tfgrpo.telemetry.traces.turns import UNREADABLE, TraceSpan

_ORDER = [
    *(spec.name for spec in STREAMS if spec.name not in (SPANS, TRAJECTORIES, AUDIT)),
    SPANS,
    TRAJECTORIES,
]
"""Those that others are found by come last, so that a second attempt finds the rest."""
_IDS = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}")
_TRACE = re.compile(rb'"trace":"([^"\\]*)"\}\Z')
"""Where an event of RL_SPANS has its trace: keys are sorted."""
_WORD = 6
"""Characters from which an identity with a digit is searched for as it stands; without one, twice as many."""
_PASSES = 20
_PAUSE_S = 0.5
"""Between passes; longer than a worker has something in hand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetResult:
    """What was overwritten."""

    whose: Whose
    ref: str
    """The pseudonym, by which the audit record names it."""
    removed: Mapping[str, int]
    """Events by stream, those alone that had some."""
    shared: int
    """Sessions of a user in which others are, of which what names nobody stays."""
    ids: frozenset[str] = frozenset()
    """Of the trajectories and traces that were overwritten, in lower case."""


@dataclass(kw_only=True, slots=True)
class _Wanted:
    """What belongs to whom is forgotten."""

    whose: Whose
    identity: str
    """As the streams have it."""
    pattern: re.Pattern[bytes]
    attribute: re.Pattern[bytes]
    """The identity as the value of an attribute of a span."""
    names: NamedIn
    sessions: set[str] = field(default_factory=set)
    """Pseudonyms of the sessions that go."""
    shared: set[str] = field(default_factory=set)
    """Those of them in which others are."""
    ids: set[bytes] = field(default_factory=set)
    """Of trajectories and traces."""
    traces: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    """Ids of events that say to drop a trace."""

    def add(self, trajectory: str, trace: str | None) -> None:
        """Add a trajectory, and its trace."""
        self.ids.add(trajectory.lower().encode())
        if trace:
            self.traces.add(trace)
            self.ids.add(trace.lower().encode("utf-8", "replace"))

    def named_in(self, data: bytes) -> bool:
        """Return whether the identity stands in some data."""
        return self.pattern.search(data) is not None

    def has(self, stream: str, event: BusEvent) -> bool:
        """Return whether an event belongs to it."""
        return event.id not in self.sent and (self.is_tied(stream, event) or self.is_in_session(event.data))

    def others(self, data: bytes) -> bool:
        """Return whether some data names a user who is not forgotten."""
        return self.whose == "user" and bool(self.names.users(data) - {self.identity})

    def is_in_session(self, data: bytes) -> bool:
        """Return whether some data belongs to it since it names a session, and nobody else."""
        left = self.sessions - self.shared
        return bool(left) and not left.isdisjoint(self.names.sessions(data)) and not self.others(data)

    def is_tied(self, stream: str, event: BusEvent) -> bool:
        """Return whether an event names the identity, or a trajectory or trace of it."""
        if self.named_in(event.data) or (stream == SPANS and self.attribute.search(event.data)):
            return True
        if stream == SPANS and _trace_of(event.data) in self.traces:
            return True
        return any(found.lower() in self.ids for found in _IDS.findall(event.data))


def forget(
    bus: Bus,
    view: LoopView,
    *,
    scrubber: LoopScrubber,
    actor: str,
    session: str = "",
    user: str = "",
    sleep: Callable[[float], None] = time.sleep,
) -> ForgetResult:
    """Overwrite everything of a session, or of a user; `actor` says so, in the audit record.

    Raises ValueError unless one of them is given, and BusError; do it again then.
    """
    if bool(session.strip()) == bool(user.strip()):
        raise ValueError("name one session or one user to forget")
    whose: Whose = "session" if session.strip() else "user"
    if whose == "session":
        identity, ref = scrubber.identity(session.strip()), scrubber.session_ref(session)
    else:
        identity = ref = scrubber.user_ref(user)
    change(bus.table(STATE), forgotten_key(whose, ref), lambda _: row_since())  # refused from now on
    wanted = _Wanted(
        whose=whose,
        identity=identity,
        pattern=_standing(identity),
        attribute=_quoted(identity),
        names=NamedIn(scrubber),
        sessions={ref} if whose == "session" else set(),
    )
    removed: Counter[str] = Counter()
    since: dict[str, int] = {}
    for number in range(_PASSES):
        before = sum(removed.values())
        since = _pass(bus, view, wanted, since, removed)
        if number and sum(removed.values()) == before:
            break
        sleep(_PAUSE_S)
    result = ForgetResult(
        whose=whose,
        ref=ref,
        removed=dict(sorted(removed.items())),
        shared=len(wanted.shared),
        ids=frozenset(one.decode("utf-8", "replace") for one in wanted.ids),
    )
    DroppedRuns(bus, scrubber).forgo(sorted(result.ids))
    _record(bus, view, result, actor)
    forget_history(bus)
    return result


def _pass(
    bus: Bus, view: LoopView, wanted: _Wanted, since: Mapping[str, int], removed: Counter[str]
) -> dict[str, int]:
    """Overwrite what there is now, from some sequences on; return where the next pass begins."""
    view.catch_up(bus)
    known = len(wanted.ids), len(wanted.sessions), len(wanted.shared)
    _find(bus, view, wanted, since)
    if (len(wanted.ids), len(wanted.sessions), len(wanted.shared)) != known:
        since = {}  # what was passed by may belong to what is known only now
    following = {stream: bus.last(stream) + 1 for stream in _ORDER}
    gone: dict[str, list[int]] = {}
    for stream in _ORDER:
        found = [
            (event.id, event.sequence, wanted.attribute.search(event.data) is not None)
            for event in bus.replay(stream, since_sequence=since.get(stream, 1))
            if wanted.has(stream, event)
        ]
        for direct in (False, True):
            ids = [event_id for event_id, _, named in found if named == direct]
            if ids:
                removed[stream] += bus.delete(stream, ids)
        gone[stream] = [sequence for _, sequence, _ in found]
        if stream == SPANS and found:
            _drop_traces(bus, wanted)
    view.forget(wanted.whose, wanted.identity, [one.decode("utf-8", "replace") for one in wanted.ids], gone)
    return following


def _find(bus: Bus, view: LoopView, wanted: _Wanted, since: Mapping[str, int]) -> None:
    """Find trajectories and traces."""
    for trajectory, trace in view.owned(wanted.whose, wanted.identity):
        wanted.add(trajectory, trace)
    for event in bus.replay(SPANS, since_sequence=since.get(SPANS, 1)):
        if event.id not in wanted.sent and wanted.attribute.search(event.data):
            wanted.traces.add(_trace_of(event.data))
    for event in bus.replay(TRAJECTORIES, since_sequence=since.get(TRAJECTORIES, 1)):
        if wanted.named_in(event.data):
            for trajectory, trace in _run_of(event.data):
                wanted.add(trajectory, trace)

    if wanted.whose == "user":
        _find_sessions(bus, wanted)
        for trajectory, trace in list(_in_sessions(bus, wanted)):
            wanted.add(trajectory, trace)
    _find_trajectories(bus, wanted)


def _find_trajectories(bus: Bus, wanted: _Wanted) -> None:
    """Find what the spans of the traces may become: somebody may have said something of it already."""
    wanted.traces.discard("")
    for event in bus.replay(SPANS) if wanted.traces else ():
        if event.id not in wanted.sent and (of := _trace_of(event.data)) in wanted.traces:
            for trajectory in trajectories_of(of, _spans_of(event.data)):
                wanted.add(trajectory, of)


def _find_sessions(bus: Bus, wanted: _Wanted) -> None:
    """Find the sessions of a user, and those in which others are, and have the door know them."""
    for stream in _ORDER:
        for event in bus.replay(stream):
            if event.id not in wanted.sent and wanted.is_tied(stream, event):
                wanted.sessions |= wanted.names.sessions(event.data)
    wanted.sessions -= {wanted.names.session(trace) for trace in wanted.traces}  # they have no other name
    if not wanted.sessions:
        return
    traces: dict[str, set[str]] = {}
    for stream in _ORDER:
        for event in bus.replay(stream):
            if not (found := wanted.names.sessions(event.data) & wanted.sessions):
                continue
            if wanted.others(event.data):
                wanted.shared |= found
            elif stream == SPANS:
                traces.setdefault(_trace_of(event.data), set()).update(found)
    for event in bus.replay(SPANS) if traces else ():
        if (trace := _trace_of(event.data)) in traces and wanted.others(event.data):
            wanted.shared |= traces[trace]
    table = bus.table(STATE)
    for session in wanted.sessions:
        put_left(table, session, frozenset({wanted.identity}), shared=session in wanted.shared)


def _in_sessions(bus: Bus, wanted: _Wanted) -> Iterator[tuple[str, str | None]]:
    """Yield trajectories and traces that name a session of the user and nobody else."""
    for event in bus.replay(SPANS):
        if event.id not in wanted.sent and wanted.is_in_session(event.data):
            wanted.traces.add(_trace_of(event.data))
    for event in bus.replay(TRAJECTORIES):
        if wanted.is_in_session(event.data):
            yield from _run_of(event.data)


def _spans_of(data: bytes) -> list[TraceSpan]:
    try:
        return decode_spans(data)[1] or []
    except UNREADABLE:
        return []


def _run_of(data: bytes) -> Iterator[tuple[str, str | None]]:
    try:
        found = json.loads(data)
        trace = found.get("metadata", {}).get("trace_id")
        yield str(found["trajectory_id"]), trace if isinstance(trace, str) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return  # it is no trajectory, and goes as it is


def _trace_of(data: bytes) -> str:
    found = _TRACE.search(data)
    return found[1].decode("utf-8", "replace") if found else ""


def _drop_traces(bus: Bus, wanted: _Wanted) -> None:
    """Have what is assembled just now dropped, and what comes of these traces later."""
    now = utc_now()
    events = []
    for trace in sorted(wanted.traces - {wanted.identity}):
        data = encode_opt_out(trace)
        if (key := event_id(data)) not in wanted.sent:
            wanted.sent.add(key)
            events.append(BusEvent(id=key, subject=SPANS_SUBJECT, time=now, data=data))
    bus.publish(events)


def _record(bus: Bus, view: LoopView, result: ForgetResult, actor: str) -> None:
    now = utc_now()
    value = {
        "action": FORGET, "what": result.whose, "ref": result.ref, "actor": actor,
        "removed": dict(result.removed),
    }  # fmt: skip
    data = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    key = derived_id(FORGET, result.whose, result.ref, now)
    view.set_meta(f"forget.{key}", "1")  # this view is clean: others begin again
    bus.publish([BusEvent(id=key, subject=AUDIT_SUBJECT, time=now, data=data)])
    view.catch_up(bus)
    view.shrink()  # an evaluator may have kept its history there meanwhile


def _forms(identity: str) -> list[bytes]:
    """Return how JSON may write an identity, also within a text of JSON."""
    plain = {json.dumps(identity)[1:-1], json.dumps(identity, ensure_ascii=False)[1:-1]}
    nested = {json.dumps(form)[1:-1] for form in plain}
    return sorted(form.encode("utf-8", "replace") for form in plain | nested)


def _standing(identity: str) -> re.Pattern[bytes]:
    """Return what finds an identity that is no part of a longer one, wherever it stands."""
    digits = any(char.isdigit() for char in identity)
    if len(identity) < (_WORD if digits else 2 * _WORD):
        return re.compile(rb"(?!)")
    whole = b"|".join(re.escape(form) for form in _forms(identity))
    return re.compile(rb"(?<![0-9A-Za-z_-])(?:" + whole + rb")(?![0-9A-Za-z_-])")


def _quoted(identity: str) -> re.Pattern[bytes]:
    return re.compile(rb'"(?:' + b"|".join(re.escape(form) for form in _forms(identity)) + rb')\\*"')
