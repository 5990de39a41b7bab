"""The command ``tfgrpo export``: a run as rows for programs that train weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments, Subparsers, add_command, add_run, add_task, project_of

FORMATS = ("rollouts", "preference", "prompt")
ADVANTAGES = ("grpo", "dr_grpo", "rloo")


def declare(commands: Subparsers) -> None:
    """Add the command."""
    command = add_command(commands, "export", export)
    add_run(command, "run", nargs="?")
    command.add_argument(
        "--format",
        choices=FORMATS,
        required=True,
        help="rollouts: messages, reward, advantage; preference: prompt, chosen, rejected; "
        "prompt: prompts alone",
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
    command.add_argument("--force", action="store_true", help="replace FILE if it exists")
    add_task(command)


def export(arguments: Arguments) -> Iterator[str]:
    """Write the training rollouts of a finished run as JSON lines for programs that train weights."""
    from pytest_tfgrpo.cli.lookup import find_run
    from pytest_tfgrpo.harness.export.export import Export
    from pytest_tfgrpo.harness.export.export import export as write

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
