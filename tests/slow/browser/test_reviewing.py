"""A reviewer on the report page: marks answers by keyboard, saves the marks, and loads them again."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser_runs import HOSTILE, Open

from pytest_tfgrpo.core.wire.schema import violations

SCENARIO = "#scenario/date-1/epoch2-eval"


@pytest.fixture
def page(visit: Open, pages: Path) -> Page:
    """The page with a scenario open, whose first rollout passed."""
    opened: Page = visit(pages / "report.html", SCENARIO).page
    expect(rollouts(opened)).to_have_count(3)
    return opened


def rollouts(page: Page) -> Locator:
    return page.locator("dialog#detail details.rollout")


def form(page: Page, n: int = 0) -> Locator:
    return rollouts(page).nth(n).locator(".mark")


def save(page: Page, folder: Path) -> tuple[str, dict[str, Any]]:
    """Save the marks; returns the name of the file and what it holds."""
    with page.expect_download() as saved:
        page.locator("#marks-save").click()
    path = folder / "saved.json"
    saved.value.save_as(path)
    value: dict[str, Any] = json.loads(path.read_text())
    return saved.value.suggested_filename, value


def mark_by_keyboard(page: Page) -> None:
    """Mark the first rollout wrong with a comment, and the second unsure."""
    page.keyboard.press("n")
    expect(form(page)).to_be_visible()
    page.keyboard.press("w")
    page.keyboard.press("c")
    page.keyboard.type("wrong day, sorry")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("n")
    expect(form(page, 1)).to_be_visible()
    page.keyboard.press("u")


def test_answers_are_marked_by_keyboard_and_saved(page: Page, tmp_path: Path) -> None:
    mark_by_keyboard(page)
    expect(form(page).get_by_role("button", name="wrong")).to_have_attribute("aria-pressed", "true")
    expect(form(page).locator(".disagrees")).to_have_text("The checks passed it: you disagree.")
    expect(rollouts(page).nth(0).locator("summary .marked")).to_have_text("marked wrong")
    page.keyboard.press("Escape")
    expect(page.locator("#review-count")).to_have_text(
        "2 marks: 0 right, 1 wrong, 1 unsure. Checks and marks disagree on 1."
    )
    expect(page.locator("#review-list")).to_contain_text(
        "date-1 epoch2-eval r0 passed, you call it wrong: wrong day, sorry"
    )
    page.fill("#reviewer", "Ann")
    name, value = save(page, tmp_path)
    assert name == "marks-run2.json"
    assert violations("marks", value) == []
    assert value["reviewer"] == "Ann"
    first, second = value["marks"]
    assert first == {
        "rollout": "run2.e2.date-1.r0",
        "scenario": "date-1",
        "stamp": "task of date-1",
        "mark": "wrong",
        "comment": "wrong day, sorry",
    }
    assert (second["rollout"], second["mark"]) == ("run2.e2.date-1.r1", "unsure")


def test_the_browser_keeps_marks_until_they_are_removed(page: Page, pages: Path) -> None:
    mark_by_keyboard(page)
    page.reload()
    expect(rollouts(page).nth(0).locator("summary .marked")).to_have_text("marked wrong")
    rollouts(page).nth(0).locator("summary").click()
    expect(form(page).locator("textarea")).to_have_value("wrong day, sorry")
    form(page).get_by_role("button", name="remove").click()
    expect(rollouts(page).nth(0).locator("summary .marked")).to_have_text("")
    page.keyboard.press("Escape")
    expect(page.locator("#review-count")).to_contain_text("1 mark: 0 right, 0 wrong, 1 unsure.")
    page.goto((pages / "hostile.html").as_uri())
    expect(page.locator("#review-count")).to_contain_text("1 mark")  # the same run


def test_a_saved_file_is_loaded_again(page: Page, visit: Open, pages: Path, tmp_path: Path) -> None:
    mark_by_keyboard(page)
    page.keyboard.press("Escape")
    save(page, tmp_path)
    other = visit(pages / "report.html").page
    expect(other.locator("#review-count")).to_contain_text("No marks yet")
    other.locator("#marks-load").set_input_files(tmp_path / "saved.json")
    expect(other.locator("#review-message")).to_have_text("Loaded 2 marks.")
    expect(other.locator("#review-count")).to_contain_text("2 marks")
    other.locator("#review-list a").click()
    expect(rollouts(other).nth(0)).to_have_attribute("open", "")


def test_the_words_that_decide_are_those_selected_in_the_answer(page: Page, tmp_path: Path) -> None:
    page.keyboard.press("n")
    rollouts(page).nth(0).get_by_label("answer", exact=True).select_text()
    form(page).get_by_role("button", name="right").click()
    page.keyboard.press("Escape")
    _, value = save(page, tmp_path)
    assert value["marks"][0]["words"] == "3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "it is not JSON"),
        ('{"marks": []}', "it is not a file of marks"),
        (
            '{"schema": "tfgrpo.marks/0", "run_id": "run2", "marks": []}',
            'it has the schema "tfgrpo.marks/0", and this page reads tfgrpo.marks/1',
        ),
        ('{"schema": "tfgrpo.marks/1", "run_id": "run9", "marks": []}', "its marks are of run run9"),
        ('{"schema": "tfgrpo.marks/1", "run_id": "run2", "marks": [{"mark": "?"}]}', "neither right"),
        ('{"schema": "tfgrpo.marks/1", "run_id": "run2", "marks": [{"mark": "right"}]}', "no rollout"),
    ],
)
def test_a_file_that_holds_no_marks_is_refused(page: Page, tmp_path: Path, text: str, message: str) -> None:
    page.keyboard.press("Escape")
    (tmp_path / "bad.json").write_text(text)
    page.locator("#marks-load").set_input_files(tmp_path / "bad.json")
    expect(page.locator("#review-message")).to_contain_text(message)
    expect(page.locator("#review-count")).to_contain_text("No marks yet")


def test_hostile_marks_stay_text(visit: Open, pages: Path, tmp_path: Path) -> None:
    opened = visit(pages / "report.html")
    mark = {"rollout": "run2.e2.date-1.r0", "scenario": "date-1", "stamp": "task of date-1", "mark": "wrong"}
    strange = [
        mark | {"comment": HOSTILE, "words": HOSTILE},
        mark | {"rollout": HOSTILE, "scenario": "__proto__"},
    ]
    value = {"schema": "tfgrpo.marks/1", "run_id": "run2", "reviewer": HOSTILE[:80], "marks": strange}
    (tmp_path / "marks.json").write_text(json.dumps(value))
    opened.page.locator("#marks-load").set_input_files(tmp_path / "marks.json")
    expect(opened.page.locator("#review-list")).to_contain_text("<img src=x")
    expect(opened.page.locator("#review-count")).to_contain_text(
        "1 of an answer that this page does not have"
    )
    opened.page.locator("#review-list a").click()
    expect(form(opened.page).locator("textarea")).to_have_value(HOSTILE)
    assert opened.page.evaluate("window.__hacked") is None
    assert (opened.violations(), opened.messages, opened.requests) == ([], [], [])


def test_without_storage_the_page_says_that_marks_must_be_saved(visit: Open, pages: Path) -> None:
    opened = visit(pages / "report.html", SCENARIO)
    opened.page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('denied'); }; }")
    expect(opened.page.locator("#review-warning")).to_be_hidden()
    mark_by_keyboard(opened.page)
    opened.page.keyboard.press("Escape")
    expect(opened.page.locator("#review-warning")).to_be_visible()
    expect(opened.page.locator("#review-count")).to_contain_text("2 marks")
