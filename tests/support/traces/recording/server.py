"""A model on loopback that says what a story says, over three APIs, and keeps a log of what it was asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from support.traces.recording.stories import DOWN, Reply, Story

JsonObject = dict[str, Any]


class ScriptedServer:
    """Serves one story; use it as a context manager."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.log: list[JsonObject] = []
        """A line for each request, in the order in which they came."""
        self._served: Counter[str] = Counter()
        self._calls = 0
        self._lock = Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.answer(self, self.path.rsplit("/", 1)[-1], asked)

            def log_message(self, *args: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> ScriptedServer:
        Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, handler: BaseHTTPRequestHandler, api: str, asked: JsonObject) -> None:
        """Send the next reply of the story to whoever asks."""
        with self._lock:
            line = self._next(api, asked)
        if line["status"] != 200:
            error = {"type": "api_error", "message": DOWN, "code": None, "param": None}
            _send(handler, line["status"], {"type": "error", "error": error})
        elif asked.get("stream"):
            events = {
                "completions": _chat_events,
                "responses": _response_events,
                "messages": _anthropic_events,
            }
            _stream(handler, events[api](line))
        else:
            bodies = {"completions": _chat, "responses": _response, "messages": _anthropic}
            _send(handler, 200, bodies[api](line))

    def _next(self, api: str, asked: JsonObject) -> JsonObject:
        model = asked["model"].rsplit("/", 1)[-1]
        replies, at = self.story.replies.get(model, ()), self._served[model]
        if at >= len(replies):
            raise RuntimeError(f"the story has no more replies of {model}: {json.dumps(asked)[:3000]}")
        self._served[model] += 1
        reply: Reply = replies[at]
        calls = []
        for name, arguments in reply.calls:
            self._calls += 1
            calls.append({"id": f"call-{self._calls}", "name": name, "arguments": arguments})
        number = len(self.log)
        usage = (20 + 10 * number, 5 + number)
        line = {
            "number": number,
            "api": api,
            "model": model,
            "status": reply.status,
            "text": reply.text,
            "calls": calls,
            "usage": usage if reply.status == 200 else (0, 0),
            "results": dict(_results(asked)),
        }
        self.log.append(line)
        return line


def _results(asked: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the results of calls that a request has, by the ids of the calls."""
    messages = asked.get("messages", asked.get("input"))
    for message in messages if isinstance(messages, list) else ():
        if message.get("role") == "tool":
            yield message["tool_call_id"], _text(message["content"])
        elif message.get("type") == "function_call_output":
            yield message["call_id"], _text(message["output"])
        elif isinstance(message.get("content"), list):
            for part in message["content"]:
                if part.get("type") == "tool_result":
                    yield part["tool_use_id"], _text(part.get("content", ""))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _chat(line: JsonObject) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": line["text"] or None}
    if line["calls"]:
        message["tool_calls"] = [_chat_call(call) for call in line["calls"]]
    finish = "tool_calls" if line["calls"] else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return _chat_head(line, "chat.completion") | {"choices": [choice], "usage": _chat_usage(line)}


def _chat_head(line: JsonObject, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{line['number']}", "object": kind, "created": 1, "model": line["model"]}


def _chat_call(call: JsonObject) -> JsonObject:
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return {"id": call["id"], "type": "function", "function": function}


def _chat_usage(line: JsonObject) -> JsonObject:
    read, written = line["usage"]
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _chat_events(line: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    head = _chat_head(line, "chat.completion.chunk")

    def chunk(delta: JsonObject, finish: str | None = None) -> tuple[str, JsonObject]:
        return "", head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": "" if line["text"] else None})
    for word in _words(line["text"]):
        yield chunk({"content": word})
    for at, call in enumerate(line["calls"]):
        told = _chat_call(call)
        arguments = told["function"].pop("arguments")
        yield chunk({"tool_calls": [told | {"index": at, "function": told["function"] | {"arguments": ""}}]})
        yield chunk({"tool_calls": [{"index": at, "function": {"arguments": arguments}}]})
    yield chunk({}, "tool_calls" if line["calls"] else "stop")
    yield "", head | {"choices": [], "usage": _chat_usage(line)}


def _words(text: str) -> list[str]:
    return [word if at == 0 else f" {word}" for at, word in enumerate(text.split(" "))] if text else []


def _response(line: JsonObject, *, done: bool = True) -> JsonObject:
    read, written = line["usage"]
    usage = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
    return {
        "id": f"resp-{line['number']}",
        "object": "response",
        "created_at": 1,
        "status": "completed" if done else "in_progress",
        "model": line["model"],
        "output": _response_items(line) if done else [],
        "usage": usage if done else None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }


def _response_items(line: JsonObject) -> list[JsonObject]:
    if line["text"]:
        part = {"type": "output_text", "text": line["text"], "annotations": []}
        item = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
        return [{"id": f"msg-{line['number']}"} | item]
    return [
        {
            "id": f"fc-{call['id']}",
            "type": "function_call",
            "status": "completed",
            "call_id": call["id"],
            "name": call["name"],
            "arguments": json.dumps(call["arguments"]),
        }
        for call in line["calls"]
    ]


def _response_events(line: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    number = iter(range(1_000))

    def event(kind: str, **more: Any) -> tuple[str, JsonObject]:
        return kind, {"type": kind, "sequence_number": next(number)} | more

    yield event("response.created", response=_response(line, done=False))
    for at, item in enumerate(_response_items(line)):
        where = {"output_index": at, "item_id": item["id"]}
        empty: JsonObject = {"content": []} if line["text"] else {"arguments": ""}
        started = item | {"status": "in_progress"} | empty
        yield event("response.output_item.added", output_index=at, item=started)
        if line["text"]:
            (part,) = item["content"]
            where["content_index"] = 0
            yield event("response.content_part.added", part=part | {"text": ""}, **where)
            for word in _words(line["text"]):
                yield event("response.output_text.delta", delta=word, logprobs=[], **where)
            yield event("response.output_text.done", text=line["text"], logprobs=[], **where)
            yield event("response.content_part.done", part=part, **where)
        else:
            yield event("response.function_call_arguments.delta", delta=item["arguments"], **where)
            told = {"arguments": item["arguments"], "name": item["name"]}
            yield event("response.function_call_arguments.done", **told, **where)
        yield event("response.output_item.done", output_index=at, item=item)
    yield event("response.completed", response=_response(line))


def _anthropic(line: JsonObject) -> JsonObject:
    calls = [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
        for call in line["calls"]
    ]
    read, written = line["usage"]
    return {
        "id": f"msg-{line['number']}",
        "type": "message",
        "role": "assistant",
        "model": line["model"],
        "content": calls or [{"type": "text", "text": line["text"]}],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
    }


def _anthropic_events(line: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    whole = _anthropic(line)
    usage = whole["usage"] | {"output_tokens": 1}
    start = whole | {"content": [], "stop_reason": None, "usage": usage}
    yield "message_start", {"type": "message_start", "message": start}
    for at, part in enumerate(whole["content"]):
        empty: JsonObject = {"text": ""} if part["type"] == "text" else {"input": {}}
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": at, "content_block": part | empty},
        )
        if part["type"] == "text":
            deltas = [{"type": "text_delta", "text": word} for word in _words(part["text"])]
        else:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(part["input"])}]
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": at}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    written = {"output_tokens": line["usage"][1]}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": written}
    yield "message_stop", {"type": "message_stop"}


def _send(handler: BaseHTTPRequestHandler, status: int, body: JsonObject) -> None:
    content = json.dumps(body).encode()
    handler.send_response_only(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.send_header("retry-after-ms", "1")
    handler.end_headers()
    handler.wfile.write(content)


def _stream(handler: BaseHTTPRequestHandler, events: Iterable[tuple[str, JsonObject]]) -> None:
    handler.send_response_only(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    for name, data in events:
        head = f"event: {name}\n" if name else ""
        handler.wfile.write(f"{head}data: {json.dumps(data)}\n\n".encode())
    if not name:
        handler.wfile.write(b"data: [DONE]\n\n")
