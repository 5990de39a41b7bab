"""Other runs on the page of a run: which answers stand side by side, and what a small page keeps of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.page.beside import data, run
from support.reached import reached, reaches
from support.sweeps import Credits, make_result

from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.page import html as page_html
from pytest_tfgrpo.report.page.beside import telling_pair
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.value import build


def held(chunks: Mapping[int, Mapping[str, Any]], cell: Sequence[Any]) -> Mapping[str, Any]:
    """Return the group that a cell of another run leads to."""
    group: Mapping[str, Any] = chunks[cell[4]]["groups"][f"{cell[5]}.0"]
    return group


def test_the_page_holds_the_answers_of_every_run_to_the_scenarios_they_share() -> None:
    own = run({"a": [0, 1], "b": [1, 1], "mine": [1]}, "run2")
    first, second = run({"gone": [1], "b": [0, 1], "a": [1, 1]}, "run1"), run({"a": [None, 0]}, "run3")
    index, chunks = data(own, [first, second])
    assert [one["name"] for one in index["compare"]["runs"]] == ["A", "C"]
    rows = {index["rows"][n][0]: cells for n, *cells in index["compare"]["rows"]}
    assert sorted(rows) == ["a", "b"]
    assert [cell[:3] for cell in rows["a"]] == [[1.0, 2, 0], [0.0, 1, 1]]
    assert rows["b"][1] == 0
    for run_id, id_, cell in (
        ("run1", "a", rows["a"][0]),
        ("run1", "b", rows["b"][0]),
        ("run3", "a", rows["a"][1]),
    ):
        assert [rollout["id"] for rollout in held(chunks, cell)["rollouts"]] == [
            f"{run_id}.e2.{id_}.r{n}" for n in range(2)
        ]


def test_another_task_under_the_same_id_is_marked() -> None:
    own, other = run({"a": [0], "b": [1]}, "run2"), run({"a": [1], "b": [1]}, "run1")
    changed = replace(
        other, scenarios=tuple(replace(s, stamp=s.stamp * (s.id == "a")) for s in other.scenarios)
    )
    index, _ = data(own, [changed])
    assert [cell[6] for _, cell in index["compare"]["rows"]] == [1, 0]


def test_runs_without_anything_in_common_make_a_page() -> None:
    killed = replace(run({"a": [1]}, "run1"), phases=(), status="incomplete", reason="killed")
    for own, other in (
        (run({"a": [1]}, "run2"), run({"b": [1]}, "run1")),
        (run({"a": [1]}, "run2"), killed),
        (replace(killed, run_id="run2"), run({"a": [1]}, "run1")),
    ):
        index, _ = data(own, [other])
        assert index["compare"]["rows"] == []


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ([0, 1, 1], [1, 0, 0], (1, 1)),  # A is better: its best, and the worst of B
        ([0, 1, 0], [1, 1, 0], (0, 0)),  # B is better: the worst of A, and its best
        ([None, 0.5, 1], [None, None, 0], (2, 2)),  # errors are neither
        ([None, None], [1, 0], (0, 0)),  # nothing is known of A: the first answers that differ
        ([1, 0, 1], [1, 1, 0], (1, 1)),  # equal means: the first answers that differ
        ([1, 1], [1, 1], (0, 0)),
    ],
)
def test_the_rollouts_that_show_the_difference_best_stand_side_by_side(
    before: Credits, after: Credits, places: tuple[int, int]
) -> None:
    (old,), (new,) = (make_result({"a": credited}).groups for credited in (before, after))
    assert telling_pair(old, new) == places


CREDITS = st.lists(st.sampled_from([None, -1.0, 0.0, 0.5, 1.0]), min_size=1, max_size=5)


@reaches("unequal means", "no mean", "equal means")
@given(before=CREDITS, after=CREDITS)
def test_the_rollouts_that_are_chosen_exist_and_are_on_the_sides_of_the_means(
    before: Credits, after: Credits
) -> None:
    (old,), (new,) = (make_result({"a": credited}).groups for credited in (before, after))
    theirs, ours = telling_pair(old, new)
    assert 0 <= theirs < len(before)
    assert 0 <= ours < len(after)
    reached("no mean", old.gt_mean is None or new.gt_mean is None)
    reached("equal means", old.gt_mean is not None and old.gt_mean == new.gt_mean)
    if old.gt_mean is not None and new.gt_mean is not None and old.gt_mean != new.gt_mean:
        reached("unequal means")
        a, b = old.scores[theirs].gt_score, new.scores[ours].gt_score
        assert a is not None
        assert b is not None
        assert (a > b) == (old.gt_mean > new.gt_mean)


def test_each_run_has_an_equal_share_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    own = run({f"s{n}": [0, 1] for n in range(10)}, "run2")
    others = [run({f"s{n}": [1, 1] for n in range(10)}, name, frames=30) for name in ("run1", "run3")]
    bare = len(html(build(own, None), own, versus(others[0], own, others[1:])))
    monkeypatch.setattr(page_html, "LIMIT", bare + 200_000)
    index, _ = data(own, others)
    assert all(one["left_out"]["frames"] for one in index["compare"]["runs"])
    assert index["left_out"] == {}
