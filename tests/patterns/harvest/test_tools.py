"""Names that a harvest gives by itself."""

from pathlib import Path

import pytest

from pytest_tfgrpo.patterns.harvest.tools import DOMAIN, domain_of


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
def test_a_domain_is_the_name_of_the_folder_as_an_id_may_be(tmp_path: Path, folder: str, domain: str) -> None:
    assert domain_of(tmp_path / folder) == domain
    (tmp_path / "link").symlink_to(tmp_path / folder)
    assert domain_of(tmp_path / "link") == domain
