"""The page of the loop: fits, sorts, asks for nothing, and runs nothing that others wrote."""

from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser_runs import FAULTS, HOSTILE, Open
from support.loop_stories import deployed, fill

from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.report.figures import report_of
from pytest_tfgrpo.production.report.page.page import loop_page, story_of
from pytest_tfgrpo.production.view.view import LoopView


def written(folder: Path, said: str = "it is better", more: int = 0) -> Path:
    """Write the page of a loop with four versions, and so many further transitions."""
    path = folder / "loop.html"
    with (
        closing(open_bus(f"embedded:{folder}/bus.db")) as bus,
        closing(LoopView(folder / "view.db")) as view,
    ):
        fill(bus, folder / "jobs", said)
        bus.publish([deployed(n + 1000) for n in range(more)])
        view.catch_up(bus)
        page = loop_page(said, report_of(bus, view, 1000), story_of(bus, str(folder / "jobs")))
    path.write_text(page, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1440, 390])
def test_it_fits_sorts_and_asks_for_nothing(
    visit: Open, screenshots: Path, tmp_path: Path, width: int
) -> None:
    scheme = "dark" if width > 1000 else "light"
    opened = visit(written(tmp_path), viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = opened.page
    if width > 1000:
        page.locator("#versions thead th", has_text="lessons").get_by_role("button").click()
        expect(page.locator("#versions tbody th").first).to_have_text("v1")
    expect(page.locator("#deployments details[open]")).to_have_count(3)
    expect(page.locator("#deployments svg.bounds")).to_have_count(6)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.violations() == opened.messages == opened.requests == []
    page.screenshot(path=screenshots / f"loop-{width}.png", full_page=True)
    assert (screenshots / f"loop-{width}.png").stat().st_size > 10_000


@pytest.mark.parametrize("width", [1440, 390])
def test_hostile_texts_and_a_thousand_transitions_are_inert_and_fit(
    visit: Open, tmp_path: Path, width: int
) -> None:
    opened = visit(written(tmp_path, HOSTILE, 1000), viewport={"width": width, "height": 900})
    assert opened.page.evaluate("window.__hacked") is None
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    expect(opened.page.locator("#deployments details")).to_have_count(203)
    assert opened.violations() == opened.messages == opened.requests == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit: Open, tmp_path: Path, axe: str, scheme: str) -> None:
    page = visit(written(tmp_path), color_scheme=scheme).page
    page.evaluate(axe)
    assert page.evaluate(FAULTS) == []
