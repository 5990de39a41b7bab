"""Nothing of a user is left, nor of the sessions of one, whatever came first: a search of all bytes."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.buses import BusPlace, Clock
from support.feedback.orders import KINDS, USER, WORDS, WholeLoop, bring_all, left_of
from support.loop_spans import agent_trace

from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.forget import forget

ORDERS = [KINDS, KINDS[::-1], KINDS[3:] + KINDS[:3]]
"""Every kind comes before and after every other."""


@pytest.fixture
def loop(embedded: BusPlace, scrubber: LoopScrubber, clock: Clock, tmp_path: Path) -> Iterator[WholeLoop]:
    (tmp_path / "views").mkdir()
    with closing(WholeLoop(embedded.open(), scrubber, tmp_path / "views", clock)) as opened:
        yield opened


def test_every_kind_comes_before_every_other() -> None:
    before = {pair for order in ORDERS for pair in itertools.combinations(order, 2)}
    assert len(before) == len(KINDS) * (len(KINDS) - 1)


def test_nothing_is_left_of_a_user_who_is_forgotten(loop: WholeLoop, tmp_path: Path) -> None:
    gone = bring_all(loop, ORDERS, between=loop.work)
    loop.work()
    assert set(left_of([WORDS, *gone[2:]], tmp_path)) > set()
    found = forget(loop.bus, loop.view, scrubber=loop.scrubber, actor="ada", user=USER, sleep=lambda _: None)
    assert found.shared == 0
    loop.work()
    assert left_of(gone, tmp_path) == []
    assert left_of(["quite another thing", "chat-kept-x"], tmp_path)


def test_nothing_is_left_of_a_user_who_has_opted_out(loop: WholeLoop, tmp_path: Path) -> None:
    loop.opt_outs.add(user=USER)
    gone = bring_all(loop, ORDERS, between=loop.work)
    loop.work()
    assert left_of(gone, tmp_path) == []
    assert left_of(["quite another thing", "chat-kept-x"], tmp_path)


def test_a_run_that_was_assembled_before_its_session_was_known_goes_from_the_view_too(
    loop: WholeLoop, tmp_path: Path
) -> None:
    loop.opt_outs.add(user=USER)
    for number, user in ((1, {}), (2, {"user.id": USER})):
        said = {"session.id": "chat-gone-x", "note": WORDS, **user}
        spans = [replace(one, attributes={**one.attributes, **said}) for one in agent_trace(number)]
        loop.intake.spans(spans)
        loop.work()
        loop.work()
    assert left_of([WORDS, "chat-gone-x"], tmp_path) == []
