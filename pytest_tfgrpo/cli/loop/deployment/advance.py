"""The command ``tfgrpo loop advance``: a ramp goes on without waiting."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.deployment.decisions import decided_version
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.report.serving_lines import serving_lines


def advance(arguments: Arguments) -> Iterator[str]:
    """Take the next step of a ramp without waiting, or end its hold."""
    with decided_version(arguments) as (name, _, deployments, decision):
        yield from serving_lines(deployments.advance(name, decision))
