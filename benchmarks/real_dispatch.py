"""The agent of the suite *convention*: a model says which queue to use, and the agent puts the ticket there.

A grammar of llama.cpp binds the answer to the words "use" and a queue. Putting a ticket into a queue is a
call of the tool of that name, which is all that the house sees of an answer.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.actors.python import AgentContext
from pytest_tfgrpo.core.texts.words import words

TIMEOUT_S = 600
Dispatcher = Callable[[AgentContext], Coroutine[Any, Any, Mapping[str, Any]]]


def dispatcher(
    base_url: str, model: str, queues: Sequence[str], max_tokens: int, *, bound: bool
) -> Dispatcher:
    """Return an agent that chooses between `queues`; with `bound` the server keeps the answer to them."""
    closed = " | ".join(json.dumps(f"use {queue}") for queue in queues)
    extra = {"grammar": f"root ::= {closed}"} if bound else {}

    async def dispatch(context: AgentContext) -> Mapping[str, Any]:
        """Put a ticket into the queue that the model names first; a text without one is the answer."""
        told = ("system", context.prompt.system), ("user", context.prompt.user)
        body = {
            **extra,
            "model": model,
            "messages": [{"role": role, "content": text} for role, text in told if text],
            "max_tokens": max_tokens,
            "temperature": context.temperature,
            "seed": context.seed % 2**31,
        }
        reply = await asyncio.to_thread(_post, f"{base_url}/chat/completions", body)
        choice, usage = reply["choices"][0], reply["usage"]
        text = choice["message"]["content"]
        made = {
            "kind": "model",
            "name": model,
            "output": text,
            "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
            "finish": choice["finish_reason"],
        }
        named = [word for word in words(text) if word in queues][:1]
        return {"answer": text, "frames": [made, *({"kind": "tool", "name": name} for name in named)]}

    dispatch.paid = False  # type: ignore[attr-defined]
    return dispatch


def _post(url: str, body: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        return json.load(reply)
