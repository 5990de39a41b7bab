"""Door: a server of language models as the client sees it."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.llm.endpoints import Endpoint
from pytest_tfgrpo.llm.limits.slots import AdaptiveSlots, Slots
from pytest_tfgrpo.llm.server.keys import Scrubber, Secret
from pytest_tfgrpo.llm.server.url import Address


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """A server: an endpoint with its address and keys."""

    endpoint: Endpoint
    address: Address
    headers: Mapping[str, Secret]
    scrubber: Scrubber
    slots: Slots | AdaptiveSlots | None
    """Calls in flight; None: no limit."""
