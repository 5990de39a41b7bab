"""Other runs on the page of a run: which answers stand side by side, and what a small page keeps of them."""

import pytest
from support.page.beside import data, run

from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.page import html as page_html
from pytest_tfgrpo.report.page.beside import beside, shown_first
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.value import build


def test_a_page_that_is_too_small_keeps_the_steps_that_stand_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = {f"s{n}": [0.0, 1.0, 0.5, 1.0] for n in range(20)}
    own, other = run(scores, "run2", frames=8), run({id_: [1, 1, 1, 1] for id_ in scores}, "run1", frames=8)
    whole = html(build(own, None), own, versus(other, own), [other])
    monkeypatch.setattr(page_html, "LIMIT", len(whole) - 120_000)
    page = html(build(own, None), own, versus(other, own), [other])
    assert len(page) <= page_html.LIMIT
    index, chunks = data(own, [other])
    left_out = index["compare"]["runs"][0]["left_out"]["frames"] + index["left_out"]["frames"]
    assert left_out > 0
    kept = shown_first(beside(own, {"A": other}, scores), own)
    assert len(kept) == 2 * len(scores)
    rollouts = [
        r for chunk in chunks.values() for group in chunk["groups"].values() for r in group["rollouts"]
    ]
    assert {r["id"] for r in rollouts if isinstance(r["frames"], list)} >= kept
    assert sum(not isinstance(r["frames"], list) for r in rollouts) == left_out
