"""The report page by the rules of axe-core, and screenshots in the sizes in which it is read."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support.browser_runs import FAULTS, Open
from support.sweeps import make_run

from pytest_tfgrpo.report.agents.page import agents_page
from pytest_tfgrpo.report.agents.value import agents_value

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
OPENED = "#scenario/train-0/epoch1/0"
SIZES: dict[str, dict[str, Any]] = {
    "1440": {"viewport": {"width": 1440, "height": 900}},
    "1024": {"viewport": {"width": 1024, "height": 768}},
    "390": {**PHONE, "device_scale_factor": 2},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "print": {"viewport": {"width": 794, "height": 1123}},
}


def opened(visit: Open, path: Path, fragment: str, **options: Any) -> Page:
    page: Page = visit(path, fragment, **options).page
    expect(page.locator("dialog#detail .frame" if fragment else "#map .words a span").first).to_be_visible()
    return page


@pytest.mark.parametrize("fragment", ["", OPENED])
@pytest.mark.parametrize("size", ["1440", "390", "dark"])
def test_axe_finds_no_serious_fault(visit: Open, pages: Path, axe: str, size: str, fragment: str) -> None:
    page = opened(visit, pages / "compare.html", fragment, **SIZES[size])
    page.evaluate("document.querySelector('.menu').open = true")
    page.evaluate(axe)
    assert page.evaluate(FAULTS) == []


@pytest.mark.parametrize("place", ["top", "table", "opened"])
@pytest.mark.parametrize("size", SIZES)
def test_each_size_is_kept_as_a_picture(
    visit: Open, pages: Path, screenshots: Path, size: str, place: str
) -> None:
    page = opened(visit, pages / "report.html", OPENED if place == "opened" else "", **SIZES[size])
    if size == "print":
        page.emulate_media(media="print")
    if place == "table":
        page.evaluate("document.getElementById('scenarios').scrollIntoView({ behavior: 'instant' })")
    path = screenshots / f"{size}-{place}.png"
    page.screenshot(path=path, full_page=size == "print")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 15_000


@pytest.fixture
def agents_file(tmp_path: Path) -> Path:
    """Return the comparison of two agents, as a page."""
    sweep = {f"s{n}": [1.0] for n in range(12)}
    runs = {name: make_run(None, sweep, run_id=f"run1-{name}") for name in ("a", "b")}
    value = agents_value("run1", runs)
    for agent in value["agents"]:
        agent["actor"] = f"python:my_agents_of_today:{agent['name']}"
    path = tmp_path / "agents.html"
    path.write_text(agents_page(value, runs, {}), encoding="utf-8")
    return path


@pytest.mark.parametrize("size", ["1440", "390", "dark"])
def test_two_agents_stand_beside_each_other_without_a_serious_fault(
    visit: Open, agents_file: Path, axe: str, screenshots: Path, size: str
) -> None:
    page = visit(agents_file, "", **SIZES[size]).page
    expect(page.locator("#agents .specs")).to_contain_text("my_agents_of_today:b")
    assert page.locator("#agents .wide").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=screenshots / f"agents-{size}.png")
    page.evaluate(axe)
    assert page.evaluate(FAULTS) == []
