"""Batches of one model: calls are gathered, submitted as a file, waited for, and answered by their keys."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.llm.batch.ledger import BatchLedger, EarlierBatch
from pytest_tfgrpo.llm.batch.results import BatchResults, read_results
from pytest_tfgrpo.llm.batch.routes import ENDED, BatchRoutes
from pytest_tfgrpo.llm.endpoints import Batching
from pytest_tfgrpo.llm.limits import patience
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.limits.slots import Standing
from pytest_tfgrpo.llm.model_call import BatchFailed
from pytest_tfgrpo.llm.server.transport import Reply
from pytest_tfgrpo.retry import MODEL, may_pass

T = TypeVar("T")

MOST_CALLS, MOST_BYTES = 50_000, 200_000_000
"""What the batch routes take in one file."""
RESULT_BYTES = 1_000_000_000
"""What is read of a file of results."""
GATHERINGS = 10
"""A call waits at most so many times `gather_s` for others, who keep coming."""
MAYBE_MADE = frozenset({"bad_response", "connection", "server", "timeout"})
"""Codes of faults after which a server may have the batch, or not."""
LISTED_S = 5.0
"""After which a server lists a batch that it has."""
CANCEL_S = 0.5
"""After which a task that goes on is cancelled once more."""
GRACE_S = 3600.0
"""How long after its window a batch may still end."""


class BatchProgress(NamedTuple):
    """A batch that is waited for."""

    calls: int
    done: int


@dataclass(frozen=True, slots=True)
class BatchedCall:
    """A call that waits to be submitted, or to be answered."""

    key: str
    line: bytes
    """Of the file that is uploaded."""
    answer: asyncio.Future[Reply]


class CallGathering:
    """Calls that wait for others, to be submitted together."""

    def __init__(self, gather_s: float, submit: Callable[[list[BatchedCall]], None]) -> None:
        """Each call restarts the wait of `gather_s`, up to `GATHERINGS` times."""
        self._gather_s, self._submit = gather_s, submit
        self._calls: list[BatchedCall] = []
        self._bytes = 0
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call: BatchedCall) -> None:
        """Take a call; where a file is full it is submitted first."""
        loop = asyncio.get_running_loop()
        if len(self._calls) >= MOST_CALLS or self._bytes + len(call.line) > MOST_BYTES:
            self._close()
        if not self._calls:
            self._since = loop.time()
        self._calls.append(call)
        self._bytes += len(call.line)
        self.stop()
        last = self._since + (GATHERINGS - 1) * self._gather_s
        self._timer = loop.call_at(min(loop.time(), last) + self._gather_s, self._close)

    def stop(self) -> None:
        """Submit nothing by itself any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _close(self) -> None:
        """Submit what is still wanted."""
        calls = [call for call in self._calls if not call.answer.done()]
        self._calls, self._bytes = [], 0
        if calls:
            self._submit(calls)


class Batches:
    """Makes the calls of one model in batches; used on one event loop only."""

    def __init__(
        self,
        name: str,
        routes: BatchRoutes,
        batching: Batching,
        *,
        ledger: BatchLedger,
        standing: Standing,
        pace: Pace,
    ) -> None:
        """`name` is that of the model; who waits does so within what `standing` returns."""
        self._name = name
        self._routes = routes
        self._batching = batching
        self._ledger = ledger
        self._standing = standing
        self._pace = pace
        self._asked: Counter[str] = Counter()
        self._gathering = CallGathering(batching.gather_s, self._begin)
        self._tasks: set[asyncio.Task[None]] = set()
        self._earlier: dict[str, asyncio.Task[BatchResults]] = {}
        self._reached = asyncio.Lock()
        self._has_routes = False
        self._progress: dict[str, BatchProgress] = {}
        """Of the batches that the server has, by its id."""
        self._odd: Counter[str] = Counter()

    async def ask(self, body: bytes, *, seed: int | None, max_bytes: int) -> Reply:
        """Return the reply to a request, from a batch of an interrupted process if it was in one.

        `seed` distinguishes equal requests of different rollouts. Raises BatchFailed.
        """
        digest = hashlib.sha256(b"%s %s" % (str(seed).encode(), body)).hexdigest()[:40]
        key = f"{digest}-{self._asked[digest]}"
        self._asked[digest] += 1
        with self._standing():
            try:
                reply = await self._collected(key)
            except BatchFailed:
                self._asked[digest] -= 1  # what is sent again is still in that batch
                raise
            reply = reply or await self._submitted(key, body)
        return reply._replace(cut=len(reply.body) > max_bytes)

    async def reach(self) -> None:
        """Find out, once and for nothing, whether there are batch routes; raises BatchFailed."""
        async with self._reached:
            if not self._has_routes:
                await self._patiently(self._routes.probe, patience.TOTAL_S)
                self._has_routes = True

    @property
    def progress(self) -> tuple[BatchProgress, ...]:
        """Batches that are waited for; may be read on any thread."""
        return tuple(self._progress.copy().values())

    @property
    def warnings(self) -> list[str]:
        """What to say of results that nobody could use, and of batches that go on at the server."""
        odd = [
            f"{self._name}: {plural(count, 'result')} of batches {what}"
            for what, count in sorted(self._odd.items())
        ]
        if not self._ledger.is_kept:
            return odd
        return odd + [
            f"{self._name}: batch {id_} of {plural(one.calls, 'call')} goes on at the server, which bills "
            "it; a resumed run collects it"
            for id_, one in self._progress.items()
        ]

    async def aclose(self) -> None:
        """Wait no longer; cancel what nobody can collect, as the run has no folder."""
        self._gathering.stop()
        tasks, left = [*self._tasks, *self._earlier.values()], [*self._progress]
        while running := [task for task in tasks if not task.done()]:
            for task in running:
                task.cancel()
            # again, as a request that ends right now may take the cancellation for its own failure
            await asyncio.wait(running, timeout=CANCEL_S)
        if not self._ledger.is_kept:
            for id_ in left:
                with suppress(BatchFailed):
                    await self._routes.cancel(id_)

    async def _collected(self, key: str) -> Reply | None:
        """Return the reply from a batch of an interrupted process; None without one, or if another may do."""
        earlier = self._ledger.find(self._name, key)
        if earlier is None:
            return None
        task = self._earlier.get(earlier.tag)
        if task is None or (task.done() and task.exception() is not None):
            task = self._earlier[earlier.tag] = asyncio.create_task(self._collect(earlier))
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        reply = (await asyncio.shield(task)).replies.pop(key, None)
        return None if reply is None or may_pass(reply.status, MODEL) else reply

    async def _collect(self, earlier: EarlierBatch) -> BatchResults:
        """Return the results of an earlier batch; none where it has ended without, or never began."""
        await self.reach()
        id_ = earlier.id
        if id_ is None:
            id_ = await self._patiently(lambda: self._routes.find(earlier.tag), patience.TOTAL_S)
        if id_ is None:
            return BatchResults()
        try:
            return await self._watch(id_, frozenset(earlier.keys))
        except BatchFailed as error:
            if error.code in ("rejected", "not_found"):  # nobody paid for it
                return BatchResults()
            raise

    async def _submitted(self, key: str, body: bytes) -> Reply:
        """Return the reply from a batch that is submitted with others."""
        line = b'{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":%s}\n'
        call = BatchedCall(key, line % (key.encode(), body), asyncio.get_running_loop().create_future())
        if len(call.line) > MOST_BYTES:
            raise BatchFailed(f"the request has {len(body)} bytes; a batch takes {MOST_BYTES}", "rejected")
        self._gathering.add(call)
        return await call.answer

    def _begin(self, calls: list[BatchedCall]) -> None:
        task = asyncio.create_task(self._carry_out(calls))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, calls: list[BatchedCall]) -> None:
        """Submit a batch and answer its calls."""
        failed: Exception | None = None
        results, id_, answers = BatchResults(), "", {call.key: call.answer for call in calls}
        try:
            await self.reach()
            id_ = await self._submit(calls)
            calls.clear()  # their texts may be large, and the wait long
            results = await self._watch(id_, answers.keys())
        except Exception as error:  # noqa: BLE001 - raised where the calls are waited for
            failed = error
        for key, answer in answers.items():
            if answer.done():
                continue
            reply = results.replies.pop(key, None)
            if reply is not None:
                answer.set_result(reply)
            else:
                answer.set_exception(failed or _unanswered(id_, unmade=key in results.unmade))

    async def _submit(self, calls: list[BatchedCall]) -> str:
        """Return the id of a batch, which is on file before and after it is submitted."""
        tag, tried = secrets.token_hex(16), False
        self._ledger.submit(tag, self._name, [call.key for call in calls])
        content = b"".join(call.line for call in calls)
        file = await self._patiently(lambda: self._routes.upload(content), patience.TOTAL_S)

        async def create() -> str:
            nonlocal tried
            if tried:  # the server may have it, and list it a little later
                await self._pace.sleep(LISTED_S)
                if (found := await self._routes.find(tag)) is not None:
                    return found
            tried = True
            return await self._routes.create(file, tag, self._batching.completion_window)

        try:
            id_ = await self._patiently(create, patience.TOTAL_S)
        except BatchFailed as error:
            error.sent = error.code in MAYBE_MADE
            raise
        self._ledger.submitted(tag, id_)
        return id_

    async def _watch(self, id_: str, keys: Collection[str]) -> BatchResults:
        """Return the results of a batch once it has ended."""
        clock, window_s = self._pace.clock, self._batching.window_s + GRACE_S
        until = clock() + window_s
        self._progress[id_] = BatchProgress(len(keys), 0)
        while True:
            status = await self._patiently(lambda: self._routes.read(id_), until - clock(), sent=True)
            self._progress[id_] = BatchProgress(len(keys), min(status.done, len(keys)))
            if status.state in ENDED:
                break
            if clock() >= until:
                text = f"batch {id_} was not completed within {self._batching.completion_window}"
                raise BatchFailed(text, "timeout", sent=True)
            await self._pace.sleep(self._batching.poll_s)
        if status.state == "failed":
            del self._progress[id_]
            raise _refused(id_, status.problem)
        downloads = [partial(self._routes.download, file, RESULT_BYTES) for file in status.files]
        files = [await self._patiently(download, until - clock(), sent=True) for download in downloads]
        results = await asyncio.to_thread(read_results, files, keys)
        self._odd += results.odd
        del self._progress[id_]
        return results

    async def _patiently(self, ask: Callable[[], Awaitable[T]], within_s: float, *, sent: bool = False) -> T:
        """Return what `ask` does, which is called again after faults that pass; raises BatchFailed.

        `sent`: the server has the batch, so somebody pays for it.
        """
        until, tries = self._pace.clock() + within_s, 0
        while True:
            try:
                return await ask()
            except BatchFailed as error:
                wait_s = max(error.wait_s, self._pace.backoff_s(tries))
                if not error.again or self._pace.clock() + wait_s > until:
                    error.again, error.sent = False, sent
                    raise
            tries += 1
            await self._pace.sleep(wait_s)


def _unanswered(id_: str, *, unmade: bool) -> BatchFailed:
    """Return why a call has no reply though its batch has ended."""
    if unmade:
        return BatchFailed(f"batch {id_} ended before this call was made", "server", again=True)
    return BatchFailed(f"batch {id_} has no result for this call", "bad_response", sent=True, again=True)


def _refused(id_: str, problem: str) -> BatchFailed:
    """Return why a batch failed as a whole, for which nobody pays."""
    text = f"batch {id_} failed: {problem or 'the server does not say why'}"
    if "token_limit" in problem:
        return BatchFailed(f"{text}; set a lower 'concurrency' for this endpoint", "rate_limit")
    return BatchFailed(text, "rejected")
