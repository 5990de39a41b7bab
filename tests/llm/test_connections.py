"""One client for all calls, its limits, and what becomes of a call that is given up."""

import asyncio
import sys

import pytest
from support import fake_model
from support.fake_model import FakeModel, Reply
from support.model_clients import Client, connected, request

from pytest_tfgrpo.core.errors import ModelError, SettingError
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.models import Models

pytestmark = pytest.mark.asyncio


async def test_calls_after_each_other_share_a_connection() -> None:
    async with connected() as client:
        for place in range(20):
            assert (await client.complete(request(f"{place}"))).text == f"{place}"
        assert (await client.models.open("openai:other@fake").complete(request())).text == "hello"
    assert client.server.connections < 5, (
        "more than one where the machine stood still for longer than it is kept"
    )


async def test_calls_at_once_take_as_many_connections_as_there_are_in_flight() -> None:
    async with connected(delay_s=0.01) as client:
        for _ in range(5):
            answers = await asyncio.gather(*(client.complete(request(f"{n}")) for n in range(16)))
    assert [answer.text for answer in answers] == [f"{n}" for n in range(16)]
    assert client.server.connections <= 17


async def test_an_endpoint_takes_no_more_calls_at_once_than_it_says() -> None:
    async with connected(delay_s=0.01, concurrency=3) as client:
        other = client.models.open("openai:other@fake")
        asked = [(client, other)[n % 2].complete(request(f"{n}")) for n in range(24)]
        await asyncio.gather(*asked)
    assert client.server.most_in_flight == 3


async def test_waiting_for_a_free_slot_does_not_use_up_the_time_of_a_call() -> None:
    async with connected(delay_s=0.02, concurrency=1, timeout_s=0.6) as client:
        answers = await asyncio.gather(*(client.complete(request(f"{n}")) for n in range(40)))
    assert len(answers) == 40


async def test_a_call_that_is_cancelled_is_settled_at_once_and_dropped_when_its_time_is_up() -> None:
    async with connected(lambda *_: fake_model.SILENT, concurrency=1, timeout_s=0.3) as client:
        asked = [asyncio.create_task(client.complete(request(f"{n}"))) for n in range(3)]
        while not client.server.requests:
            await asyncio.sleep(0.001)
        for task in asked:
            task.cancel()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert client.spending.open == []
        assert client.spending.settled == [(None, None)]
        while not client.server.dropped:
            await asyncio.sleep(0.001)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended)
    assert len(client.server.requests) == 1


async def test_a_call_that_is_cancelled_while_it_waits_to_be_made_again_leaves_nothing() -> None:
    async with connected(lambda *_: fake_model.OVERLOADED, pace=Pace(chance=lambda: 1.0)) as client:
        asked = asyncio.create_task(client.complete(request()))
        while not client.spending.settled:
            await asyncio.sleep(0.001)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert client.spending.open == []


async def test_a_redirect_is_not_followed() -> None:
    with FakeModel() as elsewhere:
        target = f"{elsewhere.base_url}/chat/completions"
        async with connected(lambda *_: Reply(status=308, headers={"Location": target})) as client:
            with pytest.raises(ModelError, match=f"redirected to {target}"):
                await client.complete(request())
    assert elsewhere.connections == 0


async def test_a_server_on_this_machine_is_reached_past_any_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeModel() as proxy, FakeModel() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.base_url)
        async with Client(server) as model:
            await model.complete(request())
    assert (proxy.connections, server.connections) == (0, 1)


async def test_other_servers_are_reached_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeModel() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
        client = Client(proxy, base_url="http://model.example/v1", api_key_env=None, retries=0)
        async with client as model:
            with pytest.raises(ModelError):  # the fake is no proxy, but it was asked
                await model.complete(request())
    assert proxy.connections == 1


async def test_closing_twice_and_closing_unused_is_fine() -> None:
    with FakeModel() as server:
        client = Client(server)
        async with client as model:
            await model.complete(request())
        await client.models.aclose()
        await Client(server).models.aclose()


async def test_without_the_http_client_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyreqwest.client", None)
    with FakeModel() as server:
        models: Models = Client(server).models
        with pytest.raises(SettingError, match=r"pip install 'pytest-tfgrpo\[openai\]'"):
            models.open("openai:priced@fake")
