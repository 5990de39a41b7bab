"""Pools: calls spread by weight, failures go elsewhere, an endpoint that is away is left alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support import fake_model
from support.fake_model import Answer, Body, FakeModel, Reply, echo
from support.model_clients import PRICES, Ledger, StillTime, request

from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.llm.endpoints import Endpoint, ModelsConfig, PoolShare
from pytest_tfgrpo.llm.limits.slots import adaptive_slots
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.llm.pool import IN_A_ROW, PooledCompleter, PoolMember
from pytest_tfgrpo.llm.protocol import Completion, Request

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def pool(
    *answers: Answer | None,
    weights: tuple[int, ...] = (1, 1, 1),
    spending: Ledger | None = None,
    alike: bool = False,
    **fields: object,
) -> AsyncIterator[tuple[PooledCompleter, list[FakeModel], StillTime]]:
    """Yield a pool of servers, one for each answer; one without an answer is not there."""
    servers = [FakeModel(answer or echo, delay_s=0.005) for answer in answers]
    for server in servers:
        server.__enter__()
    clock = StillTime()
    endpoints = {
        f"s{n}": Endpoint(name=f"s{n}", base_url=server.base_url, **fields)  # type: ignore[arg-type]
        for n, server in enumerate(servers)
    }
    shares = tuple(PoolShare(endpoint=name, weight=w) for name, w in zip(endpoints, weights, strict=False))
    for server, answer in zip(servers, answers, strict=True):
        if answer is None:
            server.close()
    models = Models(
        ModelsConfig(
            endpoints=endpoints, pools={"p": shares}, alike=frozenset({"p"} if alike else ()), prices=PRICES
        ),
        environ={}, spending=spending or Ledger(), max_tokens=100, pace=clock.pace,
    )  # fmt: skip
    try:
        model = models.open("openai:priced@p")
        assert isinstance(model, PooledCompleter)
        yield model, servers, clock
    finally:
        await models.aclose()
        for server in servers:
            server.close()


def failing(reply: Reply, times: int) -> Answer:
    """Fail so often, then answer."""
    left = iter(range(times))
    return lambda body, attempt: "ok" if next(left, None) is None else reply


async def test_calls_are_spread_by_weight() -> None:
    async with pool(echo, echo, weights=(3, 1)) as (model, servers, _):
        for _call in range(40):
            await model.complete(request())
        assert [len(server.requests) for server in servers] == [30, 10]
        await asyncio.gather(*(model.complete(request()) for _ in range(80)))
        assert [len(server.requests) for server in servers] == [90, 30]
        assert model.warnings == []


@pytest.mark.parametrize("fault", [fake_model.refused(500), fake_model.rate_limited(), fake_model.NOT_JSON])
async def test_what_fails_at_one_is_answered_by_another_without_a_wait(fault: Reply) -> None:
    async with pool(lambda *_: fault, echo) as (model, servers, clock):
        for _ in range(10):
            await model.complete(request())
        assert len(servers[1].requests) == 10
        assert len(servers[0].requests) == IN_A_ROW, "then it is left alone"
        assert clock.waits == []
        (text,) = model.warnings
    assert text.startswith("openai:priced@p: endpoint 's0' did not answer 3 of 3 calls")


async def test_one_that_is_not_there_costs_nothing_and_is_named() -> None:
    async with pool(None, echo) as (model, _, _clock):
        found = await model.complete(request())
        assert found.cost_usd is not None
        assert found.retries == 1
        assert "endpoint 's0'" in model.warnings[0]


@pytest.mark.parametrize("status", [401, 404])
async def test_a_key_or_a_model_that_is_refused_rests_the_endpoint_at_once(status: int) -> None:
    async with pool(lambda *_: fake_model.refused(status), echo) as (model, servers, _):
        for _call in range(5):
            await model.complete(request())
        assert len(servers[0].requests) == 1


async def test_one_that_comes_back_is_used_again_after_one_call_found_out() -> None:
    async with pool(failing(fake_model.OVERLOADED, 4), echo) as (model, servers, clock):
        for _ in range(8):
            await model.complete(request())
        assert len(servers[0].requests) == IN_A_ROW
        clock.waits.append(1.1)  # time passes
        await asyncio.gather(*(model.complete(request()) for _ in range(6)))
        assert len(servers[0].requests) == IN_A_ROW + 1, "the one that found out failed: it rests for longer"
        clock.waits.append(2.1)
        await asyncio.gather(*(model.complete(request()) for _ in range(6)))
        assert len(servers[0].requests) == IN_A_ROW + 2
        before = len(servers[0].requests)
        for _ in range(10):
            await model.complete(request())
        assert len(servers[0].requests) - before >= 5


async def test_when_all_fail_the_call_is_made_again_as_often_as_endpoints_say_then_it_fails() -> None:
    fault = fake_model.OVERLOADED
    async with pool(lambda *_: fault, lambda *_: fault, retries=2) as (model, servers, clock):
        with pytest.raises(ModelError, match=r"priced@p: .*HTTP 503.*6 attempts in the pool") as caught:
            await model.complete(request())
        assert [len(server.requests) for server in servers] == [3, 3]
        assert len(clock.waits) == 2
    assert (caught.value.code, caught.value.cost_usd) == ("server", 0.0)


async def test_what_is_wrong_with_the_request_goes_nowhere_else() -> None:
    async with pool(lambda *_: fake_model.refused(400), echo) as (model, servers, _):
        with pytest.raises(ModelError) as caught:
            await model.complete(request())
        assert caught.value.code == "rejected"
        assert len(servers[1].requests) == 0
        assert model.warnings == []


async def test_every_attempt_is_paid_and_none_is_scored_twice() -> None:
    ledger = Ledger()
    async with pool(lambda *_: fake_model.EMPTY_CHOICES, echo, spending=ledger) as (model, _, _clock):
        found = await model.complete(request())
    assert len(ledger.settled) == 2
    assert ledger.open == []
    known = [usd for usd, _tokens in ledger.settled if usd is not None]
    assert found.cost_usd == (pytest.approx(sum(known)) if len(known) == 2 else None)


async def test_a_budget_that_ends_between_two_attempts_ends_the_call() -> None:
    async with pool(lambda *_: fake_model.refused(500), echo, spending=Ledger(1)) as (model, _, _clock):
        with pytest.raises(BudgetError):
            await model.complete(request())


async def test_a_budget_that_ends_after_an_attempt_that_may_be_billed_says_so() -> None:
    async with pool(lambda *_: fake_model.EMPTY_CHOICES, echo, spending=Ledger(1)) as (model, _, _clock):
        with pytest.raises(ModelError, match="an earlier attempt may have been billed") as caught:
            await model.complete(request())
    assert caught.value.code == "budget"


async def test_an_endpoint_that_flaps_loses_no_call() -> None:
    count = 0

    def flapping(body: Body, attempt: int) -> Reply | str:
        nonlocal count
        count += 1
        return "ok" if count // 7 % 2 else fake_model.OVERLOADED

    async with pool(flapping, echo, flapping) as (model, _, _clock):
        found = await asyncio.gather(*(model.complete(request(timeout_s=30.0)) for _ in range(200)))
    assert len(found) == 200


async def test_each_member_finds_its_own_limit() -> None:
    async with pool(echo, echo, concurrency="auto") as (model, _, _clock):
        assert [slots.endpoint for slots in adaptive_slots([model])] == ["s0", "s1"]
        assert model.concurrency is None


async def test_what_a_pool_is_does_not_depend_on_weights_or_order() -> None:
    async with pool(echo, echo, weights=(3, 1)) as (model, servers, _):
        bases = sorted(server.base_url for server in servers)
        assert [one["base_url"] for one in model.identity["pool"]] == bases
        assert "weight" not in str(model.identity)
        assert model.price == PRICES.prices["priced"]


async def test_members_that_are_alike_are_no_part_of_what_a_pool_is() -> None:
    async with pool(echo, echo, alike=True) as (two, _, _), pool(echo, alike=True) as (one, _, _):
        assert two.identity == one.identity == {"model": "priced", "pool": "alike"}


class Scripted:
    """A member of a pool without a server."""

    paid, price, concurrency, adaptive, warnings = True, None, 2, (), ("slow",)

    def __init__(
        self, name: str, usd: float | None = 0.0, failures: int = 0, code: str = "server", **parts: Any
    ) -> None:
        self.endpoint, self.identity, self.usd, self.failures = name, {"name": name}, usd, failures
        self.code = code
        vars(self).update(parts)
        self.limits: list[float | None] = []

    def bound(self, asked: Request) -> dict[str, float | None]:
        return {"usd": self.usd, "tokens": 5.0 if self.usd else 9.0}

    async def complete(self, asked: Request) -> Completion:
        self.limits.append(asked.timeout_s)
        if len(self.limits) <= self.failures:
            raise ModelError("busy", self.code, cost_usd=0.0)
        return Completion(text=self.endpoint, cost_usd=1.0, retries=2)


def scripted(*members: Scripted, retries: int = 3) -> tuple[PooledCompleter, StillTime]:
    clock = StillTime(chance=1.0)
    parts: list[Any] = list(members)
    pooled = [PoolMember(part, weight=1, retries=retries, timeout_s=10.0 + n) for n, part in enumerate(parts)]
    return PooledCompleter("p", "m", pooled, clock.pace), clock


async def test_a_bound_holds_at_every_member_and_one_without_leaves_none() -> None:
    model, _ = scripted(Scripted("a", 1.5), Scripted("b", 0.5), Scripted("c"))
    assert model.bound(request()) == {"usd": 1.5, "tokens": 9.0}
    model, _ = scripted(Scripted("a", None), Scripted("b", 0.5))
    assert model.bound(request()) == {"usd": None, "tokens": 9.0}
    assert (model.concurrency, model.warnings) == (4, ["slow", "slow"])


async def test_the_time_of_a_call_is_that_of_all_attempts_and_of_the_waits_between() -> None:
    first, second = Scripted("a", failures=1), Scripted("b", failures=1)
    model, clock = scripted(first, second)
    found = await model.complete(request())
    (wait_s,) = clock.waits
    assert wait_s == clock.pace.backoff_s(0) > 0
    assert (first.limits, second.limits) == ([11.0, 11.0 - wait_s], [11.0])
    assert (found.retries, found.cost_usd, found.text) == (4, 1.0, "a")


async def test_the_time_that_a_request_has_itself_holds_where_it_is_shorter() -> None:
    for timeout_s, limit_s in ((4.0, 4.0), (99.0, 10.0)):
        member = Scripted("a")
        await scripted(member)[0].complete(request(timeout_s=timeout_s))
        assert member.limits == [limit_s]


async def test_a_call_that_takes_too_long_is_not_made_elsewhere() -> None:
    first, second = Scripted("a", failures=1, code="timeout"), Scripted("b")
    with pytest.raises(ModelError, match=r"^p: busy$"):
        await scripted(first, second)[0].complete(request())
    assert second.limits == []


async def test_a_pool_costs_something_if_one_member_does_and_has_a_price_if_all_agree() -> None:
    cheap, dear = PRICES.prices["priced"], PRICES.prices["priced"].times(2.0)
    paid, free = Scripted("a", price=cheap), Scripted("b", price=cheap, paid=False)
    assert (scripted(paid, free)[0].paid, scripted(free)[0].paid) == (True, False)
    assert scripted(paid, free)[0].price == cheap
    assert scripted(paid, Scripted("c", price=dear))[0].price is None


async def test_the_member_with_most_retries_says_how_often_all_are_tried() -> None:
    parts: list[Any] = [Scripted("a", failures=9), Scripted("b", failures=9)]
    members = [PoolMember(one, weight=1, retries=n, timeout_s=99.0) for n, one in enumerate(parts)]
    with pytest.raises(ModelError, match="4 attempts in the pool"):
        await PooledCompleter("p", "m", members, StillTime().pace).complete(request())
    assert [len(one.limits) for one in parts] == [2, 2]


async def test_the_rest_of_a_member_doubles_up_to_half_a_minute() -> None:
    member = PoolMember(Scripted("a"), weight=1, retries=0, timeout_s=1.0)  # type: ignore[arg-type]
    for failure in range(1, 10):
        member.take(ModelError("busy", "server"), 0.0)
        assert (member.closed_until > 0) is (failure >= IN_A_ROW)
    assert member.closed_until == 30.0


async def test_of_members_left_alone_the_first_to_be_back_is_called() -> None:
    first, second, third = Scripted("a"), Scripted("b"), Scripted("c")
    model, _ = scripted(first, second, third)
    for member, until in zip(model.members, (9.0, 3.0, 6.0), strict=True):
        member.rests, member.closed_until = 1, until
    assert (await model.complete(request())).text == "b"
    assert (model.members[1].rests, model.members[1].closed_until, model.members[0].rests) == (0, 0.0, 1)
