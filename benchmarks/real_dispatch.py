"""The agent of the suite *convention*: a model names a queue, and the agent puts the ticket there.

The model must name one of the queues: its answer is bound by a JSON schema. Putting a ticket into a queue is
a call of the tool of that name, which is all that the house sees of an answer.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.actors.python import AgentContext

TIMEOUT_S = 600
Dispatcher = Callable[[AgentContext], Coroutine[Any, Any, Mapping[str, Any]]]


def dispatcher(base_url: str, model: str, queues: Sequence[str], place: str, max_tokens: int) -> Dispatcher:
    """Return an agent that chooses between `queues`, with its lessons in the system text or `beside` the task."""

    async def dispatch(context: AgentContext) -> Mapping[str, Any]:
        """Return the queue of a ticket."""
        system, user = context.prompt.system, context.prompt.user
        schema = {"type": "string", "enum": list(queues)}
        body = {
            "model": model,
            "messages": [{"role": "user", "content": f"{system}\n\n{user}"}]
            if place == "beside"
            else [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "max_tokens": max_tokens,
            "temperature": context.temperature,
            "seed": context.seed % 2**31,
            "response_format": {"type": "json_schema", "json_schema": {"name": "queue", "schema": schema}},
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
        queue = json.loads(text)
        return {"answer": queue, "frames": [made, {"kind": "tool", "name": queue, "input": {}}]}

    dispatch.paid = False  # type: ignore[attr-defined]
    return dispatch


def _post(url: str, body: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        return json.load(reply)
