"""The command ``tfgrpo show``: one rollout in full."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.lookup import find_rollout
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.report.rollout import rollout_text


def show(arguments: Arguments) -> Iterator[str]:
    """Print a rollout in full: every frame, the answer, the checks, the scores."""
    found = find_rollout(project_of(arguments), arguments.rollout)
    if found.shared:
        yield (
            f"{found.shared} was not asked: its prompt is that of the final sweep, whose answer serves both"
        )
    yield rollout_text(found.rollout, found.score, found.scenario)
