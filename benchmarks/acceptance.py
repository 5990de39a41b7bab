"""How often acceptance is right: candidates of known effect, simulated on dev splits of several sizes.

Each dev scenario has a chance to be solved, drawn from Beta(2, 2); the candidate moves it by its effect. Both
libraries are asked `--rollouts` times. Shown is the share of candidates that come into force, and, for a
candidate of ten lessons of which one does all the harm, the share of runs that keep it out, and how many
of the others come into force then. There every prompt carries all lessons, so that all scenarios speak of
each. The last table has ten lessons in ten families of 1 to 3 dev scenarios, each prompt led by the lesson
of its family: what single lessons come to, by their own effect.

    python benchmarks/acceptance.py [--runs 400] [--rollouts 4]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable

import numpy as np
from earlier_rule import AcceptanceRule, Case, Limits, Pairs, decide

from pytest_tfgrpo.core.lessons import Experience, Library, Operation, Reward, Support
from pytest_tfgrpo.harness.learning.library.library import carry_out, empty
from pytest_tfgrpo.harness.metrics.comparison import Tally
from pytest_tfgrpo.harness.run.schedule import MIN_DEV

MARGIN = 0.02
EFFECTS = (-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2)
SINGLE = (-0.3, -0.1, 0.0, 0.1, 0.3)
SIZES = (20, 40, 80)


class Simulated:
    """A dev split whose scores are drawn, each library once for each scenario."""

    def __init__(self, rng: np.random.Generator, size: int, rollouts: int, effects: dict[str, float]) -> None:
        self.made = 0
        self._rng, self._size, self._rollouts, self._effects = rng, size, rollouts, effects
        self._chance_K = rng.beta(2, 2, size)
        self._known: dict[str, list[list[float]]] = {}

    def changed(self, before: Library, after: Library) -> tuple[str, ...]:
        return () if before.hash == after.hash else tuple(f"{n:04}" for n in range(self._size))

    def cost(self, before: Library, after: Library) -> int:
        return sum(self._size * self._rollouts for one in (before, after) if one.hash not in self._known)

    async def compare(self, before: Library, after: Library) -> Pairs:
        old_KG, new_KG = self._ask(before), self._ask(after)
        ids = self.changed(before, after)
        old, new = (
            {id: _tally(row) for id, row in zip(ids, rows, strict=False)} for rows in (old_KG, new_KG)
        )
        return Pairs(
            unchanged=0,
            before=old,
            after=new,
            cases=tuple(
                _case(a, b, [e.id for e in after.experiences])
                for _, a, b in zip(ids, old_KG, new_KG, strict=False)
            ),
        )

    def _ask(self, library: Library) -> list[list[float]]:
        if library.hash not in self._known:
            effect = sum(self._effects[e.id] for e in library.experiences)
            chance_K = np.clip(self._chance_K + effect, 0.0, 1.0)
            solved_KG = self._rng.random((self._size, self._rollouts)) < chance_K[:, None]
            self.made += self._size * self._rollouts
            self._known[library.hash] = solved_KG.astype(float).tolist()
        return self._known[library.hash]


def _tally(scores: list[float]) -> Tally:
    return Tally(stamp="", n=len(scores), sum=sum(scores), sum_sq=sum(scores), errors=0)


def _case(old: list[float], new: list[float], carried: Iterable[str]) -> Case:
    return Case(
        before=(),
        after=tuple(carried),
        differences=tuple(b - a for a, b in zip(old, new, strict=True)),
        room=min(old) < 1.0,
    )


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
    limits = Limits(rule=AcceptanceRule(name=rule, margin=MARGIN), scenarios=size, rollouts=10**9, cap=200)  # type: ignore[arg-type]
    revision = asyncio.run(decide(empty(), made, bench, limits))
    return {int(e.id[1:]) for e in revision.library.experiences}


class Families:
    """A dev split in families, one for each lesson, whose prompts that lesson leads."""

    def __init__(self, rng: np.random.Generator, each: int, rollouts: int, effects: list[float]) -> None:
        self.made = 0
        self._rng, self._rollouts = rng, rollouts
        self._effect = {f"l{n}": effect for n, effect in enumerate(effects)}
        self._family = {f"{name}-{k}": name for name in self._effect for k in range(each)}
        self._idle = max(0, MIN_DEV - len(self._family))
        """Dev scenarios that no lesson reaches: acceptance takes 20."""
        self._chance = dict(zip(self._family, rng.beta(2, 2, len(self._family)), strict=True))
        self._known: dict[tuple[str, bool], list[float]] = {}

    def changed(self, before: Library, after: Library) -> tuple[str, ...]:
        differ = _ids(before) ^ _ids(after)
        return tuple(id for id, lesson in self._family.items() if lesson in differ)

    def cost(self, before: Library, after: Library) -> int:
        asked = {
            (id, self._family[id] in _ids(one))
            for id in self.changed(before, after)
            for one in (before, after)
        }
        return self._rollouts * len(asked - self._known.keys())

    async def compare(self, before: Library, after: Library) -> Pairs:
        ids = self.changed(before, after)
        old, new = ({id: self._ask(id, library) for id in ids} for library in (before, after))
        return Pairs(
            unchanged=self._idle + len(self._family) - len(ids),
            before={id: _tally(scores) for id, scores in old.items()},
            after={id: _tally(scores) for id, scores in new.items()},
            cases=tuple(_case(old[id], new[id], {self._family[id]} & _ids(after)) for id in ids),
        )

    def _ask(self, id: str, library: Library) -> list[float]:
        carried = self._family[id] in _ids(library)
        if (id, carried) not in self._known:
            chance = self._chance[id] + carried * self._effect[self._family[id]]
            drawn = self._rng.random(self._rollouts) < min(max(chance, 0.0), 1.0)
            self._known[id, carried] = drawn.astype(float).tolist()
        return self._known[id, carried]


def _ids(library: Library) -> set[str]:
    return {e.id for e in library.experiences}


def by_effect(
    rng: np.random.Generator, rule: str, each: int, rollouts: int, effects: list[float], runs: int
) -> dict[float, float]:
    """Return the share of the lessons of each effect that come into force."""
    operations = [lesson(n) for n in range(len(effects))]
    made = carry_out(empty(), operations, cap=200, epoch=1)
    size = max(MIN_DEV, each * len(effects))
    limits = Limits(rule=AcceptanceRule(name=rule, margin=MARGIN), scenarios=size, rollouts=10**9, cap=200)  # type: ignore[arg-type]
    kept: dict[float, list[bool]] = {}
    for _ in range(runs):
        revision = asyncio.run(decide(empty(), made, Families(rng, each, rollouts, effects), limits))
        for n, effect in enumerate(effects):
            kept.setdefault(effect, []).append(f"l{n}" in _ids(revision.library))
    return {effect: float(np.mean(found)) for effect, found in sorted(kept.items())}


def print_by_effect(rng: np.random.Generator, runs: int) -> None:
    """Print what single lessons of a candidate of ten come to."""
    print("ten lessons, two of each effect, in families of their own: share that comes into force")
    print("| rule | own dev scenarios | rollouts | " + " | ".join(f"{e:+.1f}" for e in SINGLE) + " |")
    print("| --- | --- | --- |" + " --- |" * len(SINGLE))
    for rule in ("safe", "strict"):
        for each in (1, 2, 3):
            for rollouts in (2, 5):
                found = by_effect(rng, rule, each, rollouts, 2 * list(SINGLE), runs)
                shares = " | ".join(f"{found[effect]:.2f}" for effect in SINGLE)
                print(f"| {rule} | {each} | {rollouts} | {shares} |", flush=True)


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
    print()
    print_by_effect(np.random.default_rng(1), args.runs)


if __name__ == "__main__":
    main()
