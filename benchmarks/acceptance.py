"""What acceptance is worth: runs of the engine with a teacher and an agent whose every lesson is known.

    python benchmarks/acceptance.py [--worlds 4] [--first 5000] [--scale 1] [--rollouts 400]
        [--harmful .1 .3 .45 .6] [--second]

A world has 100 train, 40 dev and 60 eval scenarios in ten topics, each solved with a chance from Beta(.8,
.8). After each of three epochs of five rollouts the teacher proposes 15 lessons, of which a share harms:
three quarters of these shift the logit of some scenarios of their topic down by .5 to 1.5; the others,
traps, shift it up and cost .06 to .18 in all other prompts. A tenth of the rest does nothing, the others
shift up. Each lesson costs up to .02 in other prompts. Printed are, by the share that harms, the mean over
worlds of the gain on eval scenarios, exact but for their draw, with every lesson, with the rule of before
(`earlier_rule.py`), and with what the engine keeps; and what the dev line (with its standard error) and the
list of effects say too much. `--rollouts` are the dev rollouts of an epoch. In the second world scenarios
come in families with one chance and one effect, a third of the lessons repeats another or does nothing
without it, and scores are graded.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from earlier_rule import AcceptanceRule, Case, Limits, Pairs, decide

from pytest_tfgrpo.core.lessons import Acceptance, Experience, Library, Operation, Reward, Support
from pytest_tfgrpo.core.records import Phase, Trajectory
from pytest_tfgrpo.core.scenarios import Check, PromptPack, Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.learning.library.library import carry_out, empty
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.metrics.comparison import Tally
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.scoring.checks.registry import KINDS

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
SPLITS: Mapping[Literal["train", "dev", "eval"], int] = {"train": 100, "dev": 40, "eval": 60}
TOPICS = (
    "harbour",
    "orchard",
    "railway",
    "glacier",
    "bakery",
    "library",
    "quarry",
    "theatre",
    "meadow",
    "forge",
)
HARMFUL = (0.1, 0.3, 0.45, 0.6)
EPOCHS, GROUP, EACH, PARTS = 3, 5, 15, 4
PACK = PromptPack(
    id="made", domain="made", stamp="a" * 64, system="Solve it.", experience_slots=100, retrieval="top"
)


@dataclass(frozen=True, slots=True)
class World:
    """Scenarios (axis ``_N``) and lessons (``_L``) of known effect."""

    logit_N: Floats
    topic_N: npt.NDArray[np.int64]
    shift_NL: Floats
    topic_L: npt.NDArray[np.int64]
    repeats_L: npt.NDArray[np.int64]
    """The lesson that makes it idle when carried too; -1 for none."""
    needs_L: npt.NDArray[np.int64]
    """The lesson without which it is idle; -1 for none."""
    graded: bool

    def chance_N(self, carried_L: Flags) -> Floats:
        """Return the mean score of each scenario."""
        idle_L = (self.repeats_L >= 0) & carried_L[self.repeats_L]
        idle_L |= (self.needs_L >= 0) & ~carried_L[self.needs_L]
        return np.asarray(1 / (1 + np.exp(-self.logit_N - self.shift_NL @ (carried_L & ~idle_L))))

    def gain(self, carried_L: Flags) -> float:
        """Return the gain in the mean score of the eval scenarios."""
        change_N = self.chance_N(carried_L) - self.chance_N(np.zeros_like(carried_L))
        return float(change_N[-SPLITS["eval"] :].mean())

    def worth(self, lesson: int, carried_L: Flags) -> float:
        """Return what a lesson adds to the others carried."""
        others_L = carried_L & (np.arange(carried_L.size) != lesson)
        with_L = others_L | (np.arange(carried_L.size) == lesson)
        return self.gain(with_L) - self.gain(others_L)

    def draw(self, n: int, carried_L: Flags, seed: Iterable[int]) -> float:
        """Return the score of a rollout."""
        parts = PARTS if self.graded else 1
        u = np.random.default_rng(list(seed)).random(parts)
        return float((u < self.chance_N(carried_L)[n]).mean())


def draw_world(seed: int, harmful: float, scale: float, *, second: bool) -> World:
    """Draw a world; with `second` the one of families, repetitions, needs and grades."""
    rng = np.random.default_rng([seed, int(100 * harmful)])
    size, count = sum(SPLITS.values()), EPOCHS * EACH
    family_N = (np.arange(size) // 2 if second else np.arange(size))[rng.permutation(size)]
    chance_F = rng.beta(0.8, 0.8, size).clip(1e-4, 1 - 1e-4)
    topic_N, topic_L = family_N % len(TOPICS), rng.integers(0, len(TOPICS), count)
    bad_L = rng.random(count) < harmful
    trap_L = bad_L & (rng.random(count) < 0.25)
    idle_L = ~bad_L & (rng.random(count) < 0.1)
    size_L = rng.uniform(0.5, 1.5, count) * np.where(bad_L & ~trap_L, -1.0, 1.0) * ~idle_L
    cost_L = np.where(trap_L, rng.uniform(0.06, 0.18, count), rng.uniform(0.0, 0.02, count))
    part_NL = (rng.random((size, count)) < 0.7)[family_N]
    shift_NL = scale * np.where(topic_N[:, None] == topic_L, size_L * part_NL, -cost_L)
    none_L = np.full(count, -1)
    pair_L = np.array([_earlier(n, topic_L) if second and rng.random() < 1 / 3 else -1 for n in range(count)])
    needs_L = np.where(rng.random(count) < 0.5, pair_L, none_L)
    for lesson in np.flatnonzero((pair_L >= 0) & (needs_L < 0)):
        shift_NL[:, lesson] = shift_NL[:, pair_L[lesson]]
    logit_F = np.log(chance_F / (1 - chance_F))
    repeats_L = np.where(needs_L < 0, pair_L, none_L)
    return World(logit_F[family_N], topic_N, shift_NL, topic_L, repeats_L, needs_L, second)


def _earlier(lesson: int, topic_L: npt.NDArray[np.int64]) -> int:
    same = np.flatnonzero(topic_L[:lesson] == topic_L[lesson])
    return int(same[-1]) if same.size else -1


def words(lesson: int) -> str:
    """Return three words that no other lesson has."""
    consonants, vowels = "bdfgklmnprst", "aeiou"
    made = []
    for k in range(3):
        at = 3 * lesson + k
        made.append(
            consonants[at % 12]
            + vowels[at // 12 % 5]
            + consonants[at // 60 % 12]
            + "o"
            + "xyz"[at % 3]
            + "um"
        )
    return " ".join(made)


NUMBER = {words(lesson): lesson for lesson in range(EPOCHS * EACH)}


def carried_of(texts: Iterable[str]) -> Flags:
    """Return which lessons are among `texts`."""
    carried_L = np.zeros(EPOCHS * EACH, dtype=np.bool_)
    carried_L[[NUMBER[text.split(": ")[1].rstrip(".")] for text in texts]] = True
    return carried_L


def made_lesson(world: World, lesson: int, epoch: int, run_id: str = "run") -> Experience:
    """Return a lesson, whose text tells its topic."""
    return Experience(
        id=stamp([run_id, epoch, lesson]), run_id=run_id, task_id="t", domain="made", prompt_pack_id="made",
        epoch=epoch, group_id=f"{run_id}.e{epoch}.{lesson}",
        summary32=f"{TOPICS[world.topic_L[lesson]]}: {words(lesson)}.", polarity="do",
        reward=Reward(gt_score=1.0, relative_rank=1.0), support=Support(groups=1, rollouts=5), tool_stats=(),
        stamp_signature=PACK.stamp, actor="known", created_at="2026-01-01T00:00:00Z",
    )  # fmt: skip


class Known:
    """The teacher and the agent of a world."""

    name, paid = "known", False

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.seed = world, seed
        self.identity: Mapping[str, Any] = {}

    async def propose(self, context: LearningContext) -> Proposal:
        """Propose the lessons of the epoch."""
        start = (context.epoch - 1) * EACH
        made = [made_lesson(self.world, n, context.epoch, context.run_id) for n in range(start, start + EACH)]
        return Proposal(operations=tuple(Operation(kind="add", experience=lesson) for lesson in made))

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Answer with the parts that are solved."""
        told = carried_of(line for line in call.prompt.system.splitlines() if ": " in line and "um" in line)
        n = int(call.scenario.id.split("-")[1])
        solved = round(PARTS * self.world.draw(n, told, (self.seed, call.seed)))
        return Trajectory(answer=" ".join(f"part{k}" for k in range(solved)), frames=())

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002
        """Nothing is paid."""
        return {}

    async def aclose(self) -> None:
        """Nothing is open."""


def job(world: World, seed: int, rollouts: int, temporary: Path) -> Job:
    """Return a run of training epochs alone: the gain is known without a sweep."""
    checks = tuple(Check(kind="contains", params={"value": f"part{k}"}) for k in range(PARTS))
    splits = [split for split, count in SPLITS.items() for _ in range(count)]
    scenarios = tuple(
        Scenario(
            id=f"{split}-{n}",
            domain="made",
            split=split,
            prompt=f"{TOPICS[world.topic_N[n]]} number {n}",
            checks=checks,
            stamp=stamp(n),
        )
        for n, split in enumerate(splits)
    )
    train, dev = (tuple(s.id for s in scenarios if s.split == split) for split in ("train", "dev"))
    settings: Any = {name: setting.default for name, setting in BY_NAME.items()}
    settings |= {"group_size": GROUP, "eval_rollouts": 5, "acceptance_rollouts": rollouts, "seed": seed}
    settings |= {"epochs": EPOCHS, "actor": "known"}
    agent = Known(world, seed)
    return Job(
        run_id="run", task_id="t", started_at="2026-01-01T00:00:00Z", settings=settings, scenarios=scenarios,
        phases=tuple(
            Phase(
                epoch=epoch, mode="train", temperature=0.7, rollouts=GROUP, scenarios=train, dev=dev,
                lesson_dropout=settings["lesson_dropout"],
            )
            for epoch in range(1, EPOCHS + 1)
        ),
        packs={"made": PACK}, actor=agent, optimizer=agent, kinds=KINDS, library=empty(), stamps={},
        versions={}, temporary=temporary, budget=Budget(settings),
    )  # fmt: skip


def pooled(world: World, seed: int, rollouts: int) -> tuple[Flags, int, Acceptance]:
    """Return what a run of the engine keeps, its dev rollouts, and its last decision."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(job(world, seed, rollouts, Path(folder)), folder=None, observe=lambda _: None)
        run = asyncio.run(engine.run())
    assert run.status == "complete", run.reason
    made = sum(len(group.rollouts) for result in run.phases for group in result.dev)
    last = run.phases[-1].revision
    assert last is not None
    assert last.acceptance is not None
    return carried_of(e.summary32 for e in run.library.experiences), made, last.acceptance


class DevSplit:
    """The dev split for the rule of before; own lessons stand first in a prompt, the latest before others."""

    def __init__(self, world: World, seed: int) -> None:
        self.made = 0
        self._world, self._rng = world, np.random.default_rng(seed)
        self._known: dict[tuple[int, bytes], list[float]] = {}
        self._dev = range(SPLITS["train"], SPLITS["train"] + SPLITS["dev"])

    def changed(self, before: Library, after: Library) -> tuple[str, ...]:
        return () if before.hash == after.hash else tuple(str(n) for n in self._dev)

    def cost(self, before: Library, after: Library) -> int:
        keys = {(n, _flags(one).tobytes()) for n in self._dev for one in (before, after)}
        return GROUP * len(keys - self._known.keys())

    async def compare(self, before: Library, after: Library) -> Pairs:
        old, new = ({n: self._ask(n, _flags(one)) for n in self._dev} for one in (before, after))
        return Pairs(
            unchanged=0,
            before={str(n): _tally(scores) for n, scores in old.items()},
            after={str(n): _tally(scores) for n, scores in new.items()},
            cases=tuple(
                Case(
                    before=self._prompt(n, before),
                    after=self._prompt(n, after),
                    room=min(old[n]) < 1.0,
                    differences=tuple(b - a for a, b in zip(old[n], new[n], strict=True)),
                )
                for n in self._dev
            ),
        )

    def _ask(self, n: int, carried_L: Flags) -> list[float]:
        key = (n, carried_L.tobytes())
        if key not in self._known:
            seeds = self._rng.integers(0, 2**32, GROUP)
            self._known[key] = [self._world.draw(n, carried_L, (int(seed),)) for seed in seeds]
            self.made += GROUP
        return self._known[key]

    def _prompt(self, n: int, library: Library) -> tuple[str, ...]:
        own = TOPICS[self._world.topic_N[n]]
        ordered = sorted(
            library.experiences, key=lambda e: (e.summary32.split(":")[0] != own, -e.epoch, e.id)
        )
        return tuple(e.id for e in ordered)


def _flags(library: Library) -> Flags:
    return carried_of(e.summary32 for e in library.experiences)


def _tally(scores: list[float]) -> Tally:
    squares = sum(score**2 for score in scores)
    return Tally(stamp="", n=len(scores), sum=sum(scores), sum_sq=squares, errors=0)


def earlier(world: World, seed: int, rollouts: int) -> tuple[Flags, int]:
    """Return what the rule of before keeps, and its dev rollouts."""
    rule = AcceptanceRule(name="safe", margin=0.02)
    limits = Limits(rule=rule, scenarios=SPLITS["dev"], rollouts=rollouts, cap=200)
    library, dev, total = empty(), DevSplit(world, seed), 0
    for epoch in range(1, EPOCHS + 1):
        dev.made = 0
        lessons = range((epoch - 1) * EACH, epoch * EACH)
        operations = [Operation(kind="add", experience=made_lesson(world, n, epoch)) for n in lessons]
        candidate = carry_out(library, operations, cap=200, epoch=epoch)
        library = asyncio.run(decide(library, candidate, dev, limits)).library
        total += dev.made
    return _flags(library), total


def measure(cell: tuple[float, float, int, bool, int]) -> dict[str, float]:
    """Return what each rule comes to in one world."""
    harmful, scale, rollouts, second, seed = cell
    world = draw_world(seed, harmful, scale, second=second)
    all_L = np.ones(EPOCHS * EACH, dtype=np.bool_)
    before_L, before_made = earlier(world, seed, rollouts)
    kept_L, made, last = pooled(world, seed, rollouts)
    gain = world.gain(kept_L)
    kept = [t for t in last.lessons if t.fate in ("accepted", "kept", "returned")]
    return {
        "all": world.gain(all_L), "before": world.gain(before_L), "now": gain, "made": made,
        "made before": before_made, "line": (last.gain or 0.0) - gain,
        "listed": _too_much(world, kept, kept_L), "top": _too_much(world, kept[:1], kept_L),
    }  # fmt: skip


def _too_much(world: World, trials: Iterable[Any], kept_L: Flags) -> float:
    """Return by how much the effects listed exceed the true ones, on average."""
    number = {made_lesson(world, n, n // EACH + 1).id: n for n in range(EPOCHS * EACH)}
    found = [trial.value - world.worth(number[trial.id], kept_L) for trial in trials if trial.id in number]
    return float(np.mean(found)) if found else 0.0


def main() -> None:
    """Print one row for each share of harmful lessons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rollouts", type=int, default=400)
    parser.add_argument("--harmful", type=float, nargs="+", default=HARMFUL)
    parser.add_argument("--second", action="store_true")
    args = parser.parse_args()
    print(f"worlds {args.first} to {args.first + args.worlds - 1}, effects x {args.scale:g}")
    print(
        "| harmful | all | before | now | now - better | se | dev rollouts | dev line | se | listed | top |"
    )
    print("| --- |" + " --- |" * 10)
    seeds = range(args.first, args.first + args.worlds)
    cells = [(h, args.scale, args.rollouts, args.second, s) for h, s in product(args.harmful, seeds)]
    with ProcessPoolExecutor(2) as pool:
        found = pool.map(measure, cells)
        for harmful in args.harmful:
            print(line(harmful, [next(found) for _ in seeds]), flush=True)


def line(harmful: float, rows: list[dict[str, float]]) -> str:
    """Return a row of the table: means over worlds."""
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    best = "all" if mean["all"] > mean["before"] else "before"
    differences = [row["now"] - row[best] for row in rows]
    gains = " | ".join(f"{mean[name]:+.3f}" for name in ("all", "before", "now"))
    line_error = _error([row["line"] for row in rows])
    too_much = f"{mean['line']:+.3f} | {line_error:.3f} | {mean['listed']:+.4f} | {mean['top']:+.3f}"
    better = f"{np.mean(differences):+.3f} | {_error(differences):.3f}"
    return f"| {harmful:.0%} | {gains} | {better} | {mean['made']:.0f} | {too_much} |"


def _error(values: list[float]) -> float:
    """Return the standard error of their mean."""
    return float(np.std(values, ddof=min(1, len(values) - 1)) / len(values) ** 0.5)


if __name__ == "__main__":
    main()
