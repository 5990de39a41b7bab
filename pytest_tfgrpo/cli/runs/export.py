"""The command ``tfgrpo export``: a run as rows for programs that train weights, a suite as Harbor tasks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.lookup import find_run
from pytest_tfgrpo.cli.parsers import Arguments, Parser
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.export.export import Export
from pytest_tfgrpo.export.export import export as write
from pytest_tfgrpo.export.harbor.tasks import export_tasks

FORMATS = ("rollouts", "preference", "prompt")
ADVANTAGES = ("grpo", "dr_grpo", "rloo")
HARBOR = "harbor"
"""In place of a run: the scenarios of a suite are exported."""


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(export)
    command.add_run(
        "run",
        nargs="?",
        help="run id, its beginning or end, 'latest' or 'previous' (default: latest); or the word harbor, "
        "for the scenarios of SUITE as Harbor tasks",
    )
    command.add_argument(
        "suite", metavar="SUITE", nargs="?", type=Path, help="scenario file or folder of them (harbor)"
    )
    command.add_argument(
        "--into", metavar="FOLDER", type=Path, help="folder for the tasks, each one a folder (harbor)"
    )
    command.add_argument(
        "--format",
        choices=FORMATS,
        help="required for a run. rollouts: messages, reward, advantage; preference: prompt, chosen, "
        "rejected; prompt: prompts alone",
    )
    command.add_argument(
        "--advantage", choices=ADVANTAGES, help="convention of the advantages in rollouts (default: grpo)"
    )
    command.add_argument(
        "--bare", action="store_true", help="leave the lessons out of the prompts in preference and prompt"
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", help="file to write (default: FORMAT.jsonl in the run's folder)"
    )
    command.add_argument(
        "--force", action="store_true", help="replace FILE, or the same tasks of ours, if they exist"
    )
    command.add_task()


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
    if arguments.format != "rollouts" and arguments.advantage:
        arguments.parser.error("--advantage is for --format rollouts")
    if arguments.output == "-":
        arguments.parser.error("-o takes the name of a file: an export is written whole or not at all")
    folder = find_run(project_of(arguments), arguments.run)
    usual = os.path.relpath(folder / f"{arguments.format}.jsonl")
    wanted = Export(
        format=arguments.format,
        advantage=arguments.advantage or "grpo",
        bare=arguments.bare,
        force=arguments.force,
    )
    yield from write(folder, Path(arguments.output or usual), wanted)
