"""Which run of an agent a call of a model belongs to: from a message of the user to the answer to it.

A request that has results of tools goes on with the run whose model asked for them; one that is like a
request that failed is its repeat, as clients send by themselves.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.serving.chat_body import last_user

MOST_RUNS = 100_000
"""Calls of tools and failed requests that are remembered, the newest."""
_CALLS = re.compile(rb'"tool_calls"\s*:\s*\[\s*\{')
_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,200})"')


@dataclass(frozen=True, kw_only=True, slots=True)
class GoingRun:
    """A run that goes on."""

    trace: str
    agent: str
    """Id of the span of its agent."""
    start_ns: int


class RunTraces:
    """The runs that go on; threads may share it."""

    def __init__(self, most: int = MOST_RUNS) -> None:
        self._most = most
        self._called: OrderedDict[str, GoingRun] = OrderedDict()
        self._failed: OrderedDict[str, GoingRun] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, session: str, messages: Sequence[Json]) -> GoingRun:
        """Return the run of a request: one that goes on, or a new one."""
        with self._lock:
            if self._failed and (run := self._failed.pop(_key(session, messages), None)):
                return run
            for call in _tool_calls(messages):
                if (run := self._called.get(f"{session} {call}")) is not None:
                    return run
        return GoingRun(trace=secrets.token_hex(16), agent=secrets.token_hex(8), start_ns=time.time_ns())

    def answered(self, session: str, run: GoingRun, body: bytes) -> bool:
        """Remember which calls of tools an answer asks for; return whether it ends the run."""
        if _CALLS.search(body) is None:
            return True
        for call in _ID.findall(body):
            self._remember(self._called, f"{session} {call.decode('utf-8', 'replace')}", run)
        return False

    def failed(self, session: str, run: GoingRun, messages: Sequence[Json]) -> None:
        """Remember a request that failed, so that its repeat is known."""
        self._remember(self._failed, _key(session, messages), run)

    def _remember(self, runs: OrderedDict[str, GoingRun], key: str, run: GoingRun) -> None:
        with self._lock:
            runs[key] = run
            if len(runs) > self._most:
                runs.popitem(last=False)


def _key(session: str, messages: Sequence[Json]) -> str:
    text = f"{session} {messages!r}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()


def _tool_calls(messages: Sequence[Json]) -> Iterator[str]:
    """Yield the ids of the calls whose results came since the user's last message."""
    for message in messages[last_user(messages) :]:
        if isinstance(message, dict) and isinstance(message.get("tool_call_id"), str):
            yield message["tool_call_id"]
