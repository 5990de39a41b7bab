"""The command ``tfgrpo harvest verify``: prove a suite again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.harvest.sandbox_choice import require_sandbox
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.texts.text import few, plural
from pytest_tfgrpo.harvest.job.tools import find_environment, run_tests
from pytest_tfgrpo.harvest.job.verify import VerifiedScenario
from pytest_tfgrpo.harvest.job.verify import verify as proven


def verify(arguments: Arguments) -> Iterator[str]:
    """Prove the scenarios of a harvested suite again, from its own files."""
    require_sandbox(arguments.check_sandbox)
    suite, lost = Path(arguments.suite), []
    for one in proven(suite, run_tests, find_environment, isolation=arguments.check_sandbox):
        yield verified_line(one)
        if one.cause is not None:
            lost.append(one.id)
    if lost:
        raise StoreError(f"{len(lost)} of {plural(one.total, 'scenario')} not proven: {few(lost, 5)}")
    yield f"{plural(one.total, 'scenario')} proven"


def verified_line(one: VerifiedScenario) -> str:
    """Return the line of a scenario that was to be proven again."""
    width = len(str(one.total))
    status = "proven" if one.cause is None else "not proven"
    why = "" if one.cause is None else f"  {one.cause.value}: {one.reason}"
    why += f"  (edited since it was proven: {'; '.join(one.edited)})" if one.edited else ""
    return (
        f"{one.done:>{width}}/{one.total}  {status:<10}  {plural(one.tests, 'test'):>8}  "
        f"{one.elapsed_s:>6.1f} s  {one.id}{why}"
    )
