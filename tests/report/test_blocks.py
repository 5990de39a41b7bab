"""A block is one file and one entry: planted here, it stands in every form of the report."""

import json

import pytest
from support.sweeps import SETTINGS, make_run

from pytest_tfgrpo.metrics.noise import Flaky
from pytest_tfgrpo.report.blocks import table
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock
from pytest_tfgrpo.report.blocks.flaky import FLAKY
from pytest_tfgrpo.report.markdown import summary
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build

RUN = make_run(final={"a": [1, 0], "b": [1, 1]})


def named(at: BlockSources) -> list[str]:
    """Return the flaky scenarios, as the block `flaky` has them."""
    rows: list[Flaky] = at.of(FLAKY) or []
    return [row["scenario"] for row in rows]


TOY = ReportBlock(
    "toy_names",
    named,
    lambda found: f"{len(found)} seen beside a gain of {len(found)}",
    name="toy",
    details=lambda found, shown, limit: [f"named {shown(one)}, {limit}" for one in found],
    warnings=lambda found: [f"the toy found {one}" for one in found],
)


def test_a_planted_block_stands_on_terminal_markdown_and_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "BLOCKS", (TOY, *table.BLOCKS))
    value = build(RUN, None)
    assert (value["toy_names"], value["warnings"]) == (["a"], ["the toy found a"])
    stored = json.loads(json.dumps(value))
    for report in (value, stored):
        assert "toy_names" not in "".join(terminal(report))
        lines = terminal(report, verbosity=1)
        first = lines.index("toy  1 seen beside a gain of 1")
        assert lines[first + 1] == "  named a, None"
        assert lines[first + 2].startswith("noise  ")
        assert "- Toy: 1 seen beside a gain of 1.\n  - named a, 20.\n- Noise: " in summary(report)
        page = html(report)
        assert "<dt>Toy</dt><dd>1 seen beside a gain of 1.</dd>" in page
        assert "Toy names" not in page


def test_the_block_says_what_is_always_shown_what_is_null_and_what_is_a_table_of_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = ReportBlock(
        "said_so", lambda _: {"n": 1}, lambda _: "at all times", always=lambda *_: True, caveat=False
    )
    empty = ReportBlock[str]("empty", lambda _: None, lambda _: "nothing")
    null = ReportBlock[str]("null", lambda _: None, lambda _: "nothing", null=True)
    monkeypatch.setattr(table, "BLOCKS", (said, empty, null))
    report = build(RUN, None)
    assert "said_so  at all times" in terminal(report)
    assert "<h3>Said so</h3>" in html(report)
    assert "empty" not in report
    assert report["null"] is None
    assert "nothing" not in summary(report)


def test_every_block_has_a_key_of_its_own() -> None:
    keys = [block.key for block in table.BLOCKS]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(("untested", "held"), [("hold", [True]), ("keep", [])])
def test_lessons_that_are_held_back_are_listed_whatever_they_were_learned_from(
    untested: str, held: list[bool]
) -> None:
    run = make_run(final={"a": [1, 0]}, train={"b": [1, 0]}, settings=SETTINGS | {"untested": untested})
    assert "evidence" not in run.preflight
    report = build(run, None)
    assert [report["untested"]["held"] for key in report if key == "untested"] == held
    assert ("they are held back" in summary(report)) is bool(held)
