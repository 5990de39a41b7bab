"""Names that a harvest gives by itself."""

import pytest

from pytest_tfgrpo.harvest.job.tools import DOMAIN, named_as_an_id


@pytest.mark.parametrize(
    ("folder", "domain"),
    [
        ("shop", "shop"),
        ("shop.git", "shop"),
        ("My Shop (old)", "My-Shop-old"),
        ("-.shop.-", "shop"),
        ("\u6a21\u578b", "repository"),
        ("x" * 70, "x" * DOMAIN),
    ],
)
def test_a_domain_is_a_name_as_an_id_may_be(folder: str, domain: str) -> None:
    assert named_as_an_id(folder) == domain
    assert named_as_an_id(None, "-", f"@scope/{folder}") == domain
