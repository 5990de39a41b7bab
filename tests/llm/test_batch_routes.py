"""How a batch that a killed run submitted is found again."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.batch.routes import ANSWER_BYTES, FILE_S, PAGES, TAG, BatchRoutes
from pytest_tfgrpo.llm.model_call import BatchFailed
from pytest_tfgrpo.llm.server.keys import Scrubber, Secret
from pytest_tfgrpo.llm.server.transport import Reply, TransportError

pytestmark = pytest.mark.asyncio


class PagedRoutes(BatchRoutes):
    """Routes whose answers are given."""

    def __init__(self, *pages: Mapping[str, Any]) -> None:
        self.pages, self.asked = list(pages), list[Mapping[str, str]]()

    async def _get(self, path: str, **query: str) -> Mapping[str, Json]:
        self.asked.append(query)
        return self.pages[len(self.asked) - 1]


def row(id_: str, tag: Any) -> dict[str, Any]:
    return {"id": id_, "metadata": {TAG: tag}}


async def test_a_batch_is_found_by_its_tag_on_any_page() -> None:
    odd = ["x", {"id": "m", "metadata": None}]
    routes = PagedRoutes(
        {"data": [*odd, row("b1", "other"), "y"], "has_more": True},
        {"data": [row("b2", "mine")], "has_more": False},
    )
    assert await routes.find("mine") == "b2"
    assert [query.get("after") for query in routes.asked] == [None, "b1"]


@pytest.mark.parametrize("page", [{"data": [row("b1", "other")]}, {"data": [], "has_more": True}, {}])
async def test_without_a_further_page_there_is_none(page: Mapping[str, Any]) -> None:
    routes = PagedRoutes(page)
    assert await routes.find("mine") is None
    assert len(routes.asked) == 1


async def test_the_pages_that_are_read_have_an_end() -> None:
    pages = [{"data": [row(f"b{n}", f"tag{n}")], "has_more": True} for n in range(PAGES + 1)]
    assert await PagedRoutes(*pages).find(f"tag{PAGES - 1}") == f"b{PAGES - 1}"
    routes = PagedRoutes(*pages)
    assert await routes.find(f"tag{PAGES}") is None
    assert len(routes.asked) == PAGES == 50


class Answers:
    """A transport that answers what it was told to."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.sent = list(answers), list[tuple[Any, ...]]()
        self.direct: list[bool] = []

    async def send(self, method: str, route: str, headers: Any, body: Any, **limits: Any) -> Reply:
        self.sent.append((method, route, body, limits["timeout_s"], limits["max_bytes"]))
        self.direct.append(limits["direct"])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(200, json.dumps(answer).encode(), False, {}, "")


def routes_to(*answers: Any) -> tuple[BatchRoutes, Answers]:
    address: Any = SimpleNamespace(route=lambda path, query: f"{path}?{urlencode(query)}", loopback=True)
    transport: Any = Answers(*answers)
    return BatchRoutes(address, {}, Scrubber([]), transport, 7.0), transport


async def test_the_state_of_a_batch_is_read_whatever_else_a_server_says() -> None:
    whole = {
        "status": "completed", "request_counts": {"completed": 3, "failed": 2, "total": 9},
        "output_file_id": "out", "error_file_id": "err", "errors": None,
    }  # fmt: skip
    odd = {
        "request_counts": {"completed": True, "failed": -2}, "output_file_id": "../x", "error_file_id": 7,
        "errors": {"data": ["x", *({"code": n, "message": f"m{n}"} for n in range(4))]},
    }  # fmt: skip
    routes, transport = routes_to(whole, odd, {"request_counts": [1], "errors": {"data": None}})
    assert await routes.read("b1") == ("completed", 5, ("out", "err"), "")
    assert await routes.read("b1") == ("None", 0, (), "0: m0; 1: m1; 2: m2")
    assert await routes.read("b1") == ("None", 0, (), "")
    assert transport.sent[0] == ("GET", "/batches/b1?", None, 7.0, ANSWER_BYTES)


async def test_a_batch_is_submitted_with_its_file_window_and_tag() -> None:
    routes, transport = routes_to({"id": "file-1"}, {"id": "batch_1"}, Reply(200, b"rows", False, {}, ""), {})
    assert await routes.upload(b"line\n") == "file-1"
    assert await routes.create("file-1", "mine", "24h") == "batch_1"
    assert await routes.download("out", 99) == b"rows"
    await routes.cancel("batch_1")
    assert [(method, route) for method, route, *_ in transport.sent] == [
        ("POST", "/files?"), ("POST", "/batches?"), ("GET", "/files/out/content?"),
        ("POST", "/batches/batch_1/cancel?"),
    ]  # fmt: skip
    assert b'name="purpose"\r\n\r\nbatch\r\n' in transport.sent[0][2]
    assert b"\r\n\r\nline\n\r\n--" in transport.sent[0][2]
    assert json.loads(transport.sent[1][2]) == {
        "input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h",
        "metadata": {TAG: "mine"},
    }  # fmt: skip
    assert [time_s for *_, time_s, _ in transport.sent] == [FILE_S, 7.0, FILE_S, 7.0]
    assert transport.sent[2][-1] == 99


@pytest.mark.parametrize(
    ("answer", "code", "again", "lasting"),
    [
        (TransportError("gone", late=False, sent=True), "connection", True, False),
        (TransportError("gone", late=True, sent=True), "timeout", True, False),
        (Reply(503, b"", False, {}, ""), "server", True, False),
        (Reply(401, b"", False, {}, ""), "auth", False, True),
        (Reply(400, b"", False, {}, ""), "rejected", False, False),
        (Reply(200, b"no json", False, {}, ""), "bad_response", True, False),
        ({"no": "id"}, "bad_response", True, False),
        ({"id": "../x"}, "bad_response", True, False),
    ],
)
async def test_what_fails_says_whether_it_may_pass(
    answer: Any, code: str, again: bool, lasting: bool
) -> None:
    routes, _ = routes_to(answer)
    with pytest.raises(BatchFailed) as caught:
        await routes.create("file-1", "mine", "24h")
    assert (caught.value.code, caught.value.again, caught.value.lasting) == (code, again, lasting)


async def test_an_endpoint_without_batch_routes_is_told_apart_from_one_that_refuses_for_now() -> None:
    routes, transport = routes_to(
        {}, Reply(404, b"", False, {}, ""), Reply(429, b"", False, {"retry-after": "3"}, "")
    )
    await routes.probe()
    assert transport.sent[0][1] == "/batches?limit=1"
    with pytest.raises(BatchFailed, match=r"no batch routes .*take 'batch' out of it") as missing:
        await routes.probe()
    assert (missing.value.code, missing.value.lasting, missing.value.again) == ("not_found", True, False)
    with pytest.raises(BatchFailed) as busy:
        await routes.probe()
    assert (busy.value.code, busy.value.again, busy.value.wait_s) == ("rate_limit", True, 3.0)


@pytest.mark.parametrize("loopback", [True, False])
async def test_only_a_server_on_this_machine_is_reached_past_proxies_and_no_refusal_tells_a_key(
    loopback: bool,
) -> None:
    key = "key-of-this-test"
    address: Any = SimpleNamespace(route=lambda path, query: path, loopback=loopback)
    transport: Any = Answers(Reply(400, f"what is {key}?".encode(), False, {}, ""))
    with pytest.raises(BatchFailed) as caught:
        await BatchRoutes(address, {}, Scrubber([Secret(key)]), transport, 7.0).cancel("b1")
    assert str(caught.value) == "HTTP 400: what is [redacted:key]?"
    assert transport.direct == [loopback]
