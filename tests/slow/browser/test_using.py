"""What a reader does with a report page: sort, filter, open, compare, and all of it by keyboard."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser_runs import Open, answering, sample_page, second_run
from support.sweeps import make_run

from pytest_tfgrpo.core.scenarios import SimulatedUser

CELLS = "#map tbody tr:not(.gap)"
IDS = "Array.from(document.querySelectorAll('#map tbody th a'), (link) => link.firstChild.data)"


@pytest.fixture
def page(visit: Open, pages: Path) -> Page:
    opened: Page = visit(pages / "report.html").page
    return opened


def first_column(page: Page) -> list[str]:
    return list(page.evaluate(IDS))


def heading(page: Page) -> Locator:
    return page.locator("dialog#detail h2").first


def test_the_map_is_sorted_by_a_click_on_a_head(page: Page) -> None:
    head = page.locator("#map thead th", has_text="scenario")
    head.get_by_role("button").click()
    ids = first_column(page)
    assert ids[:3] == ["count-0", "count-1", "count-2"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert first_column(page)[0] == "order-7"
    assert head.get_attribute("aria-sort") == "descending"


def test_the_largest_losses_come_first_unless_sorted_otherwise(page: Page) -> None:
    changes = page.locator(f"{CELLS} td.change").all_inner_texts()
    known = [float(text) for text in changes if text != "-"]
    assert known == sorted(known)
    assert known[0] < 0 < known[-1]


def test_the_dot_of_a_mixed_group_is_explained(page: Page) -> None:
    dots = page.locator(f"{CELLS} .mixed")
    expect(dots.first).to_have_attribute("title", "rollouts differ")
    drawn = dots.first.evaluate("(dot) => getComputedStyle(dot, '::after').content")
    assert drawn.strip('"') == "•"
    expect(page.locator("#scenarios > p.soft").last).to_contain_text("•: rollouts of the group differ")


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
    expect(page.locator("#count")).to_have_text("8 of 24 scenarios")
    assert {id_.partition("-")[0] for id_ in first_column(page)} == {"date"}
    page.fill("#find", "")
    page.get_by_role("button", name="train 12").click()
    expect(page.locator("#count")).to_have_text("12 scenarios")
    page.get_by_role("button", name="eval 24").click()
    page.select_option("#status", "errors")
    assert first_column(page) == ["date-1"]
    page.fill("#find", "count")
    expect(page.locator("#map tbody")).to_contain_text("no scenario matches the filter")


def test_a_filter_is_part_of_the_address(page: Page, visit: Open, pages: Path) -> None:
    page.fill("#find", "order-7")
    fragment = page.evaluate("location.hash")
    assert first_column(visit(pages / "report.html", fragment).page) == ["order-7"]


def test_a_cell_opens_to_its_group_its_rollouts_and_their_frames(page: Page) -> None:
    page.locator('#map a[aria-label^="date-1, end"]').click()
    expect(heading(page)).to_have_text("date-1")
    rollouts = page.locator("dialog#detail details.rollout")
    expect(rollouts).to_have_count(3)
    assert "how many words are in" in page.locator("dialog#detail pre").first.inner_text()
    first = rollouts.nth(0)
    first.locator("summary").click()
    expect(first.locator(".frame")).to_have_count(3)
    assert "count_words" in first.locator(".frame").nth(1).inner_text()
    assert '"strict": true' in first.locator(".frame").nth(1).inner_text()
    assert "5 tokens, $0.0004" in first.locator(".frame").nth(0).inner_text()
    table = page.get_by_role("group", name="rollouts").inner_text()
    assert "provider: 503 from the provider" in table
    assert "timeout: no answer in 2 s" in table


def test_the_task_of_a_conversation_shows_every_message_and_whom_a_model_plays(
    visit: Open, tmp_path: Path, screenshots: Path
) -> None:
    run = second_run()
    user = SimulatedUser(goal="A window table.", persona="In a hurry.", stop="It is booked.")
    said = ("I need a table for Friday.", "We are four. Is there one by the window?", "Then take it.")
    talks = tuple(
        replace(s, prompt=said[0], turns=said, user=user) if s.id == "date-1" else s for s in run.scenarios
    )
    (tmp_path / "talks.html").write_text(sample_page(replace(run, scenarios=talks)), encoding="utf-8")
    for width, height in ((1440, 900), (390, 844)):
        viewport = {"width": width, "height": height}
        page = visit(tmp_path / "talks.html", "#scenario/date-1/epoch2-eval", viewport=viewport).page
        task = page.locator("dialog#detail details", has_text="Task and ground truth")
        expect(task.locator("pre")).to_have_text(said)
        expect(task.get_by_role("group", name="the user that a model plays")).to_contain_text("In a hurry.")
        expect(task).to_contain_text("It is booked.")
        assert page.locator("dialog#detail").evaluate("box => box.scrollWidth <= box.clientWidth")
        page.screenshot(path=screenshots / f"conversation-{width}.png")


def test_a_cell_opens_to_the_prompt_as_it_was_asked(page: Page) -> None:
    page.locator('#map a[aria-label^="date-1, end"]').click()
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


def test_a_rollout_tells_what_rewarders_gave_it_and_why(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", "#scenario/count-3/epoch2-eval/0").page
    table = page.locator("details#r0").get_by_role("group", name="scores of rewarders")
    expect(table.locator("tbody tr")).to_have_text(["politeness0.900says please"])
    page = visit(pages / "hostile.html", "#scenario/count-3/epoch2-eval/0").page
    table = page.locator("details#r0").get_by_role("group", name="scores of rewarders")
    expect(table).to_contain_text("window.__hacked = 1")


def test_metrics_have_a_column_for_each_sweep_and_open_by_domain(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html").page
    rows = page.get_by_role("group", name="metrics", exact=True).locator("tbody th")
    expect(rows).to_have_text(["gt_score", "reward", "relative_rank", "politeness"])
    page.locator("#metrics summary", has_text="politeness by domain").click()
    domains = page.get_by_role("group", name="politeness by domain").locator("tbody th")
    expect(domains).to_have_text(["dates", "text"])


def test_a_long_text_is_shown_in_part_until_all_is_wanted(page: Page) -> None:
    page.goto(page.url.partition("#")[0] + "#scenario/count-3/epoch2-eval/0")
    frame = page.locator("dialog#detail details.rollout .frame").nth(2)
    assert len(frame.inner_text()) < 4000
    frame.get_by_role("button", name="show all 4,500 characters").click()
    assert len(frame.inner_text()) > 4000


def test_a_browser_that_cannot_decode_base64_itself_opens_rollouts_too(page: Page) -> None:
    page.add_init_script("delete Uint8Array.fromBase64;")
    page.goto(page.url.partition("#")[0] + "#scenario/train-0/epoch1")
    page.reload()
    expect(page.locator("dialog#detail details.rollout")).not_to_have_count(0)
    assert page.evaluate("'fromBase64' in Uint8Array") is False


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
    expect(opened.page.locator("#count")).to_have_text("24 scenarios")
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
    expect(page.locator("#count")).to_have_text("8 of 24 scenarios")
    for _ in range(20):  # filters, files, columns, heads of the table
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.at"):
            break
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


def test_a_comparison_opens_with_its_own_result(visit: Open, pages: Path) -> None:
    opened = visit(pages / "compare.html")
    first = opened.page.locator("main > *").first
    assert first.locator(".figure").first.inner_text().startswith("Better +0.")
    assert "B is better than A" in first.inner_text()
    heads = first.locator("table").first.locator("thead").inner_text().split("\t")
    assert [head.strip() for head in heads] == ["final sweep", "A", "B", "change"]
    gate = opened.page.locator("p", has_text="Gate of run B")
    assert gate.bounding_box()["y"] > opened.page.locator("#own").bounding_box()["y"]  # type: ignore[index]
    assert opened.page.locator("#curve svg .second").count() > 3
    assert opened.messages == []


def test_the_result_of_a_comparison_leads_to_the_answers_that_differ_most(
    visit: Open, pages: Path, tmp_path: Path
) -> None:
    page = visit(pages / "compare.html").page
    losses = [float(text) for text in page.locator("#map td.change-1").all_inner_texts() if text != "-"]
    result = page.locator("#compare .verdict").first
    expect(result).to_contain_text(f"Largest loss: count-7 {min(losses):+.3f}, its answers side by side.")
    result.get_by_role("link", name="count-7").click()
    expect(heading(page)).to_have_text("count-7")
    expect(page.locator("#beside .answers mark").first).to_be_visible()
    (tmp_path / "gains.html").write_text(
        sample_page(make_run(final={"a": [1, 1]}), make_run(final={"a": [0, 1]}, run_id="run0"))
    )
    expect(visit(tmp_path / "gains.html").page.locator("#compare .verdict").first).to_contain_text(
        "Largest gain: a +0.500"
    )


def test_the_answers_of_two_runs_stand_side_by_side_with_their_first_difference(
    visit: Open, pages: Path
) -> None:
    opened = visit(pages / "compare.html")
    opened.page.locator("#map td.change-1.lost a").first.click()
    beside = opened.page.locator("#beside")
    expect(beside.locator("h3")).to_have_text("A and B side by side")
    expect(beside.locator(".first-difference")).to_have_text("First difference: A r0 has “3”, B r2 has “4”.")
    assert beside.locator(".answers mark").all_inner_texts() == ["3", "4"]
    beside.locator("summary", has_text="Steps").click()
    expect(beside.locator(".pairs .first")).to_have_text("First difference")
    beside.locator("select").nth(1).select_option(index=1)
    expect(beside.locator(".sides")).to_contain_text("A r1")
    assert opened.messages == []


def test_the_scenario_table_has_a_column_for_each_run(visit: Open, pages: Path) -> None:
    opened = visit(pages / "several.html")
    page = opened.page
    heads = page.locator("#map thead th").all_inner_texts()
    assert heads == ["scenario", "task", "expected", "A", "B", "C", "B - A", "C - A"]
    cells = page.locator("#map tbody tr:not(.gap) td.change-2")
    page.select_option("#status", label="C worse than A")
    worse = cells.all_inner_texts()
    assert worse
    assert all(text.startswith("-") for text in worse)
    page.locator("#map thead th", has_text="C - A").get_by_role("button").click()
    assert [float(text) for text in cells.all_inner_texts()] == sorted(float(text) for text in worse)
    page.select_option("#status", value="")
    page.get_by_role("button", name="train").click()
    assert "A" not in page.locator("#map thead th").all_inner_texts()
    assert opened.messages == []


def test_answers_of_many_lines_are_compared_around_lines_that_each_has_once(
    visit: Open, tmp_path: Path
) -> None:
    lines = [f"step {n}" for n in range(6000)]
    changed = ["more", *(f"take {n}" if n % 10 == 5 else text for n, text in enumerate(lines))]
    path = tmp_path / "lines.html"
    path.write_text(sample_page(answering(lines), answering(changed)), encoding="utf-8")
    opened = visit(path, "#scenario/count-0")
    answers = opened.page.locator("#beside .answers pre")
    expect(answers.first.locator("mark")).to_have_count(601)
    expect(answers.nth(1).locator("mark")).to_have_count(600)
    assert answers.nth(1).locator("mark").first.inner_text() == "step 5"
    assert opened.messages == []


def test_long_answers_are_marked_by_line_and_scrolled_to_what_differs(visit: Open, tmp_path: Path) -> None:
    lines = [f"step {n} adds {n} and {n}" for n in range(2500)]
    changed = [line.replace("adds", "takes") if n % 2 else line for n, line in enumerate(lines)]
    own, other = (
        answering(["first", *lines[:1000], *lines[1000:]]),
        answering(["first", *lines[:1000], *changed[1000:]]),
    )
    path = tmp_path / "long.html"
    path.write_text(sample_page(own, other), encoding="utf-8")
    opened = visit(path, "#scenario/count-0")
    answers = opened.page.locator("#beside .answers pre")
    expect(answers.first.locator("mark")).to_have_count(750)
    expect(answers.nth(1).locator("mark").first).to_have_text(lines[1001])
    opened.page.wait_for_function(
        "() => [...document.querySelectorAll('#beside .answers pre')].every((one) => one.scrollTop > 0)"
    )
    assert opened.messages == []
