"""When a call is made again, and how long the client waits before."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from support import fake_model
from support.fake_model import Body, FakeModel, Reply
from support.model_clients import Client, Ledger, connected, request

from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.llm.limits.pace import BACKOFF_MOST_S, Pace

pytestmark = pytest.mark.asyncio


class Faulty:
    """Answers with `faults` in turn, then well."""

    def __init__(self, *faults: Reply) -> None:
        self._faults = list(faults)

    def __call__(self, request: Body, attempt: int) -> Reply | str:
        return self._faults.pop(0) if self._faults else "at last"


@pytest.mark.parametrize(
    "fault",
    [*(fake_model.refused(status) for status in (408, 409, 425, 429, 500, 502, 503, 529)), fake_model.RESET],
    ids=lambda reply: str(reply.status),
)
async def test_a_fault_that_passes_is_waited_for(fault: Reply) -> None:
    async with connected(Faulty(fault, fault), chance=0.5) as client:
        answer = await client.complete(request())
    assert (answer.text, answer.retries) == ("at last", 2)
    assert client.time.waits == [0.25, 0.5]
    assert answer.latency_ms == pytest.approx(750)
    assert len(client.spending.settled) == 3


@pytest.mark.parametrize(
    "fault",
    [
        *(fake_model.refused(status) for status in (400, 401, 403, 404, 413, 422)),
        fake_model.NOT_JSON,
        fake_model.WRONG_SHAPE,
        fake_model.EMPTY_CHOICES,
        fake_model.filtered(),
        fake_model.refused(429, "You exceeded your current quota", code="insufficient_quota"),
    ],
    ids=lambda reply: str(reply.status),
)
async def test_a_fault_that_stays_is_not_asked_again(fault: Reply) -> None:
    async with connected(Faulty(fault)) as client:
        with pytest.raises(ModelError):
            await client.complete(request())
    assert len(client.server.requests) == 1
    assert client.time.waits == []


async def test_retries_end() -> None:
    async with connected(lambda *_: fake_model.OVERLOADED, retries=3, chance=1.0) as client:
        with pytest.raises(ModelError, match=r"HTTP 503: 503 Service Unavailable \(4 attempts\)"):
            await client.complete(request())
    assert client.time.waits == [0.5, 1.0, 2.0]


async def test_the_server_says_how_long_to_wait() -> None:
    async with connected(Faulty(fake_model.rate_limited("7")), chance=0.5) as client:
        await client.complete(request())
    assert client.time.waits == [7.25]


async def test_the_server_may_name_a_date() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    async with connected(Faulty(fake_model.rate_limited(soon))) as client:
        await client.complete(request())
    assert 20 < client.time.waits[0] < 31


async def test_a_wait_beyond_the_time_limit_is_an_error_at_once() -> None:
    async with connected(lambda *_: fake_model.rate_limited("3600")) as client:
        with pytest.raises(ModelError, match="asks to wait 3600 s, but 60 s are left") as caught:
            await client.complete(request())
    assert caught.value.code == "rate_limit"
    assert client.time.waits == []


async def test_all_retries_share_the_time_limit_of_the_call() -> None:
    async with connected(lambda *_: fake_model.OVERLOADED, retries=100, chance=0.999) as client:
        with pytest.raises(ModelError):
            await client.complete(request(timeout_s=20.0))
    assert sum(client.time.waits) < 20
    assert len(client.time.waits) == 5


async def test_a_wait_is_drawn_anew_below_a_bound_that_doubles_and_ends() -> None:
    pace = Pace(chance=lambda: 0.999999)
    assert [round(pace.backoff_s(attempt), 1) for attempt in range(5)] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert pace.backoff_s(1000) <= BACKOFF_MOST_S
    assert Pace(chance=lambda: 0.0).backoff_s(3) == 0.0


@pytest.mark.parametrize("status", [401, 402, 403, 404, 307])
async def test_a_model_that_refuses_everything_is_not_asked_again(status: int) -> None:
    async with connected(lambda *_: fake_model.refused(status, "no such thing")) as client:
        told = []
        for content in ("one", "two", "three"):
            with pytest.raises(ModelError) as caught:
                await client.complete(request(content))
            told.append((str(caught.value), caught.value.code))
    assert len(client.server.requests) == 1
    assert len(set(told)) == 1


async def test_another_model_of_the_same_endpoint_is_still_asked() -> None:
    def answer(asked: Body, attempt: int) -> Reply | str:
        return "fine" if asked["model"] == "priced" else fake_model.refused(404, code="model_not_found")

    async with connected(answer) as client:
        with pytest.raises(ModelError):
            await client.models.open("openai:other@fake").complete(request())
        assert (await client.complete(request())).text == "fine"


async def test_one_refused_request_does_not_silence_a_model_that_has_answered() -> None:
    def answer(asked: Body, attempt: int) -> Reply | str:
        return fake_model.refused(404, "no provider takes this") if "odd" in str(asked) else "fine"

    async with connected(answer) as client:
        await client.complete(request("even"))
        with pytest.raises(ModelError):
            await client.complete(request("odd"))
        assert (await client.complete(request("even again"))).text == "fine"


async def test_what_all_attempts_cost_is_the_cost_of_the_call() -> None:
    async with connected(Faulty(fake_model.refused(429), fake_model.refused(503))) as client:
        answer = await client.complete(request())
    assert answer.usage is not None
    assert answer.cost_usd == pytest.approx((answer.usage.prompt + 10 * answer.usage.completion) / 1e6)


async def test_an_attempt_that_nobody_can_tell_the_cost_of_makes_that_of_the_call_unknown() -> None:
    async with connected(Faulty(fake_model.RESET)) as client:
        answer = await client.complete(request())
    assert answer.usage is not None
    assert answer.cost_usd is None


@pytest.mark.parametrize(
    ("fault", "cost_usd"),
    [(fake_model.refused(429), 0.0), (fake_model.refused(401), 0.0), (fake_model.NOT_JSON, None)],
)
async def test_an_error_says_what_the_call_cost(fault: Reply, cost_usd: float | None) -> None:
    async with connected(lambda body, attempt: fault, retries=1) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(request())
    assert caught.value.cost_usd == cost_usd


async def test_a_call_takes_no_longer_than_its_endpoint_allows() -> None:
    async with connected(lambda body, attempt: fake_model.SILENT, timeout_s=0.2) as client:
        with pytest.raises(ModelError, match=r"no answer within 0\.2 s"):
            await client.complete(request(timeout_s=60.0))


async def test_a_server_that_was_never_there_is_looked_for_once() -> None:
    with FakeModel() as server:
        pass
    client = Client(server, retries=3)
    async with client as model:
        errors = []
        for _ in range(3):
            with pytest.raises(ModelError, match=r"\(4 attempts\)") as caught:
                await model.complete(request())
            errors.append(caught.value.code)
    assert errors == ["connection"] * 3
    assert len(client.spending.settled) == 4


async def test_a_server_that_has_answered_is_looked_for_again() -> None:
    client = None
    with FakeModel() as server:
        client = Client(server, retries=1)
        model = await client.__aenter__()
        await model.complete(request())
    for _ in range(2):
        with pytest.raises(ModelError):
            await model.complete(request())
    await client.models.aclose()
    assert len(client.spending.settled) == 1 + 2 * 2


async def test_a_budget_that_ends_a_call_between_attempts_loses_none_that_was_perhaps_paid_for() -> None:
    async with connected(Faulty(fake_model.RESET), spending=Ledger(most_calls=1)) as client:
        with pytest.raises(ModelError, match="used up; an earlier attempt may have been billed") as caught:
            await client.complete(request())
    assert (caught.value.code, caught.value.cost_usd) == ("budget", None)
    async with connected(Faulty(fake_model.refused(503)), spending=Ledger(most_calls=1)) as client:
        with pytest.raises(BudgetError):
            await client.complete(request())
