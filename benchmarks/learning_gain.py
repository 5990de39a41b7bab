"""Measure what the offline actor learns on a suite, and that it learns through the prompt's text alone.

    python benchmarks/learning_gain.py [fixtures | benchmarks/held-out/fixtures] [SEED ...]
                                       [--acceptance safe|strict|off] [--leave-out 0.2]

For each run seed: a baseline sweep, two epochs of training, a final sweep, group size 5, default settings
but for those given; `--acceptance off --leave-out 0` learns without a dev split's say and without measuring
lessons. Then the final sweep again with the experiences removed, and with those of each other domain in
their place.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Phase, PhaseResult, Run
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.actors.offline.agent import open_offline
from pytest_tfgrpo.harness.engine.engine import Engine
from pytest_tfgrpo.harness.learning.library.library import empty, of
from pytest_tfgrpo.harness.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.harness.metrics.comparison import Comparison, Sweeps, compare, tally
from pytest_tfgrpo.harness.protocols import Optimizer
from pytest_tfgrpo.harness.run.job import Job
from pytest_tfgrpo.harness.run.schedule import outline, plan
from pytest_tfgrpo.harness.scoring.checks.registry import KINDS
from pytest_tfgrpo.harness.suite.packs import load_packs, pack_for
from pytest_tfgrpo.harness.suite.scenario_files import load_scenarios

ROOT = Path(__file__).resolve().parent.parent
SEEDS = (0, 1, 2, 3, 4)
GROUP_SIZE = 5
NOTHING: Mapping[str, Json] = {}


class Bench:
    """A suite and its packs, run in memory."""

    def __init__(self, folder: Path) -> None:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        self.scenarios = tuple(s for path in files for s in load_scenarios(path, root=ROOT, kinds=KINDS))
        self.packs = load_packs(folder.parent / "prompt-packs")
        self.domains = sorted({scenario.domain for scenario in self.scenarios})

    def run(
        self,
        seed: int,
        library: Library,
        phases: Iterable[Phase] | None = None,
        *,
        changed: Mapping[str, Json] = NOTHING,
        optimizer: Optimizer | None = None,
    ) -> Run:
        """Return a run of all phases of a learning run, or of those given; some settings may be `changed`."""
        settings = {name: setting.default for name, setting in BY_NAME.items()}
        settings |= {"group_size": GROUP_SIZE, "eval_rollouts": GROUP_SIZE, "seed": seed, "actor": "offline"}
        settings |= changed
        outlined = outline(settings, learning=True, sweep_rollouts=GROUP_SIZE) if phases is None else phases
        with tempfile.TemporaryDirectory() as temporary:
            job = Job(
                run_id=f"seed{seed}",
                task_id="learning-gain",
                started_at="2026-01-01T00:00:00Z",
                settings=settings,
                scenarios=self.scenarios,
                phases=tuple(plan(outlined, self.scenarios, settings)),
                packs=self.packs,
                actor=open_offline(),
                optimizer=optimizer or open_optimizer("heuristic"),
                kinds=KINDS,
                library=library,
                stamps={},
                versions={},
                temporary=Path(temporary),
            )
            return asyncio.run(Engine(job, folder=None, observe=lambda _: None).run())

    def sweep(self, seed: int, library: Library) -> Run:
        """Return a run of nothing but a sweep."""
        return self.run(
            seed, library, [Phase(epoch=1, mode="eval", temperature=0.3, rollouts=GROUP_SIZE, scenarios=())]
        )

    def swapped(self, library: Library, step: int) -> Library:
        """Return the library with the lessons of each domain signed over to another one."""
        count = len(self.domains)
        heir = {domain: self.domains[(i + step) % count] for i, domain in enumerate(self.domains)}
        return of(_signed_over(library, heir, self.packs))


def _signed_over(
    library: Library, heir: Mapping[str, str], packs: Mapping[str, PromptPack]
) -> Iterable[Experience]:
    for lesson in library.experiences:
        pack = pack_for(packs, heir[lesson.domain])
        yield replace(lesson, domain=heir[lesson.domain], prompt_pack_id=pack.id, stamp_signature=pack.stamp)


def against_baseline(run: Run, sweep: PhaseResult, other: Run) -> Comparison:
    """Return the paired comparison of a sweep of `other` with the baseline sweep of `run`."""
    return compare(Sweeps(run).rows_before, tally(sweep.groups, {s.id: s.stamp for s in other.scenarios}))


def by_family(scenarios: Sequence[Scenario], rows: Sequence[Comparison]) -> str:
    """Return the mean of each family before and after, over all seeds."""
    names = {s.id: f"{s.domain} {s.family}" for s in scenarios}
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    for row in rows:
        for id, old, new in zip(row.ids, row.before_K, row.after_K, strict=True):
            before.setdefault(names[id], []).append(old)
            after.setdefault(names[id], []).append(new)
    return "\n".join(
        f"  {name:<28}{statistics.mean(before[name]):>7.2f}{statistics.mean(after[name]):>7.2f}"
        for name in before
    )


def measure(
    bench: Bench, seed: int, changed: Mapping[str, Json] = NOTHING
) -> tuple[Comparison, float, list[float]]:
    """Return the final sweep, and the gain with experiences removed and swapped, all against the baseline."""
    run = bench.run(seed, empty(), changed=changed)
    bare = bench.sweep(seed, empty())
    swapped = [bench.sweep(seed, bench.swapped(run.library, step)) for step in range(1, len(bench.domains))]
    removed, *exchanged = (against_baseline(run, r.phases[0], r).difference.mean for r in (bare, *swapped))
    return against_baseline(run, run.phases[-1], run), removed, exchanged


def main(arguments: Sequence[str]) -> None:
    """Print one line per run seed, then means over seeds and families."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rest", nargs="*", metavar="FOLDER | SEED")
    parser.add_argument("--acceptance", choices=("safe", "strict", "off"), default="safe")
    parser.add_argument("--leave-out", type=float, default=BY_NAME["lesson_dropout"].default)
    options = parser.parse_args(arguments)
    names = [argument for argument in options.rest if not argument.isdigit()]
    seeds = [int(argument) for argument in options.rest if argument.isdigit()] or list(SEEDS)
    changed = {"acceptance": options.acceptance, "lesson_dropout": options.lesson_dropout}
    bench = Bench(ROOT / (names[0] if names else "fixtures"))
    print("seed  baseline  final   gain  95 % interval    removed  swapped: least, most")
    results = []
    for seed in seeds:
        final, removed, exchanged = result = measure(bench, seed, changed)
        gain = final.difference
        interval = f"[{gain.low:.3f}, {gain.high:.3f}]"
        line = f"{seed:>4}{final.before:>10.3f}{final.after:>7.3f}{gain.mean:>7.3f}  {interval}"
        print(f"{line}{removed:>10.3f}{min(exchanged):>12.3f}{max(exchanged):>7.3f}")
        results.append(result)
    finals, removals, swaps = zip(*results, strict=True)
    means = [statistics.mean(column) for column in zip(*map(_means, finals), strict=True)]
    print("mean{:>10.3f}{:>7.3f}{:>7.3f}".format(*means), end=f"{'':>16}{statistics.mean(removals):>10.3f}")
    print(f"{min(map(min, swaps)):>12.3f}{max(map(max, swaps)):>7.3f}")
    print("\nfamily (mean over seeds)      before  after")
    print(by_family(bench.scenarios, finals))


def _means(final: Comparison) -> tuple[float, float, float]:
    return final.before or 0.0, final.after or 0.0, final.difference.mean


if __name__ == "__main__":
    main(sys.argv[1:])
