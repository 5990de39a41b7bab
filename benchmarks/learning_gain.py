"""Measure what the offline actor learns on a suite, and that it learns through the prompt's text alone.

    python benchmarks/learning_gain.py [fixtures | benchmarks/held-out/fixtures] [SEED ...]
                                       [--acceptance safe|strict|off] [--leave-out 0.2]

For each run seed: a baseline sweep, two epochs of training, a final sweep, group size 5, default settings
but for those given; `--acceptance off --leave-out 0` learns without a dev split's say and without measuring
lessons. The gain is printed for eval scenarios of families that training has, and of those that it never
sees. Then the final sweep again with the lessons changed:

    removed      no lessons
    other domain the lessons of another domain in their place, of all of them the gain furthest from 0
    in names     each tool by the words of its name: "find dates"
    in words     each tool by its description: "Find the calendar dates in a text"
    paraphrased  each tool in other words than its own: "pull out the dates"
    again        in yet other words, on which the agent was not tuned: "extract the dates"
    tools alone  "use find_dates", without the words on the kind of task
    negated      "never use find_dates"
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_tfgrpo.actors.offline.agent import open_offline
from pytest_tfgrpo.actors.offline.tools.registry import BY_NAME as BY_TOOL
from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Phase, PhaseResult, Run
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.learning.library.library import empty, of
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.learning.optimizer.wording import parse
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.metrics.comparison import Comparison, Sweeps, compare, tally
from pytest_tfgrpo.protocols import Optimizer
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.schedule import outline, plan
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.packs import load_packs, pack_for
from pytest_tfgrpo.suite.scenario_files import load_scenarios

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
                budget=Budget(settings),
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
    """Return the mean of each family before and after, over all seeds; a star marks the untrained."""
    trained = {(s.domain, s.family) for s in scenarios if s.split == "train"}
    names = {
        s.id: f"{s.domain} {s.family}" + ("" if (s.domain, s.family) in trained else " *") for s in scenarios
    }
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    for row in rows:
        for id_, old, new in zip(row.ids, row.before_K, row.after_K, strict=True):
            before.setdefault(names[id_], []).append(old)
            after.setdefault(names[id_], []).append(new)
    return "\n".join(
        f"  {name:<28}{statistics.mean(before[name]):>7.2f}{statistics.mean(after[name]):>7.2f}"
        for name in before
    )


def _in_words(advice: str, called: Callable[[str], str]) -> str:
    return re.sub(r"\w+", lambda match: called(match[0]) if match[0] in BY_TOOL else match[0], advice)


def _negated(terms: str, advice: str) -> str:
    return f"If a task is about {terms}, " + re.sub(r"^use ", "never use ", advice)


PARAPHRASES: Mapping[str, str] = {
    "split_words": "break it into single words",
    "split_sentences": "break it up sentence by sentence",
    "split_items": "cut the line at its commas",
    "count_letters": "measure the length in characters",
    "make_slug": "write it as a hyphenated link",
    "make_initials": "keep only the first letter of each part",
    "mask_digits": "replace every digit with a star",
    "count_items": "count what is in the list",
    "unique_items": "remove the repeats",
    "sort_items": "put them in alphabetical order",
    "first_item": "keep the first one",
    "longest_item": "keep the longest one",
    "most_common_item": "pick the most frequent one",
    "find_numbers": "pull out the numbers",
    "add_numbers": "sum them up",
    "average_numbers": "compute the mean",
    "median_number": "compute the median",
    "largest_number": "pick the maximum",
    "number_spread": "subtract the lowest from the highest",
    "add_percent": "increase it by the percentage",
    "round_number": "round it off",
    "find_dates": "pull out the dates",
    "days_between": "count the days between them",
    "shift_days": "add the number of days",
    "shift_workdays": "add the working days without weekends",
    "month_end": "go to the last day of that month",
    "weekday_name": "say which weekday it is",
    "read_quantity": "read the amount with its unit",
    "add_quantities": "add the measures together",
    "convert_unit": "convert it to the other unit",
    "clock_time": "write it as hours and minutes",
    "read_table": "load the CSV",
    "filter_rows": "keep only the matching rows",
    "pick_column": "take that column",
    "top_row": "take the row with the highest value",
    "save_file": "save it to the new file",
    "read_json": "load the JSON",
    "get_field": "look up the field",
    "list_keys": "list the top-level names",
}
"""Each tool in other words; with these at hand it was settled how much of a phrase a tool must have."""
UNSEEN_PARAPHRASES: Mapping[str, str] = {
    "split_words": "take the text apart into words",
    "split_sentences": "separate the sentences",
    "split_items": "separate the entries at the commas",
    "count_letters": "find out how many letters there are",
    "make_slug": "turn the title into a web address",
    "make_initials": "reduce the name to initials",
    "mask_digits": "blank out all digits",
    "count_items": "see how many items there are",
    "unique_items": "throw out repeats",
    "sort_items": "sort from A to Z",
    "first_item": "pick the first item",
    "longest_item": "choose the longest",
    "most_common_item": "pick what occurs most often",
    "find_numbers": "extract the numbers",
    "add_numbers": "add everything up to a total",
    "average_numbers": "work out the average",
    "median_number": "take the middle one",
    "largest_number": "take the maximum",
    "number_spread": "take highest minus lowest",
    "add_percent": "raise it by the percentage",
    "round_number": "round to the decimals",
    "find_dates": "extract the dates",
    "days_between": "count days from one date to the other",
    "shift_days": "go forward by the days",
    "shift_workdays": "go forward by working days",
    "month_end": "jump to the end of the month",
    "weekday_name": "give the day of the week",
    "read_quantity": "extract the first measure",
    "add_quantities": "total up the measures",
    "convert_unit": "convert to the wanted unit",
    "clock_time": "show hours and minutes",
    "read_table": "open the CSV file",
    "filter_rows": "keep rows with that name",
    "pick_column": "pick out the column",
    "top_row": "find the row with the highest figure",
    "save_file": "write the new file",
    "read_json": "open the JSON file",
    "get_field": "fetch the value of the field",
    "list_keys": "collect the names of the fields",
}
"""The same, written before that and not looked at."""
WORDINGS: Mapping[str, Callable[[str, str], str]] = {
    "in names": lambda terms, advice: (
        f"If a task is about {terms}, " + _in_words(advice, lambda name: name.replace("_", " "))
    ),
    "in words": lambda terms, advice: (
        f"If a task is about {terms}, "
        + _in_words(advice.removeprefix("use "), lambda name: BY_TOOL[name].description.rstrip("."))
    ),
    "paraphrased": lambda terms, advice: (
        f"If a task is about {terms}, " + _in_words(advice.removeprefix("use "), PARAPHRASES.__getitem__)
    ),
    "again": lambda terms, advice: (
        f"If a task is about {terms}, "
        + _in_words(advice.removeprefix("use "), UNSEEN_PARAPHRASES.__getitem__)
    ),
    "tools alone": lambda terms, advice: advice,  # noqa: ARG005 - the signature of a wording
    "negated": _negated,
}
"""How the lesson about `terms` reads with its `advice` worded otherwise."""


def reworded(library: Library, wording: Callable[[str, str], str]) -> Library:
    """Return the library with each lesson that the built-in optimizer wrote worded otherwise."""
    lessons = []
    for lesson in library.experiences:
        said = parse(lesson.summary32)
        text = wording(", ".join(said.terms), said.advice) if said else lesson.summary32
        lessons.append(replace(lesson, summary32=f"{text}."))
    return of(lessons)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gains:
    """What a run gained, and what it gains with its lessons changed."""

    final: Comparison
    changed: Mapping[str, Sequence[Comparison]]
    """By change of the lessons, the sweeps with it."""
    trained: frozenset[str]
    """Ids of the eval scenarios of families that training has."""

    def split(self, found: Comparison) -> tuple[float, float]:
        """Return the gain over the scenarios of trained families, and over the others (0 without any)."""
        sides: tuple[list[float], list[float]] = ([], [])
        for id_, before, after in zip(found.ids, found.before_K, found.after_K, strict=True):
            sides[id_ not in self.trained].append(after - before)
        near, far = (statistics.mean(side) if side else 0.0 for side in sides)
        return near, far

    def rows(self) -> dict[str, tuple[float, float, float]]:
        """Return for each change the gain over all, trained and untrained families: the largest in size."""
        found = {"as learned": [self.final], **self.changed}
        return {
            name: max(((c.difference.mean, *self.split(c)) for c in sweeps), key=lambda row: abs(row[0]))
            for name, sweeps in found.items()
        }


def measure(
    bench: Bench,
    seed: int,
    changed: Mapping[str, Json] = NOTHING,
    wordings: Mapping[str, Callable[[str, str], str]] = WORDINGS,
    swaps: int | None = None,
) -> Gains:
    """Return what a run gains and, by sweeps with the same seeds, what it gains with its lessons changed.

    `swaps` is in how many ways the domains swap their lessons; None: in all.
    """
    run = bench.run(seed, empty(), changed=changed)
    steps = range(1, len(bench.domains))[:swaps]
    libraries = {"removed": [empty()], "other domain": [bench.swapped(run.library, step) for step in steps]}
    libraries |= {name: [reworded(run.library, wording)] for name, wording in wordings.items()}
    sweeps = {name: [bench.sweep(seed, library) for library in group] for name, group in libraries.items()}
    families = {(s.domain, s.family) for s in bench.scenarios if s.split == "train"}
    return Gains(
        final=against_baseline(run, run.phases[-1], run),
        changed={
            name: [against_baseline(run, r.phases[0], r) for r in group] for name, group in sweeps.items()
        },
        trained=frozenset(s.id for s in bench.scenarios if (s.domain, s.family) in families),
    )


def main(arguments: Sequence[str]) -> None:
    """Print one line per run seed, then means over seeds and families."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rest", nargs="*", metavar="FOLDER | SEED")
    parser.add_argument("--acceptance", choices=("safe", "strict", "off"), default="safe")
    parser.add_argument("--leave-out", type=float, default=BY_NAME["lesson_dropout"].default)
    options = parser.parse_args(arguments)
    names = [argument for argument in options.rest if not argument.isdigit()]
    seeds = [int(argument) for argument in options.rest if argument.isdigit()] or list(SEEDS)
    changed = {"acceptance": options.acceptance, "lesson_dropout": options.leave_out}
    bench = Bench(ROOT / (names[0] if names else "fixtures"))
    print("seed  baseline  final   gain  95 % interval    trained  untrained families")
    results = []
    for seed in seeds:
        gains = measure(bench, seed, changed)
        final, (near, far) = gains.final, gains.split(gains.final)
        interval = f"[{final.difference.low:.3f}, {final.difference.high:.3f}]"
        line = f"{seed:>4}{final.before or 0.0:>10.3f}{final.after or 0.0:>7.3f}{final.difference.mean:>7.3f}"
        print(f"{line}  {interval}{near:>10.3f}{far:>11.3f}", flush=True)
        results.append(gains)
    print("\ngain (mean over seeds)   all  trained  untrained")
    for name in results[0].rows():
        columns = zip(*(gains.rows()[name] for gains in results), strict=True)
        print(f"{name:<19}" + "".join(f"{statistics.mean(column):>9.3f}" for column in columns))
    print("\nfamily (mean over seeds)       before  after")
    print(by_family(bench.scenarios, [gains.final for gains in results]))


if __name__ == "__main__":
    main(sys.argv[1:])
