"""What a reader takes from the report page: rows as files, commands and addresses, and what is printed."""

import csv
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.browser_runs import Open, first_run, sample_page, second_run
from support.tools import run_pytest

COPIED = """() => {
  window.__copied = [];
  navigator.clipboard.writeText = async (text) => { window.__copied.push(text); };
}"""


def saved(page: Page, button: str) -> str:
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_the_rows_that_are_shown_become_a_csv_file(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html").page
    page.fill("#find", "date-")
    expect(page.locator("#count")).to_have_text("8 of 24 scenarios")
    rows = list(csv.DictReader(io.StringIO(saved(page, "CSV").removeprefix("\ufeff"))))
    assert len(rows) == 8
    assert {row["domain"] for row in rows} == {"dates"}
    (one,) = (row for row in rows if row["id"] == "date-1")
    assert one["task"].startswith("date-1: how many words are in")
    assert (one["expected"], one["epoch2-eval errors"]) == ("3", "1")
    assert float(one["end"]) == float(one["epoch2-eval"])


def test_the_rows_that_are_shown_become_json_lines(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html").page
    page.get_by_role("button", name="train 12").click()
    rows = [json.loads(line) for line in saved(page, "JSON lines").splitlines()]
    assert len(rows) == 12
    assert {row["split"] for row in rows} == {"train"}
    assert {"id", "task", "expected", "answer", "failed", "end", "epoch1"} <= rows[0].keys()


def test_a_stamp_shows_its_start_and_is_copied_whole(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html").page
    page.locator("#run details").last.evaluate("(part) => { part.open = true; }")
    stamp = page.locator("#run .stamp").first
    whole = stamp.get_attribute("title") or ""
    copied = stamp.evaluate(
        "(it) => { getSelection().selectAllChildren(it); return getSelection().toString(); }"
    )
    assert copied == whole
    shown = stamp.evaluate("(it) => it.getBoundingClientRect().width")
    assert shown < 12 * 16 < 16 * len(whole) / 2


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("=1+1", "'=1+1"),
        ("  -2", "' -2"),
        ('"@SUM(A1)', "'\"@SUM(A1)"),
        ("＝cmd|x", "'＝cmd|x"),
        ("a;=b", "a;'=b"),
        ("\t=c\nd", "' =c d"),
        ("plain, 3-4", "plain, 3-4"),
    ],
)
def test_a_cell_is_no_formula(visit: Open, pages: Path, tmp_path: Path, text: str, inert: str) -> None:
    page_text = (pages / "report.html").read_text(encoding="utf-8")
    path = tmp_path / "formula.html"
    path.write_text(page_text.replace('"count-0"', json.dumps(text), 1), encoding="utf-8")
    page = visit(path).page
    expect(page.locator("#map .words a span").first).to_be_visible()
    rows = list(csv.DictReader(io.StringIO(saved(page, "CSV").removeprefix("\ufeff"))))
    assert inert in [row["id"] for row in rows]


def test_commands_and_addresses_are_copied(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", "#scenario/date-1/epoch2-eval/0").page
    rollout = page.locator("dialog#detail details.rollout[open]")
    expect(rollout.locator(".frame").first).to_be_visible()
    page.evaluate(COPIED)
    page.locator("dialog#detail > .copies").get_by_role("button", name="copy pytest").click()
    rollout.get_by_role("button", name="copy tfgrpo show").click()
    rollout.get_by_role("button", name="copy link").click()
    expect(page.get_by_role("button", name="copied")).to_have_count(3)
    pytest_command, show, link = page.evaluate("window.__copied")
    assert pytest_command == "pytest --tfgrpo-actor=offline fixtures/date-1.scenario.yaml::date-1"
    assert show == "tfgrpo show run2.e2.date-1.r0"
    assert link.endswith("report.html#scenario/date-1/epoch2-eval/0")


def test_the_copied_command_runs_the_scenario_again_with_the_agent_of_the_run(
    visit: Open, tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfgrpo_actor = offline\ntfgrpo_out = out\n")
    (tmp_path / "own.py").write_text('def solve(context):\n    return "yes"\n')
    checks = [{"kind": "exact", "value": "yes"}]
    listed = [
        {"id": f"{split}-1", "prompt": f"Say yes {split}.", "split": split, "checks": checks}
        for split in ("train", "dev", "eval")
    ]
    (tmp_path / "my suite.scenario.json").write_text(json.dumps(listed))
    assert run_pytest(tmp_path, "--tfgrpo", "--tfgrpo-actor=python:own:solve").returncode == 0
    (report,) = tmp_path.glob("out/*/runs/*/report.html")
    for split in ("train", "eval"):
        page = visit(report, f"#scenario/{split}-1").page
        page.evaluate(COPIED)
        page.locator("dialog#detail > .copies").get_by_role("button", name="copy pytest").click()
        program, *words = shlex.split(page.evaluate("window.__copied[0]"))
        assert program == "pytest"
        before = set(tmp_path.glob("out/*/runs/*"))
        assert run_pytest(tmp_path, *words).returncode == 0
        (folder,) = set(tmp_path.glob("out/*/runs/*")) - before
        again = json.loads((folder / "report.json").read_text())
        assert again["settings"]["actor"] == "python:own:solve"
        assert [scenario["id"] for scenario in again["scenarios"]] == [f"{split}-1"]
    page = visit(report, "#scenario/dev-1").page
    expect(page.locator("dialog#detail > .copies")).to_contain_text("runs only with the train scenarios")
    expect(page.get_by_role("button", name="copy pytest")).to_have_count(0)


def test_columns_are_chosen_and_the_address_keeps_them(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html").page
    page.locator(".menu summary").click()
    page.get_by_role("checkbox", name="source").check()
    page.get_by_role("checkbox", name="answer").uncheck()
    heads = page.locator("#map thead th").all_inner_texts()
    assert "source" in heads
    assert "answer" not in heads
    again = visit(pages / "report.html", page.evaluate("location.hash")).page
    assert again.locator("#map thead th").all_inner_texts() == heads


def test_a_phone_shows_rows_as_cards(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", viewport={"width": 390, "height": 844}, is_mobile=True).page
    row = page.locator("#map tbody tr:not(.gap)").first
    task, change = row.locator(".task"), row.locator(".change")
    expect(task.locator("span")).to_be_visible()
    places = task.bounding_box(), change.bounding_box(), page.locator("#map").bounding_box()
    below, right, box = (place or pytest.fail("nothing is there") for place in places)
    assert below["y"] > right["y"]
    assert below["width"] > 0.8 * box["width"]
    cut = "found => found.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    assert page.locator("#map tbody .phase a:visible").evaluate_all(cut) == []
    page.select_option("#order", label="scenario")
    assert row.locator("th a").get_attribute("href") == "#scenario/count-0"


@pytest.mark.parametrize("letters", ["ABC", "ABCDE"])
def test_the_cards_of_a_phone_have_each_of_several_runs(visit: Open, tmp_path: Path, letters: str) -> None:
    first = second_run()
    others = [replace(first_run(), run_id=f"run{n}") for n in range(3, 2 + len(letters))]
    (tmp_path / "page.html").write_text(sample_page(first, *others), encoding="utf-8")
    opened = visit(tmp_path / "page.html", viewport={"width": 390, "height": 844}, is_mobile=True)
    page = opened.page
    card = page.locator("#map tbody tr:not(.gap)").first
    named = "all => all.map((one) => one.dataset.name)"
    assert card.locator(".side a:visible").evaluate_all(named) == list(letters)
    changes = card.locator(".side .of > .phone")
    expect(changes).to_have_count(len(letters) - 1)
    assert all(text.strip()[0] in "+-" for text in changes.all_inner_texts())
    expect(card.locator(".expected span")).to_be_visible()
    boxes = [one.bounding_box() for one in [card, *card.locator("td:visible").all()]]
    whole, *cells = [box or pytest.fail("nothing is there") for box in boxes]
    assert max(box["x"] + box["width"] for box in cells) <= 390
    assert 0 <= whole["y"] + whole["height"] - max(box["y"] + box["height"] for box in cells) < 12
    assert opened.messages == []


def test_a_phone_shows_what_changed_between_two_runs_in_the_first_view(visit: Open, tmp_path: Path) -> None:
    actor = "python:agents.customer_support.triage:solve"
    own, other = (
        replace(run, settings={**run.settings, "actor": actor}) for run in (second_run(), first_run())
    )
    (tmp_path / "page.html").write_text(sample_page(own, other), encoding="utf-8")
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True}
    page = visit(tmp_path / "page.html", "#scenario/count-3", **phone).page
    buttons = page.locator("dialog#detail > .title .buttons > *").all()
    assert len({box["y"] for button in buttons if (box := button.bounding_box())}) == 1
    page.keyboard.press("Escape")
    head = page.get_by_role("group", name="the runs", exact=True).locator("th", has_text="change")
    box = head.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390


def test_paper_gets_the_scenario_that_is_open_and_nothing_else(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", "#scenario/date-1/epoch2-eval").page
    expect(page.locator("dialog#detail details.rollout").first).to_be_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator("main")).to_be_hidden()
    expect(page.locator("dialog#detail .rollout .frame").first).to_be_visible()
    expect(page.locator("dialog#detail .buttons")).to_be_hidden()
    box = page.locator("dialog#detail").bounding_box()
    assert box is not None
    assert box["height"] > 1500
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator("dialog#detail details.rollout[open]")).to_have_count(0)
