"""The arguments of the commands of runs, apart from their work."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Parser, Subparsers, add_command, positive, whole
from pytest_tfgrpo.core.files import LABELS_FORM

ADVANTAGES = ("grpo", "dr_grpo", "rloo")
FORMATS = ("rollouts", "preference", "prompt", "answers")
SORTS = ("effect", "age", "support", "domain")


def baseline(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    command = add_command(
        group,
        "save",
        "runs.baseline:save",
        "Store the final sweep of a run as a baseline, with the other sweeps of its build.",
    )
    command.add_argument(
        "name", metavar="NAME", help="name (stored as baselines/NAME.json) or a path ending in .json"
    )
    command.add_run("--run")
    command.add_task()
    add_command(group, "show", "runs.baseline:show", "Print a stored baseline.").add_argument(
        "name", metavar="NAME", help="name or path"
    )
    command = add_command(
        group, "compare", "runs.baseline:compare", "Print the gate's result for B with A as its baseline."
    )
    which = "a name, a path ending in .json, a run, or 'latest'"
    command.add_argument("a", metavar="A", help=f"reference: {which}")
    command.add_argument("b", metavar="B", help=f"what to compare with A: {which}")
    command.add_argument(
        "--gate", action="store_true", help="exit 1 if B is worse than A, or gate_alarm not excluded"
    )
    command.add_argument("--strict", action="store_true", help="also exit 1 if the result is inconclusive")
    command.add_argument(
        "--margin", type=_share, metavar="X", help="tolerated drop (default: the setting gate_margin)"
    )
    command.add_task()


def _share(text: str) -> float:
    """Return a number between 0 and 1; raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, not {text!r}")
    return value


def export(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.export:export")
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
        "rejected; prompt: prompts alone; answers: CSV of all rollouts, for spreadsheets",
    )
    command.add_argument(
        "--advantage", choices=ADVANTAGES, help="convention of the advantages in rollouts (default: grpo)"
    )
    command.add_argument(
        "--bare", action="store_true", help="leave the lessons out of the prompts in preference and prompt"
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write (default: in the run's folder, FORMAT.jsonl or answers.csv)",
    )
    command.add_argument(
        "--force", action="store_true", help="replace FILE, or the same tasks of ours, if they exist"
    )
    command.add_task()


def history(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.history:history")
    command.add_task()
    command.add_argument("--html", metavar="FILE", help="file of the page (default: in the task's folder)")


def labels(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    command = add_command(
        group,
        "sample",
        "runs.labels:sample",
        "Write a form with a random sample of judged answers, for people to label.",
    )
    command.add_run("run", nargs="?")
    command.add_argument(
        "--tasks", type=positive, default=50, metavar="N", help="tasks to label, at most (default: 50)"
    )
    command.add_argument(
        "--answers",
        type=positive,
        default=1,
        metavar="N",
        help="answers to label of each task and sweep, at most (default: 1)",
    )
    command.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of the sample (default: 0)")
    _add_file(command)
    command.add_task()
    command = add_command(
        group, "read", "runs.labels:read", "Store the labels of a form, and print the corrected gain."
    )
    command.add_run("run", nargs="?")
    _add_file(command)
    command.add_task()


def _add_file(command: Parser) -> None:
    command.add_argument(
        "--file",
        metavar="FILE",
        help=f"the form, CSV or JSON lines (.jsonl); default: {LABELS_FORM} in the run's folder",
    )


def lessons(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.lessons:lessons")
    command.add_task()
    command.add_argument(
        "--all", action="store_true", help="also list lessons that were superseded, retired or rejected"
    )
    command.add_argument("--domain", metavar="D", help="list only lessons of this domain")
    command.add_argument(
        "--sort",
        choices=SORTS,
        default="effect",
        help="order: best effect first (the default), oldest first, most tried first, or by domain",
    )
    command.add_argument("--export", action="store_true", help="print JSON lines with camelCase keys")


def library(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    which = "a run, RUN@EPOCH, 'committed' (the file of the setting library) or a library file"
    command = add_command(group, "show", "runs.library:show", "Print the lessons of a library.")
    command.add_argument(
        "library", nargs="?", default="latest", metavar="LIBRARY", help=f"{which} (default: latest)"
    )
    command.add_task()
    command = add_command(group, "diff", "runs.library:diff", "Print how two libraries differ.")
    command.add_argument("a", metavar="A", help=which)
    command.add_argument("b", nargs="?", metavar="B", help="the same; default: compare 'committed' with A")
    command.add_task()
    command = add_command(
        group, "promote", "runs.library:promote", "Write the library of a run to the file that you commit."
    )
    command.add_run("run", help="a run, or RUN@EPOCH")
    command.add_argument(
        "--accept-flagged",
        action="append",
        default=[],
        metavar="ID",
        help="promote this lesson although it is flagged, after you have read it; may be repeated",
    )
    command.add_task()
    _edits(group)
    add_command(
        group,
        "rebase",
        "runs.library:rebase",
        "Stamp the committed library for the current prompt packs, after your review.",
    ).add_task()


def _edits(group: Subparsers) -> None:
    """Add the commands that change a committed library by hand."""
    command = add_command(
        group,
        "add",
        "runs.library:add",
        "Add a lesson that you wrote to the committed library, screened like any other.",
    )
    command.add_argument("text", metavar="TEXT", help="the lesson, in one sentence")
    command.add_argument("--domain", required=True, metavar="D", help="the domain whose prompts may carry it")
    command.add_argument("--avoid", action="store_true", help="it says what to avoid, not what to do")
    command.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="NAME",
        help="a check kind that your conftest.py supplies; may be repeated",
    )
    command.add_task()
    command = add_command(
        group, "remove", "runs.library:remove", "Take lessons out of the committed library."
    )
    command.add_argument("ids", nargs="+", metavar="ID", help="id of a lesson")
    command.add_task()


def record(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    add_command(group, "stat", "runs.record:stat", "Print what a recording contains.").add_argument(
        "file", metavar="FILE", help="a recording"
    )
    add_command(
        group, "verify", "runs.record:verify", "Verify a recording; print each bad line, and exit with 1."
    ).add_argument("file", metavar="FILE", help="a recording")
    command = add_command(
        group,
        "add",
        "runs.record:add",
        "Record a finished run (default: the latest), as --tfgrpo-record would have.",
    )
    command.add_argument("file", metavar="FILE", help="a recording to extend, or a file to create")
    command.add_run("--run")
    command.add_task()
    command = add_command(
        group,
        "prune",
        "runs.record:prune",
        "Remove from a recording what a run (default: the latest) does not use.",
    )
    command.add_argument("file", metavar="FILE", help="a recording")
    command.add_run("--run", action="append", default=None, help="keep what this run uses; may be repeated")
    command.add_argument(
        "--others", action="store_true", help="also remove actors that none of the runs uses"
    )
    command.add_argument("--dry-run", action="store_true", help="only print what would be removed")
    command.add_task()


def replicate(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.replicate:replicate")
    command.add_argument(
        "seeds", type=_count, metavar="N", help="number of seeds; an interval takes 3 or more"
    )
    command.add_argument("--new", action="store_true", help="start over instead of going on with the latest")
    command.add_argument("--dry-run", action="store_true", help="only print what the runs would take")
    command.add_argument(
        "pytest_args", nargs="*", metavar="-- ARG", help="arguments for pytest, for example -- tests -k dates"
    )
    command.add_task()


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"must be a number between 1 and 1000, not {text!r}")
    return int(text)


def report(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.report:report")
    command.add_run("run", nargs="?")
    command.add_task()
    command.add_argument(
        "--compare",
        metavar="RUN",
        action="append",
        default=[],
        help="compare with another run, A: its id as above, or its folder; repeat it for further runs, which "
        "are compared with A too",
    )
    command.add_argument(
        "--agents",
        action="store_true",
        help="compare the agents of a list again; RUN is the start of the id that their runs share",
    )
    command.add_argument(
        "--what-if",
        type=_accuracies,
        metavar="SE,SP",
        help="also print the gain if the judge had this sensitivity and specificity, measured elsewhere, in "
        "both sweeps; SE,SP,SE,SP: in the baseline and in the final sweep",
    )
    command.add_argument("--html", metavar="FILE", help="file of the page (default: in the run's folder)")
    command.add_argument(
        "-v", "--verbose", action="count", default=0, help="show all lessons, tools and gate rules"
    )
    command.add_argument("-q", "--quiet", action="count", default=0, help="show only gain and gate")


def _accuracies(text: str) -> list[tuple[float, float]]:
    """Return sensitivity and specificity of both sweeps; raises ArgumentTypeError."""
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) not in (2, 4) or not all(0 <= share <= 1 for share in shares):
        raise argparse.ArgumentTypeError(
            f"must be two or four numbers from 0 to 1, as in 0.9,0.8, not {text!r}"
        )
    return [(shares[0], shares[1]), (shares[-2], shares[-1])]


def review(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.review:review")
    command.add_argument(
        "words",
        nargs="*",
        metavar="RUN",
        help="run id, its beginning or end, 'latest' or 'previous' (default: the run of the marks); "
        "with `apply` before it: propose changes of the scenario files",
    )
    command.usage = (
        "tfgrpo review [-h] [apply] [RUN] --marks FILE [FILE ...]\n"
        "                     [--patch FILE] [--new] [--write]\n"
        "                     [--out DIR] [--task-id ID]"
    )
    command.add_argument(
        "--marks",
        nargs="+",
        action="extend",
        required=True,
        metavar="FILE",
        help="marks that reviewers saved from the report page, a file each",
    )
    command.add_argument("--patch", metavar="FILE", help="with apply: write the diff to FILE")
    command.add_argument(
        "--new",
        action="store_true",
        help="with apply: leave the scenarios as they are, and add changed copies as new files",
    )
    command.add_argument("--write", action="store_true", help="with apply: change the scenario files")
    command.add_task()


def runs(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.runs:runs")
    command.add_task()


def show(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.show:show")
    command.add_argument(
        "rollout",
        metavar="ID",
        help="rollout or its end, such as e1.count-words.r0; or scenario, to list its own",
    )
    command.add_task()


def view(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("runs.view:view")
    command.add_run("run", nargs="?")
    command.add_task()
    command.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="serve the page at this port, a finished one too (default: a free port, where it is served)",
    )
    command.add_argument("--no-browser", action="store_true", help="only print the address")


def _port(text: str) -> int:
    """Return a port; raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 0 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 (any free one) to 65535, not {text!r}")
    return int(text)
