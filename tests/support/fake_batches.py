"""Batch routes of the fake model server, as OpenAI documents them: strict, and with faults on request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs

from support.fake_model import Body, Reply, refused

Lines = list[bytes]
Meddle = Callable[[Lines], Iterable[bytes]]
"""Changes the lines of a file of results."""
LINE = {"custom_id", "method", "url", "body"}


class FakeBatches:
    """Keeps files and batches in memory; a batch ends once it was looked at `looks` times."""

    MADE_UNHEARD = Reply(status=500)
    """As a fault: does what it is asked for, and does not say so."""

    def __init__(
        self,
        *,
        looks: int = 2,
        meddle: Meddle = lambda lines: lines,
        ends: Sequence[str] = (),
        problem: str = "model_not_found",
        faults: Mapping[str, Sequence[Reply]] | None = None,
    ) -> None:
        """`ends` are the states in which the first batches end, if not completed, of `looks` looks each.

        One that expires, or is cancelled, has made the first half of its calls; `problem` is the code of one
        that failed. `faults` are the replies to
        the first requests of a route such as ``GET /v1/batches/*``, an asterisk for each id.
        """
        self.looks = looks
        self.problem = problem
        self.meddle = meddle
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Body] = {}
        self.seen: Counter[str] = Counter()
        """Requests by route."""
        self.asked: Counter[str] = Counter()
        """Calls by their body and custom id, in all batches."""
        self._ends = list(ends)
        self._faults = {route: list(replies) for route, replies in (faults or {}).items()}
        self._left: dict[str, int] = {}

    def reply(
        self, start: str, headers: Mapping[str, str], body: bytes, complete: Callable[..., Reply]
    ) -> Reply:
        """Answer a request."""
        method, _, target = start.partition(" ")
        path, _, query = target.removeprefix("/v1").partition("?")
        parts = path.strip("/").split("/")
        route = " ".join([method, "/".join(["", *parts[:1], *("*" for _ in parts[1:2]), *parts[2:]])])
        self.seen[route] += 1
        if self._faults.get(route):
            fault = self._faults[route].pop(0)
            if fault is self.MADE_UNHEARD:
                self._create(json.loads(body), headers, complete)
            return fault
        match route:
            case "POST /files":
                return self._upload(headers, body)
            case "POST /batches":
                return self._create(json.loads(body), headers, complete)
            case "GET /batches":
                return self._page(parse_qs(query))
            case "GET /batches/*" if parts[1] in self.batches:
                return self._look(parts[1])
            case "POST /batches/*/cancel" if parts[1] in self.batches:
                self.batches[parts[1]]["status"] = "cancelled"
                return Reply(body=self.batches[parts[1]])
            case "GET /files/*/content" if parts[1] in self.files:
                return Reply(body=self.files[parts[1]])
        return refused(404, f"no such path: {start}")

    def end(self) -> None:
        """Let every batch, also later ones, end at the next look."""
        self.looks, self._left = 1, dict.fromkeys(self._left, 1)

    def _upload(self, headers: Mapping[str, str], body: bytes) -> Reply:
        head = f"Content-Type: {headers['content-type']}\r\n\r\n"
        parts: dict[str, Any] = {
            str(part.get_param("name", header="content-disposition")): part
            for part in BytesParser().parsebytes(head.encode() + body).walk()
        }
        if parts["purpose"].get_payload() != "batch" or not parts["file"].get_filename("").endswith(".jsonl"):
            return refused(400, "purpose or file is wrong")
        content: bytes = parts["file"].get_payload(decode=True)
        return Reply(body={"id": self._keep(content), "object": "file", "bytes": len(content)})

    def _keep(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def _create(self, wanted: Body, headers: Mapping[str, str], complete: Callable[..., Reply]) -> Reply:
        if wanted["endpoint"] != "/v1/chat/completions" or not wanted["completion_window"]:
            return refused(400, "endpoint or window is wrong")
        lines = [json.loads(line) for line in self.files[wanted["input_file_id"]].splitlines()]
        keys = [line["custom_id"] for line in lines]
        if any(set(line) != LINE or line["url"] != wanted["endpoint"] for line in lines):
            return refused(400, "a line is wrong")
        if len(set(keys)) < len(keys) or len({line["body"]["model"] for line in lines}) > 1:
            return refused(400, "a custom_id comes twice, or there are several models")
        name, end = f"batch_{len(self.batches)}", self._ends.pop(0) if self._ends else "completed"
        batch = {
            "id": name,
            "object": "batch",
            "status": "in_progress",
            "metadata": wanted["metadata"],
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            "end": end,
            "keys": keys,
        }
        self.batches[name], self._left[name] = batch, self.looks
        if end != "failed":
            self._make(batch, lines, headers, complete)
        return Reply(body=batch)

    def _make(
        self, batch: Body, lines: list[Body], headers: Mapping[str, str], complete: Callable[..., Reply]
    ) -> None:
        """Make the calls of a batch."""
        made: Lines = []
        errors: Lines = []
        whole = len(lines) if batch["end"] == "completed" else len(lines) // 2
        for place, line in enumerate(lines):
            row: Body = {"id": f"batch_req_{place}", "custom_id": line["custom_id"]}
            if place >= whole:
                error = {"code": f"batch_{batch['end']}", "message": "not made"}
                errors.append(json.dumps({**row, "response": None, "error": error}).encode())
                continue
            self.asked[line["custom_id"]] += 1
            reply = complete(headers, json.dumps(line["body"]).encode())
            response = {"status_code": reply.status, "request_id": "r", "body": reply.body}
            row = {**row, "response": response, "error": None}
            (made if reply.status == 200 else errors).append(json.dumps(row).encode())
        for field, found in (("output_file_id", made), ("error_file_id", errors)):
            batch[field] = self._keep(b"\n".join(self.meddle(found))) if found else None

    def _page(self, query: Mapping[str, list[str]]) -> Reply:
        newest = list(self.batches.values())[::-1]
        names = [batch["id"] for batch in newest]
        start = names.index(query["after"][0]) + 1 if "after" in query else 0
        end = start + min(int(query["limit"][0]), 100)
        return Reply(body={"object": "list", "data": newest[start:end], "has_more": end < len(newest)})

    def _look(self, name: str) -> Reply:
        batch = self.batches[name]
        self._left[name] -= 1
        if self._left[name] <= 0 and batch["status"] == "in_progress":
            batch["status"] = batch["end"]
            batch["request_counts"]["completed"] = len(batch["keys"])
            if batch["end"] == "failed":
                batch["errors"] = {"data": [{"code": self.problem, "message": "sorry"}]}
        hidden = {} if batch["status"] != "in_progress" else {"output_file_id": None, "error_file_id": None}
        return Reply(body={**batch, **hidden})
