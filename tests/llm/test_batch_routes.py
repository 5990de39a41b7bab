"""How a batch that a killed run submitted is found again."""

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.batch.routes import TAG, BatchRoutes

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
