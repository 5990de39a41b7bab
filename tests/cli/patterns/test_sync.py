"""``tfgrpo patterns sync``."""

from pathlib import Path

from support.patterns.shelves import make_pattern, put
from support.tools import tfgrpo

from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision, move, write_candidate
from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus

NAME = "read-rows-at-once"


def active(repository: Path) -> Path:
    """Lay down an active pattern as a promotion does, and return its file."""
    shelf = put(repository)
    write_candidate(shelf, make_pattern())
    move(shelf, NAME, "promoted", ShelfDecision(by="ann", reason="it is so"))
    return shelf.place(PatternStatus.ACTIVE, NAME)


def test_what_was_not_screened_reaches_no_agent(repository: Path) -> None:
    path = active(repository)
    path.write_text(path.read_text().replace("in memory.", "there: !`id`"))
    for options in ([], ["--check"], ["--force"]):
        said = tfgrpo("patterns", "sync", *options, code=1)
        assert "nothing is written for agents until what is active is in order" in said
    assert not (repository / ".claude").exists()


def test_a_skill_of_others_is_named_and_not_offered_to_sync(repository: Path) -> None:
    active(repository)
    tfgrpo("patterns", "sync")
    (repository / ".claude/skills" / NAME / "SKILL.md").write_text("mine")
    said = tfgrpo("patterns", "sync", "--check", code=1)
    assert "somebody else wrote it" in said
    assert "run 'tfgrpo patterns sync'" not in said


def test_files_of_agents_are_checked_and_brought_up_to_date(repository: Path) -> None:
    assert tfgrpo("patterns", "sync") == "everything is up to date\n"
    active(repository)
    assert "2 files are not as the active patterns are" in tfgrpo("patterns", "sync", "--check", code=1)
    assert not (repository / ".claude").exists()
    said = tfgrpo("patterns", "sync", "--docs").splitlines()
    assert said == [
        f"added  .agents/skills/{NAME}/SKILL.md",
        f"added  .claude/skills/{NAME}/SKILL.md",
        "added  docs/patterns/index.md",
    ]
    assert tfgrpo("patterns", "sync", "--check") == "everything is up to date\n"
    skill = repository / ".claude/skills" / NAME / "SKILL.md"
    skill.write_text(skill.read_text() + "More.\n")
    assert "SKILL.md: somebody edited it; take that over" in tfgrpo("patterns", "sync", code=1)
    assert tfgrpo("patterns", "sync", "--force") == f"changed  .claude/skills/{NAME}/SKILL.md\n"
    for folder in (".agents", ".claude"):
        (repository / folder / "skills" / NAME / "SKILL.md").write_text("mine")
    said = tfgrpo("patterns", "sync", code=1)
    for folder in (".agents", ".claude"):
        assert f"{folder}/skills/{NAME}/SKILL.md: " in said


def test_learn_toml_says_what_is_kept_up_to_date(repository: Path) -> None:
    active(repository)
    (repository / "learn.toml").write_text('skills = []\nagents_md = "AGENTS.md"\n')
    assert tfgrpo("patterns", "sync") == "added  AGENTS.md\n"
    assert f"({NAME})" in (repository / "AGENTS.md").read_text()
