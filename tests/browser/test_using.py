"""What a reader does with a report page: sort, filter, open, compare, and all of it by keyboard."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser_runs import Open

pytestmark = pytest.mark.browser
CELLS = "#map tbody tr:not(.gap)"


@pytest.fixture
def page(visit: Open, pages: Path) -> Page:
    opened: Page = visit(pages / "report.html").page
    return opened


def first_column(page: Page) -> list[str]:
    return page.locator(f"{CELLS} th").all_inner_texts()


def heading(page: Page) -> Locator:
    return page.locator("dialog#detail h2").first


def test_the_map_is_sorted_by_a_click_on_a_head(page: Page) -> None:
    head = page.locator("#map thead th", has_text="scenario")
    head.get_by_role("button").click()
    ids = first_column(page)
    assert ids[:3] == ["count-0", "count-1", "count-2"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert first_column(page)[0] == "train-11"
    assert head.get_attribute("aria-sort") == "descending"


def test_the_largest_losses_come_first_unless_sorted_otherwise(page: Page) -> None:
    changes = page.locator(f"{CELLS} td.change").all_inner_texts()
    known = [float(text) for text in changes if text != "-"]
    assert known == sorted(known)
    assert known[0] < 0 < known[-1]


def test_other_tables_are_sorted_too(page: Page) -> None:
    table = page.locator("#cost table.sortable, #curve table.sortable").first
    before = table.locator("tbody th").all_inner_texts()
    button = table.locator("thead button").first
    button.click()
    ascending = table.locator("tbody th").all_inner_texts()
    button.click()
    assert ascending == sorted(before)
    assert table.locator("tbody th").all_inner_texts() == ascending[::-1]


def test_scenarios_are_found_by_words_domain_split_and_outcome(page: Page) -> None:
    page.fill("#find", "date-")
    expect(page.locator("#count")).to_have_text("8 of 36 scenarios")
    assert {id.partition("-")[0] for id in first_column(page)} == {"date"}
    page.fill("#find", "")
    page.select_option("#split", "train")
    expect(page.locator("#count")).to_have_text("12 of 36 scenarios")
    page.select_option("#split", "")
    page.select_option("#status", "errors")
    assert first_column(page) == ["date-1"]
    page.fill("#find", "count")
    expect(page.locator("#map tbody")).to_contain_text("no scenario matches the filter")


def test_a_filter_is_part_of_the_address(page: Page, visit: Open, pages: Path) -> None:
    page.fill("#find", "order-7")
    fragment = page.evaluate("location.hash")
    assert first_column(visit(pages / "report.html", fragment).page) == ["order-7"]


def test_a_cell_opens_to_its_group_its_rollouts_and_their_frames(page: Page) -> None:
    page.locator('#map a[aria-label^="date-1, epoch2-eval"]').click()
    expect(heading(page)).to_have_text("date-1")
    rollouts = page.locator("dialog#detail details.rollout")
    expect(rollouts).to_have_count(3)
    assert "how many words are in" in page.locator("dialog#detail pre").first.inner_text()
    first = rollouts.nth(0)
    first.locator("summary").click()
    expect(first.locator(".frame")).to_have_count(3)
    assert "count_words" in first.locator(".frame").nth(1).inner_text()
    assert "strict: true" in first.locator(".frame").nth(1).inner_text()
    assert "5 tokens, $0.0004" in first.locator(".frame").nth(0).inner_text()
    table = page.get_by_role("group", name="rollouts").inner_text()
    assert "provider: 503 from the provider" in table
    assert "timeout: no answer in 2 s" in table


def test_a_cell_opens_to_the_prompt_as_it_was_asked(page: Page) -> None:
    page.locator('#map a[aria-label^="date-1, epoch2-eval"]').click()
    asked = page.locator("dialog#detail details.asked")
    asked.locator("summary").click()
    system, user = asked.locator("pre").all_inner_texts()
    lines = system.splitlines()
    assert lines[:2] == ["Solve the task and say nothing else.", ""]
    assert [line[:5] for line in lines[3:5]] == ["- [do", "- [av"]
    assert lines[-1] == "</experiences>"
    assert user.startswith("date-1: how many words are in")
    page.goto(page.url.partition("#")[0] + "#scenario/date-1/baseline")
    expect(asked.locator("pre").first).to_have_text("Solve the task and say nothing else.")


@pytest.mark.parametrize(
    ("address", "title", "other"),
    [
        ("date-1/epoch2-eval/0", "lessons in its prompt", "lessons left out of its prompt at random"),
        ("train-0/epoch1/0", "lessons left out of its prompt at random", "lessons in its prompt"),
    ],
)
def test_a_rollout_tells_which_lessons_it_carried_and_lost(
    page: Page, address: str, title: str, other: str
) -> None:
    page.goto(page.url.partition("#")[0] + f"#scenario/{address}")
    rollout = page.locator("dialog#detail details.rollout[open]")
    expect(rollout).to_contain_text(title)
    expect(rollout).not_to_contain_text(other)
    expect(rollout.get_by_role("listitem")).to_have_count(2)
    expect(rollout.get_by_role("listitem").first).to_contain_text("do: For counting tasks use count_words")


def test_a_long_text_is_shown_in_part_until_all_is_wanted(page: Page) -> None:
    page.goto(page.url.partition("#")[0] + "#scenario/count-3/epoch2-eval/0")
    frame = page.locator("dialog#detail details.rollout .frame").nth(2)
    assert len(frame.inner_text()) < 4000
    frame.get_by_role("button", name="show all 4,500 characters").click()
    assert len(frame.inner_text()) > 4000


def test_the_winner_stands_beside_the_loser(page: Page) -> None:
    page.goto(page.url.partition("#")[0] + "#scenario/train-0/epoch1")
    pair = page.locator('dialog#detail section[aria-label="side by side"]')
    expect(pair.locator("h3")).to_have_text("Winner against loser")
    heads = pair.locator(".pair.heads")
    assert "score 1.000" in heads.locator("> div").nth(0).inner_text()
    assert "score 0.000" in heads.locator("> div").nth(1).inner_text()
    differing = pair.locator(".pair.differs").first.inner_text()
    assert "first difference" in differing.lower()
    assert "count_words" in differing
    assert "guess" in differing
    left, right = (pair.locator(".pair").nth(1).locator(".frame").nth(side).bounding_box() for side in (0, 1))
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"]
    pair.get_by_label("right").select_option(index=2)
    assert "score 0.500" in heads.locator("> div").nth(1).inner_text()


@pytest.mark.parametrize(
    "fragment", ["#scenario/nope", "#scenario/%E0%A4%A", "#scenario/date-1/epoch9", "#?x=1"]
)
def test_an_address_that_leads_nowhere_breaks_nothing(visit: Open, pages: Path, fragment: str) -> None:
    opened = visit(pages / "report.html", fragment)
    expect(opened.page.locator("#count")).to_have_text("36 scenarios")
    assert opened.messages == []


def test_an_address_opens_one_rollout(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", "#scenario/date-1/epoch2-eval/2").page
    expect(heading(page)).to_have_text("date-1")
    expect(page.locator("dialog#detail details#r2")).to_have_attribute("open", "")
    page.go_back()


def test_going_back_closes_what_was_opened(page: Page) -> None:
    page.locator(f"{CELLS} th a").first.click()
    expect(page.locator("dialog#detail")).to_be_visible()
    page.go_back()
    expect(page.locator("dialog#detail")).to_be_hidden()


def test_everything_works_by_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("order-")
    expect(page.locator("#count")).to_have_text("8 of 36 scenarios")
    for _ in range(4):  # domain, split, status, map
        page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.tagName") == "BUTTON":
        page.keyboard.press("Tab")
    start = page.evaluate("document.activeElement.dataset")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    moved = page.evaluate("document.activeElement.dataset")
    assert int(moved["at"]) == int(start["at"]) + 1
    assert int(moved["column"]) == int(start["column"]) + 1
    page.keyboard.press("Enter")
    expect(heading(page)).to_be_focused()
    opened = heading(page).inner_text()
    page.keyboard.press("]")
    expect(heading(page)).not_to_have_text(opened)
    page.keyboard.press("[")
    expect(heading(page)).to_have_text(opened)
    page.keyboard.press("Escape")
    expect(page.locator("dialog#detail")).to_be_hidden()
    assert page.evaluate("document.activeElement.dataset.at") == moved["at"]


def test_the_keys_are_explained_and_the_theme_is_a_key(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.locator("dialog#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog#help")).to_be_hidden()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    expect(page.locator("#theme")).to_have_attribute("aria-pressed", "true")


def test_two_runs_are_side_by_side(visit: Open, pages: Path) -> None:
    opened = visit(pages / "compare.html")
    section = opened.page.locator("#compare")
    assert "run1" in section.inner_text()
    assert opened.page.locator("#curve svg .second").count() > 3
    assert opened.messages == []
