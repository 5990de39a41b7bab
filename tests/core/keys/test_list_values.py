"""Settings with several values in one text."""

import pytest

from pytest_tfgrpo.core.keys.list_values import domains, limits, listed, variables


def test_entries_are_separated_by_commas_or_lines() -> None:
    assert listed("a, b c\n d,,a\n") == ("a", "b c", "d")
    assert listed(None) == ()
    assert variables("KEY, _x1") == ("KEY", "_x1")


def test_limits_have_units() -> None:
    assert limits("processes=64, memory = 2GB\nfile_size=100 MiB") == {
        "processes": 64,
        "memory": 2 * 10**9,
        "file_size": 100 * 2**20,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("memroy=2GB", "'memroy' is unknown; did you mean 'memory'"),
        ("memory", "memory='' is no limit"),
        ("memory=lots", "such as memory=2GB"),
        ("memory=0", "such as memory=2GB"),
        ("processes=2GB", "such as processes=64"),
        ("memory=1GB, memory=2GB", "'memory' is there twice"),
    ],
)
def test_a_wrong_limit_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        limits(text)


def test_a_domain_begins_where_a_line_or_comma_has_one() -> None:
    found = {"billing": ("small", "large"), "support": ("small",)}
    assert domains("billing = small, large\nsupport = small") == found
    assert domains("\n billing =\n  small\n  large,support=small,") == found
    assert domains(None) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("small, large", "must begin with a domain, such as 'billing = small'"),
        ("= small", "must begin with a domain"),
        ("billing =, support = small", "'billing' has none"),
        ("billing = small\nbilling = large", "'billing' is there twice"),
    ],
)
def test_wrong_agents_of_domains_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        domains(text)


@pytest.mark.parametrize("text", ["KEY=value", "1X", "A B"])
def test_a_variable_is_named_without_its_value(text: str) -> None:
    with pytest.raises(ValueError, match="names of") as error:
        variables(text)
    assert text not in str(error.value)


@pytest.mark.parametrize(
    ("unit", "bytes_"),
    [
        ("", 1),
        ("B", 1),
        ("KB", 1000),
        ("MB", 10**6),
        ("GB", 10**9),
        ("KiB", 1024),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
)
def test_bytes_have_units(unit: str, bytes_: int) -> None:
    assert limits(f"memory=3{unit}") == {"memory": 3 * bytes_}
    assert limits(f"file_size=1 {unit}".strip()) == {"file_size": bytes_}
