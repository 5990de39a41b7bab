"""The connection to NATS: an event loop in a thread of its own, and what is tried again when it breaks.

Everything that is sent twice is recognised by the server, or harmless.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.python.threads import start_thread
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

T = TypeVar("T")
PATIENCE_S = 30.0
"""How long an operation is tried while the server does not answer."""
_ANSWER_S = 5.0
_CONNECT_S = 10.0
_HEARTBEAT_S = 0.5
"""How often the server says that a long request still waits."""
_PAUSE_S = 0.1
_WINDOW = 2000
_WINDOW_BYTES = 32 << 20
_HEADER_BYTES = 512
"""What a message's headers may take of the server's limit."""
_API = "$JS.API."


class NatsRefusal(BusError):
    """The server refuses a request; `code` is JetStream's error code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class NatsMessage:
    """What is to be stored."""

    subject: str
    data: bytes
    headers: dict[str, str] = field(default_factory=dict)
    """With the id that the server recognises a repeat by."""


def require_nats() -> None:
    """Raise BusError, which names the extra to install, when there is no nats-py."""
    if find_spec("nats") is None:
        raise BusError("a bus on NATS needs nats-py; install it with: pip install 'pytest-tfgrpo[nats]'")


class _Window:
    """Messages that were sent together, and what the server has said about them."""

    def __init__(self, messages: Sequence[NatsMessage]) -> None:
        self.name, self.messages = uuid.uuid4().hex, messages
        self.known: dict[int, int] = {}
        """Sequences of what is stored, by place."""
        self.answered: asyncio.Future[None] | None = None

    def acknowledge(self, number: int, sequence: int) -> None:
        self.known[number] = sequence
        if len(self.known) == len(self.messages) and self.answered and not self.answered.done():
            self.answered.set_result(None)

    def fail(self, error: Exception) -> None:
        if self.answered and not self.answered.done():
            self.answered.set_exception(error)


class NatsLink:
    """One connection; its methods are called from any thread, its coroutines run in the loop's."""

    def __init__(self, url: str, options: Mapping[str, object], patience_s: float) -> None:
        require_nats()
        import nats
        import nats.errors

        self._nats = nats
        self.failures = (nats.errors.Error, TimeoutError, asyncio.TimeoutError, OSError)
        self._nobody = nats.errors.NoRespondersError
        self._patience_s = patience_s
        self._servers = url.split(",")
        self.where = ", ".join(_public(server) for server in self._servers)
        self._last_error = ""
        self.breaks = 0
        """How often the connection broke."""
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._broken: asyncio.Future[None] = self._loop.create_future()
        self._thread = start_thread(self._loop.run_forever, "tfgrpo-nats")
        try:
            self.client: Client = self.run(self._connect(options))
        except BaseException:
            self._stop()
            raise
        self._publisher = _Publisher(self)

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Return what a coroutine returns, run in the loop's thread."""
        closed = BusError(f"the bus on NATS at {self.where} is closed")
        if not self.is_open():
            work.close()
            raise closed
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (CancelledError, RuntimeError) as error:  # closed by another thread
            if self.is_open():
                raise
            work.close()
            raise closed from error

    def is_open(self) -> bool:
        """Return whether nobody has closed this."""
        return not self._closed

    async def _connect(self, options: Mapping[str, object]) -> Client:
        async def note(error: Exception) -> None:
            if not (self._last_error and isinstance(error, OSError)):  # what the server said says more
                self._last_error = str(error) or type(error).__name__

        given: dict[str, Json] = {
            "name": "pytest-tfgrpo",
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": _PAUSE_S,
            "error_cb": note,
            **options,
            "disconnected_cb": self._note_break,
        }
        try:
            return await asyncio.wait_for(self._nats.connect(self._servers, **given), _CONNECT_S)
        except TypeError as error:
            raise BusError(f"an option for nats.connect is not one that it takes: {error}") from error
        except (*self.failures, ValueError) as error:
            why = self._last_error or str(error) or type(error).__name__
            raise BusError(
                f"NATS at {self.where} cannot be reached: {why}; start it, or correct the URL"
            ) from error

    async def _note_break(self) -> None:
        self.breaks += 1
        broken, self._broken = self._broken, self._loop.create_future()
        broken.set_result(None)

    async def _unless_broken(self, work: Awaitable[T]) -> T:
        """Return what `work` returns; raises ConnectionError when the connection breaks before."""
        task = asyncio.ensure_future(work)
        try:
            ends: set[asyncio.Future[T] | asyncio.Future[None]] = {task, self._broken}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ConnectionError("the connection broke")
            return task.result()
        finally:
            task.cancel()

    async def patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what `attempt` returns, tried until it does not fail; raises BusError after the patience."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                return await self._unless_broken(attempt())
            except self.failures as error:
                if isinstance(error, BusError):
                    raise
                if time.monotonic() > until or self._closed or self.client.is_closed:
                    raise self._unanswered(error) from error
                await asyncio.sleep(_PAUSE_S)

    def _unanswered(self, error: BaseException) -> BusError:
        why = str(error) or type(error).__name__
        if isinstance(error, self._nobody):
            return BusError(
                f"NATS at {self.where} has no JetStream that answers; start it with -js, or let this account "
                "use it"
            )
        return BusError(
            f"NATS at {self.where} has not answered for {self._patience_s:g} s: {why}; what this call was "
            "to store may be there or not: call again when the server is back"
        )

    async def api(self, subject: str, body: Mapping[str, Json] | None = None) -> dict[str, Json]:
        """Return the answer of JetStream's API; raises NatsRefusal."""
        payload = b"" if body is None else json.dumps(body).encode()

        async def ask() -> dict[str, Json]:
            message = await self.client.request(_API + subject, payload, timeout=_ANSWER_S)
            answer: dict[str, Json] = load_json(message.data)
            return answer

        answer = await self.patiently(ask)
        if (refused := answer.get("error")) is not None:
            raise NatsRefusal(
                f"NATS at {self.where} refuses {subject.partition('.$')[0]}: {refused.get('description')}",
                int(refused.get("err_code", 0)),
            )
        return answer

    async def store(self, messages: Sequence[NatsMessage]) -> list[int]:
        """Return the sequences under which messages are stored, once they are."""
        return await self._publisher.store(messages)

    def check_size(self, size: int, what: str) -> None:
        """Raise BusError for data that the server would not take."""
        if size + _HEADER_BYTES > self.client.max_payload:
            raise BusError(
                f"{what} has {size:,} bytes, and the server takes {self.client.max_payload:,} with headers; "
                "raise its max_payload"
            )

    async def pull(
        self, stream: str, consumer: str, batch: int, wait_s: float, max_bytes: int
    ) -> tuple[list[Msg], bool]:
        """Return what a consumer has, at once if `wait_s` is 0, and whether the server answered."""
        wish: dict[str, Json] = {"batch": batch, "max_bytes": max_bytes}
        wish |= {"expires": int(wait_s * 1e9)} if wait_s > 0 else {"no_wait": True}
        silence_s = wait_s + _ANSWER_S
        if wait_s >= 2 * _HEARTBEAT_S:
            wish["idle_heartbeat"] = int(_HEARTBEAT_S * 1e9)
            silence_s = 3 * _HEARTBEAT_S  # after which the server has lost the request
        got: list[Msg] = []
        inbox = self.client.new_inbox()
        subscription = await self.client.subscribe(inbox)

        async def receive() -> bool:
            subject = f"{_API}CONSUMER.MSG.NEXT.{stream}.{consumer}"
            await self.client.publish(subject, json.dumps(wish).encode(), reply=inbox)
            while len(got) < batch:
                message = await subscription.next_msg(silence_s)
                if message.subject != inbox:
                    got.append(message)
                elif (status := (message.headers or {}).get("Status")) != "100":
                    return status in ("404", "408") or bool(got)
            return True

        try:
            answered = await self._unless_broken(receive())
        except self.failures:
            answered = False
        finally:
            with suppress(*self.failures):
                await subscription.unsubscribe()
        return got, answered

    async def settle(self, receipts: Sequence[str], word: bytes) -> None:
        """Send the same word for messages that were delivered, and wait until the server has it."""

        async def one(receipt: str) -> None:
            await self.patiently(lambda: self.client.request(receipt, word, timeout=_ANSWER_S))

        outcomes = await asyncio.gather(*map(one, receipts), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    def close(self) -> None:
        """Let go of the server."""
        if self._closed:
            return
        closing = asyncio.run_coroutine_threadsafe(self.client.close(), self._loop)
        self._closed = True
        with suppress(*self.failures):
            closing.result()
        self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(_cancel_others())
        self._loop.close()


class _Publisher:
    """Stores messages, which the server acknowledges in an inbox."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._inbox = link.client.new_inbox()
        self._listening: asyncio.Future[None] | None = None
        """The subscription of the inbox; None before there is something to store."""
        self._windows: dict[str, _Window] = {}

    async def store(self, messages: Sequence[NatsMessage]) -> list[int]:
        """Return the sequences under which messages are stored, once they are."""
        await self._link.patiently(self._listen)
        sequences: list[int] = []
        for part in _windows(messages):
            window = _Window(part)
            self._windows[window.name] = window
            try:
                await self._link.patiently(partial(self._store, window))
            finally:
                del self._windows[window.name]
            sequences += [window.known[number] for number in range(len(part))]
        return sequences

    async def _listen(self) -> None:
        """Subscribe to what the server answers about messages; nats-py's own way loses refusals."""
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._subscribe())
        try:
            await asyncio.shield(self._listening)
        except self._link.failures:
            self._listening = None
            raise

    async def _subscribe(self) -> None:
        await self._link.client.subscribe(f"{self._inbox}.>", cb=self._acknowledge)

    async def _acknowledge(self, message: Msg) -> None:
        name, _, number = message.subject[len(self._inbox) + 1 :].partition(".")
        if (window := self._windows.get(name)) is None:
            return
        if not message.data:
            window.fail(OSError("no stream takes the subject, or the server has not found it yet"))
            return
        answer = load_json(message.data)
        if (refused := answer.get("error")) is None:
            window.acknowledge(int(number), answer["seq"])
        elif refused["code"] >= 500:
            window.fail(OSError(refused["description"]))  # not ready yet
        else:
            text = f"NATS at {self._link.where} refuses a message: {refused['description']}"
            window.fail(NatsRefusal(text, refused.get("err_code", 0)))

    async def _store(self, window: _Window) -> None:
        """Publish what is not acknowledged, all at once."""
        window.answered = asyncio.get_running_loop().create_future()
        reply, publish = f"{self._inbox}.{window.name}.", self._link.client.publish
        async with asyncio.timeout(_ANSWER_S):
            for number, message in enumerate(window.messages):
                if number not in window.known:
                    await publish(message.subject, message.data, f"{reply}{number}", message.headers)
            if len(window.known) < len(window.messages):
                await window.answered


async def _cancel_others() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _windows(messages: Sequence[NatsMessage]) -> list[Sequence[NatsMessage]]:
    """Return messages in parts that are sent at once."""
    parts: list[Sequence[NatsMessage]] = []
    start = size = 0
    for number, message in enumerate(messages):
        if number > start and (number - start >= _WINDOW or size + len(message.data) > _WINDOW_BYTES):
            parts.append(messages[start:number])
            start, size = number, 0
        size += len(message.data)
    if start < len(messages):
        parts.append(messages[start:])
    return parts


def _public(server: str) -> str:
    """Return a server's address without what lets one in."""
    parts = urlsplit(server if "://" in server else f"nats://{server}")
    try:
        port = parts.port
    except ValueError as error:
        raise BusError(f"the URL of the NATS server has no valid port: {error}") from error
    if not parts.hostname:
        raise BusError("the URL of the NATS server has no host; use nats:nats://HOST:4222")
    return f"{parts.hostname}:{port or 4222}"
