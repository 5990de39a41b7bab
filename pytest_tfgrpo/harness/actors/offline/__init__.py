"""The built-in actor: a small, frozen, honest agent over real tools, without a model, key or network."""

from __future__ import annotations

from pytest_tfgrpo.harness.actors.protocol import Actor


def open_offline() -> Actor:
    """Return the offline actor."""
    from pytest_tfgrpo.harness.actors.offline.agent import OfflineActor

    return OfflineActor()
