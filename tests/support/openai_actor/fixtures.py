"""An openai actor over a scripted model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tfgrpo.actors.mcp import sdk
from pytest_tfgrpo.protocols import ActorCall
from support.model_actor import MODULE, Bench
from support.tools import require_module

if TYPE_CHECKING:
    from support.mcp_servers import MemoryServers


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryServers:
    """Have sessions with servers at a URL be with servers in this process."""
    require_module("mcp")
    from support.mcp_servers import MemoryServers

    servers = MemoryServers()
    monkeypatch.setattr(sdk, "transport_to", servers.transport)
    return servers


@pytest.fixture
def bench(tmp_path: Path, make_call: Callable[..., ActorCall]) -> Iterator[Bench]:
    yield Bench(tmp_path, make_call)
    sys.modules.pop(MODULE, None)
