"""The page of a run of 100,000 scenarios: the time and memory to make it, and to open it, of 1,000 scenarios.

    python benchmarks/long_page.py [--scenarios 1000 10000 100000]

Runs of 4 rollouts x 3 training epochs, with 100 eval scenarios in two sweeps, are made up of few different
groups and lie in a temporary file as those of a long run do. Each page is made by a process of its own, which
says the processor time of a scenario, and its resident memory before and its peak while it does. Opening is
measured as in ``report_page.py``: medians of 5, pages in turn; then what the script of the page holds in
memory. At last the largest run is served as by `tfgrpo view`, until a search has loaded all scenarios, and
until the rollouts of one that the page does not hold are there. Needs the extra `test` and Chromium.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from report_page import chromium, opened
from support.builders import make_scenario
from support.sweeps import make_result, make_run

from pytest_tfgrpo.cli.runs.view import RunSite
from pytest_tfgrpo.cli.view_server import PageServer, WebAnswer, serve
from pytest_tfgrpo.core.files import DETAILS, REPORT_HTML
from pytest_tfgrpo.core.records import Group, Mode, PhaseResult, Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.report.page.html import write_page
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal.stored_groups import GroupsById, GroupStore

EACH, EPOCHS, EVAL = 4, 3, 100
KINDS = 16
"""Groups of a phase that differ in more than ids."""


def memory_mb(key: str) -> float:
    """Return resident memory of this process now (`VmRSS`) or at its peak (`VmHWM`)."""
    rows = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    return int(rows[key].split()[0]) / 1024


def of_scenario(group: Group, id_: str, domain: str, group_id: str) -> Group:
    """Return a group as if it were of another scenario."""
    rollouts = tuple(
        replace(r, scenario_id=id_, group_id=group_id, rollout_id=f"{group_id}.r{r.index}")
        for r in group.rollouts
    )
    scores = tuple(replace(s, rollout_id=r.rollout_id) for s, r in zip(group.scores, rollouts, strict=True))
    changes: dict[str, Any] = {"scenario_id": id_, "group_id": group_id, "domain": domain}
    return replace(group, rollouts=rollouts, scores=scores, **changes)


def phase(
    store: GroupStore, scenarios: Sequence[Scenario], epoch: int, mode: Mode, rng: random.Random
) -> PhaseResult:
    """Return a phase over all of some scenarios, whose groups go into the store."""
    kinds = [{f"k{n}": [float(rng.random() < 0.5 + epoch / 10) for _ in range(EACH)]} for n in range(KINDS)]
    results = [make_result(kind, epoch=epoch, mode=mode) for kind in kinds]
    groups = GroupsById(store)
    for scenario in scenarios:
        id_ = f"run1.e{epoch}.{scenario.id}"
        groups[id_] = of_scenario(rng.choice(results).groups[0], scenario.id, scenario.domain, id_)
    ids = tuple(s.id for s in scenarios)
    found = groups.of((id_, f"run1.e{epoch}.{id_}") for id_ in ids)
    return replace(results[0], phase=replace(results[0].phase, scenarios=ids), groups=found)


def long_run(scenarios: int) -> Run:
    """Return a run of so many training scenarios."""
    rng, store = random.Random(0), GroupStore()
    known = [
        make_scenario(
            f"s{n}",
            split="train" if n < scenarios else "eval",
            domain=f"d{n % 7}",
            prompt=f"How many words has the letter number {n}, without its date and its signature?",
            stamp=f"{n:064x}",
        )
        for n in range(scenarios + EVAL)
    ]
    train, sweep = known[:scenarios], known[scenarios:]
    start = make_run({"a": [1]}, {"a": [1]})
    phases = (
        phase(store, sweep, 0, "baseline", rng),
        *(phase(store, train, epoch, "train", rng) for epoch in range(1, EPOCHS + 1)),
        phase(store, sweep, EPOCHS + 1, "eval", rng),
    )
    return replace(start, scenarios=tuple(known), phases=phases)


def made(scenarios: int, folder: Path) -> None:
    """Write the page of a run of so many scenarios, and print what it took as JSON."""
    run = long_run(scenarios)
    value = build(run, None)
    before, peak_before, start = memory_mb("VmRSS"), memory_mb("VmHWM"), time.process_time()
    write_page(folder, value, run)
    found = {
        "s": time.process_time() - start,
        "mb": [before, peak_before, memory_mb("VmHWM")],
        "bytes": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    }
    print(json.dumps(found))


class Served(RunSite):
    """Answers as the view of a run whose page is in a folder."""

    def __init__(self, folder: Path) -> None:
        """Read the page."""
        self._lock = threading.Lock()
        self._body = self._taken(folder)

    def _shown(self) -> WebAnswer:
        return WebAnswer("text/html", self._body)


def in_view(folder: Path, scenarios: int) -> None:
    """Print how long the view takes to load all scenarios, and to open one that is not in the page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, PageServer(Served(folder)) as server:
        serve(server)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(server.address)
        tab.locator("#map tbody tr a").first.wait_for()
        heap = [tab.evaluate("performance.memory.usedJSHeapSize / 1e6")]
        start = time.perf_counter()
        tab.locator("#find").fill(f"s{scenarios - 1}")
        tab.locator("#beyond").wait_for(state="hidden", timeout=300_000)
        loaded = time.perf_counter() - start
        heap.append(tab.evaluate("performance.memory.usedJSHeapSize / 1e6"))
        start = time.perf_counter()
        tab.locator("#map tbody td.end a").first.click()
        tab.locator("dialog#detail details.rollout").first.wait_for()
        print(
            f"view: a search has loaded all after {loaded:.2f} s, a scenario opens in "
            f"{time.perf_counter() - start:.3f} s; the script holds {heap[0]:.0f} MB, then {heap[1]:.0f} MB"
        )
        browser.close()
        server.shutdown()


def main() -> None:
    """Make and open the page of each size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make is not None:
        made(options.scenarios[0], options.make)
        return
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(scenarios) for scenarios in options.scenarios]
        for scenarios, folder in zip(options.scenarios, folders, strict=True):
            folder.mkdir()
            words = [sys.executable, __file__, "--scenarios", str(scenarios), "--make", str(folder)]
            found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            sizes = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in found["bytes"].items())
            before, peak, after = found["mb"]
            took = f"{found['s']:.1f} s of processor time, {1000 * found['s'] / scenarios:.2f} ms each"
            memory = f"memory {before:.0f} MB before (peak {peak:.0f}), peak {after:.0f} MB"
            print(f"{scenarios:,} scenarios: {took}; {memory}; {sizes}", flush=True)
        times = opened([folder / REPORT_HTML for folder in folders])
        for scenarios, one in zip(options.scenarios, times, strict=True):
            print(
                f"{scenarios:,} scenarios: rows {one.rows:.2f} s ({one.rows / times[0].rows:.2f} times), "
                f"whole {one.whole:.2f} s ({one.whole / times[0].whole:.2f} times), cell {one.cell:.3f} s"
            )
        if (folders[-1] / DETAILS).exists():
            in_view(folders[-1], options.scenarios[-1])


if __name__ == "__main__":
    main()
