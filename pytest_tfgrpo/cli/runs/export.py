"""The command ``tfgrpo export``: a run as rows for programs that train weights, a suite as Harbor tasks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.lookup import find_run
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.export.answers import ANSWERS, export_answers
from pytest_tfgrpo.export.export import Export
from pytest_tfgrpo.export.export import export as write
from pytest_tfgrpo.export.harbor.tasks import export_tasks
from pytest_tfgrpo.launch.result_rows import rows_of

HARBOR = "harbor"
"""In place of a run: the scenarios of a suite are exported."""


def export(arguments: Arguments) -> Iterator[str]:
    """Write the training rollouts of a run as JSON lines, or a suite as tasks."""
    if arguments.run == HARBOR:
        yield from _export_harbor(arguments)
    else:
        yield from _export_run(arguments)


def _export_harbor(arguments: Arguments) -> Iterator[str]:
    if arguments.suite is None or arguments.into is None:
        arguments.parser.error("name a suite and a folder: tfgrpo export harbor SUITE --into FOLDER")
    if arguments.format or arguments.advantage or arguments.bare or arguments.output:
        arguments.parser.error("--format, --advantage, --bare and -o are for the export of a run")
    yield from export_tasks(arguments.suite, arguments.into, force=arguments.force)


def _export_run(arguments: Arguments) -> Iterator[str]:
    if arguments.suite is not None or arguments.into is not None:
        arguments.parser.error("SUITE and --into are for tfgrpo export harbor")
    if arguments.format is None:
        arguments.parser.error("the following arguments are required: --format")
    if arguments.format == "rollouts" and arguments.bare:
        arguments.parser.error(
            "--bare is for preference and prompt: rollouts keep the prompt they were given"
        )
    if arguments.format == ANSWERS and arguments.bare:
        arguments.parser.error("--bare is for preference and prompt: answers have no prompt with lessons")
    if arguments.format != "rollouts" and arguments.advantage:
        arguments.parser.error("--advantage is for --format rollouts")
    if arguments.output == "-":
        arguments.parser.error("-o takes the name of a file: an export is written whole or not at all")
    folder = find_run(project_of(arguments), arguments.run)
    if arguments.format == ANSWERS:
        target = Path(arguments.output or os.path.relpath(folder / f"{ANSWERS}.csv"))
        yield from export_answers(folder, target, rows_of, force=arguments.force)
        return
    usual = os.path.relpath(folder / f"{arguments.format}.jsonl")
    wanted = Export(
        format=arguments.format,
        advantage=arguments.advantage or "grpo",
        bare=arguments.bare,
        force=arguments.force,
    )
    yield from write(folder, Path(arguments.output or usual), wanted)
