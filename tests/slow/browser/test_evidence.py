"""From lessons to their evidence and back, and from clusters of failures to their scenarios."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.browser_runs import Open

OPENED = "#scenario/count-3/epoch2-eval"
ROWS = "#map tbody tr:not(.gap) th"


@pytest.fixture
def page(visit: Open, pages: Path) -> Page:
    opened: Page = visit(pages / "report.html").page
    return opened


def test_a_cluster_shows_its_scenarios_in_the_table(page: Page) -> None:
    row = page.locator("#failures tbody tr", has_text="timeout: no answer in 2 s").first
    row.get_by_role("link", name="show the").click()
    expect(page.locator(ROWS)).to_have_text([re.compile("^date-1")])
    expect(page.locator("#cluster option:checked")).to_contain_text("timeout: no answer in 2 s")
    expect(page.locator("#scenarios-head")).to_be_in_viewport()
    page.select_option("#cluster", "")
    expect(page.locator("#count")).to_have_text("24 scenarios")


def test_a_cluster_in_the_address_filters_and_is_joined_by_other_filters(
    page: Page, visit: Open, pages: Path
) -> None:
    href = page.locator("#failures tbody a[href*=cluster]").first.get_attribute("href")
    again = visit(pages / "report.html", str(href)).page
    some = again.locator(ROWS).count()
    assert 1 < some < 24
    again.select_option("#domain", "dates")
    expect(again.locator("#domain")).to_have_value("dates")
    assert 0 < again.locator(ROWS).count() < some
    assert "cluster=" in again.evaluate("location.hash")
    assert "domain=dates" in again.evaluate("location.hash")


def test_an_unknown_cluster_or_lesson_in_the_address_hides_nothing(visit: Open, pages: Path) -> None:
    for fragment in ("#scenarios?cluster=none", "#scenarios?lesson=none", "#lesson/none", "#lesson/%E0%A4%A"):
        visited = visit(pages / "report.html", fragment)
        expect(visited.page.locator("#count")).to_have_text("24 scenarios")
        assert visited.messages == []


def test_the_example_of_a_cluster_opens_at_its_rollout(page: Page) -> None:
    row = page.locator("#failures tbody tr", has_text="timeout: no answer in 2 s").first
    row.get_by_role("link", name="date-1 r2").click()
    expect(page.locator("dialog#detail h2").first).to_have_text("date-1")
    opened = page.locator("dialog#detail details.rollout[open]")
    expect(opened).to_have_count(1)
    expect(opened.locator("summary").first).to_contain_text("r2: no answer")


def test_an_open_scenario_leads_to_what_fails_alike(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", "#scenario/date-1/epoch2-eval").page
    alike = page.locator("dialog#detail details.alike")
    alike.locator("summary").click()
    alike.get_by_role("link", name="timeout: no answer in 2 s").click()
    expect(page.locator("dialog#detail")).to_be_hidden()
    expect(page.locator(ROWS)).to_have_text([re.compile("^date-1")])


def test_a_scenario_leads_to_its_lessons_and_a_lesson_to_its_scenarios(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", OPENED).page
    lessons = page.locator("dialog#detail details.lessons", has_text="Lessons in its prompt")
    lessons.locator("summary").click()
    lessons.get_by_role("link").first.click()
    expect(page.locator("dialog#detail")).to_be_hidden()
    row = page.locator('tr[id^="lesson/"]:focus')
    expect(row).to_have_count(1)
    expect(row).to_be_in_viewport()
    row.get_by_role("link", name="show the").click()
    expect(page.locator("#count")).to_have_text("24 scenarios")


def test_a_lesson_leads_to_the_group_that_taught_it_and_back(page: Page) -> None:
    row = page.locator('tr[id^="lesson/"]').first
    row.locator("td.came a").first.click()
    expect(page.locator("dialog#detail h3", has_text="Winner against loser")).to_be_visible()
    learned = page.locator("dialog#detail details.lessons", has_text="Lessons learned from these rollouts")
    expect(learned).to_have_attribute("open", "")
    learned.get_by_role("link").first.click()
    expect(page.locator('tr[id^="lesson/"]:focus')).to_have_attribute("id", str(row.get_attribute("id")))


def test_a_lesson_of_a_rollout_is_a_link_too(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", OPENED).page
    page.locator("dialog#detail details.rollout summary").first.click()
    page.locator("dialog#detail details.rollout").first.get_by_role("link").first.click()
    expect(page.locator('tr[id^="lesson/"]:focus')).to_have_count(1)


def test_hostile_failures_and_lessons_stay_text(visit: Open, pages: Path) -> None:
    visited = visit(pages / "hostile.html")
    page = visited.page
    for summary in page.locator("#failures summary").all()[1:]:
        summary.click()
    page.locator("#failures tbody a[href*=cluster]").first.click()
    page.locator("#failures tbody td.text a").first.click()
    expect(page.locator("dialog#detail h2").first).to_be_visible()
    assert page.evaluate("window.__hacked") is None
    assert (visited.messages, visited.requests, visited.violations()) == ([], [], [])
