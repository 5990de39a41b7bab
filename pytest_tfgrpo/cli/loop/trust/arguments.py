"""The arguments of the commands of trust, apart from their work."""

from __future__ import annotations

from pytest_tfgrpo.cli.loop.arguments import add_config
from pytest_tfgrpo.cli.parsers import Parser, add_command, positive


def audit(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    about = "Check that no record was changed or taken out, and print the head, for you to keep elsewhere."
    command = add_command(group, "verify", "loop.trust.audit:verify", about)
    command.add_argument(
        "--anchor", metavar="HEAD", default="", help="a head that you kept: its record must still be there"
    )
    add_config(command)
    about = "Print who read, wrote out, decided, left out or forgot what, the newest last."
    command = add_command(group, "list", "loop.trust.audit:list_", about)
    command.add_argument(
        "--last", type=positive, default=50, metavar="N", help="newest records to print (default: 50)"
    )
    command.add_argument("--trajectory", metavar="ID", help="only who read this trajectory")
    command.add_argument(
        "--json", action="store_true", help="print whole records, with evidence, a line each"
    )
    add_config(command)


def bucket_policy(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.trust.bucket_policy:bucket_policy")
    for role, about in (
        ("trainer", "runs training jobs"),
        ("deployer", "approves and judges versions"),
        ("reader", "serves or reads versions"),
    ):
        command.add_argument(
            f"--{role}",
            action="append",
            default=[],
            metavar="ARN",
            help=f"user or role that {about}; repeatable",
        )
    add_config(command)


def nats_config(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.trust.nats_config:nats_config")
