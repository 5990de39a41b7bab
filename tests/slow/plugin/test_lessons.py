"""Lessons across runs: the committed library, stamps, the store, and what a reader is told of them."""

import json

import pytest
from support.frozen import Frozen
from support.plugin.lessons import teach
from support.project import Project

from pytest_tfgrpo.core.texts.text import plural


@pytest.fixture
def taught(frozen: Frozen) -> Project:
    """A project with a stamped pack whose first run was promoted to the committed library."""
    return frozen(teach)


def test_plain_mode_carries_the_committed_library_and_leaves_it_alone(taught: Project) -> None:
    before = (taught.root / "library.json").read_bytes()
    taught.run().assert_outcomes(passed=12, deselected=12)
    assert taught.run("--tfgrpo-library", "none").ret == pytest.ExitCode.TESTS_FAILED
    assert (taught.root / "library.json").read_bytes() == before


def test_lessons_of_another_pack_are_left_out_counted_and_warned_of_until_rebased(taught: Project) -> None:
    taught.write("prompt-packs/text/system.md", "Solve it well.\n")
    assert taught.cli("stamp") == 0
    lessons = len(json.loads((taught.root / "library.json").read_text())["experiences"])
    result = taught.learn()
    warning = f"{plural(lessons, 'lesson', 'was', 'were')} left out, learned with another prompt pack"
    assert any(text.startswith(warning) for text in taught.manifest()["warnings"])
    assert warning.split(":")[0] in " ".join(result.outlines)
    assert taught.report()["epochs"][0]["gt_score"]["mean"] < 1.0
    assert taught.cli("library", "rebase") == 0
    taught.learn()
    assert not any("left out" in text for text in taught.manifest()["warnings"])
    assert taught.report()["epochs"][0]["gt_score"]["mean"] == 1.0
