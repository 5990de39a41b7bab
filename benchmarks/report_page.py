"""The report page of a large run: bytes, and seconds until a browser shows it, beside a plain table.

    python benchmarks/report_page.py [--scenarios 1000] [--charts]

A run of 1,000 scenarios x 5 rollouts x 3 epochs (a baseline sweep, a training epoch, a final sweep), each
rollout with 4 to 8 frames of 200 to 2,000 characters of varied text, is made up, and one of 20 times the
scenarios with one rollout of one frame each. The peer is a table in plain HTML of the same cells: task,
expected answer, and each rollout with its score and answer. Opening is measured in Chromium from the start of
the navigation until the first rows are there, and until the whole page is loaded and painted; opening a cell
until its rollouts stand in the page; medians of 5, pages in turn. Needs the extra `test` and Chromium.

With ``--charts`` the learning curve and the small multiples of 6 domains are drawn by altair, plotly and
matplotlib, where they are installed, to compare their bytes with the page's own SVG.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.builders import make_frame, make_scenario
from support.sweeps import Credits, make_run

from pytest_tfgrpo.core.records import Frame, Group, Rollout, Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.report.page import draw
from pytest_tfgrpo.report.page.grid import grid
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.page.previews import expected
from pytest_tfgrpo.report.value import build

if TYPE_CHECKING:
    from playwright.sync_api import Page

TIMES = 5
DOMAINS = ("calendar", "freight", "notes", "orders", "readings", "settings")
CHARTS: dict[str, Callable[[Sequence[dict[str, Any]]], str]] = {}
"""Libraries by name: each returns what a self-contained page would have to hold."""


def words(rng: random.Random) -> list[str]:
    """Return a vocabulary whose text compresses about as prose does."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / (n + 2) for n in range(26)]
    return ["".join(rng.choices(letters, weights, k=rng.randint(2, 10))) for _ in range(4000)]


def large_run(scenarios: int, rollouts: int, seed: int = 0, frames: int = 0) -> Run:
    """Return a run of that many scenarios in each of three phases; `frames` for each rollout, else 4 to 8."""
    rng = random.Random(seed)
    vocabulary = words(rng)
    chances = [1 / (n + 5) for n in range(len(vocabulary))]

    def text(least: int, most: int) -> str:
        size, parts = rng.randint(least, most), rng.choices(vocabulary, chances, k=most // 3)
        return " ".join(parts)[:size]

    def steps() -> tuple[Frame, ...]:
        return tuple(
            make_frame(
                ("model-1", "read_file", "search", "convert")[n % 4],
                kind="tool" if n % 4 else "model",
                input={"query": text(20, 200), "n": rng.random()},
                output=text(200, 2000),
                tokens=rng.randint(50, 800),
                latency_ms=rng.random() * 1000,
            )
            for n in range(frames or rng.randint(4, 8))
        )

    def told(rollout: Rollout) -> Rollout:
        return replace(
            rollout, frames=steps(), answer=text(20, 200), prompt_stamp=f"{rng.getrandbits(256):064x}"
        )

    def changed(group: Group) -> Group:
        return replace(group, rollouts=tuple(told(rollout) for rollout in group.rollouts))

    def drawn(chance: float) -> dict[str, Credits]:
        return {id_: [float(rng.random() < chance) for _ in range(rollouts)] for id_ in ids}

    ids = [f"{DOMAINS[n % 6]}-{vocabulary[n % 4000]}-{n}" for n in range(scenarios)]
    known = tuple(
        make_scenario(id_, domain=id_.partition("-")[0], prompt=text(200, 800), stamp=id_) for id_ in ids
    )
    run = make_run(drawn(0.4), drawn(0.8), drawn(0.6), scenarios=known)
    phases = (replace(phase, groups=tuple(map(changed, phase.groups))) for phase in run.phases)
    return replace(run, phases=tuple(phases))


def chromium() -> str:
    """Return the path of Chromium."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))),
        None,
    )
    if found is None:
        raise SystemExit("there is no Chromium")
    return found


READY = """async () => {
  while (!document.querySelector("tbody tr a, #peer tr") || document.readyState !== "complete")
    await new Promise((resolve) => setTimeout(resolve, 1));
  document.body.getBoundingClientRect();
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() / 1000;
}"""


class Opened(NamedTuple):
    """Medians of seconds, from the start of the navigation."""

    rows: float
    """Until the first rows of the table are in the document."""
    whole: float
    """Until all of the page is loaded and painted."""
    cell: float
    """From the key that opens a cell until its rollouts are shown."""


ROWS = """
const watch = new MutationObserver(() => {
  if (window.__rows === undefined && document.querySelector("#map tbody tr a, #peer tr")) {
    window.__rows = performance.now() / 1000;
    watch.disconnect();
  }
});
watch.observe(document, { childList: true, subtree: true });
"""


def opened(paths: Sequence[Path]) -> list[Opened]:
    """Return how fast each page opens; the pages take turns, so that they meet the same machine."""
    from playwright.sync_api import sync_playwright

    found: list[list[Opened]] = [[] for _ in paths]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for _ in range(TIMES):
            for place, path in enumerate(paths):
                tab = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
                tab.add_init_script(ROWS)
                tab.goto(path.as_uri(), wait_until="commit")
                whole = tab.evaluate(READY)
                found[place].append(Opened(tab.evaluate("window.__rows"), whole, cell(tab)))
                tab.context.close()
        browser.close()
    return [Opened(*map(statistics.median, zip(*times, strict=True))) for times in found]


def cell(tab: Page) -> float:
    """Return the seconds from a click on the last score of the first row until its rollouts stand there."""
    return float(
        tab.evaluate(
            """async () => {
              const link = [...document.querySelectorAll("#map tbody tr:not(.gap) td.end a")].at(0);
              if (!link) return 0;
              const start = performance.now();
              link.click();
              while (!document.querySelector("dialog#detail :is(details.rollout, .body > p:not(.soft))"))
                await new Promise((resolve) => setTimeout(resolve, 1));
              document.querySelector("dialog#detail").getBoundingClientRect();
              return (performance.now() - start) / 1000;
            }"""
        )
    )


def plain_table(run: Run) -> str:
    """Return the peer: a table in plain HTML with a row for each scenario and a cell for each rollout."""
    groups = [{group.scenario_id: group for group in result.groups} for result in run.phases]
    rows = []
    for scenario in run.scenarios:
        cells = [
            f"<td>{escape(scenario.id)}<td>{escape(scenario.prompt[:240])}<td>{escape(expected(scenario))}"
        ]
        for group in (phase[scenario.id] for phase in groups if scenario.id in phase):
            cells += [
                f"<td>{score.gt_score} {escape(rollout.answer)}"
                for rollout, score in zip(group.rollouts, group.scores, strict=True)
            ]
        rows.append("<tr>" + "".join(cells))
    return (
        "<!doctype html><meta charset=utf-8><title>peer</title>"
        "<style>td{border:1px solid;padding:.2em .5em;max-width:20em}</style><table id=peer>"
        + "\n".join(rows)
    )


def written(name: str, run: Run, folder: Path) -> tuple[Path, Report]:
    """Write the page of a run and say how long it takes; returns its path and the report."""
    held = sum(len(f.output) for p in run.phases for g in p.groups for r in g.rollouts for f in r.frames)
    start = time.perf_counter()
    value = build(run, None)
    built = time.perf_counter()
    path = folder / f"{name}.html"
    path.write_text(html(value, run), encoding="utf-8")
    took, size = time.perf_counter() - built, path.stat().st_size / 1e6
    print(f"{name}: {held / 1e6:.0f} MB of outputs", flush=True)
    print(f"  report value {built - start:.1f} s, page {took:.1f} s, {size:.2f} MB", flush=True)
    return path, value


def small_curves(run: Run, value: Report) -> list[dict[str, Any]]:
    """Return the curves by domain, as drawn."""
    columns = draw.domains(grid(value, run))
    return [
        {"domain": d["domain"], "points": [(p["label"], p["row"]["gt_score"]["mean"]) for p in d["points"]]}
        for d in columns
    ]


def altair(series: Sequence[dict[str, Any]]) -> str:
    import altair as alt

    rows = [
        {"domain": s["domain"], "phase": label, "mean": mean} for s in series for label, mean in s["points"]
    ]
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True)
        .encode(x="phase:N", y="mean:Q")
        .facet("domain:N")
    )
    return str(chart.to_html(inline=True))


def plotly(series: Sequence[dict[str, Any]]) -> str:
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=len(series), subplot_titles=[s["domain"] for s in series])
    for n, one in enumerate(series, start=1):
        figure.add_trace(
            Scatter(x=[p[0] for p in one["points"]], y=[p[1] for p in one["points"]]), row=1, col=n
        )
    return str(figure.to_html(include_plotlyjs=True))


def matplotlib(series: Sequence[dict[str, Any]]) -> str:
    import io

    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(series))
    for axis, one in zip(axes, series, strict=True):
        axis.plot([p[0] for p in one["points"]], [p[1] for p in one["points"]], marker="o")
        axis.set_title(one["domain"])
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


CHARTS |= {"altair": altair, "plotly": plotly, "matplotlib": matplotlib}


def main() -> None:
    """Measure both sizes, and the libraries if wanted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--charts", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = large_run(arguments.scenarios, 5)
        large, value = written("page", run, folder)
        series = small_curves(run, value)
        peer = folder / "table.html"
        peer.write_text(plain_table(run), encoding="utf-8")
        print(f"plain table of the same cells: {peer.stat().st_size / 1e6:.2f} MB")
        huge, _ = written("huge", large_run(20 * arguments.scenarios, 1, frames=1), folder)
        names = ("page", "plain table", "20 times the scenarios")
        for label, times in zip(names, opened((large, peer, huge)), strict=True):
            print(f"{label}: rows {times.rows:.2f} s, whole {times.whole:.2f} s, cell {times.cell:.3f} s")
    for name, chart in CHARTS.items() if arguments.charts else ():
        try:
            text = chart(series)
        except ImportError as error:
            print(f"{name}: not measured, {error}")
            continue
        packed = len(gzip.compress(text.encode()))
        print(f"{name}: {len(text) / 1e3:.1f} kB, {packed / 1e3:.1f} kB gzipped")


if __name__ == "__main__":
    main()
