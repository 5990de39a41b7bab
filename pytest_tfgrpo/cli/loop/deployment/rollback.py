"""The command ``tfgrpo loop rollback``: a version is taken back."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.deployment.decisions import decided_version
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.report.serving_lines import serving_lines


def rollback(arguments: Arguments) -> Iterator[str]:
    """Take a version back: all sessions meet the one before it at once."""
    with decided_version(arguments) as (name, _, deployments, decision):
        yield from serving_lines(deployments.roll_back(name, decision))
