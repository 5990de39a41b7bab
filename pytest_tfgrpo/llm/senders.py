"""Ways to the server of a model: a call of its own over HTTP, or a place in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.limits.slots import SlotEnd
from pytest_tfgrpo.llm.model_call import NOTHING, AttemptFailed, BatchFailed, ModelAttempts
from pytest_tfgrpo.llm.protocol import Completion
from pytest_tfgrpo.llm.server.door import Door
from pytest_tfgrpo.llm.server.transport import Reply, Transport, TransportError
from pytest_tfgrpo.retry import BUSY

if TYPE_CHECKING:
    from pytest_tfgrpo.llm.batch.batches import Batches
    from pytest_tfgrpo.llm.reply_reader import ReplyReader


class HttpSender:
    """Makes each call by itself."""

    def __init__(self, door: Door, transport: Transport, reader: ReplyReader, pace: Pace) -> None:
        self._door, self._transport, self._reader, self._pace = door, transport, reader, pace

    async def send(self, call: ModelAttempts, ended: SlotEnd) -> Reply:
        """Return the server's reply to one request; raises AttemptFailed unless it is a success.

        `ended` receives what that says about the server's load.
        """
        started = self._pace.clock()
        try:
            reply = await self._transport.send(
                "POST",
                self._door.address.url,
                self._door.headers,
                call.body,
                timeout_s=call.left_s,
                max_bytes=call.max_bytes,
                direct=self._door.address.loopback,
            )
        except TransportError as error:
            if error.late:
                ended.tell("ok", latency_s=call.left_s)
                text = f"no answer within {call.limit_s:g} s"
                raise AttemptFailed(self._reader.error(text, "timeout"), self._reader.used(None)) from None
            used = self._reader.used(None) if error.sent else NOTHING
            raise AttemptFailed(self._reader.error(str(error), "connection"), used, again=True) from None
        finally:
            call.pass_time(self._pace.clock() - started)
        if 200 <= reply.status < 300:
            ended.tell("ok", latency_s=self._pace.clock() - started)
            return reply
        failed = self._reader.refused(reply)
        if reply.status in BUSY and failed.again and failed.wait_s < call.left_s:
            ended.tell("refused", wait_s=failed.wait_s)
        raise failed


class BatchSender:
    """Makes calls in batches."""

    def __init__(self, batches: Batches, reader: ReplyReader) -> None:
        self.batches, self._reader = batches, reader

    async def reach(self) -> Completion:
        """Find out for nothing whether batches can be submitted: a call in one may take a day."""
        try:
            await self.batches.reach()
        except BatchFailed as failed:
            error = self._reader.error(str(failed), failed.code)
            raise ModelError(str(error), error.code, cost_usd=0.0) from None
        return Completion(text="", cost_usd=0.0)

    async def send(self, call: ModelAttempts, _: SlotEnd) -> Reply:
        """Return the reply to one request in a batch; raises AttemptFailed unless it is a success.

        One that a batch ends without is sent again once.
        """
        try:
            reply = await self.batches.ask(call.body, seed=call.seed, max_bytes=call.max_bytes)
        except BatchFailed as failed:
            call.unanswered += failed.again
            error = self._reader.error(str(failed), failed.code)
            used = self._reader.used(None) if failed.sent else NOTHING
            again = failed.again and call.unanswered == 1
            raise AttemptFailed(error, used, again=again, lasting=failed.lasting) from None
        if 200 <= reply.status < 300:
            return reply
        raise self._reader.refused(reply)
