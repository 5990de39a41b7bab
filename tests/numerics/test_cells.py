"""Cells and kinds: sums in place of rollouts, and one scenario in place of those like it, change nothing."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.samples import by_kinds_and_one_by_one

from pytest_tfgrpo.numerics.cells import cells_of, kinds_of

Row = tuple[int, tuple[bool, ...], float]
LESSONS = 3
SCORES = st.sampled_from([0.0, 1.0, math.nan]) | st.floats(0, 1)
ROWS = st.lists(st.tuples(st.integers(0, 5), st.tuples(*[st.booleans()] * LESSONS), SCORES), max_size=60)


def arrays(rows: list[Row]) -> tuple[Any, Any, Any]:
    return (
        np.array([score for _, _, score in rows], dtype=np.float64),
        np.array([scenario for scenario, _, _ in rows], dtype=np.intp),
        np.array([carried for _, carried, _ in rows], dtype=np.bool_).reshape(len(rows), LESSONS),
    )


@given(rows=ROWS, at=st.integers(0, 60))
@settings(max_examples=100)
def test_cells_are_the_sums_of_their_rollouts_to_the_last_bit_however_they_come(
    rows: list[Row], at: int
) -> None:
    sums: dict[tuple[int, tuple[bool, ...]], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for scenario, carried, score in rows:
        cell = sums[scenario, carried]
        told = not math.isnan(score)
        for n, value in enumerate((told, score if told else 0, score * score if told else 0, not told)):
            cell[n] += value
    found = cells_of(*arrays(rows[at:]), before=cells_of(*arrays(rows[:at])))
    at_once = cells_of(*arrays(rows))
    for one, two in zip(found, at_once, strict=True):
        np.testing.assert_array_equal(one, two)
    keys = sorted(sums)
    assert found.scenario_C.tolist() == [scenario for scenario, _ in keys]
    assert [tuple(row) for row in found.carried_CL.tolist()] == [carried for _, carried in keys]
    assert np.column_stack(found.sums).tolist() == [sums[key] for key in keys]


@given(rows=ROWS)
@settings(max_examples=50)
def test_errors_are_left_out_or_count_as_zero(rows: list[Row]) -> None:
    cells = cells_of(*arrays(rows))
    told = cells_of(*arrays([row for row in rows if not math.isnan(row[2])]))
    zero = cells_of(*arrays([(s, c, 0.0 if math.isnan(score) else score) for s, c, score in rows]))
    for found, expected in ((cells.scored, told), (cells.errors_as_zero, zero)):
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("graded", "errors"), [(True, False), (False, True)])
def test_kinds_of_scenarios_say_what_the_scenarios_one_by_one_say(graded: bool, errors: bool) -> None:
    for seed in range(2):
        for one, two in zip(*by_kinds_and_one_by_one(seed, graded, errors), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-10)


@given(rows=ROWS, seed=st.integers(0, 99))
@settings(max_examples=100)
def test_scenarios_are_one_kind_exactly_where_the_same_is_known_of_them(rows: list[Row], seed: int) -> None:
    rng = np.random.default_rng(seed)
    about, parts = rng.random((6, LESSONS)) < 0.8, rng.integers(0, 2, 6)
    cells = cells_of(*arrays(rows))
    of: dict[int, list[Any]] = {s: [about[s].tolist(), int(parts[s])] for s in range(6)}
    for row in zip(cells.scenario_C.tolist(), cells.carried_CL.tolist(), *cells.sums, strict=True):
        of[row[0]].append(row[1:])
    kinds = kinds_of(cells, about, parts)
    same = [[of[a] == of[b] for b in range(6)] for a in range(6)]
    assert (kinds.kind_S[:, None] == kinds.kind_S[None]).tolist() == same
    assert kinds.first_K.tolist() == sorted({row.index(True) for row in same})
    assert kinds.count_K.tolist() == [np.sum(kinds.kind_S == k) for k in range(kinds.first_K.size)]
    whole = cells.within(np.isin(np.arange(6), kinds.first_K))
    assert kinds.first_K[kinds.cells.scenario_C].tolist() == whole.scenario_C.tolist()
    np.testing.assert_array_equal(kinds.cells.sum_C, whole.sum_C)


def test_many_scenarios_are_of_few_kinds() -> None:
    rng = np.random.default_rng(0)
    scenarios, each = 20_000, 4
    at = np.repeat(np.arange(scenarios), each)
    domain = np.arange(scenarios) % 5
    about = domain[:, None] == np.arange(5)[None]
    carried = about[at] & np.repeat(rng.random(scenarios) < 0.5, each)[:, None]
    cells = cells_of((rng.random(at.size) < 0.5).astype(float), at, carried)
    assert kinds_of(cells, about).first_K.size == 5 * 2 * 5  # domains, with or without, right answers
