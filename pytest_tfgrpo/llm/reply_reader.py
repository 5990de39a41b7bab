"""Reads what the server of a model replies: a completion, or how an attempt failed."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.model_call import NOTHING, AttemptFailed, ModelAttempts, Used, one_line
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Completion, ToolCall
from pytest_tfgrpo.llm.replies.provider_faults import ProviderFault
from pytest_tfgrpo.llm.replies.response import (
    Malformed,
    RawCompletion,
    parse_body,
    read_answer,
    read_sampled,
    read_usage,
)
from pytest_tfgrpo.llm.server.door import Door
from pytest_tfgrpo.llm.server.http_errors import HttpRefusal, read_fault, read_refusal
from pytest_tfgrpo.llm.server.streamed import BrokenStream, is_stream, put_together
from pytest_tfgrpo.llm.server.transport import Reply

SHOWN = 300
"""Characters of a server's words that an error shows."""


class ReplyReader:
    """Reads the replies of one model, without the keys that a server may repeat in them."""

    def __init__(self, name: str, door: Door, price: Price | None) -> None:
        self._name, self._endpoint, self._scrubber, self._price = name, door.endpoint, door.scrubber, price

    def used(self, usage: Usage | None) -> Used:
        """Return what an attempt used that a server may have answered."""
        if usage is None:
            return (0.0 if self._endpoint.free else None), None
        return (None if self._price is None else self._price.cost(usage)), usage.total

    def error(self, text: str, code: str) -> ModelError:
        """Return an error fit for journal and terminal: no key, no control characters, short."""
        shown = one_line(self._scrubber.redact(text, 20 * SHOWN), SHOWN)
        return ModelError(f"{self._name}: {shown}", code)

    def refused(self, reply: Reply) -> AttemptFailed:
        """Return what a reply that is no success means for a call."""
        return self._failed(read_refusal(self._scrubbed(reply)), NOTHING)

    def completion(self, reply: Reply, call: ModelAttempts) -> Completion:
        """Return the completion that a reply holds, which is paid for; raises AttemptFailed."""
        if reply.cut:
            text = f"the answer is larger than {call.max_bytes} bytes (response_max_bytes)"
            raise AttemptFailed(self.error(text, "oversize"), self.used(None))
        usage: Usage | None = None
        try:
            whole = put_together(reply.body) if is_stream(reply.body) else reply.body
            body = parse_body(whole, lenient=call.sampled is not None)
            usage = read_usage(body, call.prompt_tokens, call.completion_tokens)
            answer = read_answer(body, self._endpoint.thoughts, call.tools)
        except BrokenStream as error:
            raise AttemptFailed(self.error(str(error), "connection"), self.used(None), again=True) from None
        except ProviderFault as error:
            known = usage is not None or body.get("choices")
            used = self.used(usage) if known else NOTHING  # where nothing was generated, nobody pays
            raise self._failed(read_fault(error, self._scrubbed(reply)), used) from None
        except Malformed as error:
            text = f"the answer is not a completion: {error}"
            raise AttemptFailed(self.error(text, "bad_response"), self.used(usage)) from None
        if answer.finish == "content_filter" and not answer.text and not answer.tool_calls:
            text = "the server's content filter withheld the answer"
            raise AttemptFailed(self.error(text, "content_filter"), self.used(usage))
        return self._completion(body, answer, usage, call)

    def _completion(
        self, body: Mapping[str, Json], answer: RawCompletion, usage: Usage | None, call: ModelAttempts
    ) -> Completion:
        scrub = self._scrubber.scrub
        text = scrub(answer.text)
        calls = tuple(
            ToolCall(id=scrub(c.id), name=scrub(c.name), arguments=scrub(c.arguments))
            for c in answer.tool_calls
        )
        thoughts = scrub(answer.thoughts) if answer.thoughts else ""
        sampled = call.sampled
        as_it_was = (text, calls, thoughts) == (answer.text, answer.tool_calls, answer.thoughts)
        if sampled is not None and not as_it_was:
            sampled = sampled.without_tokens()  # the ids would say what the text no longer does
        elif sampled is not None:
            sampled = read_sampled(body, sampled.kind, sampled.temperature, usage)
        call.pay(self.used(usage)[0])
        return Completion(
            text=text,
            thoughts=thoughts,
            why_empty=answer.why_empty,
            tool_calls=calls,
            finish=answer.finish,
            usage=usage,
            cost_usd=call.cost_usd,
            latency_ms=1000 * call.spent_s,
            model=scrub(answer.model),
            retries=call.attempt,
            sampled=sampled,
        )

    def _scrubbed(self, reply: Reply) -> Reply:
        return reply._replace(body=self._scrubber.scrub_bytes(reply.body))

    def _failed(self, refusal: HttpRefusal, used: Used) -> AttemptFailed:
        return AttemptFailed(
            self.error(refusal.message, refusal.code),
            used,
            again=refusal.again,
            lasting=refusal.lasting,
            form=refusal.form,
            stream=refusal.stream,
            wait_s=refusal.wait_s,
        )
