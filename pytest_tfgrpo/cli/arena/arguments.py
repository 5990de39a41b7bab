"""The arguments of ``tfgrpo arena``, apart from its work."""

from __future__ import annotations

import argparse
import math

from pytest_tfgrpo.cli.parsers import Parser, positive, whole


def arena(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.calls("arena.arena:arena")
    parser.add_argument(
        "--optimizers",
        metavar="NAMES",
        help="who competes, separated by commas: none, placebo, heuristic, llm, gepa, few-shot, or by hook",
    )
    parser.add_argument(
        "--budget-rollouts",
        type=positive,
        metavar="N",
        help="rollouts that each may spend on training; the final sweep comes on top",
    )
    parser.add_argument(
        "--budget-teacher-calls",
        type=whole,
        metavar="N",
        help="calls of the teacher that each may make (default: as many as rollouts)",
    )
    parser.add_argument(
        "--budget-usd", type=dollars, metavar="USD", help="stop before all of it costs more than this"
    )
    parser.add_argument("--suite", default=".", metavar="PATH", help="scenarios (default: here)")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="latest",
        metavar="ARENA",
        help="go on with an arena that was interrupted (default: the latest); needs no other argument",
    )
    parser.add_argument("--dry-run", action="store_true", help="print plan and cost, call nobody")
    parser.add_argument("--record", metavar="FILE", help="file to record all answers in")
    parser.add_argument("--replay", metavar="FILE", help="file whose recorded answers stand in for all calls")
    parser.add_task()


def dollars(text: str) -> float:
    """Return an amount of money; raises ArgumentTypeError."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise argparse.ArgumentTypeError(f"must be US dollars from 0 on, not {text!r}")
    return amount
