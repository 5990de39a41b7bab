"""The report page of a large run: bytes, and seconds until a browser shows it.

    python benchmarks/report_page.py [--scenarios 1000] [--charts]

A run of 1,000 scenarios x 5 rollouts x 3 epochs (a baseline sweep, a training epoch, a final sweep), each
rollout with 4 to 8 frames of 200 to 2,000 characters of varied text, is made up, and a run of the shipped
suite's size. Opening is measured in Chromium from the start of the navigation until the map has its rows and
takes the focus, opening a group until its rollouts stand in the page; medians of 5. Needs the extra
`test` and Chromium.

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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.builders import make_frame, make_scenario
from support.sweeps import Credits, make_run

from pytest_tfgrpo.core.records import Frame, Group, Rollout, Run
from pytest_tfgrpo.harness.report.page import draw
from pytest_tfgrpo.harness.report.page.grid import grid
from pytest_tfgrpo.harness.report.page.html import html
from pytest_tfgrpo.harness.report.value import build

TIMES = 5
DOMAINS = ("calendar", "freight", "notes", "orders", "readings", "settings")
CHARTS: dict[str, Callable[[Sequence[dict[str, Any]]], str]] = {}
"""Libraries by name: each returns what a self-contained page would have to hold."""


def words(rng: random.Random) -> list[str]:
    """Return a vocabulary whose text compresses about as prose does."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / (n + 2) for n in range(26)]
    return ["".join(rng.choices(letters, weights, k=rng.randint(2, 10))) for _ in range(4000)]


def large_run(scenarios: int, rollouts: int, seed: int = 0) -> Run:
    """Return a run of that many scenarios in each of three phases."""
    rng = random.Random(seed)
    vocabulary = words(rng)
    chances = [1 / (n + 5) for n in range(len(vocabulary))]

    def text(least: int, most: int) -> str:
        size, parts = rng.randint(least, most), rng.choices(vocabulary, chances, k=most // 3)
        return " ".join(parts)[:size]

    def frames() -> tuple[Frame, ...]:
        return tuple(
            make_frame(
                ("model-1", "read_file", "search", "convert")[n % 4],
                kind="tool" if n % 4 else "model",
                input={"query": text(20, 200), "n": rng.random()},
                output=text(200, 2000),
                tokens=rng.randint(50, 800),
                latency_ms=rng.random() * 1000,
            )
            for n in range(rng.randint(4, 8))
        )

    def told(rollout: Rollout) -> Rollout:
        return replace(
            rollout, frames=frames(), answer=text(20, 200), prompt_stamp=f"{rng.getrandbits(256):064x}"
        )

    def changed(group: Group) -> Group:
        return replace(group, rollouts=tuple(told(rollout) for rollout in group.rollouts))

    def drawn(chance: float) -> dict[str, Credits]:
        return {id: [float(rng.random() < chance) for _ in range(rollouts)] for id in ids}

    ids = [f"{DOMAINS[n % 6]}-{vocabulary[n % 4000]}-{n}" for n in range(scenarios)]
    known = tuple(
        make_scenario(id, domain=id.partition("-")[0], prompt=text(200, 800), stamp=id) for id in ids
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


def opened(page: Path) -> tuple[float, float]:
    """Return median seconds until the page is ready, and from there until a group is open."""
    from playwright.sync_api import sync_playwright

    ready, group = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for _ in range(TIMES):
            tab = browser.new_context().new_page()
            tab.goto(page.as_uri())
            link = tab.locator("#map tbody td a").first
            link.focus()
            ready.append(tab.evaluate("performance.now()") / 1000)
            start = time.perf_counter()
            link.press("Enter")
            tab.locator("dialog#detail details.rollout").first.wait_for()
            group.append(time.perf_counter() - start)
            tab.context.close()
        browser.close()
    return statistics.median(ready), statistics.median(group)


def measure(name: str, scenarios: int, folder: Path) -> list[dict[str, Any]]:
    """Print a row of figures for one size; returns the rows of its learning curve."""
    run = large_run(scenarios, 5)
    held = sum(len(f.output) for p in run.phases for g in p.groups for r in g.rollouts for f in r.frames)
    start = time.perf_counter()
    value = build(run, None)
    built = time.perf_counter()
    text = html(value, run)
    path = folder / f"{name}.html"
    path.write_text(text, encoding="utf-8")
    written = time.perf_counter()
    size = path.stat().st_size / 1e6
    print(f"{name}: {scenarios} scenarios, {held / 1e6:.0f} MB of outputs", flush=True)
    print(f"  report value {built - start:.1f} s, page {written - built:.1f} s, {size:.2f} MB", flush=True)
    ready, group = opened(path)
    print(f"  opens in {ready:.2f} s, a group in {group:.2f} s more", flush=True)
    charts = sum(
        len(part)
        for part in text.split("<svg")[1 : 2 + len(DOMAINS)]
        for part in [part.partition("</svg>")[0]]
    )
    print(f"  curve and {len(DOMAINS)} small multiples as SVG: {charts / 1e3:.1f} kB", flush=True)
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
    with tempfile.TemporaryDirectory() as folder:
        measure("shipped size", 96, Path(folder))
        series = measure("large", arguments.scenarios, Path(folder))
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
