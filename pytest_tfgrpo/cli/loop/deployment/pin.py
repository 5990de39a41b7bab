"""The command ``tfgrpo loop pin``: the files of a version stay."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.deployment.decisions import decided_version
from pytest_tfgrpo.cli.parsers import Arguments


def pin(arguments: Arguments) -> Iterator[str]:
    """Keep the files of a version however old it is."""
    with decided_version(arguments) as (name, policies, _, decision):
        pinned = not arguments.off
        policies.pin(name, pinned, by=decision.by, reason=decision.reason, at=decision.at)
    yield f"{name} {'pinned' if pinned else 'no longer pinned'}"
