"""How often acceptance is right: candidates of known effect, simulated on dev splits of several sizes.

Each dev scenario has a chance to be solved, drawn from Beta(2, 2); the candidate moves it by its effect. Both
libraries are asked `--rollouts` times. Shown is the share of candidates that come into force, and, for a
candidate of ten lessons of which one does all the harm, the share of runs that keep it out, and how many
of the others come into force then.

    python benchmarks/acceptance.py [--runs 400] [--rollouts 4]
"""

from __future__ import annotations

import argparse
import asyncio

import numpy as np

from pytest_tfgrpo.core.lessons import Experience, Library, Operation, Reward, Support
from pytest_tfgrpo.harness.acceptance.decision import Limits, decide
from pytest_tfgrpo.harness.acceptance.rule import Pairs, Rule
from pytest_tfgrpo.harness.comparison import Tally
from pytest_tfgrpo.harness.library import carry_out, empty

MARGIN = 0.02
EFFECTS = (-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2)
SIZES = (20, 40, 80)


class Simulated:
    """A dev split whose scores are drawn, each library once for each scenario."""

    def __init__(self, rng: np.random.Generator, size: int, rollouts: int, effects: dict[str, float]) -> None:
        self.made = 0
        self._rng, self._size, self._rollouts, self._effects = rng, size, rollouts, effects
        self._chance_K = rng.beta(2, 2, size)
        self._known: dict[str, list[Tally]] = {}

    def changed(self, before: Library, after: Library) -> tuple[str, ...]:
        return () if before.hash == after.hash else tuple(f"{n:04}" for n in range(self._size))

    def cost(self, before: Library, after: Library) -> int:
        return sum(self._size * self._rollouts for one in (before, after) if one.hash not in self._known)

    async def compare(self, before: Library, after: Library) -> Pairs:
        rows = [
            dict(zip(self.changed(before, after), self._ask(one), strict=False)) for one in (before, after)
        ]
        return Pairs(unchanged=0, before=rows[0], after=rows[1])

    def _ask(self, library: Library) -> list[Tally]:
        if library.hash not in self._known:
            effect = sum(self._effects[e.id] for e in library.experiences)
            chance_K = np.clip(self._chance_K + effect, 0.0, 1.0)
            solved_K = self._rng.binomial(self._rollouts, chance_K)
            self.made += self._size * self._rollouts
            self._known[library.hash] = [
                Tally(stamp="", n=self._rollouts, sum=float(s), sum_sq=float(s), errors=0) for s in solved_K
            ]
        return self._known[library.hash]


def lesson(n: int) -> Operation:
    return Operation(
        kind="add",
        experience=Experience(
            id=f"l{n}", run_id="r", task_id="t", domain="d", prompt_pack_id="p", epoch=1, group_id=f"g{n}",
            summary32=f"lesson number {n}", polarity="do", reward=Reward(gt_score=1.0, relative_rank=1.0),
            support=Support(groups=1, rollouts=1), tool_stats=(), stamp_signature="s", actor="a",
        ),
    )  # fmt: skip


def settle(rng: np.random.Generator, rule: str, size: int, rollouts: int, effects: list[float]) -> set[int]:
    """Return which of the lessons, whose effects add up, come into force."""
    operations = [lesson(n) for n in range(len(effects))]
    made = carry_out(empty(), operations, cap=200, epoch=1)
    bench = Simulated(rng, size, rollouts, {f"l{n}": effect for n, effect in enumerate(effects)})
    limits = Limits(rule=Rule(name=rule, margin=MARGIN), scenarios=size, rollouts=10**9, cap=200)  # type: ignore[arg-type]
    revision = asyncio.run(decide(empty(), made, bench, limits))
    return {int(e.id[1:]) for e in revision.library.experiences}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--rollouts", type=int, default=4)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    print("share of candidates of one lesson that come into force")
    print("| rule | dev scenarios | " + " | ".join(f"{effect:+.2f}" for effect in EFFECTS) + " |")
    print("| --- | --- |" + " --- |" * len(EFFECTS))
    for rule in ("safe", "strict"):
        for size in SIZES:
            shares = [
                np.mean([bool(settle(rng, rule, size, args.rollouts, [effect])) for _ in range(args.runs)])
                for effect in EFFECTS
            ]
            print(f"| {rule} | {size} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")
    print()
    print("ten lessons, one of which costs 0.2, the others nothing (safe) or bring 0.02 each (strict)")
    print("| rule | dev scenarios | bad one kept out | good ones kept then |")
    print("| --- | --- | --- | --- |")
    for rule, good in (("safe", 0.0), ("strict", 0.02)):
        for size in SIZES:
            found = []
            for _ in range(args.runs):
                bad = int(rng.integers(10))
                found.append(
                    (
                        bad,
                        settle(
                            rng, rule, size, args.rollouts, [-0.2 if n == bad else good for n in range(10)]
                        ),
                    )
                )
            out = [kept for bad, kept in found if bad not in kept]
            share, good_kept = len(out) / len(found), np.mean([len(kept) for kept in out])
            print(f"| {rule} | {size} | {share:.2f} | {good_kept:.1f} of 9 |")


if __name__ == "__main__":
    main()
