"""An openai actor over a scripted model."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_tfgrpo.protocols import ActorCall
from support.model_actor import MODULE, Bench


@pytest.fixture
def bench(tmp_path: Path, make_call: Callable[..., ActorCall]) -> Iterator[Bench]:
    yield Bench(tmp_path, make_call)
    sys.modules.pop(MODULE, None)
