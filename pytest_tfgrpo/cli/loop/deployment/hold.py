"""The command ``tfgrpo loop hold``: a ramp stays where it is."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.deployment.decisions import decided_version
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.report.serving_lines import serving_lines


def hold(arguments: Arguments) -> Iterator[str]:
    """Keep a ramp at its share until you advance it."""
    with decided_version(arguments) as (name, _, deployments, decision):
        yield from serving_lines(deployments.hold(name, decision))
