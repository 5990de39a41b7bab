"""The batch routes of OpenAI: upload a file, submit it, look how it does, download what came of it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.model_call import BatchFailed
from pytest_tfgrpo.llm.replies.response import Malformed, parse_body
from pytest_tfgrpo.llm.server.http_errors import read_refusal
from pytest_tfgrpo.llm.server.keys import Scrubber, Secret
from pytest_tfgrpo.llm.server.transport import Transport, TransportError
from pytest_tfgrpo.llm.server.url import Address

TAG = "tfgrpo_batch"
"""Key of a batch's metadata, under which it is found again."""
PAGE, PAGES = 100, 50
"""Batches of a page of the list, and pages read at most."""
ANSWER_BYTES = 4_000_000
FILE_S = 600.0
"""Time for the upload or download of a file."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,255}")


class BatchStatus(NamedTuple):
    """A batch as its server describes it."""

    state: str
    done: int
    """Calls answered so far, or failed."""
    files: tuple[str, ...]
    """Ids of the files of results and errors."""
    problem: str
    """Why it failed, in the server's words."""


class BatchRoutes:
    """The batch routes of one endpoint; every method raises BatchFailed."""

    def __init__(
        self,
        address: Address,
        headers: Mapping[str, Secret],
        scrubber: Scrubber,
        transport: Transport,
        timeout_s: float,
    ) -> None:
        """A request other than of a file may take `timeout_s`."""
        self._address = address
        self._headers = headers
        self._scrubber = scrubber
        self._transport = transport
        self._timeout_s = timeout_s

    async def probe(self) -> None:
        """Find out, for nothing, whether the endpoint has batch routes and takes the key."""
        try:
            await self._get("/batches", limit="1")
        except BatchFailed as error:
            if error.code != "not_found":
                raise
            text = f"the endpoint has no batch routes (GET /batches: {error}); take 'batch' out of it"
            raise BatchFailed(text, "not_found", lasting=True) from error

    async def upload(self, content: bytes) -> str:
        """Upload the requests of a batch and return the file's id."""
        boundary = secrets.token_hex(16)
        parts = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        body = b"".join([parts.encode(), content, f"\r\n--{boundary}--\r\n".encode()])
        kind = Secret(f"multipart/form-data; boundary={boundary}")
        found = await self._call("POST", "/files", body, {**self._headers, "Content-Type": kind}, FILE_S)
        return _id(_object(found))

    async def create(self, file: str, tag: str, window: str) -> str:
        """Submit a batch and return its id."""
        wanted = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": window,
            "metadata": {TAG: tag},
        }
        return _id(_object(await self._call("POST", "/batches", json.dumps(wanted).encode())))

    async def find(self, tag: str) -> str | None:
        """Return the id of the batch with a tag; None where the server has none."""
        after: dict[str, str] = {}
        for _ in range(PAGES):
            page = await self._get("/batches", limit=str(PAGE), **after)
            rows = page.get("data")
            rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            for row in rows:
                metadata = row.get("metadata")
                if isinstance(metadata, dict) and metadata.get(TAG) == tag:
                    return _id(row)
            if not rows or page.get("has_more") is not True:
                return None
            after = {"after": _id(rows[-1])}
        return None

    async def read(self, batch: str) -> BatchStatus:
        """Return how a batch does."""
        value = await self._get(f"/batches/{batch}")
        counts = value.get("request_counts")
        numbers = [counts.get(name) for name in ("completed", "failed")] if isinstance(counts, dict) else []
        return BatchStatus(
            state=str(value.get("status")),
            done=sum(number for number in numbers if type(number) is int and number > 0),
            files=tuple(
                file
                for name in ("output_file_id", "error_file_id")
                if isinstance(file := value.get(name), str) and ID.fullmatch(file)
            ),
            problem=_problem(value.get("errors")),
        )

    async def download(self, file: str, max_bytes: int) -> bytes:
        """Return the content of a file, at most so much of it."""
        return await self._call("GET", f"/files/{file}/content", time_s=FILE_S, max_bytes=max_bytes)

    async def cancel(self, batch: str) -> None:
        """Ask the server to end a batch."""
        await self._call("POST", f"/batches/{batch}/cancel", b"")

    async def _get(self, path: str, **query: str) -> Mapping[str, Json]:
        return _object(await self._call("GET", path, query=query))

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, Secret] | None = None,
        time_s: float | None = None,
        *,
        max_bytes: int = ANSWER_BYTES,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        try:
            reply = await self._transport.send(
                method,
                self._address.route(path, query or {}),
                headers or self._headers,
                body,
                timeout_s=time_s or self._timeout_s,
                max_bytes=max_bytes,
                direct=self._address.loopback,
            )
        except TransportError as error:
            code = "timeout" if error.late else "connection"
            raise BatchFailed(str(error), code, again=True) from None
        if 200 <= reply.status < 300:
            return reply.body
        refusal = read_refusal(reply._replace(body=self._scrubber.scrub_bytes(reply.body)))
        raise BatchFailed(
            refusal.message,
            refusal.code,
            again=refusal.again,
            lasting=refusal.lasting,
            wait_s=refusal.wait_s,
        )


def _object(body: bytes) -> Mapping[str, Json]:
    try:
        return parse_body(body)
    except Malformed as error:
        raise BatchFailed(f"the answer of a batch route is {error}", "bad_response", again=True) from None


def _id(value: Mapping[str, Json]) -> str:
    found = value.get("id")
    if isinstance(found, str) and ID.fullmatch(found):
        return found
    raise BatchFailed("the answer of a batch route has no id", "bad_response", again=True)


def _problem(errors: Json) -> str:
    """Return what a server says is wrong with a batch."""
    rows = errors.get("data") if isinstance(errors, dict) else None
    said = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return "; ".join(f"{row.get('code')}: {row.get('message')}" for row in said[:3])
