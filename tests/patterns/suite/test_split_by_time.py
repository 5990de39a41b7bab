"""The split by time: nothing is learned from the future."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.patterns.suite.split_by_time import splits_by_time

RANK = {"train": 0, "dev": 1, "eval": 2}
times = st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.integers(0, 50), max_size=90)


def test_below_40_all_measure():
    assert set(splits_by_time((f"{n}", n) for n in range(39)).values()) == {"eval"}


def test_from_40_on_the_oldest_half_teaches_and_the_newest_third_measures():
    found = splits_by_time((f"s{n}", -n) for n in range(40))
    counts = {split: list(found.values()).count(split) for split in RANK}
    assert counts == {"train": 20, "dev": 8, "eval": 12}
    assert found["s39"] == "train"
    assert found["s0"] == "eval"


def test_a_dev_scenario_never_measures_when_older_fixes_come():
    before = splits_by_time((f"s{n}", 100 + n) for n in range(40))
    assert (before["s19"], before["s27"], before["s28"]) == ("train", "dev", "eval")
    both = [(f"old{n}", n) for n in range(5)] + [(f"s{n}", 100 + n) for n in range(40)]
    after = splits_by_time(both, before)
    assert {after[f"old{n}"] for n in range(5)} == {"train"}
    assert (after["s19"], after["s27"], after["s28"]) == ("train", "dev", "eval")


@given(times)
def test_time_goes_from_train_over_dev_to_eval(found):
    splits = splits_by_time(found.items())
    ordered = [RANK[splits[id_]] for id_ in sorted(found, key=lambda id_: (found[id_], id_))]
    assert ordered == sorted(ordered)


@given(times, times)
def test_what_taught_never_measures_later(first, more):
    before = splits_by_time(first.items())
    after = splits_by_time({**more, **first}.items(), before)
    assert all(RANK[after[id_]] <= RANK[before[id_]] for id_ in first)
    both = {**more, **first}
    ordered = [RANK[after[id_]] for id_ in sorted(both, key=lambda id_: (both[id_], id_))]
    assert ordered == sorted(ordered)
