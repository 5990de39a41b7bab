"""Each fault of a server has its outcome; none leaves money reserved."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import fake_model
from support.model_clients import KEY, connected, request

from pytest_tfgrpo.core.errors import ModelError

pytestmark = pytest.mark.asyncio


FAULTS = (
    *(fake_model.refused(status) for status in (400, 401, 404, 408, 409, 422, 500, 502)),
    *(fake_model.rate_limited(after) for after in (None, "1", "1000", "soon", "-1")),
    fake_model.OVERLOADED,
    fake_model.NOT_JSON,
    fake_model.WRONG_SHAPE,
    fake_model.EMPTY_CHOICES,
    fake_model.RESET,
    fake_model.TOO_SHORT,
    fake_model.filtered(),
    fake_model.REDIRECT,
    fake_model.KEY_ECHO,
    fake_model.text("good"),
    *(fake_model.text("good", usage=usage) for usage in fake_model.WRONG_USAGE[:3]),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(range(len(FAULTS))), min_size=1, max_size=8))
async def test_whatever_comes_nothing_stays_reserved_and_no_key_is_told(faults: list[int]) -> None:
    async with connected(lambda _, attempt: FAULTS[faults[min(attempt, len(faults) - 1)]]) as client:
        try:
            told = repr(await client.complete(request()))
        except ModelError as error:
            told = f"{error!r} {error.code}"
    assert client.spending.open == []
    assert len(client.spending.settled) == len(client.server.requests) <= 5
    assert KEY not in told
