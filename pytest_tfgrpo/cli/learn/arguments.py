"""The arguments of the commands of learning from finished work, apart from their work."""

from __future__ import annotations

from pytest_tfgrpo.cli.harvest.arguments import add_sandbox
from pytest_tfgrpo.cli.parsers import CommandRow, Parser, person, positive, whole, words

COMMANDS = (
    CommandRow(
        "capture",
        "Capture finished work as a job: the change, what was asked for, and the commands that ran.",
        "learn.capture",
    ),
    CommandRow("work", "Work the jobs that wait: check the snapshot, prove the change.", "learn.work"),
    CommandRow("status", "List the jobs, where each stands, and what a person has to do.", "learn.status"),
    CommandRow("show", "Print a job with its attempts and logs, or the diff of its tests.", "learn.show"),
    CommandRow(
        "requeue", "Put a job that failed or waits for a person back into the queue.", "learn.requeue"
    ),
    CommandRow("approve", "Let a job that an agent proposed be worked.", "learn.approve"),
    CommandRow(
        "demo",
        "Show a fix and a cheat on their way: captured, proven, written up, tried, promoted.",
        "learn.demo",
    ),
    CommandRow("prune", "Remove jobs that ended long ago; the log keeps their lines.", "learn.prune"),
    CommandRow("hook", "Print a command, hook or CI job to copy, which captures work.", "learn.hook"),
)


HOOKS = ("claude", "codex", "git", "ci")


def learn(parser: Parser) -> None:
    """Add the commands of the group."""
    parser.add_commands(COMMANDS)


def capture(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.capture:capture")
    command.add_argument(
        "--approver",
        type=person,
        required=True,
        metavar="ID",
        help="who approved the work; of self the agent",
    )
    command.add_argument(
        "--trigger",
        choices=("approval", "merge", "self"),
        default="approval",
        help="what ended the work (default: approval); self, the agent's own idea, waits for a person",
    )
    command.add_argument(
        "--tests-by",
        choices=("agent", "person", "unknown"),
        default="unknown",
        help="who wrote the tests (default: unknown)",
    )
    command.add_argument("--merge", metavar="REV", help="capture this commit or merge, not the working tree")
    command.add_argument("--prompt", metavar="FILE", help="what was asked for")
    command.add_argument("--criteria", metavar="FILE", help="when it is done: acceptance criteria")
    command.add_argument(
        "--history",
        metavar="FILE",
        help="JSON lines with command and exit_code, or a transcript of Claude Code or Codex",
    )
    command.add_task()


def work(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.work:work")
    command.add_argument("--once", action="store_true", help="work one job, and end")
    command.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="work so many at once (default: 1)"
    )
    command.add_argument(
        "--into", metavar="SUITE", help="suite that proven scenarios join (default: suite of learn.toml)"
    )
    command.add_argument(
        "--rollouts",
        type=positive,
        metavar="G",
        help="have your agent, tfgrpo_actor, try each proven job so often; a smaller fix is a job of its own",
    )
    add_sandbox(command)
    command.add_task()


def status(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.status:status")
    command.add_argument("--json", action="store_true", help="print the manifests as JSON")
    command.add_task()


def show(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.show:show")
    _add_job(command)
    command.add_argument("--json", action="store_true", help="print the manifest as JSON")
    command.add_argument("--tests", action="store_true", help="print the diff of the tests instead")
    command.add_argument(
        "--reviewer", type=person, metavar="ID", help="who sees it; a promotion needs that somebody has"
    )
    command.add_task()


def requeue(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.requeue:requeue")
    _add_job(command)
    command.add_argument("--approver", type=person, required=True, metavar="ID", help="who decides it")
    command.add_argument("--reason", type=words, required=True, metavar="TEXT", help="why")
    command.add_argument(
        "--rebuild",
        action="store_true",
        help="make the snapshot's files again from the recorded commit; without one, from the working tree",
    )
    command.add_argument(
        "--scenario", metavar="FILE", help="file as harvest.toml that says how the tests run; you sign it"
    )
    command.add_task()


def approve(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.approve:approve")
    _add_job(command)
    command.add_argument("--approver", type=person, required=True, metavar="ID", help="who approves it")
    command.add_task()


def prune(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.prune:prune")
    command.add_argument(
        "--days", type=whole, default=30, metavar="N", help="days since a job ended (default: 30)"
    )
    command.add_task()


def demo(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.demo:demo")
    command.add_argument("--into", metavar="DIR", help="keep its files in this new folder")


def _add_job(command: Parser) -> None:
    command.add_argument("job", metavar="JOB", help="id of a job, or the beginning of one")


def hook(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.hook:hook")
    command.add_argument("kind", choices=HOOKS, help="where it goes")
