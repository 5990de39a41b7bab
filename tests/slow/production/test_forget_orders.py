"""Nothing of a user is left, nor of the sessions of one: orders drawn anew, with a printed seed."""

import itertools
import os
import random
from contextlib import closing
from pathlib import Path

import pytest
from support.buses import BusPlace, Clock
from support.feedback.orders import KINDS, USER, WholeLoop, bring_all, left_of

from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.forget import forget


@pytest.mark.parametrize("opted_out", [True, False])
@pytest.mark.parametrize("works", [True, False])
def test_nothing_is_left_in_any_order(
    embedded: BusPlace, clock: Clock, tmp_path: Path, opted_out: bool, works: bool
) -> None:
    """The roles work between the sessions or only at the end, as they do after a pause."""
    seed = int(os.environ.get("FORGET_SEED", random.SystemRandom().randrange(10**9)))
    print(f"seed {seed}; repeat it with FORGET_SEED={seed}")
    orders = random.Random(seed).sample(list(itertools.permutations(KINDS)), 60)
    scrubber = LoopScrubber(b"k" * 32)
    with closing(WholeLoop(embedded.open(), scrubber, tmp_path, clock)) as loop:
        if opted_out:
            loop.opt_outs.add(user=USER)
        gone = bring_all(loop, orders, between=loop.work if works else lambda: None)
        if works or opted_out:
            loop.work()
        if not opted_out:
            forget(loop.bus, loop.view, scrubber=scrubber, actor="ada", user=USER, sleep=lambda _: None)
            loop.work()
        assert left_of(gone, tmp_path) == []
        assert left_of(["quite another thing", "chat-kept-x"], tmp_path)
