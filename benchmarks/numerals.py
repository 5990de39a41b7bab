"""Score 100,000 answers with the check `number`, against the same with one regular expression, in turns.

    python benchmarks/numerals.py [ROUNDS]

The peer takes the last digits that a regular expression finds, as most programs do. A third of the answers is
a number alone, a third a sentence, a quarter a page of reasoning that ends in a number, 9 % numerals of
other countries, currencies and sciences.
"""

from __future__ import annotations

import random
import re
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, Task
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, verdict
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate

ANSWERS = 100_000
REASONING = "First I add {} and {}, which gives {}, since each of the {} boxes holds {} pieces. "
OTHERS = (
    "−€{}",
    "{},50 EUR",
    "{} × 10^3",
    "答案是{}。",
    "${}.00 in all",
    "\\boxed{{{}}}",
    "{}½",
    "{}\u00a0000",
)
PEER = re.compile(
    r"(?<![\w.])[-+\N{MINUS SIGN}]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?=\.[0-9]))"
    r"(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
)


def answers() -> list[str]:
    """Return seeded answers."""
    rng = random.Random(0)
    frames = {
        "{}": 33, "The answer is {}.": 12, "It takes {} minutes": 11, "So the total is **{}**": 5,
        "x = {}": 5,
        REASONING * 4 + "So it is {}.": 25, **dict.fromkeys(OTHERS, 9 / len(OTHERS)),
    }  # fmt: skip
    drawn = rng.choices(list(frames), list(frames.values()), k=ANSWERS)
    return [frame.format(*(rng.randrange(1000) for _ in range(21))) for frame in drawn]


def by_expression(check: Check, context: CheckContext) -> CheckResult:
    """The peer: take the last match of one regular expression."""
    found = deque(PEER.finditer(context.answer), maxlen=1)
    got = float(found[0][0].replace(",", "").replace("\N{MINUS SIGN}", "-")) if found else None
    wanted = check.params["value"]
    reason = f"expected {wanted!r}, got {got!r} as the last number"
    return verdict(check, None if got is not None and abs(got - wanted) <= 1e-9 * wanted else reason)


def seconds(contexts: Sequence[CheckContext], score: Callable[[CheckContext], object]) -> float:
    """Return the processor time of scoring all of them."""
    started = time.process_time()
    for context in contexts:
        score(context)
    return time.process_time() - started


def main() -> None:
    """Print the processor time of both, round by round in turns, and the median of their ratio."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    task = Task(id="a", domain="d", prompt="p")
    workspace = Workspace(Path("none"), left=True)
    contexts = [CheckContext(answer=a, frames=(), workspace=workspace, task=task) for a in answers()]
    checks = [Check(kind="number", params={"value": 500})]
    peers = {"number": replace(KINDS["number"], evaluate=by_expression)}
    ratios = []
    for _ in range(rounds):
        own = seconds(contexts, lambda context: evaluate(checks, context, KINDS))
        peer = seconds(contexts, lambda context: evaluate(checks, context, peers))
        ratios.append(own / peer)
        print(f"{ANSWERS:,} answers: {own:.2f} s, by one expression {peer:.2f} s, {own / peer:.2f} times")
    print(f"median {statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
