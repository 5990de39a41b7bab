"""A gate held against an old library or old prompt packs, which the run asks beside its own."""

import pytest
from support.frozen import Frozen
from support.plugin.references import held, lesson, look_again, rule, write_versions
from support.project import Project, item_names

from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.suite.packs import load_pack


@pytest.fixture
def versions(project: Project) -> Project:
    """A project with a pack, a library with a lesson, one without, and 12 eval scenarios, 4 without any."""
    return write_versions(project)


@pytest.mark.parametrize("kept", [30, 70, 150, 260])
def test_a_run_killed_at_any_time_ends_as_if_it_had_not_been(frozen: Frozen, kept: int) -> None:
    versions = frozen(look_again)
    before, folder = rule(versions), versions.runs()[-1]
    lines = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(lines[:kept]))
    (folder / "manifest.json").unlink()
    versions.run("--tfgrpo-resume=latest")
    assert rule(versions) == before
    save_library(versions.root / "empty.json", of([lesson(load_pack(versions.root / "prompt-packs/text"))]))
    (folder / "manifest.json").unlink()
    result = versions.run("--tfgrpo-resume=latest")
    result.stderr.fnmatch_lines(["*cannot be resumed: reference changed since*"])


def test_a_test_function_scores_both_sides_and_fails_for_the_new_one_alone(versions: Project) -> None:
    versions.checker("""
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_it(rollout: tfgrpo.Rollout):
    assert rollout.answer == "3"
""")
    result = held(versions, eval_rollouts=2).run("-v", "test_agent.py")
    assert [name.split("::")[1] for name in item_names(result)] == [
        "test_it[tfgrpo-baseline-r0]", "test_it[tfgrpo-baseline-r1]",
        "test_it[tfgrpo-eval-r0]", "test_it[tfgrpo-eval-r1]", "gate",
    ]  # fmt: skip
    assert versions.report()["gain"]["difference"] == 1.0
    outcomes = held(versions, "obedient", eval_rollouts=2).run("test_agent.py").parseoutcomes()
    assert outcomes.items() >= {"passed": 2, "below": 2, "failed": 1}.items()
