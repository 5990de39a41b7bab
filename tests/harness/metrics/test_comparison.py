import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sweeps import evenly, make_run

from pytest_tfgrpo.harness.metrics.comparison import (
    Sweeps,
    Tally,
    compare,
    figures,
    sentence,
)


def row(total: float, n: int = 2, errors: int = 0, stamp: str = "x") -> Tally:
    return Tally(stamp=stamp, n=n, sum=total, sum_sq=total, errors=errors)


def test_scenarios_pair_by_id_and_task_stamp() -> None:
    before = {"a": row(1), "b": row(1), "changed": row(1, stamp="old"), "gone": row(1)}
    after = {"changed": row(2, stamp="new"), "b": row(2), "a": row(0), "new": row(2)}
    compared = compare(before, after)
    assert (compared.ids, compared.before_K, compared.after_K) == (("b", "a"), (0.5, 0.5), (1.0, 0.0))


def test_a_scenario_with_errors_only_pairs_when_errors_count_as_0() -> None:
    before, after = {"a": row(2)}, {"a": row(0, n=0, errors=2)}
    assert compare(before, after).ids == ()
    assert compare(before, after, errors_as_zero=True).after_K == (0.0,)


def test_sweeps_are_found_by_mode() -> None:
    run = make_run({"e": [1]}, {"e": [0]}, {"t": [1]})
    assert (Sweeps(run).before, Sweeps(run).after) == (run.phases[0], run.phases[2])
    assert (Sweeps(make_run(final={"e": [1]})).before, Sweeps(make_run({"e": [1]})).after) == (None, None)


def test_figures_and_words_tell_the_same() -> None:
    run = make_run(evenly(8, [0, 0]), evenly(8, [1, 0]))
    compared = compare(Sweeps(run).rows_before, Sweeps(run).rows_after)
    found = figures(compared)
    assert (found["n"], found["before"], found["after"], found["difference"]) == (8, 0, 0.5, 0.5)
    assert (found["method"], found["detectable"]) == ("exact", None)
    assert sentence(compared).startswith("+0.500 (from 0.000 to 0.500), 95 % interval +0.")


def test_nothing_in_common_is_said() -> None:
    compared = compare({}, {"a": row(1)})
    assert sentence(compared) == "no scenario is in both sweeps"
    assert (compared.before, compared.after, figures(compared)["difference"]) == (None, None, None)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)),
)
def test_swapping_the_sweeps_turns_the_difference_around(before: dict, after: dict) -> None:
    old = {id: row(total, n=4) for id, total in before.items()}
    new = {id: row(total, n=4) for id, total in after.items()}
    there, back = compare(old, new), compare(new, old)
    assert there.difference.n == back.difference.n == len(before.keys() & after.keys())
    if there.ids:
        assert there.difference.mean == pytest.approx(-back.difference.mean)
