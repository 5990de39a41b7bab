"""What an import keeps count of."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.suite.imports import imported
from pytest_tfgrpo.suite.imports.imported import Imported, expectation, outcome


def test_what_is_lost_is_told_once_with_its_first_place_and_the_most_frequent_first() -> None:
    found = Imported(source="a.csv")
    found.leave_out("rare", "row 1")
    found.leave_out("b often", "row 2")
    found.leave_out("a often", "a.csv: row 3")
    found.leave_out("b often", "row 4")
    found.leave_out("a often", "row 5")
    found.note("odd", "row 6")
    found.refuse("x", "it is empty")
    assert list(found.report()) == [
        "not imported: x: it is empty",
        "not carried over, 2 times: a often (first: a.csv: row 3)",
        "not carried over, 2 times: b often (first: a.csv: row 2)",
        "not carried over, 1 time: rare (first: a.csv: row 1)",
        "note, 1 time: odd (first: a.csv: row 6)",
    ]


def test_keys_with_a_value_that_nothing_uses_are_lost() -> None:
    found = Imported()
    row = {"used": 1, "x": 0, "f": False, "blank": " ", "none": None, "list": [], "table": {}, "": "y"}
    found.leave_out_keys(row, {"used"}, " of a row", "row 1")
    assert sorted(found.left_out) == ["`f` of a row", "`x` of a row", "a column without a name"]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a", "a", "a"], ["a", "a-2", "a-3"]),
        (["a b", "a/b"], ["a-b", "a-b-2"]),
        (["..", "\u00e4"], ["scenario", "scenario-2"]),
        (["x" * 200, "x" * 128, "x" * 128], ["x" * 100, "x" * 128, f"{'x' * 100}-2"]),
    ],
)
def test_each_scenario_has_the_nearest_id_that_is_free(ids: list[str], expected: list[str]) -> None:
    found = Imported(source="f")
    for n, id_ in enumerate(ids):
        found.add(id_, {"prompt": "p"}, f"row {n}")
    assert [scenario["id"] for scenario in found.scenarios] == expected
    assert found.origins == {id_: f"f: row {n}" for n, id_ in enumerate(expected)}


def test_files_of_one_name_clash_where_they_differ_and_all_of_them_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(imported, "FILES_MAX_BYTES", 4)
    found = Imported()
    found.keep({"a": b"12"})
    assert not found.clashes({"a": b"12", "b": b"1"})
    assert found.clashes({"b": b"1", "a": b"13"})
    found.keep({"a": b"12", "b": b"34"})
    with pytest.raises(ValueError, match="more than 4 bytes"):
        found.keep({"c": b"5"})
    assert sorted(found.files) == ["a", "b"]


def test_an_expected_answer_is_a_check_or_a_criterion() -> None:
    assert expectation(" 7 ", "number")["checks"][0]["kind"] == "number"
    with pytest.raises(ValueError, match="expected answers that are no number"):
        expectation("seven apples", "number")
    assert expectation("near", "similar") == {"checks": [{"kind": "similar", "value": "near"}]}
    judged = expectation("blue", "rubric")
    assert judged == {"rubric": "The answer agrees with this expected answer: blue", "truth": "judge"}
    with pytest.raises(ValueError, match=r"expected answers of more than 2,000 characters"):
        expectation("x" * 2_000, "rubric")
    with pytest.raises(ValueError, match=r"expected outcomes of more than 2,000 characters"):
        outcome("x" * 2_000)
