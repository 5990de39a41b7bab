"""The commands of ``tfgrpo``, as its help lists them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pytest_tfgrpo.cli.parsers import CommandRow

FOLDERS = frozenset(found.parent.name for found in Path(__file__).parent.glob("*/__init__.py"))
"""Folders of commands in this installation: one that was taken away takes its commands with it."""
COMMANDS = (
    CommandRow(
        "init",
        "Write a first project: scenarios, a prompt pack, and lines in pytest's ini file.",
        "suite.init",
    ),
    CommandRow(
        "import",
        "Turn test files of other tools into scenarios, and say what was lost.",
        "suite.import_suite",
    ),
    CommandRow(
        "safety",
        "Write scenarios for refusals, jailbreaks, bias, orders in tool results, and leaks.",
        "suite.safety",
    ),
    CommandRow(
        "check",
        "Read scenario files as a run does, without an agent, and say all that is wrong.",
        "suite.check",
    ),
    CommandRow("stamp", "Stamp prompt packs after a review, or verify their stamps.", "suite.stamp"),
    CommandRow("runs", "List the runs of the task, oldest first.", "runs.runs"),
    CommandRow("history", "Print the last ten runs of the task, and write a page of all.", "runs.history"),
    CommandRow("view", "Open the page of a run in the browser; it follows a run that goes on.", "runs.view"),
    CommandRow(
        "report", "Print the report of a run and write its page, or compare it with others.", "runs.report"
    ),
    CommandRow(
        "show",
        "Print a rollout in full, with every frame, check and score, or list those of a scenario.",
        "runs.show",
    ),
    CommandRow(
        "review",
        "Show where checks and reviewers' marks disagree, or propose changes of checks.",
        "runs.review",
    ),
    CommandRow("replicate", "Repeat the learning run with N seeds, to test the method.", "runs.replicate"),
    CommandRow(
        "arena",
        "Let prompt optimizers compete on one budget, and compare what they came to on the eval split.",
        "arena.arena",
    ),
    CommandRow("baseline", "Manage the baselines that the gate compares with.", "runs.baseline"),
    CommandRow("library", "Inspect and manage libraries of lessons.", "runs.library"),
    CommandRow("record", "Manage recordings, from which you replay runs.", "runs.record"),
    CommandRow(
        "lessons",
        "List the lessons of the task with their effects, or export them as JSON lines.",
        "runs.lessons",
        aliases=("experiences",),
    ),
    CommandRow("labels", "Correct a judge's gain by human labels of a random sample.", "runs.labels"),
    CommandRow(
        "export", "Write the training rollouts of a run as JSON lines, or a suite as tasks.", "runs.export"
    ),
    CommandRow(
        "harvest", "Make proven scenarios of the fixes in a git repository's history.", "harvest.harvest"
    ),
    CommandRow("learn", "Catch what finished work taught: capture it when it is approved.", "learn.learn"),
    CommandRow(
        "patterns",
        "Review and manage what finished work taught: list, promote, deprecate, hand to agents.",
        "patterns.patterns",
    ),
    CommandRow(
        "live",
        "Let runs in production choose among arms, such as prompts or models. What learns is the selector, a "
        "table of probabilities for each category of task, never the model.",
        "live.live",
    ),
    CommandRow(
        "loop",
        "Take the traces of an agent in production, without secrets, and score each run of the agent: by "
        "kind of task and by version; let a suite learn from what differs, and keep the versions.",
        "loop.loop",
    ),
)


def listed(folders: Collection[str] = FOLDERS) -> list[CommandRow]:
    """Return the commands that are in these folders."""
    return [row for row in COMMANDS if row.module.partition(".")[0] in folders]
