"""What the tests of report/test_families.py share with the slow ones."""

from dataclasses import replace

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build
from support.sweeps import evenly, make_run


def learned(families: int, each: int, taught: int, *, without: int = 0) -> Run:
    """Return a run whose taught families gain .5 but in each fourth scenario, and the others nothing."""
    before = {f"e{f}-{n}": [0.5] for f in range(families) for n in range(each)} | evenly(
        without, [0.5], "own"
    )
    gains = {
        id_ for n, id_ in enumerate(before) if id_[0] == "e" and int(id_[1:].split("-")[0]) < taught and n % 4
    }
    after = {id_: [1.0 if id_ in gains else 0.5] for id_ in before}
    run = make_run(before, after, {f"t{f}-0": [1.0] for f in range(max(taught, 1))})
    family = {s.id: None if s.id[0] == "o" else f"family {s.id[1:].split('-')[0]}" for s in run.scenarios}
    if not taught:
        family["t0-0"] = None
    return replace(run, scenarios=tuple(replace(s, family=family[s.id]) for s in run.scenarios))


def report_of(run: Run) -> Report:
    return build(run, None)


def told(run: Run) -> str:
    return " ".join(" ".join(terminal(report_of(run), verbosity=1)).split())
