"""The page over an arena in the sizes in which it is read."""

import random
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from support.arena.results import arena_result, simulated
from support.browser_runs import FAULTS, Open

from pytest_tfgrpo.arena.report.comparison import compare_sides
from pytest_tfgrpo.arena.report.page import arena_page
from pytest_tfgrpo.arena.result import Side

SIZES: dict[str, dict[str, Any]] = {
    "1440": {"viewport": {"width": 1440, "height": 900}},
    "390": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def arena_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gains = {"none": 0, "placebo": 0, "heuristic": 0.1, "gepa": 0.3, "few-shot": 0.25}
    failed = Side(name="llm", note="optimizer failed: the teacher gave no usable answer")
    sides = [*simulated(gains, random.Random(1)), failed]
    path = tmp_path_factory.mktemp("arena") / "arena.html"
    path.write_text(arena_page(compare_sides(arena_result(sides))), encoding="utf-8")
    return path


@pytest.mark.parametrize("size", SIZES)
def test_it_fits_and_has_no_serious_fault_and_asks_for_nothing(
    visit: Open, arena_file: Path, axe: str, screenshots: Path, size: str
) -> None:
    visited = visit(arena_file, "", **SIZES[size])
    page = visited.page
    expect(page.locator(".verdict .figure")).to_contain_text("gepa gained +0.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#gains svg").count() == 4
    page.screenshot(path=screenshots / f"arena-{size}.png", full_page=True)
    page.evaluate(axe)
    assert page.evaluate(FAULTS) == []
    assert (visited.requests, visited.messages) == ([], [])


def test_a_click_on_a_head_sorts_the_gains(visit: Open, arena_file: Path) -> None:
    page = visit(arena_file, "", **SIZES["1440"]).page
    page.locator("#gains th button", has_text="score").click()
    names = page.locator("#gains tbody th").all_text_contents()
    scores = page.locator("#gains tbody td[data-label=score]").all_text_contents()
    known = [float(score) for score in scores if score != "-"]
    assert known == sorted(known)
    assert names[-2:] == ["gepa", "llm"], "the best, then the one without a score"
