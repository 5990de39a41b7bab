"""The commands ``tfgrpo loop ...``: what an agent in production did, and how good it was."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import CommandRow, Parser

COMMANDS = (
    CommandRow(
        "init",
        "Write a first loop.toml, and the key of its pseudonyms, which only you can read.",
        "loop.init",
    ),
    CommandRow(
        "demo",
        "Watch three days of an agent become rewards, lessons and deployed versions (extra serve).",
        "loop.loop_demo",
    ),
    CommandRow(
        "config",
        "Print every setting and where it comes from, without secrets.",
        "loop.config",
    ),
    CommandRow(
        "serve",
        "Take traces and feedback over HTTP, and score them, until SIGTERM or Ctrl-C.",
        "loop.serve",
    ),
    CommandRow(
        "status",
        "Print what is stored, what waits, and who does which job.",
        "loop.status",
    ),
    CommandRow(
        "report",
        "Print what came in, what is missing, mean rewards, and the worst kinds of task.",
        "loop.report",
    ),
    CommandRow(
        "evidence",
        "Write attempts of production to a file that a run learns from.",
        "loop.training.evidence",
    ),
    CommandRow(
        "train",
        "Request a training job, and print its id; a service with a project runs it.",
        "loop.training.train",
    ),
    CommandRow(
        "candidates",
        "List right answers that production knows as scenarios, and write those that you accept.",
        "loop.training.candidates",
    ),
    CommandRow(
        "versions",
        "List policy versions, and show which trajectories the lessons of one rest on.",
        "loop.training.versions",
    ),
    CommandRow(
        "approve",
        "Let a version meet users: a share of the sessions at first, or after the ramp that is on.",
        "loop.deployment.approve",
    ),
    CommandRow("reject", "Reject a version that no user meets, so that none will.", "loop.deployment.reject"),
    CommandRow("hold", "Keep a ramp at its share until you advance it.", "loop.deployment.hold"),
    CommandRow(
        "advance",
        "Take the next step of a ramp without waiting, or end its hold.",
        "loop.deployment.advance",
    ),
    CommandRow(
        "rollback",
        "Take a version back: all sessions meet the one before it at once.",
        "loop.deployment.rollback",
    ),
    CommandRow("pin", "Keep the files of a version however old it is.", "loop.deployment.pin"),
    CommandRow("show", "Print a trajectory: turns, feedback, rewards.", "loop.show"),
    CommandRow(
        "forget",
        "Overwrite all that is stored of a user or session.",
        "loop.forget",
    ),
    CommandRow(
        "import",
        "Import files of OTLP JSON lines, and exports of Langfuse.",
        "loop.import_files",
    ),
    CommandRow("opt-out", "Leave out what users or sessions do from now on, by their wish.", "loop.opt_out"),
)


def declare(parser: Parser) -> None:
    """Add the commands of the group."""
    parser.add_commands(COMMANDS)
