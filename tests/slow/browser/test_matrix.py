"""The page of four agents and 300 scenarios: what it shows, its filters, an opened row, a phone."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support.browser_runs import FAULTS, WIDER, Open
from support.page.matrix import letters_of, page_of

from pytest_tfgrpo.core.records import Run

AGENTS = {"nano": 0.2, "small": 0.5, "large": 0.7, "tuned": 0.75}
LARGEST = 3_000_000
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@cache
def runs() -> dict[str, Run]:
    return letters_of(AGENTS, 300)


def scores() -> dict[str, list[float | None]]:
    """Return the scores of each scenario by agent."""
    found: dict[str, list[float | None]] = {}
    for run in runs().values():
        for group in run.phases[0].groups:
            found.setdefault(group.scenario_id, []).append(group.gt_mean)
    return found


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matrix") / "agents.html"
    path.write_text(page_of(runs(), {name: f"./{name}.html" for name in AGENTS}), encoding="utf-8")
    return path


@pytest.fixture
def opened(visit: Open, matrix: Path) -> Iterator[Page]:
    """The page, which must not have said or fetched anything when a test is over."""
    found = visit(matrix)
    expect(found.page.locator("#count")).to_have_text("300 scenarios")
    yield found.page
    assert (found.messages, found.requests, found.violations()) == ([], [], [])


def shown(page: Page) -> int:
    return int(page.locator("#count").inner_text().split()[0])


def test_the_matrix_is_one_small_file_with_a_column_for_each_agent(opened: Page, matrix: Path) -> None:
    assert matrix.stat().st_size <= LARGEST
    heads = opened.locator("#map thead th").all_inner_texts()
    assert heads == ["scenario", "task", "expected", *AGENTS]
    first = opened.locator("#map tbody tr:not(.gap)").first
    expect(first.locator("td.task")).to_contain_text("A customer waits for order")
    expect(first.locator("td.side")).to_have_count(4)
    expect(first.locator("td.side .score").first).to_have_text("0.00")
    expect(first.locator("td.side small.bad").first).to_contain_text("contains: expected 'yes'")
    assert opened.locator("#map tbody td.side a > span").first.inner_text()


@pytest.mark.parametrize(
    ("label", "holds"),
    [
        ("scores differ", lambda row: len(set(row)) > 1),
        ("all fail", lambda row: max(row) < 1),
        ("only nano fails", lambda row: row == [0, 1, 1, 1]),
        ("only tuned fails", lambda row: row == [1, 1, 1, 0]),
        ("large worse than nano", lambda row: row[2] < row[0]),
    ],
)
def test_the_filter_finds_where_agents_differ(opened: Page, label: str, holds: Any) -> None:
    wanted = sum(holds(row) for row in scores().values())
    assert 0 < wanted < 300
    opened.select_option("#status", label=label)
    assert shown(opened) == wanted


def test_tags_domains_and_columns_narrow_the_table(opened: Page) -> None:
    opened.select_option("#tag", label="eu")
    assert shown(opened) == 150
    opened.select_option("#domain", label="refund")
    assert shown(opened) == 50
    opened.reload()
    expect(opened.locator("#count")).to_have_text("50 of 300 scenarios")
    opened.locator("#map thead th", has_text="tuned").get_by_role("button").click()
    firsts = opened.locator("#map tbody tr:not(.gap) td:last-child .score").all_inner_texts()
    assert firsts == sorted(firsts)
    assert firsts[0] == "0.00"


def test_an_opened_row_has_the_answers_side_by_side_and_marks_what_differs(opened: Page) -> None:
    opened.locator("#map tbody td.side a").first.click()
    beside = opened.locator("#beside")
    expect(beside.locator("h3")).to_have_text("nano, small, large and tuned side by side")
    sides = beside.locator(".side")
    expect(sides).to_have_count(4)
    expect(sides.nth(0).locator("mark")).to_have_count(0)
    assert sides.nth(2).locator("mark").count() > 0
    expect(sides.nth(2).get_by_role("link", name="large")).to_have_attribute(
        "href", "./large.html" + opened.evaluate("location.hash")
    )
    expect(sides.nth(0).locator(".checks")).to_have_text("failed contains: expected 'yes'")
    beside.get_by_label("from").select_option("large")
    expect(sides.nth(2).locator("mark")).to_have_count(0)
    assert sides.nth(0).locator("mark").count() > 0
    beside.get_by_label("mark differences").uncheck()
    expect(beside.locator("mark")).to_have_count(0)
    opened.keyboard.press("]")
    expect(beside.locator(".side")).to_have_count(4)
    expect(beside.locator("mark")).to_have_count(0)
    assert opened.evaluate(WIDER) == []


@pytest.mark.parametrize("opens", [False, True])
def test_a_phone_stacks_the_agents(visit: Open, matrix: Path, axe: str, opens: bool) -> None:
    found = visit(matrix, "", **PHONE)
    page = found.page
    expect(page.locator("#count")).to_have_text("300 scenarios")
    boxes = [
        box.bounding_box() for box in page.locator("#map tbody tr:not(.gap)").first.locator("td.side").all()
    ]
    tops = [box["y"] for box in boxes if box is not None]
    assert len(tops) == 4
    assert tops == sorted(set(tops))
    if opens:
        page.locator("#map tbody th a").first.click()
        expect(page.locator("#beside .side")).to_have_count(4)
    assert page.evaluate(WIDER) == []
    page.evaluate(axe)
    assert page.evaluate(FAULTS) == []
    assert (found.messages, found.violations()) == ([], [])


def test_without_scripts_and_on_paper_there_is_a_table(visit: Open, matrix: Path) -> None:
    page = visit(matrix, java_script_enabled=False).page
    expect(page.locator("#plain tbody tr")).to_have_count(300)
    expect(page.locator("#map")).to_be_hidden()


def test_the_rows_that_are_shown_become_a_file_with_each_agent(opened: Page) -> None:
    opened.select_option("#status", label="only nano fails")
    with opened.expect_download() as download:
        opened.get_by_role("button", name="JSON lines").click()
    rows = [json.loads(line) for line in Path(download.value.path()).read_text(encoding="utf-8").splitlines()]
    assert len(rows) == shown(opened)
    means = scores()
    for row in rows:
        assert [row[f"{name} score"] for name in AGENTS] == means[row["id"]]
        assert row["nano failed"] == "contains: expected 'yes'"
        assert row["tags"] in ("eu", "us")
        assert all(row[f"{name} answer"] for name in AGENTS)
