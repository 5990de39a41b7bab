"""The page of a run that goes on, on a journal that grows, and the page over the runs of a task."""

import fcntl
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pytest
from playwright.sync_api import expect
from support.browser_runs import FAULTS, HOSTILE, Open
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.cli.project import open_project
from pytest_tfgrpo.cli.runs import view
from pytest_tfgrpo.cli.runs.view import RunSite
from pytest_tfgrpo.cli.view_server import PageServer, serve
from pytest_tfgrpo.core.files import JOURNAL, run_folder
from pytest_tfgrpo.report.run_history.page import history_page
from pytest_tfgrpo.report.run_history.past_runs import FinalScores, PastRun
from pytest_tfgrpo.runs.journal.journal import encode
from pytest_tfgrpo.runs.schedule import MIN_DEV


class Growing(NamedTuple):
    """A run that a test carries on, and the server of its page."""

    server: PageServer
    journal: BinaryIO
    rows: list[bytes]
    """The lines that the journal has in the end."""

    def write(self, start: int, stop: int | None = None) -> None:
        self.journal.write(b"".join(self.rows[start:stop]))
        self.journal.flush()

    def first(self, event: str) -> int:
        """Return the place of the first line with an event."""
        return next(n for n, row in enumerate(self.rows) if f'"event":"{event}"'.encode() in row)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The journal of a run that learned, with hostile text in its first failure."""
    place = tmp_path_factory.mktemp("ended")
    scenarios = [replace(s, split="dev") if n < MIN_DEV else s for n, s in enumerate(suite(MIN_DEV + 8, 10))]
    folder = run_folder(place, "demo", "run1")
    job = make_job(ScriptedActor(three_or_not), place, scenarios=scenarios)
    with ThreadPoolExecutor(1) as apart:  # Playwright's loop may run in this thread already
        apart.submit(run_job, job, folder).result()
    rows = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    at = next(n for n, row in enumerate(rows) if b'"event":"rollout"' in row)
    event = json.loads(rows[at])
    failure = {"code": HOSTILE, "message": HOSTILE}
    rows[at] = encode(at + 1, "rollout", event["data"] | {"status": "failed", "failure": failure})
    return rows


@pytest.fixture
def growing(rows: list[bytes], tmp_path: Path) -> Iterator[Growing]:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfgrpo_task_id = demo\n")
    folder = run_folder(tmp_path / "out", "demo", "run1")
    folder.mkdir(parents=True)
    with (folder / JOURNAL).open("ab") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        with PageServer(RunSite(open_project(tmp_path, {}, {}), folder)) as server:
            serve(server)
            growing = Growing(server, journal, rows)
            growing.write(0, 1)
            yield growing
            server.shutdown()


def test_the_page_follows_the_run_and_becomes_its_report(
    growing: Growing, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "PATIENCE_S", 0.0)
    opened = visit(growing.server.invitation)
    page, phases = opened.page, opened.page.locator("#phases tbody tr")
    assert page.url == growing.server.address
    expect(page.locator("#pulse")).to_have_text("running")
    expect(page.locator("#where")).to_contain_text("phase 1 of 6, 0 of 32 rollouts")
    expect(page.locator("#failures-note")).to_have_text("None so far.")

    revision = growing.first("revision")
    growing.write(1, growing.first("candidate") + 1)
    expect(phases.nth(0)).to_contain_text("32/32")
    expect(page.locator("#failures li")).not_to_have_count(0)
    expect(page.locator("#lessons-note")).to_contain_text("The dev split tries ")
    expect(page.locator("#tiles i")).to_have_count(8)
    expect(page.locator("#tiles i.none")).to_have_count(0)
    expect(page.locator("#tiles i").first).to_have_attribute("title", "train-20: about 0.5")

    growing.write(growing.first("candidate") + 1, revision + 2)
    expect(page.locator("#lessons li").first).to_contain_text("For words in a letter use count")
    expect(phases.nth(0)).to_contain_text("done")
    expect(phases.nth(1)).to_contain_text("done")

    growing.write(revision + 2)
    expect(page.locator("#pulse")).to_have_text("the run has ended; its report is being written")
    fcntl.flock(growing.journal, fcntl.LOCK_UN)
    expect(page.locator("#map")).to_be_visible()
    assert page.url == growing.server.address
    assert opened.violations() == opened.messages == []
    assert {url.rpartition("/")[2] for url in opened.requests} <= {"", "state", "names"}


def test_hostile_text_is_inert_and_a_lost_viewer_is_said(growing: Growing, visit: Open) -> None:
    opened = visit(growing.server.address)
    growing.write(1, 2)
    expect(opened.page.locator("#failures li")).to_contain_text("window.__hacked = 1")
    assert opened.page.evaluate("window.__hacked") is None
    assert opened.page.locator("#failures img, #failures script").count() == 0
    assert opened.violations() == opened.messages == []
    growing.server.shutdown()
    growing.server.server_close()
    expect(opened.page.locator("#pulse")).to_contain_text("no answer: the viewer has ended")


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_of_the_live_page_is_wider_than_the_window(
    growing: Growing, visit: Open, screenshots: Path, width: int
) -> None:
    growing.write(1, len(growing.rows) * 2 // 3)
    scheme = "dark" if width > 1000 else "light"
    opened = visit(growing.server.address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    expect(opened.page.locator("#pulse")).to_have_text("running")
    expect(opened.page.locator("#lessons li")).not_to_have_count(0)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.page.screenshot(path=screenshots / f"live-{width}.png", full_page=True)
    assert (screenshots / f"live-{width}.png").stat().st_size > 10_000


def past(n: int) -> PastRun:
    mean, gain = 0.4 + n / 40, n / 60
    return PastRun(
        run_id=f"20260131T1200{n:02}-{n:08x}",
        state="complete",
        counts=True,
        actor="offline" if n % 5 else "python:agents.support:solve",
        commit=f"{n // 4}a2b3c4d5e6f",
        lessons_hash=f"{n // 3}" * 64,
        lessons=n,
        suite="e",
        scores=FinalScores(mean, (mean - 0.1, mean + 0.1), gain, (gain - 0.1, gain + 0.1)),
        gate="pass",
        usd=n / 7,
        cost=f"${n / 7:.2f}",
        seconds=60.0 + n,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(
    growing: Growing, visit: Open, tmp_path: Path, axe: str, scheme: str
) -> None:
    growing.write(1, len(growing.rows) * 2 // 3)
    live = visit(growing.server.address, color_scheme=scheme).page
    expect(live.locator("#lessons li")).not_to_have_count(0)
    path = tmp_path / "history.html"
    path.write_text(history_page("demo", [past(n) for n in range(12)], {}), encoding="utf-8")
    for page in (live, visit(path, color_scheme=scheme).page):
        page.evaluate(axe)
        assert page.evaluate(FAULTS) == []


@pytest.mark.parametrize("width", [1440, 390])
def test_the_history_sorts_fits_and_asks_for_nothing(
    visit: Open, screenshots: Path, tmp_path: Path, width: int
) -> None:
    runs = [past(n) for n in range(12)]
    hostile = PastRun(run_id=HOSTILE, state=HOSTILE, counts=False, commit=HOSTILE, actor=HOSTILE)
    path = tmp_path / "history.html"
    path.write_text(history_page("demo", [*runs, hostile], {runs[0].run_id: "./x.html"}), encoding="utf-8")
    scheme = "dark" if width > 1000 else "light"
    opened = visit(path, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = opened.page
    for table in ("#runs", "#builds"):
        mean = page.locator(f"{table} thead th", has_text="mean").bounding_box()
        assert mean is not None
        assert mean["x"] + mean["width"] <= width
    head = page.locator("#runs thead th", has_text="mean")
    head.get_by_role("button").click()
    assert page.locator("#runs tbody th").first.inner_text() == runs[0].run_id
    expect(page.locator("#charts svg")).to_have_count(4)
    expect(page.locator("#builds tbody tr")).to_have_count(9)  # of 3 commits, 4 libraries and 2 agents
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.__hacked") is None
    assert opened.violations() == opened.messages == opened.requests == []
    page.screenshot(path=screenshots / f"history-{width}.png", full_page=True)
    assert (screenshots / f"history-{width}.png").stat().st_size > 10_000
