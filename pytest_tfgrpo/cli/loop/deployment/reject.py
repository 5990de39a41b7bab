"""The command ``tfgrpo loop reject``: a version meets no user."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.deployment.decisions import decided_version
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.texts.text import line


def reject(arguments: Arguments) -> Iterator[str]:
    """Reject a version that no user meets, so that none will."""
    with decided_version(arguments) as (name, policies, _, decision):
        policies.decide(name, "rejected", by=decision.by, reason=decision.reason, at=decision.at)
    yield f"{name} rejected by {line(decision.by)}"
