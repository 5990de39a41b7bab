"""Which scenarios the page of a large run holds."""

from collections.abc import Sequence

import pytest
from support.sweeps import make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.report.page import choice
from pytest_tfgrpo.report.page.choice import chosen
from pytest_tfgrpo.report.page.grid import Grid, grid
from pytest_tfgrpo.report.page.layout import layout
from pytest_tfgrpo.report.value import build

SOLVED = {f"s{n}": [1, 1] for n in range(20)}


def held(cells: Grid) -> Sequence[str]:
    return [row.id for row in cells.inside]


def cells_of(run: Run) -> Grid:
    return grid(build(run, None), run)


def test_losses_failures_gains_and_mixed_groups_come_before_what_is_solved_throughout() -> None:
    telling = {"lost": ([1, 1], [0, 1]), "low": ([0, 0], [0, 0]), "won": ([0, 0], [1, 1])}
    before = SOLVED | {id_: scores[0] for id_, scores in telling.items()}
    after = SOLVED | {id_: scores[1] for id_, scores in telling.items()}
    found = chosen(cells_of(make_run(before, after)), 3)
    assert held(found) == ["lost", "low", "won"]
    assert len(found.rows) == 23


def test_a_mixed_group_has_a_place_beside_many_that_fail() -> None:
    scores = {f"f{n}": [0, 0, 0, 0] for n in range(9)} | {"mixed": [1, 1, 1, 0]}
    assert held(chosen(cells_of(make_run(scores, scores)), 2)) == ["f0", "mixed"]


def test_the_largest_loss_comes_first() -> None:
    before = {f"s{n}": [1.0] for n in range(5)}
    after = {f"s{n}": [score] for n, score in enumerate((0.9, 0.5, 0.2, 0.8, 0.6))}
    assert held(chosen(cells_of(make_run(before, after)), 1)) == ["s2"]


def test_rows_in_the_page_and_beside_it_keep_the_order_of_the_suite() -> None:
    before = SOLVED | {"z": [1, 1], "y": [1, 1]}
    found = chosen(cells_of(make_run(before, before | {"s7": [0, 0], "s3": [0, 1]})), 2)
    assert held(found) == ["s3", "s7"]
    others = [row.id for row in found.rows[2:]]
    assert others == [id_ for id_ in before if id_ not in ("s3", "s7")]


def test_each_split_has_its_share_and_leaves_what_it_does_not_need() -> None:
    train = {f"t{n}": [0, 1] for n in range(30)}
    run = make_run({"a": [1], "b": [1]}, {"a": [1], "b": [1]}, train)
    found = held(chosen(cells_of(run), 10))
    assert {"a", "b"} < set(found)
    assert len(found) == 10


def test_wanted_scenarios_take_up_to_half_of_the_page() -> None:
    run = make_run(SOLVED, SOLVED | {f"s{n}": [0, 0] for n in range(4)})
    assert held(chosen(cells_of(run), 4, ["s19", "no such", "s18", "s17"])) == ["s0", "s1", "s18", "s19"]


def test_what_tables_and_lessons_lead_to_is_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "ROWS", 12)
    before = {f"s{n}": [1, 1] for n in range(40)}
    run = make_run(before, before | {"s30": [0, 0], "s31": [-1, 1], "s32": [None, 1]})
    report = build(run, None)
    laid = layout(report, run)
    ids = {row.id for row in laid.cells.inside}
    assert len(ids) == 12
    assert {row["scenario"] for row in report["regressions"]} <= ids
    assert {example["scenario"] for fault in laid.faults for example in fault["examples"]} == {"s31", "s32"}
    assert {"s31", "s32"} <= ids


def test_a_run_that_fits_stays_as_it_is() -> None:
    run = make_run(SOLVED, SOLVED)
    cells = layout(build(run, None), run).cells
    assert (cells.held, held(cells)) == (20, list(SOLVED))
