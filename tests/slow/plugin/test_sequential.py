"""A sequential gate as pytest shows it: skipped items, one line, and a verdict that stands."""

import pytest
from support.frozen import Frozen
from support.plugin.sequential import save
from support.project import Project


@pytest.fixture
def saved(frozen: Frozen) -> Project:
    """A project of 60 eval scenarios whose baseline is right everywhere, and whose agent now is not."""
    return frozen(save)


def test_across_workers_the_same_is_skipped_and_said(saved: Project) -> None:
    result = saved.plugins("xdist").run("-n", "2")
    skipped = result.parseoutcomes()["skipped"]
    assert skipped == 60 - len(set(saved.calls)) > 10
    assert f"sequential gate  {skipped} rollouts saved" in "\n".join(result.outlines)
