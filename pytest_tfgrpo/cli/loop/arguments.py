"""The arguments of the commands of the loop, apart from their work."""

from __future__ import annotations

import argparse

from pytest_tfgrpo.cli.parsers import CommandRow, Parser, add_command, positive, whole

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
    CommandRow("config", "Print every setting and where it comes from, without secrets.", "loop.config"),
    CommandRow(
        "serve", "Take traces and feedback over HTTP, and score them, until SIGTERM or Ctrl-C.", "loop.serve"
    ),
    CommandRow(
        "proxy",
        "Pass requests to a model server with the texts of the deployed version (extras serve, openai).",
        "loop.serving.proxy",
    ),
    CommandRow(
        "tensorzero",
        "Write what is served as variants for the gateway of TensorZero.",
        "loop.serving.tensorzero",
    ),
    CommandRow("status", "Print what is stored, what waits, and who does which job.", "loop.status"),
    CommandRow(
        "report",
        "Print what came in, what is missing, mean rewards, the worst kinds of task; write a page.",
        "loop.report",
    ),
    CommandRow(
        "evidence", "Write attempts of production to a file that a run learns from.", "loop.training.evidence"
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
        "advance", "Take the next step of a ramp without waiting, or end its hold.", "loop.deployment.advance"
    ),
    CommandRow(
        "rollback",
        "Take a version back: all sessions meet the one before it at once.",
        "loop.deployment.rollback",
    ),
    CommandRow("pin", "Keep the files of a version however old it is.", "loop.deployment.pin"),
    CommandRow(
        "dashboards",
        "Write Grafana dashboards, Prometheus alerts, and routes of Alertmanager.",
        "loop.observe.dashboards",
    ),
    CommandRow("show", "Print a trajectory: turns, feedback, rewards.", "loop.show"),
    CommandRow("forget", "Overwrite all that is stored of a user or session.", "loop.forget"),
    CommandRow("import", "Import files of OTLP JSON lines, and exports of Langfuse.", "loop.import_files"),
    CommandRow("audit", "Print who did what, and check that the records are whole.", "loop.trust.audit"),
    CommandRow(
        "bucket-policy",
        "Print the policy of an S3 bucket for who trains, deploys and reads versions.",
        "loop.trust.bucket_policy",
    ),
    CommandRow(
        "nats-config",
        "Print users for a NATS server, each with the subjects that its part of the loop needs.",
        "loop.trust.nats_config",
    ),
    CommandRow("opt-out", "Leave out what users or sessions do from now on, by their wish.", "loop.opt_out"),
)
TASKS = 400


def add_whose(command: Parser) -> None:
    """Add what names a session or a user."""
    whose = command.add_mutually_exclusive_group(required=True)
    whose.add_argument("--session", metavar="S", default="", help="id of a session, as your service sends it")
    whose.add_argument("--user", metavar="U", default="", help="id of a user, as your service sends it")


def add_config(command: Parser) -> None:
    """Add what names the configuration."""
    command.add_argument(
        "--config", metavar="FILE", help="configuration (default: TFGRPO_LOOP_CONFIG, else loop.toml)"
    )


def config(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.config:config")
    add_config(command)


def forget(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.forget:forget")
    add_whose(command)
    command.add_argument("--actor", metavar="A", help="who does it, for the record (default: you)")
    add_config(command)


def import_files(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.import_files:import_")
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="file or folder; several are taken together"
    )
    command.add_argument(
        "--scale",
        type=_scale,
        action="append",
        default=[],
        metavar="NAME=LOW..HIGH",
        help="range of a score of Langfuse that is not from 0 to 1; repeatable",
    )
    add_config(command)


def _scale(text: str) -> tuple[str, tuple[float, float]]:
    """Return a name and two numbers; raises ArgumentTypeError."""
    name, _, bounds = text.rpartition("=")
    low, dots, high = bounds.partition("..")
    try:
        if name and dots:
            return name, (float(low), float(high))
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be NAME=LOW..HIGH such as stars=1..5, not {text!r}")


def init(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.init:init")
    command.add_argument("folder", nargs="?", default=".", metavar="DIR", help="folder (default: here)")
    command.add_argument("--force", action="store_true", help="overwrite a loop.toml that exists")


def loop(parser: Parser) -> None:
    """Add the commands of the group."""
    parser.add_commands(COMMANDS)


def loop_demo(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.loop_demo:demo_command")
    command.add_argument("--tasks", type=positive, default=TASKS, metavar="N", help="tasks (default: 400)")
    command.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of tasks (default: 0)")
    command.add_argument(
        "--bus",
        metavar="URL",
        default="",
        help="empty bus, such as nats:nats://127.0.0.1:4222 (default: files); what it brings stays there",
    )
    command.add_argument("--into", metavar="DIR", help="empty folder to keep its files in (default: none)")
    command.add_argument(
        "--html", metavar="FILE", help="its page (default: DIR/report.html, else loop-demo.html here)"
    )


def opt_out(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    for name, about in (
        ("add", "Take nothing of a user or session from now on; see also forget."),
        ("remove", "Take data of a user or session again."),
    ):
        command = add_command(group, name, f"loop.opt_out:opt_out_{name}", about)
        add_whose(command)
        add_config(command)
    add_config(
        add_command(group, "list", "loop.opt_out:opt_out_list", "Print who opted out and when, by pseudonym.")
    )


def report(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.report:report")
    command.add_argument(
        "--last",
        type=positive,
        default=10_000,
        metavar="N",
        help="newest trajectories to look at (default: 10000)",
    )
    shape = command.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument(
        "--html", metavar="FILE", help="also write a page: versions, both arms at each decision, lessons"
    )
    add_config(command)


def serve(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.serve:serve")
    add_config(command)


def show(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.show:show")
    command.add_argument("id", metavar="ID", help="id of a trajectory, or its start")
    command.add_argument("--full", action="store_true", help="show texts whole")
    command.add_argument("--json", action="store_true", help="print JSON")
    add_config(command)


def status(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.status:status")
    command.add_argument("--json", action="store_true", help="print JSON")
    add_config(command)
