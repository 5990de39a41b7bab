"""Values of the report that have no place of their own, as a page shows them."""

from dataclasses import replace

import pytest
from support.sweeps import make_run

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.page.grid import grid
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.page.page_tables import MAX_ROWS, effect_columns, flat, shape, tags
from pytest_tfgrpo.report.value import build


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [
        (None, "", "-"),
        (True, "", "yes"),
        (False, "", "no"),
        (3, "", "3"),
        (0.0, "", "0.000"),
        (0.001, "", "0.001"),
        (0.00099, "", "0.00099"),
        (-0.0005, "", "-0.0005"),
        (999.5, "", "999.500"),
        (1000.0, "", "1000"),
        (-123456.0, "", "-1.235e+05"),
        ("ab", "", "ab"),
        ("ab", "ci95", "ab"),
        ([0.25, 0.5], "ci95", "0.250 to 0.500"),
        ([1, 2, 3], "ci95", "1, 2, 3"),
        ([0.25, 0.5], "means", "0.250, 0.500"),
        ([], "", "-"),
        ({}, "", "-"),
        ({"a": 1, "b": None}, "", "a 1, b -"),
    ],
)
def test_a_value_is_one_text(value: Json, key: str, text: str) -> None:
    assert flat(value, key) == text


def test_an_object_has_facts_and_what_is_more_than_numbers_is_a_part() -> None:
    found = shape({"n": 1, "ci95": [0.0, 1.0], "none": {}, "empty": [], "in": {"a": 2}, "words": ["x"]})
    assert found["facts"] == [("n", "1"), ("ci95", "0.000 to 1.000"), ("none", "-"), ("empty", "-")]
    assert [key for key, _ in found["parts"]] == ["in", "words"]
    assert found["parts"][0][1]["facts"] == [("a", "2")]


def test_rows_of_objects_are_a_table_and_other_rows_a_list() -> None:
    table = shape([{"a": 1}, {"b": 2}])
    assert (table["kind"], table["heads"], table["rows"]) == ("table", ["a", "b"], [["1", "-"], ["-", "2"]])
    for other in ([], [1, 2], [{"a": 1}, 2]):
        assert shape(other)["kind"] == "list"
    assert shape("abc") == {"kind": "text", "text": "abc"}
    for many in ([1] * (MAX_ROWS + 2), [{"a": 1}] * (MAX_ROWS + 2)):
        assert shape(many)["more"] == 2
    assert shape([1] * MAX_ROWS)["more"] == 0


def test_an_effect_of_nothing_is_a_figure() -> None:
    assert effect_columns([{"shrunken": 0.0, "effect": 0.0, "included": 0}]) == [
        "effect",
        "alone",
        "with / without",
    ]


def test_tags_have_the_means_of_their_scenarios_in_the_final_sweep() -> None:
    run = make_run(
        {"a": [0, 0], "b": [1, 1]}, {"a": [1, 1], "b": [1, 0], "c": [0, None], "d": [None, None]}, {"t": [1]}
    )
    known = {"a": ("x", "y", "x"), "b": ("x",), "c": ("z",), "d": ("z",), "t": ("x",)}
    run = replace(run, scenarios=tuple(replace(s, tags=known[s.id]) for s in run.scenarios))
    cells = grid(build(run, None), run)
    assert tags(cells, run) == [
        {"tag": "x", "n": 2, "mean": 0.75, "gain": 0.25},
        {"tag": "y", "n": 1, "mean": 1.0, "gain": 1.0},
        {"tag": "z", "n": 1, "mean": 0.0, "gain": None},
    ]
    assert tags(cells, None) == []
    assert '<a href="#scenarios?tag=x">x</a></th><td>2</td><td>0.750</td><td>+0.250</td>' in html(
        build(run, None), run
    )
