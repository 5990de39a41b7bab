"""Contestants without an optimizer of their own: the start as it is, and learning runs of this project."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.arena.protocol import Ring, Trained
from pytest_tfgrpo.core.wire.wire import Json


class Untrained:
    """Prompts as they are at the start."""

    name = "none"
    identity: Mapping[str, Json] = {}
    needs_teacher = False

    async def train(self, _ring: Ring) -> Trained:
        """Spend nothing."""
        return Trained()


class Learned:
    """The library of a learning run with one optimizer, built in or by hook."""

    def __init__(self, optimizer: str, *, needs_teacher: bool = False) -> None:
        self.name = optimizer
        self.needs_teacher = needs_teacher
        self.identity: Mapping[str, Json] = {"optimizer": optimizer}

    async def train(self, ring: Ring) -> Trained:
        """Learn for as long as the budget lasts."""
        return Trained(library=await ring.learn(self.name))
