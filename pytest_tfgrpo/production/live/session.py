"""What the application holds: `Live`, and a `LiveRun` for each task, for threads and asyncio tasks alike.

Misuse raises: an unknown point, a wrong file when `Live` is opened. Nothing else reaches the agent; what
fails is counted, and `Live.status` shows it. Events are only enqueued.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from itertools import count
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from pytest_tfgrpo.core.errors import SettingError, describe
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.wire.stamp import combined_stamp, stamp
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.arms import LiveArm
from pytest_tfgrpo.production.live.config import DecisionPoint, LiveConfig
from pytest_tfgrpo.production.live.records import ArmChoice, EventKind, LiveEvent
from pytest_tfgrpo.telemetry.traces.provider import open_idle_processor

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

KEY_CHARS = 200
"""Of a run's key or category; a longer one is cut, and its stamp keeps it apart from others."""
TEXT_CHARS = 20_400
"""Of a prompt or reply that are handed on, of which the store keeps 20,000 after it took secrets out; their
lengths are counted whole."""
ERROR_CHARS = 500
INCOMPLETE = "incomplete"
"""Reason of a run whose agent came to a limit."""


class LiveBackend(Protocol):
    """What is behind the application while live RL is on: selector, collector, guard, store."""

    @property
    def held(self) -> bool:
        """Whether the guard holds the gate: default arms, and nothing is collected."""
        ...

    @property
    def selector(self) -> int:
        """Number of the selector in use."""
        ...

    def put(self, event: LiveEvent) -> bool:
        """Enqueue an event; never blocks or raises. False: it is lost."""
        ...

    def is_control(self, run: str) -> bool:
        """Return whether a run is one of the control group."""
        ...

    def choose(self, point: DecisionPoint, run: str, attempt: int, place: int, category: str) -> ArmChoice:
        """Return the choice of the selector."""
        ...

    def span_processor(
        self, current: Callable[[], LiveRun | None], swallow: Callable[[str, Exception], None]
    ) -> SpanProcessor:
        """Return a processor that reports agents; `current` is the run around the caller."""
        ...

    def mark(
        self, run: str, owner: str, category: str, attempt: int, choice: Mapping[str, Json], *, version: str
    ) -> None:
        """Note a choice in the span that is open around it."""
        ...

    def status(self) -> dict[str, Json]:
        """Return gate, store and selector as they are now."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Return whether all that was enqueued is durable, within a time."""
        ...

    def close(self, timeout_s: float) -> bool:
        """Flush and stop; returns whether all was durable in time."""
        ...


class Live:
    """Live RL in one process; open it once, at the start of the application, and share it between threads."""

    def __init__(self, config: LiveConfig, backend: LiveBackend | None) -> None:
        """Without a backend live RL is off: default arms, and nothing is collected."""
        self.config = config
        self.backend = backend
        self._swallowed: dict[str, int] = {}
        self._lock = RLock()  # garbage collection may end a run while its own thread counts
        self._last_error = ""

    def run(self, key: str, *, category: str | None = None, prompt: str | None = None) -> LiveRun:
        """Return the run of one task, for ``with``; it starts now.

        `key` names it for `outcome`. Each category, such as a domain or a kind of customer, has
        probabilities of its own. Of the prompt, the length counts.
        """
        return LiveRun(self, key, category, prompt)

    def outcome(self, key: str, score: float) -> None:
        """Report how a run that ended did, from 0 to 1: once, and until an update has used it."""
        backend = self.backend
        try:
            if backend is not None and not backend.held:
                data = {"score": _number(score)}
                backend.put(LiveEvent("outcome", short_key(key), "", 0, -1, time.time(), data))
        except Exception as error:  # noqa: BLE001 - nothing reaches the agent
            self.swallow("outcome", error)

    def status(self) -> dict[str, Json]:
        """Return what `tfgrpo live status --json` prints, and the errors that were kept from the agent."""
        found: dict[str, Json] = {
            "enabled": self.backend is not None,
            "config": str(self.config.path),
            "namespace": self.config.settings.namespace,
            "points": {name: point.default for name, point in self.config.points.items()},
        }
        try:
            found |= {} if self.backend is None else self.backend.status()
        except Exception as error:  # noqa: BLE001 - nothing reaches the agent
            self.swallow("status", error)
        return found | {"swallowed": dict(self._swallowed), "last_swallowed": self._last_error}

    def span_processor(self) -> SpanProcessor:
        """Return a processor for OpenTelemetry's ``TracerProvider``: it reports agents of other frameworks.

        Within ``with live.run(...)`` their turns and tool calls are that run's; elsewhere each outermost
        agent is a run. Raises SettingError where the extra `otel` is missing.
        """
        if self.backend is None:
            return open_idle_processor()
        return self.backend.span_processor(_open_run, self.swallow)

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Return whether all that was reported so far is in the store, within `timeout_s`."""
        return self._settle("flush", timeout_s)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write what was reported, and stop; returns whether that was done within `timeout_s`."""
        return self._settle("close", timeout_s)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def swallow(self, where: str, error: Exception) -> None:
        """Count an error that the agent must not see."""
        with self._lock:
            self._swallowed.setdefault(where, 0)  # nothing can come between the parts of the next line
            self._swallowed[where] += 1
        self._last_error = f"{where}: {describe(error)[:ERROR_CHARS]}"

    def _settle(self, what: str, timeout_s: float) -> bool:
        try:
            backend = self.backend
            return backend is None or (backend.flush if what == "flush" else backend.close)(timeout_s)
        except Exception as error:  # noqa: BLE001 - nothing reaches the agent
            self.swallow(what, error)
            return False


class LiveRun:
    """One task of the application; what it reports is a trajectory of choices, turns and tool calls."""

    def __init__(self, live: Live, key: str, category: str | None, prompt: str | None) -> None:
        self._live = live
        self._backend: LiveBackend | None = live.backend
        self._seq, self._attempt, self._place = count(), 1, 0
        self._started = time.perf_counter()
        self._arms: set[str] = set()
        """Stamps of those that the attempt took."""
        self._control = False
        self.ended = False
        """Whether its end is reported."""
        self._outer: LiveRun | None = None
        self._prompt_chars = 0
        self.key = self.category = self.owner = ""
        try:
            self._start(key, category, prompt)
        except Exception as error:  # noqa: BLE001 - nothing reaches the agent
            self._backend = None
            live.swallow("start", error)

    def _start(self, key: str, category: str | None, prompt: str | None) -> None:
        self.key, self.category = short_key(key), short_key(category or "")
        backend = self._backend
        if backend is None or backend.held:
            self._backend = None
            return
        self.owner = os.urandom(8).hex()
        self._control = backend.is_control(self.key)
        text = str(prompt or "")
        self._prompt_chars = len(text)
        kept = self._live.config.settings.text != "none"
        self._send(
            "start",
            {
                "category": self.category,
                "prompt": text[:TEXT_CHARS] if kept else None,
                "selector": backend.selector,
                "control": self._control,
            },
        )

    def choose(self, point: str) -> LiveArm:
        """Return the arm to take at a point of ``live.toml``; raises SettingError for an unknown point."""
        found = self._live.config.points.get(point) if isinstance(point, str) else None
        if found is None:
            raise _unknown(self._live.config, point)
        try:
            choice = self._choose(found)
        except Exception as error:  # noqa: BLE001 - nothing else reaches the agent
            self._live.swallow("choose", error)
            choice = default_choice(found, place=self._place, selector=0)
        self._place += 1
        return LiveArm(found.arms[choice.arm], choice.propensity, self.category, self._live.swallow)

    def _choose(self, point: DecisionPoint) -> ArmChoice:
        backend = self._collecting()
        if backend is None:
            return default_choice(point, place=self._place, selector=0)
        if self._control:
            choice = default_choice(point, place=self._place, selector=backend.selector)
        else:
            choice = backend.choose(point, self.key, self._attempt, self._place, self.category)
        data = choice_data(choice)
        self._send("choice", data)
        self._arms.add(choice.arms[choice.arm])
        self._mark(backend, data)
        return choice

    def _mark(self, backend: LiveBackend, choice: Mapping[str, Json]) -> None:
        """Note a choice in the span that is open around it, where the application uses OpenTelemetry."""
        if "opentelemetry.trace" not in sys.modules:
            return
        try:
            version = next(iter(self._arms)) if len(self._arms) == 1 else combined_stamp(self._arms)
            backend.mark(self.key, self.owner, self.category, self._attempt, choice, version=version)
        except Exception as error:  # noqa: BLE001 - nothing reaches the agent
            self._live.swallow("mark", error)

    def turn(self) -> None:
        """Report a turn: one call of the model."""
        self._send("turn", {})

    def tool(self, name: str, error: object = None) -> None:
        """Report a call of a tool, and its error, a text or an exception, if it failed."""
        try:
            data = {"name": str(name)[:KEY_CHARS], "error": _error_text(error)}
            if data["error"] is not None and self._live.config.settings.text == "none":
                data["error"] = type(error).__name__ if isinstance(error, BaseException) else "error"
        except Exception as problem:  # noqa: BLE001 - nothing reaches the agent
            self._live.swallow("tool", problem)
        else:
            self._send("tool", data)

    def safety(self, blocked: bool) -> None:
        """Report what safety said; a blocked run has the worst reward, whatever else it did."""
        try:
            said = bool(blocked)
        except Exception as error:  # noqa: BLE001 - what cannot be read counts as blocked
            self._live.swallow("safety", error)
            said = True
        self._send("safety", {"blocked": said})

    def retry(self) -> None:
        """Open the next attempt of this run: what counts is the last one."""
        self._attempt, self._place, self._started = self._attempt + 1, 0, time.perf_counter()
        self._arms = set()
        self._send("retry", {})

    def end(
        self,
        reply: str | None = None,
        score: float | None = None,
        *,
        completed: bool = True,
        cost_usd: float | None = None,
    ) -> None:
        """Report the reply and, where the application knows it, its score in [0, 1].

        `completed`: the agent came to its end, not to a limit; otherwise the run has failed.
        """
        try:
            text = None if reply is None else str(reply)
            data: dict[str, Json] = {"completed": bool(completed), "reply_chars": len(text or "")}
            if text is not None and self._live.config.settings.text != "none":
                data["reply"] = text[:TEXT_CHARS]
            data |= {} if score is None else {"score": _number(score)}
            data |= {} if cost_usd is None else {"cost_usd": _number(cost_usd)}
            status, reason = ("succeeded", "") if completed else ("failed", INCOMPLETE)
            self._end(status, reason, data)
        except Exception as error:  # noqa: BLE001 - nothing reaches the agent
            self._live.swallow("end", error)

    def __enter__(self) -> LiveRun:
        self._outer = _current.get()
        _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _current.get() is self:  # garbage collection may end it within another run, or another task
            _current.set(self._outer)
        if self.ended:
            return
        if kind is None:
            self._end("succeeded", "", {"completed": True, "reply_chars": 0})
        else:  # who cancels a task, or closes a generator, gave up: a slow arm would hide behind "cancelled"
            status = "cancelled" if issubclass(kind, KeyboardInterrupt | SystemExit) else "failed"
            self._end(status, kind.__name__, {"completed": False, "reply_chars": 0})

    def _end(self, status: str, reason: str, data: dict[str, Json]) -> None:
        self.ended = True
        latency_ms = round((time.perf_counter() - self._started) * 1000, 3)
        data |= {"prompt_chars": self._prompt_chars, "latency_ms": latency_ms}
        self._send("end", {"status": status, "reason": reason, **data})

    def _collecting(self) -> LiveBackend | None:
        """Return the backend while this run is collected; a run that met a hold is not, for good."""
        if self._backend is not None and self._backend.held:
            self._backend = None
        return self._backend

    def _send(self, kind: EventKind, data: Mapping[str, Json]) -> None:
        try:
            backend = self._collecting()
            if backend is not None:
                backend.put(
                    LiveEvent(kind, self.key, self.owner, self._attempt, next(self._seq), time.time(), data)
                )
        except Exception as error:  # noqa: BLE001 - nothing reaches the agent
            self._live.swallow(kind, error)


_current: ContextVar[LiveRun | None] = ContextVar("tfgrpo_live_run", default=None)
"""The run around the caller."""


def _open_run() -> LiveRun | None:
    """Return the run around the caller; None once it has ended, which a task may outlive."""
    run = _current.get()
    return None if run is None or run.ended else run


def default_choice(point: DecisionPoint, *, place: int, selector: int) -> ArmChoice:
    """Return the choice of the default arm, made without the selector."""
    return ArmChoice(
        point=point.name,
        place=place,
        arm=point.default,
        arms=point.stamps,
        probabilities={name: float(name == point.default) for name in point.arms},
        selector=selector,
        control=True,
    )


def choice_data(choice: ArmChoice) -> dict[str, Json]:
    """Return a choice as an event carries it."""
    return {
        "point": choice.point,
        "place": choice.place,
        "arm": choice.arm,
        "arms": choice.arms,
        "probabilities": choice.probabilities,
        "selector": choice.selector,
        "control": choice.control,
    }


def short_key(key: object) -> str:
    """Return a key as events carry it: a text of bounded length."""
    text = key if isinstance(key, str) else str(key)
    return text if len(text) <= KEY_CHARS else f"{text[: KEY_CHARS - 17]}-{stamp(text)[:16]}"


def _unknown(config: LiveConfig, point: str) -> SettingError:
    known = f"known: {', '.join(config.points)}" if config.points else "it has no points"
    hint = nearest(str(point), config.points) or f"; {known}"
    missing = "" if config.path.exists() else "; the file does not exist: write one with `tfgrpo live init`"
    return SettingError(f"{config.path}: no point is called {point!r}{hint}{missing}")


def _number(value: object) -> Json:
    """Return a number as JSON has it; what is none stays a text, which the store refuses and counts."""
    if isinstance(value, bool | int | float | str):
        return value
    return float(value) if hasattr(value, "__float__") else repr(value)[:ERROR_CHARS]


def _error_text(error: object) -> str | None:
    if error is None or isinstance(error, str):
        return None if error is None else error[:ERROR_CHARS]
    return describe(error)[:ERROR_CHARS] if isinstance(error, BaseException) else str(error)[:ERROR_CHARS]
