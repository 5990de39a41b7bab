"""The command ``tfgrpo loop nats-config``: users of a NATS server."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.trust.nats_users import nats_config as users


def nats_config(arguments: Arguments) -> Iterator[str]:  # noqa: ARG001 - it is a command
    """Print users for a NATS server, each with the subjects that its part of the loop needs."""
    yield users().removesuffix("\n")
