"""The arguments of the commands that train from production, apart from their work."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_tfgrpo.cli.loop.arguments import add_config
from pytest_tfgrpo.cli.parsers import Parser, add_command, person, positive, whole, words
from pytest_tfgrpo.core.python.clock import utc_time

PRIORITIES = ("urgent", "high", "normal", "low")
"""Those of a request, whose module loads much more."""


def candidates(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    command = add_command(
        group,
        "list",
        "loop.training.candidates:list_",
        "List tasks of which production knows a right answer, the worst first.",
    )
    command.add_argument(
        "--most", type=positive, default=20, metavar="N", help="candidates to list (default: 20)"
    )
    add_config(command)
    command = add_command(
        group,
        "show",
        "loop.training.candidates:show",
        "Print a candidate as the scenario file that it would be.",
    )
    command.add_argument("id", metavar="ID", help="id of a candidate")
    add_config(command)
    command = add_command(
        group, "accept", "loop.training.candidates:accept", "Write candidates into your suite, one file each."
    )
    command.add_argument("ids", nargs="+", metavar="ID", help="id of a candidate")
    command.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="folder of your suite")
    add_config(command)


def evidence(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.training.evidence:evidence")
    command.add_argument("--to", type=Path, required=True, metavar="FILE", help="file to write, new")
    command.add_argument(
        "--min-reward", type=_share, metavar="R", help="reward of the best attempt at a task, at least"
    )
    command.add_argument(
        "--since", type=_time, metavar="TIME", help="attempts that ended at this date or time (UTC) or later"
    )
    command.add_argument(
        "--sample-size", type=positive, metavar="N", help="attempts at most, drawn by the seed (default: all)"
    )
    command.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of the draw (default: 0)")
    add_config(command)


def _time(text: str) -> str:
    """Return a date or time in UTC; raises ArgumentTypeError."""
    found = utc_time(text) or utc_time(f"{text}T00:00:00Z") or utc_time(f"{text}Z")
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a date or time such as 2026-11-01, not {text!r}")
    return found


def _share(text: str) -> float:
    """Return a number from 0 to 1; raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number


def train(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.training.train:train")
    command.add_argument(
        "--sample-size", type=_size, metavar="N", help="attempts to learn from at most, drawn by seed"
    )
    command.add_argument("--priority", choices=PRIORITIES, default="normal", help="default: normal")
    command.add_argument("--cancel", metavar="ID", help="cancel the job with this id instead")
    add_config(command)


def _size(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 1,000,000,000, not {text!r}")
    return int(text)


def versions(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    add_config(
        add_command(
            group,
            "list",
            "loop.training.versions:list_versions",
            "Print all versions: state, score on the eval split, who decided.",
        )
    )
    command = add_command(
        group,
        "trace",
        "loop.training.versions:trace",
        "Print the evidence, lessons and versions behind a version, lesson or trajectory.",
    )
    command.add_argument(
        "id", metavar="ID", help="a version, or the id of a lesson or trajectory, or its start"
    )
    add_config(command)
    command = add_command(
        group,
        "verdict",
        "loop.training.versions:verdict",
        "Keep what a person says of a version: safe where nobody could judge that, or a score.",
    )
    command.add_argument("version", metavar="VERSION", help="such as v2")
    command.add_argument(
        "--safety",
        choices=("passed", "failed"),
        metavar="RESULT",
        help="passed or failed: what its safety suites left open",
    )
    command.add_argument("--human-eval-score", type=float, metavar="SCORE", help="from 0 to 1")
    command.add_argument(
        "--by", type=person, metavar="NAME", required=True, help="who says so; the audit keeps it"
    )
    command.add_argument("--reason", type=words, metavar="TEXT", required=True, help="why")
    add_config(command)
