"""The proxy without a server: what it sends, what it answers, and whose fault it is."""

import asyncio
import json
from typing import Any, cast

import pytest
from support.builders import make_pack
from support.deployments import ramp_of
from support.serving import LIVE, PARCEL, REFUND, FakeAnswer, FakeUpstream, Known, LocalProxy, choice_of

from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.serving import proxy as proxying
from pytest_tfgrpo.production.serving.follow import ServingFollower
from pytest_tfgrpo.production.serving.last_known import ServedState
from pytest_tfgrpo.production.serving.policy import VersionChoice
from pytest_tfgrpo.production.serving.proxy import LARGEST_READ, CutAnswer
from pytest_tfgrpo.production.serving.served_version import ServedVersion
from pytest_tfgrpo.production.serving.upstream import UpstreamFault, UpstreamRequest

ASKED = {"role": "user", "content": "May I get a refund for my order?"}
NEXT = {"role": "user", "content": "And where is the parcel?"}
SAID = {"role": "assistant", "content": "Yes."}


@pytest.fixture
def upstream() -> FakeUpstream:
    return FakeUpstream()


@pytest.fixture
def proxy(upstream: FakeUpstream) -> LocalProxy:
    return LocalProxy(upstream, choice_of(LIVE, REFUND, PARCEL))


def test_pack_and_fitting_lessons_are_added_and_the_version_is_named(
    proxy: LocalProxy, upstream: FakeUpstream
) -> None:
    tools = [{"type": "function", "function": {"name": "orders"}}]
    reply = proxy.chat(ASKED, tools=tools, seed=7, unknown={"a": 1})
    system, asked = upstream.sent["messages"]
    assert system["content"].startswith("Solve the task.\n\n<experiences")
    assert REFUND in system["content"]
    assert PARCEL not in system["content"]
    assert asked == ASKED
    assert {**upstream.sent, "messages": 0} == {
        "model": "m", "messages": 0, "tools": tools, "seed": 7, "unknown": {"a": 1}
    }  # fmt: skip
    assert (reply.status, reply.body, reply.header("x-tfgrpo-policy")) == (200, b"{}", "v2")


def test_texts_of_a_pack_in_front_of_the_task_are_added_to_the_first_message_of_the_user(
    upstream: FakeUpstream,
) -> None:
    state = ServedState(serving=LIVE, versions={"v2": ServedVersion("v2", (make_pack(place="user"),), ())})
    LocalProxy(upstream, VersionChoice(cast(ServingFollower, Known(state)))).chat(ASKED, SAID, NEXT)
    opened = {**ASKED, "content": f"Solve the task.\n\n{ASKED['content']}"}
    assert upstream.sent["messages"] == [opened, SAID, NEXT]


def test_the_system_message_stays_over_a_conversation_so_that_prompt_caches_hold(
    proxy: LocalProxy, upstream: FakeUpstream
) -> None:
    proxy.chat(ASKED)
    first = upstream.sent["messages"][0]
    proxy.chat(ASKED, SAID, NEXT)
    assert upstream.sent["messages"] == [first, ASKED, SAID, NEXT]


def test_nothing_is_added_without_a_state_or_for_v1(upstream: FakeUpstream) -> None:
    unknown = LocalProxy(upstream, choice_of())
    assert unknown.chat(ASKED).header("x-tfgrpo-policy") == ""
    assert upstream.sent["messages"] == [ASKED]
    first = LocalProxy(upstream, choice_of(Serving()))
    assert first.chat(ASKED).header("x-tfgrpo-policy") == "v1"
    assert upstream.sent["messages"] == [ASKED]
    assert unknown.app.counts == {"unchanged": 1}
    assert first.app.counts == {"v1": 1}


def test_a_session_is_named_by_header_metadata_or_user_and_keeps_its_version(upstream: FakeUpstream) -> None:
    ramp = Serving(
        ramp=ramp_of(shares=(0.5, 1.0), waits_min=(60.0, 30.0)), states={"v1": "live", "v2": "canary"}
    )
    proxy = LocalProxy(upstream, choice_of(ramp))
    sessions = [f"s{n}" for n in range(40)]
    by_header = [
        proxy.chat(ASKED, headers={"x-session-id": one}).header("x-tfgrpo-policy") for one in sessions
    ]
    assert set(by_header) == {"v1", "v2"}
    other = LocalProxy(upstream, choice_of(ramp))
    in_body = [other.chat(NEXT, metadata={"session_id": one}, user="u") for one in sessions]
    assert [one.header("x-tfgrpo-policy") for one in in_body] == by_header
    third = LocalProxy(upstream, choice_of(ramp))
    assert [third.chat(NEXT, user=one).header("x-tfgrpo-policy") for one in sessions] == by_header
    both = [third.chat(NEXT, user="u", headers={"x-session-id": one}) for one in sessions]
    assert [one.header("x-tfgrpo-policy") for one in both] == by_header


def test_a_long_name_of_a_session_decides_as_it_does_in_the_process_of_an_agent(
    upstream: FakeUpstream,
) -> None:
    ramp = Serving(
        ramp=ramp_of(shares=(0.5, 1.0), waits_min=(60.0, 30.0)), states={"v1": "live", "v2": "canary"}
    )
    names = ["s" * 300 + str(n) for n in range(20)]
    choice = choice_of(ramp)
    drawn = [choice.choose(name, "task")[0] for name in names]
    assert set(drawn) == {"v1", "v2"}
    proxy = LocalProxy(upstream, choice_of(ramp))
    assert [proxy.chat(ASKED, user=name).header("x-tfgrpo-policy") for name in names] == drawn


def test_a_conversation_without_a_name_keeps_its_version_too(upstream: FakeUpstream) -> None:
    ramp = Serving(
        ramp=ramp_of(shares=(0.5, 1.0), waits_min=(60.0, 30.0)), states={"v1": "live", "v2": "canary"}
    )
    versions = set()
    for n in range(30):
        asked = {"role": "user", "content": f"Question {n}"}
        fresh = [LocalProxy(upstream, choice_of(ramp)) for _ in range(2)]
        first = fresh[0].chat(asked).header("x-tfgrpo-policy")
        assert fresh[1].chat(asked, SAID, NEXT).header("x-tfgrpo-policy") == first
        versions.add(first)
    assert versions == {"v1", "v2"}


def test_requests_whose_domain_a_version_does_not_know_are_counted(upstream: FakeUpstream) -> None:
    proxy = LocalProxy(upstream, choice_of(LIVE, REFUND))
    assert proxy.chat(ASKED, headers={"x-tfgrpo-domain": "music"}).header("x-tfgrpo-policy") == "v2"
    assert upstream.sent["messages"] == [ASKED]
    proxy.chat(ASKED, headers={"x-tfgrpo-domain": "text"})
    assert proxy.app.counts == {"v2 without texts": 1, "v2": 1}


def test_headers_pass_but_those_of_a_connection(proxy: LocalProxy, upstream: FakeUpstream) -> None:
    headers = (("X-Request-Id", "r1"), ("Set-Cookie", "a=1"), ("set-cookie", "b=2"), ("Connection", "X-Hop"))
    upstream.answers = [FakeAnswer(status=429, headers=(*headers, ("X-Hop", "1"), ("Retry-After", "7")))]
    sent = {
        "authorization": "Bearer sk-1",
        "x-any": "1",
        "host": "here",
        "connection": "close, X-Hop",
        "x-hop": "1",
        "content-length": "9",
    }
    reply = proxy.chat(ASKED, headers=sent)
    assert upstream.requests[0].headers == [("authorization", "Bearer sk-1"), ("x-any", "1")]
    assert reply.status == 429
    assert reply.headers == [
        ("x-request-id", "r1"), ("set-cookie", "a=1"), ("set-cookie", "b=2"), ("retry-after", "7"),
        ("x-tfgrpo-policy", "v2"),
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"no json", b'{"messages": []}', b"\xff", b""])
def test_a_body_that_cannot_be_read_passes_as_it_is(
    proxy: LocalProxy, upstream: FakeUpstream, body: bytes
) -> None:
    reply = proxy.send("POST", "/v1/chat/completions", [body], {"content-encoding": "x"})
    assert (upstream.requests[0].body, reply.status) == (body, 200)
    assert proxy.app.counts == {"unchanged": 1}


def test_a_huge_body_streams_through_as_it_is(proxy: LocalProxy, upstream: FakeUpstream) -> None:
    parts = [b'{"messages": [{"role": "user", "content": "', b"x" * LARGEST_READ, b'"}]}']
    headers = {"content-length": str(sum(map(len, parts)))}
    assert proxy.send("POST", "/v1/chat/completions", parts, headers).status == 200
    assert upstream.requests[0].body == b"".join(parts)
    assert upstream.requests[0].headers == list(headers.items())


def test_other_routes_pass_and_are_counted(proxy: LocalProxy, upstream: FakeUpstream) -> None:
    assert proxy.send("GET", "/v1/models?limit=2").status == 200
    assert upstream.requests[0] == ("GET", "/models?limit=2", [], b"")
    proxy.send("POST", "/v1/embeddings", [b'{"messages": [{"role": "user"}]}'])
    assert upstream.requests[1].body == b'{"messages": [{"role": "user"}]}'
    proxy.send("GET", "/v1/chat/completions")
    proxy.chat(ASKED)
    health = proxy.send("GET", "/healthz").value
    assert health == {"status": "ok", "requests": {"other": 3, "v2": 1}, "versions": []}


def test_what_looks_like_a_climb_and_is_none_passes(proxy: LocalProxy, upstream: FakeUpstream) -> None:
    assert proxy.send("GET", "/v1/files/...%2f?under=/a/../b").status == 200
    assert upstream.requests[0].path == "/files/...%2f?under=/a/../b"


def test_a_post_without_a_body_keeps_its_length_since_servers_may_need_it(
    proxy: LocalProxy, upstream: FakeUpstream
) -> None:
    proxy.send("POST", "/v1/batches/b1/cancel", headers={"content-length": "0"})
    assert upstream.requests[0].headers == [("content-length", "0")]


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/v2/models", "/v1/../admin", "/v1/%2e%2E/admin", "/v1/a/..\\b", "/v1/.."),
        *("/v1/..%2Fadmin", "/v1/a%5c..%5cb", "/v1/..;/admin", "/v1%2f@others.example/x", "/%761/models"),
    ],
)
def test_no_path_leads_out_of_the_upstream(proxy: LocalProxy, upstream: FakeUpstream, path: str) -> None:
    reply = proxy.send("GET", path)
    assert (reply.status, reply.value["error"]["code"]) == (404, "not_found")
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("late", "status", "code"), [(False, 502, "upstream_unreachable"), (True, 504, "upstream_timeout")]
)
def test_an_upstream_without_an_answer_is_an_error_in_the_form_of_openai(
    proxy: LocalProxy, upstream: FakeUpstream, late: bool, status: int, code: str
) -> None:
    upstream.answers = [UpstreamFault("Connection refused", late=late)]
    reply = proxy.chat(ASKED)
    assert reply.status == status
    error = reply.value["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["code"], "Connection refused" in error["message"]) == (code, True)
    assert proxy.app.counts["unreachable"] == 1


def test_an_answer_that_is_cut_ends_the_connection_of_the_client(
    proxy: LocalProxy, upstream: FakeUpstream
) -> None:
    answer = FakeAnswer(chunks=[b"data", UpstreamFault("closed", late=False)], headers=())
    upstream.answers = [answer]
    with pytest.raises(CutAnswer, match="closed"):
        proxy.chat(ASKED)
    assert answer.ended
    assert proxy.app.counts["cut"] == 1


@pytest.mark.parametrize(("late", "status"), [(False, 502), (True, 504)])
def test_an_answer_that_is_cut_before_the_client_got_any_of_it_is_an_error_in_the_form_of_openai(
    proxy: LocalProxy, upstream: FakeUpstream, late: bool, status: int
) -> None:
    answer = FakeAnswer(
        chunks=[b"data", UpstreamFault("closed", late=late)], headers=(("content-length", "9"),)
    )
    upstream.answers = [answer]
    reply = proxy.chat(ASKED)
    assert (reply.status, reply.value["error"]["code"], answer.ended) == (status, "upstream_cut", True)
    assert proxy.app.counts["cut"] == 1


@pytest.mark.parametrize(
    ("length", "whole"),
    [("4", True), ("5", False), ("9" * 25, False), ("", False), ("-1", False), ("²", False)],
)
def test_only_an_answer_of_a_small_known_length_is_read_whole_before_it_is_sent(
    length: str, whole: bool, upstream: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxying, "LARGEST_WHOLE", 4)
    proxy = LocalProxy(upstream, choice_of(LIVE))
    answer = FakeAnswer(chunks=[b"da", UpstreamFault("x", late=False)], headers=(("content-length", length),))
    upstream.answers = [answer]
    if whole:
        assert proxy.chat(ASKED).value["error"]["code"] == "upstream_cut"
    else:
        with pytest.raises(CutAnswer):
            proxy.chat(ASKED)


def test_a_body_as_large_as_is_read_gets_its_texts_and_a_larger_one_none(
    upstream: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = LocalProxy(upstream, choice_of(LIVE, REFUND))
    body = json.dumps({"messages": [ASKED]}).encode()
    for limit, more in ((len(body), True), (len(body) - 1, False)):
        monkeypatch.setattr(proxying, "LARGEST_READ", limit)
        proxy.send("POST", "/v1/chat/completions", [body[:9], body[9:], b""])
        assert (upstream.requests[-1].body != body) is more


def test_a_path_that_is_refused_is_named_as_far_as_it_is_short(
    proxy: LocalProxy, upstream: FakeUpstream
) -> None:
    reply = proxy.send("GET", "/" + "x" * 5_000)
    assert "x" * 199 in reply.value["error"]["message"]
    assert len(reply.value["error"]["message"]) < 300


def test_values_of_headers_that_are_no_utf_8_pass_as_latin_1() -> None:
    assert proxying._text("é".encode()) == "é"
    assert proxying._text(b"caf\xe9") == "café"


def test_headers_of_an_answer_pass_in_any_alphabet(proxy: LocalProxy, upstream: FakeUpstream) -> None:
    said = [("x-plain", "caf\u00e9"), ("x-wide", "\u20ac \u65e5\u672c \U0001f600")]
    upstream.answers = [FakeAnswer(headers=said)]
    assert proxy.chat(ASKED).headers[:2] == said


def test_a_length_beside_chunks_is_dropped_and_a_status_that_http_has_not_is_a_502(
    proxy: LocalProxy, upstream: FakeUpstream
) -> None:
    both = (("content-length", "2"), ("transfer-encoding", "chunked"))
    upstream.answers = [FakeAnswer(chunks=[b"more than two"], status=799, headers=both)]
    reply = proxy.chat(ASKED)
    assert (reply.status, reply.body) == (502, b"more than two")
    assert reply.headers == [("x-tfgrpo-policy", "v2")]


def test_a_client_that_leaves_cancels_what_goes_on_for_it(proxy: LocalProxy, upstream: FakeUpstream) -> None:
    cancelled = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    upstream.answers = [hang]
    body = json.dumps({"messages": [ASKED]}).encode()
    assert proxy.send("POST", "/v1/chat/completions", [body], leaves=True).status == 0
    assert cancelled == [True]


def test_a_client_that_leaves_before_its_body_is_there_sends_nothing(
    proxy: LocalProxy, upstream: FakeUpstream
) -> None:
    assert proxy.send("POST", "/v1/chat/completions", [], leaves=True).status == 0
    assert (upstream.requests, proxy.app.counts) == ([], {})


def test_of_a_body_that_ends_early_the_rest_is_no_whole_body() -> None:
    async def read(*messages: dict[str, Any]) -> tuple[bytes | None, bool]:
        left = iter(messages)

        async def receive() -> dict[str, Any]:
            return next(left)

        return await proxying._read(receive)

    async def rest(*messages: dict[str, Any]) -> list[bytes]:
        left = iter(messages)

        async def receive() -> dict[str, Any]:
            return next(left)

        return [part async for part in proxying._rest(b"a", receive)]

    more = {"type": "http.request", "body": b"b", "more_body": True}
    last, gone = {"type": "http.request"}, {"type": "http.disconnect"}
    assert asyncio.run(read(gone)) == asyncio.run(read(more, gone)) == (None, False)
    assert asyncio.run(read(more, last)) == (b"b", False)
    assert asyncio.run(rest(more, last)) == [b"a", b"b", b""]
    with pytest.raises(CutAnswer, match="the client left before the end of its body"):
        asyncio.run(rest(more, gone))


@pytest.mark.parametrize("length", [(), (("content-length", "2"),)])
def test_an_answer_is_ended_also_where_the_client_leaves_at_its_end(
    proxy: LocalProxy, upstream: FakeUpstream, length: tuple[tuple[str, str], ...]
) -> None:
    answer = FakeAnswer(headers=length)
    upstream.answers = [answer]
    assert proxy.chat(ASKED).body == b"{}"
    assert answer.ended


def test_an_answer_of_unknown_length_is_sent_as_it_arrives(proxy: LocalProxy, upstream: FakeUpstream) -> None:
    upstream.answers = [
        FakeAnswer(chunks=[b"data: 1\n\n", b"data: [DONE]\n\n"], headers=(("content-type", "x"),))
    ]
    assert proxy.chat(ASKED, stream=True).body == b"data: 1\n\ndata: [DONE]\n\n"


def test_an_answer_that_is_sent_as_it_arrives_comes_to_its_end(proxy: LocalProxy) -> None:
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    passing = proxying._Passing(UpstreamRequest("GET", "/x", [], b""), {b"x-a": "b"}, None)
    for status in (599, 600):
        sent.clear()
        answer = FakeAnswer(chunks=[b"a", b"b"], headers=(), status=status)
        asyncio.run(proxy.app._relay(answer, passing, send, lambda: None))
        start, *parts = sent
        assert (start["status"], start["headers"]) == (599 if status == 599 else 502, [(b"x-a", b"b")])
    assert [(one["body"], one.get("more_body", False)) for one in parts] == [
        (b"a", True),
        (b"b", True),
        (b"", False),
    ]


def test_an_answer_names_no_version_where_none_is_known() -> None:
    names = {name for name, _ in LocalProxy().chat(ASKED).headers}
    assert not {name for name in names if name.startswith("x-tfgrpo")}
