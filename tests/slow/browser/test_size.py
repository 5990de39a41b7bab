"""Large runs: a page of 1,000 scenarios that holds all of them, and one that holds a part."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser_runs import FAULTS, Open, hostile_run
from support.builders import make_frame
from support.sweeps import make_run

from pytest_tfgrpo.cli.project import open_project
from pytest_tfgrpo.cli.runs import view
from pytest_tfgrpo.cli.view_server import PageServer, serve
from pytest_tfgrpo.core.files import REPORT_HTML
from pytest_tfgrpo.core.records import Group, Rollout, Run
from pytest_tfgrpo.report.page import choice
from pytest_tfgrpo.report.page.html import LIMIT, html, write_page
from pytest_tfgrpo.report.page.layout import layout
from pytest_tfgrpo.report.page.payload import details, payload
from pytest_tfgrpo.report.value import build


def large_run() -> Run:
    """Return a run whose steps hardly compress."""
    rng = random.Random(0)
    ids = [f"s{n}" for n in range(1000)]

    def told(rollout: Rollout) -> Rollout:
        frames = (make_frame(output=rng.randbytes(300).hex(), input=rng.randbytes(40).hex()) for _ in "1234")
        return replace(rollout, frames=tuple(frames))

    def changed(group: Group) -> Group:
        return replace(group, rollouts=tuple(map(told, group.rollouts)))

    drawn = (
        {id_: [float(rng.random() < chance) for _ in range(5)] for id_ in ids} for chance in (0.4, 0.8, 0.6)
    )
    run = make_run(*drawn)
    phases = (replace(phase, groups=tuple(map(changed, phase.groups))) for phase in run.phases)
    return replace(run, phases=tuple(phases))


def test_a_large_run_is_a_page_under_15_mb_that_opens(visit: Open, tmp_path: Path) -> None:
    run = large_run()
    path = tmp_path / "large.html"
    path.write_text(html(build(run, None), run), encoding="utf-8")
    assert 0.9 * LIMIT < path.stat().st_size <= LIMIT < 15_000_000
    page = visit(path).page
    link = page.locator("#map tbody td a").first
    link.focus()
    expect(page.locator("#count")).to_contain_text("1,000 scenarios")
    link.press("Enter")
    expect(page.locator("dialog#detail details.rollout")).to_have_count(5)


HELD = 6


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the page of a run with hostile texts, as if a page had room for six scenarios."""
    monkeypatch.setattr(choice, "ROWS", HELD)
    for module in (payload, details):
        monkeypatch.setattr(module, "SHARD", 4)
    run = hostile_run()
    assert len(run.scenarios) > 20
    write_page(tmp_path, build(run, None), run)
    return tmp_path


@pytest.fixture
def served(large: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address at which `tfgrpo view` serves it."""
    monkeypatch.setattr(view, "is_fresh", lambda folder: True)
    with PageServer(view.RunSite(open_project(large, {}, {}), large)) as server:
        serve(server)
        yield server.address
        server.shutdown()


def outside() -> str:
    """Return the id of a scenario that the page does not hold."""
    run = hostile_run()
    cells = layout(build(run, None), run).cells
    assert cells.held == HELD
    return next(row.id for row in cells.rows[HELD:] if row.split == "eval")


def test_a_page_that_holds_a_part_says_so_and_what_shows_all(visit: Open, large: Path, axe: str) -> None:
    run, id_ = hostile_run(), outside()
    opened = visit(large / REPORT_HTML)
    page = opened.page
    total = len(run.scenarios)
    expect(page.locator("#beyond")).to_contain_text(f"This page holds {HELD} of {total} scenarios")
    expect(page.locator("#beyond-elsewhere code")).to_have_text(f"tfgrpo view {run.run_id}")
    expect(page.locator("#load-all")).to_be_hidden()
    page.fill("#find", id_)
    expect(page.locator("#map")).to_contain_text("no scenario on this page matches the filter")
    page.evaluate("(id) => { location.hash = `scenario/${id}`; }", id_)
    expect(page.locator("#beyond-state")).to_have_text(f"The scenario {id_} is not on this page.")
    page.evaluate(axe)
    assert page.evaluate(FAULTS) == []
    assert (opened.violations(), opened.requests) == ([], [])


def test_the_view_searches_all_scenarios_and_opens_each(visit: Open, large: Path, served: str) -> None:
    id_ = outside()
    opened = visit(served)
    page = opened.page
    expect(page.locator("#beyond-here")).to_be_visible()
    expect(page.locator("#beyond-elsewhere")).to_be_hidden()
    assert {url for url in opened.requests if "details" in url} == set()
    page.fill("#find", id_)
    expect(page.locator("#beyond")).to_be_hidden()
    expect(page.locator("#map tbody th a").first).to_contain_text(id_)
    page.locator("#map tbody td.end a").first.click()
    expect(page.locator("dialog#detail details.rollout")).not_to_have_count(0)
    page.keyboard.press("Escape")
    page.fill("#find", "")
    eval_split = sum(scenario.split == "eval" for scenario in hostile_run().scenarios)
    expect(page.locator("#count")).to_have_text(f"{eval_split} scenarios")
    assert page.evaluate("window.__hacked") is None
    assert (opened.violations(), opened.messages) == ([], [])


def test_an_address_leads_to_a_scenario_that_only_the_view_has(visit: Open, large: Path, served: str) -> None:
    id_ = outside()
    page = visit(served, f"#scenario/{id_}").page
    expect(page.locator("dialog#detail h2").first).to_have_text(id_)
    expect(page.locator("dialog#detail details.rollout")).not_to_have_count(0)


def test_a_mark_of_a_scenario_that_the_page_does_not_hold_counts_once_all_are_loaded(
    visit: Open, large: Path, served: str
) -> None:
    id_, run = outside(), hostile_run()
    rollout = next(g for p in run.phases for g in p.groups if g.scenario_id == id_).rollouts[0]
    stamp = next(scenario.stamp for scenario in run.scenarios if scenario.id == id_)
    mark = {"rollout": rollout.rollout_id, "scenario": id_, "stamp": stamp, "mark": "right"}
    marks = {"schema": "tfgrpo.marks/1", "run_id": run.run_id, "reviewer": "Ann", "marks": [mark]}
    page = visit(served).page
    page.set_input_files(
        "#marks-load",
        {"name": "marks.json", "mimeType": "application/json", "buffer": json.dumps(marks).encode()},
    )
    expect(page.locator("#review-count")).to_contain_text("1 of an answer that this page does not have")
    page.click("#load-all")
    expect(page.locator("#review-count")).not_to_contain_text("does not have")
    expect(page.locator("#review-count")).to_contain_text("1 mark: 1 right")


def test_a_view_that_has_ended_is_named_with_what_starts_it_again(
    visit: Open, large: Path, served: str
) -> None:
    page = visit(served).page
    page.route("**/details/**", lambda route: route.abort())
    page.click("#load-all")
    expect(page.locator("#beyond-state")).to_contain_text(
        "the view does not answer; start it again: tfgrpo view"
    )
    expect(page.locator("#load-all")).to_be_enabled()
