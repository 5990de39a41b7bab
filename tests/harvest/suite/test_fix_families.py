"""The families of fixes: by the files that they share with few others."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.harvest.suite.fix_families import FixPlace, families_by_files


def families(*files: str) -> dict[str, str]:
    """Return the families of fixes, each given by the letters of its files, the oldest first."""
    fixes = {f"fix{n}": FixPlace(committed_at=n, sources=tuple(letters)) for n, letters in enumerate(files)}
    return families_by_files(fixes)


def test_fixes_of_one_file_are_a_family_called_by_its_oldest_fix() -> None:
    assert families("a", "b", "a", "c", "b", "a") == {
        "fix0": "fix0", "fix2": "fix0", "fix5": "fix0", "fix1": "fix1", "fix4": "fix1"
    }  # fmt: skip


def test_a_file_that_over_a_quarter_of_the_fixes_change_joins_none() -> None:
    others = "bcdefghijklm"
    assert families(*"aaaa", *others) == dict.fromkeys(["fix0", "fix1", "fix2", "fix3"], "fix0")
    assert families(*"aaaa", *others[:-1]) == {}
    assert families(*["a"] * 40) == {}


def test_of_few_fixes_three_may_share_a_file() -> None:
    assert families("a", "a") == {"fix0": "fix0", "fix1": "fix0"}
    assert families("a", "a", "a") == dict.fromkeys(["fix0", "fix1", "fix2"], "fix0")
    assert families("a", "a", "a", "a") == {}


def test_a_fix_belongs_to_the_file_that_it_shares_with_the_fewest() -> None:
    assert families("ab", "a", "a", "b", "", "", "", "") == {
        "fix0": "fix0", "fix3": "fix0", "fix1": "fix1", "fix2": "fix1"
    }  # fmt: skip


def test_of_files_that_as_many_share_the_first_by_name_counts() -> None:
    assert families("ba", "ab", "", "") == {"fix0": "fix0", "fix1": "fix0"}


def test_of_fixes_of_one_time_the_first_by_id_names_the_family() -> None:
    places = {id_: FixPlace(committed_at=5, sources=("a",)) for id_ in ("fix-c", "fix-b", "fix-d")}
    assert set(families_by_files(places).values()) == {"fix-b"}
    places["fix-e"] = FixPlace(committed_at=4, sources=("b",))
    places["fix-a"] = FixPlace(committed_at=5, sources=("b",))
    assert families_by_files(places)["fix-a"] == "fix-e"


def test_a_chain_of_fixes_is_no_family() -> None:
    found = families(*[f"{chr(97 + n)}{chr(98 + n)}" for n in range(20)])
    assert max(list(found.values()).count(name) for name in found.values()) == 2


@given(st.lists(st.sets(st.sampled_from("abcdef"), max_size=3), max_size=40))
def test_a_family_shares_a_file_that_is_not_central_and_no_fix_is_alone_in_one(drawn: list[set[str]]) -> None:
    found = families(*["".join(sorted(letters)) for letters in drawn])
    for name in set(found.values()):
        members = [int(id_[3:]) for id_, of in found.items() if of == name]
        assert name == f"fix{min(members)}"
        assert 2 <= len(members) <= max(3, len(drawn) // 4)
        assert set.intersection(*[drawn[n] for n in members])
