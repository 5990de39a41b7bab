"""The split by time: nothing is learned from the future."""

from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.harvest.suite.split_by_time import splits_by_time

RANK = {"train": 0, "dev": 1, "eval": 2}
sizes = st.integers(0, 39) | st.integers(40, 90) | st.integers(40, 60)


def scenarios(ids: str) -> st.SearchStrategy[dict[str, int]]:
    """Draw times by id, many of them equal; from 40 on there are splits."""
    drawn = sizes.flatmap(lambda size: st.lists(st.integers(0, 50), min_size=size, max_size=size))
    return drawn.map(lambda times: {f"{n * 7 % 10}{ids}{n}": time for n, time in enumerate(times)})


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


@reaches("splits", "none")
@given(scenarios("s"))
def test_time_goes_from_train_over_dev_to_eval(found):
    splits = splits_by_time(found.items())
    reached("splits" if len(set(splits.values())) == 3 else "none")
    ordered = [RANK[splits[id_]] for id_ in sorted(found, key=lambda id_: (found[id_], id_))]
    assert ordered == sorted(ordered)


@reaches("splits", "held train", "held dev")
@given(scenarios("s"), scenarios("m"))
def test_what_taught_never_measures_later(first, more):
    before = splits_by_time(first.items())
    both = {**more, **first}
    after, anew = splits_by_time(both.items(), before), splits_by_time(both.items())
    reached("splits", len(set(before.values())) == 3)
    for split in ("train", "dev"):
        reached(f"held {split}", any(before[id_] == split and RANK[anew[id_]] > RANK[split] for id_ in first))
    assert all(RANK[after[id_]] <= RANK[before[id_]] for id_ in first)
    ordered = [RANK[after[id_]] for id_ in sorted(both, key=lambda id_: (both[id_], id_))]
    assert ordered == sorted(ordered)
