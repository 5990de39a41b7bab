"""A page of 1,000 scenarios x 5 rollouts x 3 phases: small enough for an attachment, and at hand."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser_runs import Open
from support.builders import make_frame
from support.sweeps import make_run

from pytest_tfgrpo.core.records import Group, Rollout, Run
from pytest_tfgrpo.harness.report.page.html import LIMIT, html
from pytest_tfgrpo.harness.report.value import build

pytestmark = pytest.mark.browser


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
        {id: [float(rng.random() < chance) for _ in range(5)] for id in ids} for chance in (0.4, 0.8, 0.6)
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
