"""The service of the live demo."""

from pathlib import Path

from pytest_tfgrpo.cli.demo.demo_service import open_service


def test_by_default_no_task_is_served_that_its_library_was_learned_from(tmp_path: Path) -> None:
    assert {scenario.split for scenario in open_service(tmp_path, 0).scenarios} == {"dev", "eval"}
